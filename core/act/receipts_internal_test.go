package act

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/triage"
)

// A receipt is only whole if all that was planned was done.
func TestAReceiptOfLessThanPlannedIsNotWhole(t *testing.T) {
	t.Parallel()
	all := triage.DeadLetterMatch{}
	whole := func(r *Receipt) bool { return !r.Partly && !r.Unchanged }
	require.True(t, whole(takeReceipt(&triage.TakeReceipt{Planned: 2, Taken: 2, New: 2}, all)))
	lost := takeReceipt(&triage.TakeReceipt{Planned: 15, Absent: 15, Lost: "they are lost: bob purged q"}, all)
	require.False(t, whole(lost))
	require.Equal(t, "0 of 15 taken, 15 gone.", lost.Text)
	require.Equal(t, Warn, lost.Lines[0].Tone)
	require.Equal(t, "▲ 15 had left the queue; they are lost: bob purged q", lost.Lines[0].Text)
	require.False(t, whole(takeReceipt(&triage.TakeReceipt{Planned: 15, Taken: 1, New: 1, Absent: 14}, all)))
	require.False(t, whole(cancelReceipt(&triage.CancelReceipt{})))
}
