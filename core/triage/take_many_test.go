package triage_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// A take of 200,000 dead letters is stopped again and again: each time the rows and the messages in
// the queue add up. With as many rows in the ledger a poll of the dashboard costs no more than with
// a few.
func TestTwoHundredThousandDeadLetters(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "take 200,000 dead letters")
	const deadLetters = 200_000
	m := newBrokered(t)
	for i := range deadLetters {
		dead := deadDispatch(t, int64(i+1), "m"+strconv.Itoa(i))
		require.NoError(t, m.plain.Publish("", message.QueueDeadLetter, false, false, dead))
	}
	m.holds(message.QueueDeadLetter, deadLetters)
	began, taken := time.Now(), 0
	for taken < deadLetters {
		plan, err := m.operator.PlanTake(t.Context(), triage.TakeRequest{Rate: 1e6})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		r, err := m.operator.Take(triage.WithProgress(ctx, func(done, _ int64) {
			if done >= deadLetters/4 {
				stop()
			}
		}), plan)
		stop()
		require.NoError(t, err)
		taken += r.Taken
		require.Equal(t, r.Planned, r.Taken+r.Left)
		require.Equal(t, taken, m.waiting())
		m.holds(message.QueueDeadLetter, deadLetters-taken)
	}
	t.Logf("%d dead letters in %s", deadLetters, time.Since(began).Round(time.Second))
	testkit.Exec(t, m.store, `analyze dead_letter`)

	look := monitor.New(monitor.Config{}, monitor.Deps{Store: m.store})
	_, err := look.DeadLetters(t.Context())
	require.NoError(t, err)
	best := time.Hour
	for range 20 {
		began := time.Now()
		d, err := look.DeadLetters(t.Context())
		require.NoError(t, err)
		best = min(best, time.Since(began))
		require.Len(t, d.Ledger.Recent, monitor.LedgerRecent)
	}
	t.Logf("a poll of the list takes %s", best)
	require.Less(t, best, 50*time.Millisecond, "it does not count them all")
	purged := 0
	for purged < deadLetters {
		plan, err := m.operator.PlanDiscard(t.Context(), triage.DiscardRequest{})
		require.NoError(t, err)
		r, err := m.operator.DiscardMany(t.Context(), plan)
		require.NoError(t, err)
		purged += r.Discarded
		require.Equal(t, deadLetters-purged, m.waiting())
	}
}
