package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/core/testkit"
)

// TestWhatAHandlerOfOthersFailedIsListed: where no ledger is kept, rows say which
// hand-overs expired, with the verdict that a plan gives.
func TestWhatAHandlerOfOthersFailedIsListed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	testkit.Exec(t, b.store, `drop table dead_letter cascade`)
	testkit.Exec(t, b.store, `alter table execution disable trigger user`)
	action := testkit.Action(t, b.store, "demo.sleep")
	var ids []int64
	for range 3 {
		ids = append(ids, testkit.Execution(t, b.store, action).ID)
	}
	testkit.Exec(t, b.store, `update execution set status = 'failed', result = '{"error": "Worker queue TTL expired"}' where id = any ($1)`, ids[:2])
	d, err := b.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Nil(t, d.Ledger)
	require.Len(t, d.Handled, 2)
	require.Equal(t, ids[1], d.Handled[0].ID, "the newest first")
	require.Equal(t, redrive.Requeue, d.Handled[0].Verdict.Do)

	rows, err := b.LetterRows(t.Context(), append(ids, 1<<40))
	require.NoError(t, err)
	require.False(t, rows.Ours)
	require.Len(t, rows.Rows, 3)
	require.True(t, rows.Rows[ids[0]].Expired)
	require.False(t, rows.Rows[ids[2]].Expired)
}
