package retention

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// A family that has changed since it was found stays: something open refers to it, or it has another member.
func TestAFamilyThatHasChangedStays(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	var ids []int64
	for range 3 {
		ids = append(ids, testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusCompleted }).ID)
	}
	testkit.Exec(t, st, `ALTER TABLE execution DISABLE TRIGGER USER`)
	testkit.Exec(t, st, `UPDATE execution SET created = created - interval '100 days', updated = updated - interval '100 days',
		finished_at = finished_at - interval '100 days', parent = CASE WHEN id = $1 THEN $2::bigint END`, ids[2], ids[1])
	testkit.Exec(t, st, `ALTER TABLE execution ENABLE TRIGGER USER`)
	e := NewExecutions(ExecutionsConfig{Executions: 90 * 24 * time.Hour}, st, testkit.Logger(t), nil, nil)
	var families []store.FindFamiliesRow
	require.NoError(t, e.indexed(testkit.Context(t), pageTimeout, func(ctx context.Context, tx *store.Tx) (err error) {
		families, err = e.find(ctx, tx, ids[:2])
		return err
	}))
	require.Len(t, families, 2)
	testkit.Exec(t, st, `INSERT INTO dead_letter (fingerprint, reason, body, execution) VALUES ('x', 'expired', '', $1)`, ids[0])
	found := families[1].Members
	families[1].Members = found[:1]
	removed, err := e.delete(testkit.Context(t), families)
	require.NoError(t, err)
	require.Zero(t, removed)
	families[1].Members = found
	removed, err = e.delete(testkit.Context(t), families)
	require.NoError(t, err)
	require.EqualValues(t, 2, removed)
}
