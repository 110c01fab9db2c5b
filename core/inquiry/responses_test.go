package inquiry_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// consume starts two replicas that consume answers from the queue of a virtual host.
func (b *bundle) consume(t *testing.T) (*broker.Broker, *prometheus.Registry) {
	t.Helper()
	url, registry := testkit.VHost(t), prometheus.NewRegistry()
	metrics := inquiry.NewMetrics(registry)
	look := dial(t, url)
	require.NoError(t, look.DeclareExecutor(testkit.Context(t)))
	for range 2 {
		wire := dial(t, url)
		consumer := wire.Consume(broker.ConsumerConfig{
			Queue: message.QueueInquiryResponses, Prefetch: 20,
			MaxBatch: 10,
		})
		responses := inquiry.NewResponses(inquiry.Deps{
			Store: b.store, Consumer: consumer, Relay: b.relay,
			Logger: testkit.Logger(t), Metrics: metrics,
		})
		require.NoError(t, consumer.Start(testkit.Context(t)))
		t.Cleanup(consumer.Stop)
		require.NoError(t, responses.Start(testkit.Context(t)))
		t.Cleanup(responses.Stop)
	}
	return look, registry
}

func dial(t *testing.T, url string) *broker.Broker {
	t.Helper()
	wire := broker.New(broker.Config{URL: url}, testkit.Logger(t), nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	return wire
}

func send(t *testing.T, wire *broker.Broker, bodies ...[]byte) {
	t.Helper()
	messages := make([]broker.Message, len(bodies))
	for i, body := range bodies {
		messages[i] = broker.Message{
			ID: "m", Exchange: message.ExchangeExecutions, RoutingKey: message.KeyInquiryResponded,
			Type: message.TypeInquiryResponded, Body: body,
		}
	}
	for _, outcome := range wire.Publisher().Publish(testkit.Context(t), messages) {
		require.NoError(t, outcome.Err)
	}
}

func responded(t *testing.T, a asked, by *int64) []byte {
	t.Helper()
	body, err := message.New(message.TypeInquiryResponded, message.InquiryResponded{
		InquiryID: a.inquiry, ExecutionID: a.execution, Response: json.RawMessage(`"what the message says"`),
		RespondedBy: by, RespondedAt: time.Now().UTC(),
	}, time.Now(), "api").Encode()
	require.NoError(t, err)
	return body
}

// L1, S14: an answer of another service is settled once, however many messages come to any replicas; the row has the
// answer. A message that is malformed or names no inquiry is dead-lettered and blocks no other.
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

	wire, registry := b.consume(t)
	var bodies [][]byte
	for range 5 {
		bodies = append(bodies, responded(t, task, &ada), []byte("not JSON"), responded(t, wakes, nil),
			responded(t, asked{999, 999}, nil),
			responded(t, open, nil), responded(t, timedOut, nil))
	}
	send(t, wire, bodies...)
	b.becomes(t, task, inquiry.Responded, lifecycle.StatusCompleted)
	b.becomes(t, wakes, inquiry.Responded, lifecycle.StatusCompleted)
	b.becomes(t, timedOut, inquiry.Responded, lifecycle.StatusTimeout)
	testkit.Eventually(t, func() bool {
		dead, err := wire.QueueState(testkit.Context(t), message.QueueDeadLetter)
		return err == nil && dead.Ready == 10
	}, 10*time.Second, "five that cannot be read, five of no inquiry")
	testkit.Eventually(t, func() bool {
		n, err := testutil.GatherAndCount(registry, "attune_inquiry_responses_total")
		return err == nil && n == 1
	}, 5*time.Second)

	require.Equal(t, inquiry.Pending, b.status(t, open.inquiry), "a message is no answer")
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, open.execution))
	require.Contains(t, b.resultOf(t, task.execution), `"from the row"`)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE id = $1 AND responded_by = $2`,
		task.inquiry, ada))
	require.Equal(t, map[int64]int{task.execution: 1, wakes.execution: 1}, b.relay.completions(t))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`))
}

// No answer is lost while the database cannot store it.
func TestAnswersWaitForTheDatabase(t *testing.T) {
	b := setup(t)
	a := b.task(t)
	testkit.Exec(t, b.store,
		`UPDATE inquiry SET status = 'responded', response = '1', responded_at = now() WHERE id = $1`, a.inquiry)
	testkit.Exec(t, b.store, `ALTER TABLE outbox RENAME TO outbox_away`)
	wire, _ := b.consume(t)
	send(t, wire, responded(t, a, nil))
	testkit.Eventually(t, func() bool {
		queue, err := wire.QueueState(testkit.Context(t), message.QueueInquiryResponses)
		return err == nil && queue.Ready == 0 && queue.Consumers == 2
	}, 10*time.Second)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, a.execution), "all or nothing")
	testkit.Exec(t, b.store, `ALTER TABLE outbox_away RENAME TO outbox`)
	b.becomes(t, a, inquiry.Responded, lifecycle.StatusCompleted)
}

// A server with a full disk settles no answer, and no message is dead-lettered.
func TestAnswersOutlastAServerThatCannotWrite(t *testing.T) {
	b := setup(t)
	a := b.task(t)
	testkit.Exec(t, b.store,
		`UPDATE inquiry SET status = 'responded', response = '1', responded_at = now() WHERE id = $1`, a.inquiry)
	tries, allow := testkit.Refuse(t, b.store, "execution", "true", "53100")
	wire, _ := b.consume(t)
	send(t, wire, responded(t, a, nil))
	testkit.Eventually(t, func() bool { return tries() > 6 }, testkit.TestTimeout) // a message is suspected after five
	dead, err := wire.QueueState(testkit.Context(t), message.QueueDeadLetter)
	require.NoError(t, err)
	require.Zero(t, dead.Ready)
	allow()
	b.becomes(t, a, inquiry.Responded, lifecycle.StatusCompleted)
}
