package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Errors are told apart by their codes and fields: the server's messages are in its own language.
func TestErrorsInAnotherLanguage(t *testing.T) {
	t.Parallel()
	server := func(code, message, routine string) error {
		return fmt.Errorf("write: %w", &pgconn.PgError{
			Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: code, Message: message, Routine: routine,
		})
	}
	stale := server("0A000", "gecachter Plan darf den Ergebnistyp nicht ändern", "RevalidateCachedQuery")
	require.True(t, isStalePlan(stale))
	require.False(t, isStalePlan(server("0A000", "cached plan must not change result type", "transformStmt")))
	message, denied := Denied(server("42501", "keine Berechtigung für Tabelle execution", "aclcheck_error"))
	require.True(t, denied)
	require.Equal(t, "keine Berechtigung für Tabelle execution", message)
	require.Equal(t, "the database has no connection left for the login : its CONNECTION LIMIT is reached",
		Trouble(server("53300", "zu viele Verbindungen für Rolle", "InitializeSessionUserId")).Fact)
	require.Contains(t, Trouble(server("57014", "breche Anweisung ab", "ProcessInterrupts")).Fact,
		"took too long or was cancelled (breche Anweisung ab, SQLSTATE 57014)")

	refused := &session{}
	err := refused.committed(pgconn.CommandTag{}, server("23503", "Einfügen verletzt Fremdschlüssel", ""))
	require.Equal(t, ClassRefused, ClassOf(err), "the server answered: nothing is unknown")
}

// A failed write to a file is no failure of the network, although its system call is a net.Error too.
func TestAFullDiskIsNotTheNetwork(t *testing.T) {
	t.Parallel()
	require.Equal(t, ClassFatal, ClassOf(&fs.PathError{Op: "write", Path: "/dev/full", Err: syscall.ENOSPC}))
	require.Equal(t, ClassFatal, ClassOf(&fs.PathError{Op: "mkdir", Path: "/none", Err: syscall.EACCES}))
	require.Empty(t, Trouble(nil).String())
	require.Equal(t, "other", Trouble(errors.New("other")).String())
}
