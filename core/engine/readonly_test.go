package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/lab/testkit"
)

// lockedBuffer is a log that may be read while it grows.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A running replica whose database becomes read only is not ready, and says why in /readyz and in its log, until it
// may write again.
func TestAReplicaOfAReadOnlyDatabaseIsNotReady(t *testing.T) {
	b := setupOn(t, testkit.OwnDatabase(t))
	lines := &lockedBuffer{}
	e, err := engine.New(testkit.Context(t), b.config(),
		engine.Deps{Logger: slog.New(slog.NewTextHandler(lines, nil)), Version: "test"})
	require.NoError(t, err)
	require.NoError(t, e.Start(testkit.Context(t)))
	t.Cleanup(func() { require.NoError(t, e.Stop(context.Background())) })
	check := func(name string) (ok bool, detail string) {
		for _, c := range e.Ready(testkit.Context(t)) {
			if c.Name == name {
				return c.OK, c.Detail
			}
		}
		return false, "no such check"
	}
	healthy := func() bool {
		database, _ := check("database")
		loop, _ := check("loop replica")
		return database && loop
	}
	testkit.Eventually(t, healthy, 30*time.Second)

	database := ""
	require.NoError(t, b.store.Pool().QueryRow(t.Context(), `SELECT quote_ident(current_database())`).Scan(&database))
	alter := "ALTER DATABASE " + database
	testkit.Exec(t, b.store, alter+" SET default_transaction_read_only = on")
	testkit.Exec(t, b.store, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	says := "the database is read only: " + alter + " SET default_transaction_read_only = on: find out why"
	testkit.Eventually(t, func() bool {
		ok, detail := check("database")
		return !ok && strings.Contains(detail, says) && strings.Contains(lines.String(), says)
	}, 30*time.Second)

	_, err = b.store.Pool().Exec(t.Context(), "SET default_transaction_read_only = off; "+alter+
		" RESET default_transaction_read_only")
	if err != nil { // the pool has a new, read-only connection
		_, err = b.store.Pool().Exec(t.Context(), "BEGIN READ WRITE; "+alter+" RESET default_transaction_read_only; COMMIT")
	}
	require.NoError(t, err)
	testkit.Eventually(t, healthy, 60*time.Second, "it continues by itself")
}
