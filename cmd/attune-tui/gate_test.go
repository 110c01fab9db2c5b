package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// closeGate blocks inserts into a table whose new row meets a condition, until open is called. A run of many steps
// then stops at a known step, however long the test is paused.
func closeGate(t *testing.T, st *store.Store, url, table, when string) (open func()) {
	t.Helper()
	testkit.Exec(t, st, `create function pass_gate() returns trigger language plpgsql as $$
		begin perform pg_advisory_xact_lock_shared(4711); return new; end $$`)
	testkit.Exec(t, st, fmt.Sprintf(`create trigger pass_gate before insert on %s for each row when (%s)
		execute function pass_gate()`, table, when))
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `select pg_advisory_lock(4711)`)
	require.NoError(t, err)
	open = func() { _ = conn.Close(context.WithoutCancel(t.Context())) } // it may be closed already
	t.Cleanup(open)
	return open
}
