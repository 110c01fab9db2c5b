package recovery

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// Executions that fit no other worker do not hide the other executions of leaving workers: sweeps find each of them,
// page by page.
func TestAllExecutionsOfLeavingWorkersAreFound(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.a")
	state := testkit.State(t, st, action, 999)
	id := testkit.Worker(t, st, "drains", func(w *testkit.WorkerRow) {
		w.Draining, w.Capabilities = true, map[string]any{"attempt_fence": true}
	}).ID
	const held = maxPerQueue + 5
	testkit.Exec(t, st, `UPDATE worker_load SET assigned = $2 WHERE worker = $1`, id, held)
	testkit.Exec(t, st, `WITH e AS (
			INSERT INTO execution (action, action_ref, status, worker, attempt) SELECT $1, 'pk.a', 'scheduled', $2, 1 FROM generate_series(1, $4) RETURNING id)
		INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at) SELECT e.id, $3, $2, 1, now() FROM e`,
		action.ID, id, state.ID, held)
	s, _ := sweeper(t, st, Config{})
	found := map[int64]int{}
	sizes := []int{maxPerQueue, 5, maxPerQueue}
	for _, size := range sizes {
		require.NoError(t, st.Tx(testkit.Context(t), "look", func(ctx context.Context, tx *store.Tx) error {
			page, err := s.leaving(ctx, tx)
			require.Len(t, page, size)
			for _, one := range page {
				found[one.Execution]++
			}
			return err
		}))
	}
	require.Len(t, found, held)
}
