package migrations_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// An error changes nothing, an interrupted removal continues without a second hand-back, and nothing is removed
// without a hand-back.
func TestTheQueuesAreHandedBackBeforeAnythingIsRemoved(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts := migrations.Options{URL: testkit.AdoptedDatabase(t), Schema: testkit.Schema}
	calls := 0
	refused := errors.New("not now")
	opts.HandBack = func(context.Context) error { calls++; return refused }
	_, err := migrations.Down(ctx, opts, 0)
	require.ErrorIs(t, err, refused)
	state, err := migrations.Status(ctx, opts)
	require.NoError(t, err)
	require.True(t, state.Current(), "nothing was removed")

	_, err = migrations.Down(ctx, opts, state.Version)
	require.NoError(t, err, "nothing is handed back if the schema stays")
	require.Equal(t, 1, calls)
	conn := connect(t, opts)
	exec(t, conn, "DELETE FROM attune_schema_version WHERE version_id = 105")
	_, err = migrations.Down(ctx, opts, 0)
	require.ErrorIs(t, err, migrations.ErrHalfWay)
	exec(t, conn, "INSERT INTO attune_schema_version (version_id, is_applied) VALUES (105, true)")

	opts.HandBack = func(context.Context) error { calls++; return nil }
	exec(t, conn, "BEGIN")
	one[int64](t, conn, "SELECT count(*) FROM execution")
	opts.WaitTimeout = 500 * time.Millisecond
	_, err = migrations.Down(ctx, opts, 0)
	require.ErrorContains(t, err, "a lock on execution is held by pid")
	exec(t, conn, "COMMIT")
	opts.WaitTimeout = 0
	_, err = migrations.Down(ctx, opts, 0)
	require.NoError(t, err)
	require.Equal(t, 2, calls)
	require.NotContains(t, shape(t, conn), "relation attune_schema_origin")
}
