package testkit

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/lab/query"
)

// rolePrefix begins the names of logins; a password is the same for all.
const rolePrefix, rolePassword = "attune_test_role_", "role"

// Login is a login of the database and a user of the broker with the privileges of one role.
type Login struct {
	Name string
	// DatabaseURL, AMQPURL and ManagementURL are the addresses with the login.
	DatabaseURL, AMQPURL, ManagementURL string
}

// NewLogin creates a login and a user of a role for one database and one virtual host, and removes both at the end
// of the test.
func NewLogin(t testing.TB, role roles.Role, databaseURL, amqpURL string) Login {
	t.Helper()
	ctx := Context(t)
	l := Login{Name: uniqueName(rolePrefix)}
	require.NoError(t, withConn(ctx, databaseURL, func(conn *pgx.Conn) error {
		sql, err := roles.Statements(ctx, conn, role, Schema, l.Name)
		if err != nil {
			return err
		}
		return execAll(ctx, conn, append(sql, "ALTER ROLE "+l.Name+" PASSWORD '"+rolePassword+"'")...)
	}))
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		require.NoError(t, withConn(ctx, databaseURL, func(conn *pgx.Conn) error {
			return execAll(ctx, conn, "DROP OWNED BY "+l.Name, "DROP ROLE "+l.Name)
		}))
	})
	may := roles.BrokerOf(role)
	user := map[string]string{"password": rolePassword, "tags": may.Tag}
	Manage(t, http.MethodPut, "/api/users/"+l.Name, user, nil)
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		err := manage(ctx, ManagementURL(t), http.MethodDelete, "/api/users/"+l.Name, nil, nil)
		require.True(t, err == nil || errors.Is(err, errAbsent), "%v", err)
	})
	rights := map[string]string{"configure": may.Configure, "write": may.Write, "read": may.Read}
	Manage(t, http.MethodPut, "/api/permissions/"+url.PathEscape(VHostName(t, amqpURL))+"/"+l.Name, rights, nil)
	l.DatabaseURL, l.AMQPURL, l.ManagementURL = l.at(t, databaseURL), l.at(t, amqpURL), l.at(t, ManagementURL(t))
	return l
}

// at returns an address with the login.
func (l Login) at(t testing.TB, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	parsed.User = url.UserPassword(l.Name, rolePassword)
	return parsed.String()
}

// sweepLogins drops the logins of killed test binaries, whose databases are gone.
func sweepLogins(ctx context.Context, conn *pgx.Conn) error {
	names, err := query.Column[string](ctx, conn, "list logins", "select rolname::text from pg_roles")
	if err != nil {
		return err
	}
	for _, name := range names {
		if abandoned(name, rolePrefix) {
			if err := execAll(ctx, conn, "drop role if exists "+name); err != nil {
				return err
			}
		}
	}
	return nil
}
