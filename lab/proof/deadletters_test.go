package proof

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// S20, S13: a replica dies at the points of handling dead letters, two of them in each run: an expired dispatch, a
// report of an end, and garbage. Another replica stores what was not stored, and nothing is stored or done twice.
func TestAReplicaThatDiesWhileItHandlesDeadLettersLosesNone(t *testing.T) {
	t.Parallel()
	for _, point := range testkit.Some(t, crashpoint.DeadLetters(), 2) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			action := testkit.Action(t, s.store, "letters.do")
			queue := testkit.State(t, s.store, action, 5, func(q *testkit.StateRow) { q.Active = 2 }).ID
			testkit.Exec(t, s.store, `INSERT INTO queue_stats (action_id, active_count, max_concurrent) VALUES ($1, 2, 5)`,
				action.ID)
			gone := testkit.Worker(t, s.store, "gone", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
			testkit.Exec(t, s.store, `UPDATE worker_load SET assigned = 2 WHERE worker = $1`, gone.ID)
			held := func(status lifecycle.Status) int64 {
				return testkit.Execution(t, s.store, action, func(e *testkit.ExecutionRow) {
					e.Status, e.Worker, e.Attempt, e.AdmissionState = status, &gone.ID, 1, &queue
					e.Age = 2 * time.Second // longer than the queue keeps a dispatch, however fast this test is
				}).ID
			}
			dead, done := held(lifecycle.StatusScheduled), held(lifecycle.StatusCompleted)
			require.NoError(t, s.wire.BindWorkerDeadLetters(testkit.Context(t), gone.ID))

			// A dispatch expires only after most of the time to live of its queue.
			const expiresSoon = "ATTUNE__MESSAGE_QUEUE__RABBITMQ__WORKER_QUEUE_TTL_MS=1000"
			victim := s.serve(dieAt(point, 1), expiresSoon)
			var deadLetters []broker.Message
			add := func(key, kind string, body []byte, err error) {
				require.NoError(t, err)
				deadLetters = append(deadLetters, broker.Message{
					ID: key, Exchange: message.ExchangeDeadLetter,
					RoutingKey: key, Type: kind, Body: body,
				})
			}
			body, err := message.New(message.TypeExecutionRequested,
				message.Dispatch{ExecutionID: dead, WorkerID: gone.ID, Attempt: 1}, time.Now(), "test").Encode()
			add(message.DispatchKey(gone.ID), message.TypeExecutionRequested, body, err)
			body, err = message.New(message.TypeExecutionCompleted, message.ExecutionCompleted{ExecutionID: done},
				time.Now(), "test").Encode()
			add(message.KeyExecutionCompleted, message.TypeExecutionCompleted, body, err)
			add(message.KeyEventCreated, message.TypeEventCreated, []byte("garbage"), nil)
			for _, outcome := range s.wire.Publisher().Publish(testkit.Context(t), deadLetters) {
				require.Equal(t, broker.Confirmed, outcome.Status, "%v", outcome.Err)
			}
			testkit.Eventually(t, victim.killed, 20*time.Second, "the replica dies at %s", point)

			next := s.serve(expiresSoon)
			testkit.Eventually(t, func() bool {
				state, err := s.wire.QueueState(testkit.Context(t), message.QueueDeadLetter)
				return err == nil && state.Ready == 0 && s.count(`SELECT count(*) FROM dead_letter`) == 3 &&
					s.count(`SELECT count(*) FROM execution_holder WHERE execution = ANY ($1)`, []int64{dead, done}) == 0
			}, 30*time.Second, "all three are stored, and both slots are released") // a retry may have one already
			require.Zero(t, next.stop(t))
			require.Zero(t, s.count(`SELECT 3 - count(*) FROM dead_letter WHERE coalesce(decision, 'waits') =
				CASE message_id WHEN 'execution.completed' THEN 'released' WHEN 'event.created' THEN 'waits' ELSE 'failed' END`))
			require.Equal(t, 1, s.count(`SELECT count(*) FROM lost_work WHERE execution = $1 AND cause = 'dead_letter'`,
				dead), "decided once")
			require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, s.store, dead))
			s.requireReported(dead)
			testkit.Invariants(t, s.store)
		})
	}
}
