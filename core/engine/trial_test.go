package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// A large message is in hand while two replicas die, the second time tried alone: the third puts it into the ledger
// unread, and the execution it is about runs all the same. Its small neighbour, which was in hand both times too, is
// handled.
func TestAMessageInHandAtTwoDeathsIsSetAside(t *testing.T) {
	b := setup(t)
	b.worker(t, "w1", 4)
	id := b.request(t, "core.echo", 1, `{"message":"locked"}`)[0]
	wire := b.connect(t, "purger")
	testkit.Eventually(t, func() bool {
		n, err := wire.PurgeQueue(testkit.Context(t), message.QueueExecutionRequests)
		return err == nil && n == 1
	}, 10*time.Second)
	channel := testkit.Forger(t, b.AMQP)
	for i, config := range []string{strings.Repeat("x", 200_000), "x"} {
		require.NoError(t, channel.Publish("", message.QueueExecutionRequests, false, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, MessageId: fmt.Sprintf("m%d", i), Type: message.TypeExecutionRequested,
			Body: []byte(enveloped(message.TypeExecutionRequested, "c",
				fmt.Sprintf(`{"execution_id":%d,"action_ref":"core.echo","config":{"message":"%s"}}`, id, config))),
		}))
	}
	lock, err := b.store.Pool().Begin(testkit.Context(t))
	require.NoError(t, err)
	defer func() { _ = lock.Rollback(testkit.Context(t)) }() // it may have ended
	_, err = lock.Exec(testkit.Context(t), `SET LOCAL idle_in_transaction_session_timeout = 0`)
	require.NoError(t, err)
	_, err = lock.Exec(testkit.Context(t), `SELECT 1 FROM execution WHERE id = $1 FOR UPDATE`, id)
	require.NoError(t, err)

	first, _ := b.program(t, "serve")
	testkit.Eventually(t, func() bool {
		state, err := wire.QueueState(testkit.Context(t), message.QueueExecutionRequests)
		return err == nil && state.Ready == 0 && state.Consumers == 1
	}, 30*time.Second, "the messages are in hand")
	require.NoError(t, first.Process.Kill())
	_ = first.Wait() // it was killed
	second, _ := b.program(t, "serve")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM message_trial`) == 1
	}, 30*time.Second, "the large message is tried alone")
	require.NoError(t, second.Process.Kill())
	_ = second.Wait() // as above
	b.program(t, "serve")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE message_id = 'm0' AND decision IS NULL
			AND headers->>'x-attune-unread' = 'true' AND execution IS NULL AND length(body) > 200000`) == 1
	}, 30*time.Second, "the large message is in the ledger")
	require.NoError(t, lock.Rollback(testkit.Context(t)))
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusCompleted },
		30*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`))
	b.empty(t, message.QueueExecutionRequests)
}
