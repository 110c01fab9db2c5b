package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/migrations"
)

// errReadOnly reports a database that would refuse a write.
var errReadOnly = errors.New("the database takes no writes")

// Check reports whether the server answers and new sessions may write. It writes nothing.
func (s *Store) Check(ctx context.Context) error {
	readOnly, err := readOnly(ctx, s.pool)
	if err == nil && readOnly.Fact != "" {
		err = readOnly.Because(errReadOnly)
	}
	return err
}

// Named adds the cause to an error about a database that takes no writes.
func (s *Store) Named(ctx context.Context, err error) error {
	if codeOf(err) != readOnlyState {
		return err
	}
	if cause, failed := readOnly(ctx, s.pool); failed == nil && cause.Fact != "" {
		return cause.Because(err)
	}
	return err
}

// ReadOnly returns why new sessions cannot write; it is empty if they can.
func (tx *Tx) ReadOnly(ctx context.Context) (phrase.Trouble, error) { return readOnly(ctx, tx.session) }

// readOnlySQL finds what makes new sessions read only. The reset value of a setting is that of the session's start,
// before a read-only pool has set its own.
const readOnlySQL = `
SELECT pg_is_in_recovery(), s.reset_val = 'on', 
  coalesce((SELECT concat_ws(' ', 'ALTER', CASE WHEN d.setrole <> 0 THEN format('ROLE %I', session_user)
      WHEN d.setdatabase = 0 THEN 'ROLE ALL' END,
    CASE WHEN d.setrole <> 0 AND d.setdatabase <> 0 THEN 'IN' END,
    CASE WHEN d.setdatabase <> 0 THEN format('DATABASE %I', current_database()) END)
  FROM pg_db_role_setting d, unnest(d.setconfig) AS setting
  WHERE d.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    AND d.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
    AND split_part(setting, '=', 1) = s.name
  ORDER BY d.setrole <> 0 DESC, d.setdatabase <> 0 DESC LIMIT 1), '')
FROM pg_settings s WHERE s.name = 'default_transaction_read_only'`

func readOnly(ctx context.Context, db DBTX) (phrase.Trouble, error) {
	var standby, readOnly bool
	var setting string
	err := db.QueryRow(ctx, readOnlySQL).Scan(&standby, &readOnly, &setting)
	fact, fix := "", "find out why (a provider sets it when the disk is full), "
	switch {
	case err != nil:
		return phrase.Trouble{}, fmt.Errorf("read whether the database takes writes: %w", classified(err))
	case standby:
		fact, fix = "it is a standby", "name the primary in database.url, or promote this server"
	case !readOnly:
		return phrase.Trouble{}, nil
	case setting != "":
		fact, fix = setting+" SET default_transaction_read_only = on", fix+"then "+setting+
			" RESET default_transaction_read_only"
	default:
		fact = "default_transaction_read_only is on in the configuration of the server, or in database.url"
		fix += "then turn it off and reload the server"
	}
	return phrase.Trouble{Fact: "the database is read only: " + fact, Fix: fix}, nil
}

// Trouble says what an error of a store means for an operator. It uses the SQLSTATE and the fields of the server's
// error, whose text is in the server's language and only quoted.
func Trouble(err error) phrase.Trouble {
	if err == nil {
		return phrase.Trouble{}
	}
	if known, ok := errors.AsType[phrase.Trouble](err); ok {
		return known
	}
	login, database := "", ""
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		login, database = connect.Config.User, connect.Config.Database
	}
	server, answered := errors.AsType[*pgconn.PgError](err)
	encoding, misencoded := errors.AsType[*migrations.EncodingError](err)
	switch {
	case IsPooler(err):
		return phrase.Trouble{
			Fact: "the database is behind a connection pooler",
			Fix:  "name PostgreSQL itself in database.url: each program has its own pool",
		}
	case errors.Is(err, migrations.ErrClearText):
		return sentence(migrations.ErrClearText)
	case misencoded:
		return sentence(encoding)
	case errors.Is(err, pgconn.ErrReadOnlyConnection), errors.Is(err, pgconn.ErrStandbyConnection):
		return phrase.Trouble{
			Fact: "no server of database.url takes writes, which its target_session_attrs demands",
			Fix:  "start or promote the primary, or lift default_transaction_read_only where it is set",
		}
	case !answered:
		return withoutAnswer(err)
	}
	said := " (" + server.Message + ", SQLSTATE " + server.Code + ")"
	found, connecting := meaningOf(server.Code), isRefusedConnection(err)
	switch {
	case server.Code == noneLeft:
		return noConnectionLeft(server, login, database)
	case connecting && server.Code == deniedState:
		found.fact, found.fix = refusedLogin, "GRANT CONNECT ON DATABASE {database} TO {login}"
	case connecting && (found.fact == "" || found.fact == misfit):
		found.fact, found.fix = "the database refuses connections{said}", "repair that, or correct database.url"
	case found.fact == "":
		found.fact, found.fix = "the database refuses a statement{said}", readLog
	}
	known := strings.NewReplacer("{login}", login, "{database}", database, "{said}", said)
	return phrase.Trouble{Fact: known.Replace(found.fact), Fix: known.Replace(found.fix)}
}

// sentence is the trouble of an error that says what to do behind a colon.
func sentence(err error) phrase.Trouble {
	fact, fix, _ := strings.Cut(err.Error(), ": ")
	return phrase.Trouble{Fact: fact, Fix: fix}
}

// noConnectionLeft names the limit by the server's function that found it reached.
func noConnectionLeft(server *pgconn.PgError, login, database string) phrase.Trouble {
	lower := ", or lower database.max_connections of the programs that use it"
	switch server.Routine {
	case "InitializeSessionUserId":
		return phrase.Trouble{
			Fact: "the database has no connection left for the login " + login + ": its CONNECTION LIMIT is reached",
			Fix:  "raise it with ALTER ROLE " + pgx.Identifier{login}.Sanitize() + " CONNECTION LIMIT" + lower,
		}
	case "CheckMyDatabase":
		return phrase.Trouble{
			Fact: "the database " + database + " has no connection left: its CONNECTION LIMIT is reached",
			Fix:  "raise it with ALTER DATABASE " + pgx.Identifier{database}.Sanitize() + " CONNECTION LIMIT" + lower,
		}
	default:
		return phrase.Trouble{
			Fact: "the database has no connection left: max_connections of the server is reached",
			Fix:  "raise it" + lower,
		}
	}
}

// withoutAnswer is the trouble of an error that no server has sent.
func withoutAnswer(err error) phrase.Trouble {
	const start = "start it, or correct database.url"
	network := phrase.Network(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return phrase.Trouble{
			Fact: "the database " + network, Fix: "start it, look for locks and load, or correct database.url",
		}
	case network != "":
		return phrase.Trouble{Fact: "the database " + network, Fix: start}
	case isConnectionError(err):
		reason := err
		if dial, ok := errors.AsType[*net.OpError](err); ok {
			reason = dial
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return phrase.Trouble{Fact: "the database broke off the connection", Fix: start}
		}
		return phrase.Trouble{Fact: "the database cannot be reached (" + lastLine(reason.Error()) + ")", Fix: start}
	default:
		return phrase.Trouble{Fact: strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
}

// lastLine is the last line of an error: the driver lists each attempt.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return cmp.Or(strings.TrimSpace(lines[len(lines)-1]), text)
}
