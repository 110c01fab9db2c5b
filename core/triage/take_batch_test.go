package triage_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// A dead batch becomes one row of the ledger for each execution, like the dead letter of a single message.
func TestABatchIsTakenAsItsSingleMessages(t *testing.T) {
	m := newBrokered(t)
	var payloads []message.Dispatch
	for i := range 3 {
		payloads = append(payloads,
			message.Dispatch{ExecutionID: int64(i + 1), WorkerID: 7, ActionRef: "pk.do", Attempt: 1})
	}
	sent, err := message.Batches(message.TypeExecutionBatchRequested, payloads, time.Now(), "test")
	require.NoError(t, err)
	batch := deadDispatch(t, 1, sent[0].ID)
	batch.Type, batch.Body = sent[0].Type, sent[0].Body
	for _, one := range []amqp.Publishing{batch, deadDispatch(t, 9, "single")} {
		require.NoError(t,
			m.plain.PublishWithContext(testkit.Context(t), "", message.QueueDeadLetter, false, false, one))
	}
	testkit.Eventually(t, func() bool {
		state, err := m.link.QueueState(testkit.Context(t), message.QueueDeadLetter)
		return err == nil && state.Ready == 2
	}, 20*time.Second)
	plan, err := m.operator.PlanTake(testkit.Context(t), triage.TakeRequest{})
	require.NoError(t, err)
	require.Equal(t, 2, plan.Bound)
	receipt, err := m.operator.Take(testkit.Context(t), plan)
	require.NoError(t, err)
	require.Equal(t, []int{2, 4, 4, 0, 0},
		[]int{receipt.Planned, receipt.Taken, receipt.New, receipt.Absent, receipt.Left})
	require.Equal(t, "done", receipt.Outcome)
	for _, payload := range payloads {
		require.Equal(t, 1, testkit.Count(t, m.store, fmt.Sprintf(`SELECT count(*) FROM dead_letter WHERE execution = %d AND decision IS NULL
			AND message_type = 'ExecutionRequested' AND reason = 'expired' AND worker = 7 AND message_id <> ''
			AND convert_from(body, 'UTF8')::jsonb->'payload'->>'execution_id' = '%[1]d'`, payload.ExecutionID)))
	}
}
