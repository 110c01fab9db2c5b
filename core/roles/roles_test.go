package roles_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// login creates a login of a role, and returns a connection.
func login(t *testing.T, role roles.Role, database, amqp string) *pgx.Conn {
	t.Helper()
	l := testkit.NewLogin(t, role, database, amqp)
	conn, err := pgx.Connect(t.Context(), l.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), "SET search_path TO "+testkit.Schema)
	require.NoError(t, err)
	return conn
}

// refused fails unless the database refuses a statement for a missing privilege. It plans the statement only.
func refused(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if !regexp.MustCompile(`^(CREATE|ALTER|DROP|TRUNCATE|SELECT attune)`).MatchString(sql) {
		sql = "EXPLAIN " + sql
	}
	_, err := conn.Exec(t.Context(), sql)
	answer, ok := errors.AsType[*pgconn.PgError](err)
	require.True(t, ok, "%s: %v", sql, err)
	require.Equal(t, "42501", answer.Code, "%s: %v", sql, err)
}

// Each role is refused everything outside of its own work.
func TestRolesAreRefusedEverythingElse(t *testing.T) {
	database, amqp := testkit.Database(t), testkit.VHost(t)
	everyRole := []string{
		"CREATE TABLE mine (id int)", "ALTER TABLE execution ADD COLUMN mine int", "DROP TABLE policy", "TRUNCATE execution",
		"UPDATE policy SET threshold = 1", "UPDATE action SET entrypoint = 'x'", "UPDATE rule SET conditions = '{}'",
		"INSERT INTO identity (login) VALUES ('x')", "SELECT password_hash FROM identity", "DELETE FROM execution_history",
		"UPDATE operator_audit SET actor = 'x' WHERE false", "SELECT * FROM trigger",
	}
	partitions := []string{
		"SELECT attune_partition_drop('event', 'event')", "SELECT attune_partition_default('event')",
	}
	for role, more := range map[roles.Role][]string{
		roles.Engine: {"DELETE FROM event", "UPDATE pack SET config = '{}'", "INSERT INTO worker (name) VALUES ('x')"},
		roles.Worker: append(partitions, "INSERT INTO execution (action_ref) VALUES ('x')", "UPDATE execution SET worker = 1",
			"UPDATE execution SET config = '{}'", "DELETE FROM execution", "UPDATE worker SET cordoned = false",
			"SELECT * FROM outbox", "SELECT * FROM dead_letter", "SELECT env_vars FROM execution", "DELETE FROM worker",
			"INSERT INTO execution_cancel (execution) VALUES (1)", "INSERT INTO outbox DEFAULT VALUES"),
		roles.Operator: append(partitions, "UPDATE execution SET config = '{}'", "DELETE FROM execution",
			"DELETE FROM operator_audit", "DELETE FROM dead_letter", "UPDATE dead_letter SET body = ''",
			"UPDATE worker SET last_heartbeat = now()", "INSERT INTO event (trigger_ref) VALUES ('x')"),
		roles.Viewer: append(partitions, "SELECT * FROM execution_secret_value", "UPDATE execution SET status = 'failed'",
			"INSERT INTO operator_audit DEFAULT VALUES", "UPDATE worker SET cordoned = true", "DELETE FROM outbox",
			"INSERT INTO execution (action_ref) VALUES ('x')", "SELECT config FROM pack", "SELECT webhook_key FROM trigger"),
	} {
		conn := login(t, role, database, amqp)
		for _, sql := range append(more, everyRole...) {
			if role == roles.Engine && strings.HasPrefix(sql, "UPDATE operator_audit") {
				continue // it serves the HTTP API, which acts
			}
			refused(t, conn, sql)
		}
		if testkit.Adopted() && role != roles.Worker {
			refused(t, conn, "SELECT value FROM key")
		}
	}
}

// A login has exactly the privileges of its role. When the role is applied again, it loses additional grants and
// gets revoked ones.
func TestAppliedRolesAreExact(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]string{
		"own": testkit.OwnDatabase(t), "adopted": testkit.AdoptedDatabase(t),
	} {
		owner := testkit.OpenStore(t, database)
		amqp := testkit.VHost(t)
		for _, role := range roles.All {
			l := testkit.NewLogin(t, role, database, amqp)
			compare := func() *roles.Difference {
				d, err := roles.Compare(t.Context(), owner.Pool(), role, testkit.Schema, l.Name)
				require.NoError(t, err)
				return d
			}
			require.Empty(t, compare().Missing, "%s: %s", name, role)
			require.Empty(t, compare().Beyond, "%s: %s", name, role)
			testkit.Exec(t, owner, fmt.Sprintf(`GRANT UPDATE (threshold) ON policy TO %[1]s; GRANT ALL ON late_write TO %[1]s;
				REVOKE ALL ON execution FROM %[1]s; GRANT CREATE ON SCHEMA %[2]s TO %[1]s`, l.Name, testkit.Schema))
			d := compare()
			require.Len(t, d.Missing, 1, "%v", d.Missing)
			require.Contains(t, d.Missing[0], " ON "+testkit.Schema+".execution TO "+l.Name)
			require.Contains(t, d.Beyond, "UPDATE (threshold) ON policy")
			require.Contains(t, d.Beyond, "CREATE ON SCHEMA "+testkit.Schema)
			sql, err := roles.Statements(t.Context(), owner.Pool(), role, testkit.Schema, l.Name)
			require.NoError(t, err)
			for _, one := range sql {
				testkit.Exec(t, owner, one)
			}
			require.Equal(t, &roles.Difference{Login: l.Name}, compare())
		}
		_, err := roles.Statements(t.Context(), owner.Pool(), roles.Viewer, testkit.Schema, owner.Login())
		require.ErrorIs(t, err, roles.ErrOwner)
	}
	empty := testkit.EmptyDatabase(t)
	_, err := roles.Statements(t.Context(), testkit.OpenStore(t, empty).Pool(), roles.Viewer, testkit.Schema, "x")
	require.ErrorIs(t, err, roles.ErrNoSchema)
}

// The broker refuses all other declarations, writes and reads of a role.
func TestBrokerPermissionsAreExact(t *testing.T) {
	t.Parallel()
	matches := func(expression, name string) bool { return regexp.MustCompile(expression).MatchString(name) }
	for _, role := range roles.All {
		b := roles.BrokerOf(role)
		for _, expression := range []string{b.Configure, b.Write, b.Read} {
			require.True(t, strings.HasPrefix(expression, "^") && strings.HasSuffix(expression, "$"), expression)
			for _, other := range []string{"", "other", "attune.other.queue", "xattune.dlx", "worker.7.other"} {
				require.Equal(t, other == "" && expression == "^$", matches(expression, other), "%s: %q in %s", role,
					other, expression)
			}
		}
		require.Equal(t, role == roles.Engine || role == roles.Operator, matches(b.Read, message.QueueDeadLetter), role)
		require.Equal(t, role == roles.Engine, matches(b.Read, message.QueueExecutionRequests), role)
		takes := role == roles.Worker || role == roles.Operator
		require.Equal(t, takes, matches(b.Read, message.WorkerExecutionsQueue(7)), role)
		declares := role == roles.Engine || role == roles.Worker
		require.Equal(t, declares, matches(b.Configure, message.ExchangeExecutions), role)
	}
	for _, role := range []roles.Role{roles.Worker, roles.Viewer} {
		amqp := testkit.VHost(t)
		l := testkit.NewLogin(t, role, testkit.Database(t), amqp)
		wire := broker.New(broker.Config{URL: l.AMQPURL, ConnectionName: "test"}, testkit.Logger(t), nil)
		require.NoError(t, wire.Start(testkit.Context(t)))
		t.Cleanup(wire.Stop)
		require.True(t, broker.Denied(wire.DeclareExecutor(testkit.Context(t))), role)
	}
	require.Equal(t, "rabbitmqctl set_permissions -p '/' 'o''\\''x' '^$' '^$' '^$'",
		strings.ReplaceAll(roles.BrokerOf(roles.Viewer).Commands("/", "o'x")[0], `'o'\''x'`, `'o''\''x'`))
}

// An operator requeues dead letters, and reopens the ones that were discarded.
func TestAnOperatorReopensDeadLetters(t *testing.T) {
	database := testkit.Database(t)
	l := testkit.NewLogin(t, roles.Operator, database, testkit.VHost(t))
	owner, st := testkit.OpenStore(t, database), testkit.OpenStore(t, l.DatabaseURL)
	var id int64
	require.NoError(t, owner.Pool().QueryRow(t.Context(), `INSERT INTO dead_letter (fingerprint, reason, body, decision,
		decided_by, decided_at) VALUES ('x', 'taken', '', 'discarded', 'operator', now()) RETURNING id`).Scan(&id))
	require.NoError(t, st.Tx(t.Context(), "reopen", func(ctx context.Context, tx *store.Tx) error {
		reopened, err := deadletter.Reopen(ctx, tx, []int64{id}, "operator", "by mistake")
		require.Equal(t, []int64{id}, reopened)
		return err
	}))
}
