package inquiry_test

import (
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// announce settles answers as two replicas do that receive the same messages.
func (b *bundle) announce(t *testing.T, all ...inquiry.Announced) (missing []int64, metrics *prometheus.Registry) {
	t.Helper()
	metrics = prometheus.NewRegistry()
	responses := inquiry.Responses{Store: b.store, Relay: b.relay, Metrics: inquiry.NewMetrics(metrics)}
	var replicas sync.WaitGroup
	for i := range 2 {
		replicas.Go(func() {
			unknown, err := responses.Settle(testkit.Context(t), all)
			if err != nil {
				t.Error(err)
			}
			if i == 0 {
				missing = unknown
			}
		})
	}
	replicas.Wait()
	return missing, metrics
}

// L1, S14: an answer of another service is settled once, however many messages come to any replicas; the row has the
// answer. A message that names no inquiry is reported and blocks no other.
func TestAnswersOfAnotherServiceAreSettled(t *testing.T) {
	b := setup(t)
	ada := int64(testkit.Count(t, b.store, `INSERT INTO identity (login) VALUES ('ada') RETURNING id`))
	task, open := b.task(t), b.task(t)
	wakes := b.result(t, object{"__inquiry": object{"prompt": "go on?"}})
	timedOut := b.task(t)
	testkit.Exec(t, b.store, `UPDATE inquiry SET status = 'responded', response = '"from the row"', responded_at = now() WHERE id = ANY ($1)`,
		[]int64{task.inquiry, wakes.inquiry})
	b.ended(t, timedOut.execution, "timeout")
	testkit.Exec(t, b.store, `UPDATE inquiry SET status = 'responded', response = '1' WHERE id = $1`, timedOut.inquiry)

	announced := []inquiry.Announced{
		{Inquiry: task.inquiry, By: &ada}, {Inquiry: wakes.inquiry}, {Inquiry: 999}, {Inquiry: open.inquiry},
		{Inquiry: timedOut.inquiry},
	}
	for range 3 {
		missing, metrics := b.announce(t, append(announced, announced...)...)
		require.Equal(t, []int64{999, 999}, missing)
		n, err := testutil.GatherAndCount(metrics, "attune_inquiry_responses_total")
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	b.becomes(t, task, inquiry.Responded, lifecycle.StatusCompleted)
	b.becomes(t, wakes, inquiry.Responded, lifecycle.StatusCompleted)
	b.becomes(t, timedOut, inquiry.Responded, lifecycle.StatusTimeout)
	require.Equal(t, inquiry.Pending, b.status(t, open.inquiry), "a message is no answer")
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, open.execution))
	require.Contains(t, b.resultOf(t, task.execution), `"from the row"`)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE id = $1 AND responded_by = $2`,
		task.inquiry, ada))
	require.Equal(t, map[int64]int{task.execution: 1, wakes.execution: 1}, b.relay.completions(t))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`))
}
