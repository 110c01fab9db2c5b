package engine_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// channel is a plain channel to the broker, which the engine knows nothing of.
func (b *bundle) channel(t *testing.T) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(b.AMQP)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	require.NoError(t, err)
	return channel
}

// queues are those of the engine.
var queues = []string{
	message.QueueEvents, message.QueueEnforcements, message.QueueExecutionRequests, message.QueueExecutionStatus,
	message.QueueExecutionCompleted, message.QueueInquiryResponses, message.QueueDeadLetter,
}

// ofWorker are the queues of a worker.
func ofWorker(id int64) []string {
	return []string{message.WorkerExecutionsQueue(id), message.WorkerCancelQueue(id), message.WorkerPacksQueue(id)}
}

// forged is the message over which RabbitMQ 3 lets a queue crash that rejects it.
func forged() amqp.Publishing {
	return amqp.Publishing{
		Body: []byte("not json"), DeliveryMode: amqp.Persistent,
		Headers: amqp.Table{"x-death": []any{int32(7)}},
	}
}

// runs asks for an execution and waits until it has completed.
func (b *bundle) runs(t *testing.T, within time.Duration) {
	t.Helper()
	id := b.request(t, "core.echo", 1, `{"message":"fresh"}`)[0]
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusCompleted }, within,
		"a fresh request runs")
}

// empty waits until a queue has neither ready nor unacknowledged messages.
func (b *bundle) empty(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		testkit.Eventually(t, func() bool {
			var state struct {
				Messages *int `json:"messages"`
			}
			testkit.Manage(t, "GET", "/api/queues/"+testkit.VHostName(t, b.AMQP)+"/"+name, nil, &state)
			return state.Messages != nil && *state.Messages == 0
		}, 30*time.Second, "queue %s is empty", name)
	}
}

// workerRow is the id of the worker w1.
func (b *bundle) workerRow(t *testing.T) (id int64) {
	t.Helper()
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `SELECT id FROM worker WHERE name = 'w1'`).Scan(&id))
	return id
}

// A message whose headers the broker cannot read again takes no queue away, whether it
// was there before the engine and the worker or comes later: it is in the ledger once,
// with its headers, and the next request runs at once.
func TestNoMessageTakesAQueueAway(t *testing.T) {
	b := setup(t)
	channel := b.channel(t)
	flood := func(names []string) {
		for _, name := range names {
			require.NoError(t, channel.Publish("", name, false, false, forged()))
		}
	}
	b.worker(t, "w1", 4)
	workers := ofWorker(b.workerRow(t))
	flood(queues)
	e := b.engine(t)
	b.runs(t, 20*time.Second)
	flood(append(workers, queues...))
	b.runs(t, 10*time.Second)
	want := 2*len(queues) + len(workers) // also the two that are alike in every way, without ids
	testkit.Eventually(t, func() bool { return testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`) >= want },
		20*time.Second)
	b.empty(t, append(workers, queues...)...)
	require.Equal(t, want, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`), "nothing comes again")
	require.Equal(t, want-2, testkit.Count(t, b.store,
		`SELECT count(*) FROM dead_letter WHERE headers->'x-attune-dropped'->>'x-death' = '[7]' AND message_id <> '' AND decision IS NULL`))
	var not []string // some loops tick for the first time later
	testkit.Eventually(t, func() bool {
		not = nil
		for _, check := range e.Ready(testkit.Context(t)) {
			if !check.OK {
				not = append(not, check.Name+": "+check.Detail)
			}
		}
		return len(not) == 0
	}, 20*time.Second, "%s", &not)
	b.runs(t, 10*time.Second)
	b.settled(t, 10*time.Second)
}

// crash has the broker lose a queue as it does over headers that it cannot read. It
// starts a queue anew a few times before it gives it up.
func (b *bundle) crash(t *testing.T, queue string, done func() bool) {
	t.Helper()
	conn, err := amqp.Dial(b.AMQP)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Eventually(t, func() bool {
		channel, err := conn.Channel()
		require.NoError(t, err)
		defer func() { _ = channel.Close() }() // the crash may have closed it
		taken, err := channel.Consume(queue, "crash", false, false, false, false, amqp.Table{"x-priority": int32(10)})
		if err != nil {
			return done()
		}
		_ = channel.Publish("", queue, false, false, forged()) // of a queue that is just being started this fails
		select {
		case d, ok := <-taken:
			if ok {
				_ = d.Nack(false, false) // as above
			}
		case <-time.After(100 * time.Millisecond):
		}
		return done()
	}, 30*time.Second, "queue %s has crashed", queue)
}

// A queue that was deleted, or has crashed, is there again within seconds, under the
// running engine and at its start; a request that was lost with it starts without
// waiting for the age at which messages count as lost; and the replica says so.
func TestAQueueThatIsGoneIsDeclaredAgain(t *testing.T) {
	b := setup(t)
	b.worker(t, "w1", 4)
	worker := ofWorker(b.workerRow(t))
	b.engine(t)
	b.runs(t, 20*time.Second)
	channel := b.channel(t)
	for _, queue := range append(worker, queues...) {
		_, err := channel.QueueDelete(queue, false, false, false)
		require.NoError(t, err, queue)
	}
	echo := testkit.ActionRow{Ref: "core.echo"}
	require.NoError(t,
		b.store.Pool().QueryRow(testkit.Context(t), `SELECT id FROM action WHERE ref = 'core.echo'`).Scan(&echo.ID))
	lost := testkit.Execution(t, b.store, echo).ID // no message tells of it
	back := func(name string) func() bool {
		return func() bool {
			state, err := b.channel(t).QueueDeclarePassive(name, true, false, false, false, nil)
			return err == nil && state.Consumers == 1
		}
	}
	for _, queue := range append(worker, queues...) {
		testkit.Eventually(t, back(queue), 15*time.Second, "queue %s is consumed again", queue)
	}
	b.runs(t, 10*time.Second)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, lost) == lifecycle.StatusCompleted },
		25*time.Second, "the lost request is found")

	tells := func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM engine_replica WHERE details->'recreated' @> $1::jsonb`,
			fmt.Sprintf(`[{"queue": %q}]`, message.QueueExecutionRequests)) == 1
	}
	testkit.Eventually(t, tells, 15*time.Second, "the replica tells of it")
	b.settled(t, 20*time.Second)
}

// Queues that have crashed before the engine and the worker start are made anew.
func TestQueuesThatHaveCrashedAreDeclaredAtTheStart(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "crash queues of a broker of the test's own")
	b := setup(t)
	row := testkit.Worker(t, b.store, "w1")
	wire := b.connect(t, "worker")
	require.NoError(t, wire.DeclareWorker(testkit.Context(t), row.ID, 0))
	for _, queue := range append(ofWorker(row.ID), message.QueueExecutionRequests, message.QueueEvents) {
		b.crash(t, queue, func() bool {
			_, err := b.channel(t).QueueDeclarePassive(queue, true, false, false, false, nil)
			return err != nil && strings.Contains(err.Error(), "crashed")
		})
	}
	b.worker(t, "w1", 4)
	require.Equal(t, row.ID, b.workerRow(t))
	b.engine(t)
	b.runs(t, 15*time.Second)
	b.settled(t, 10*time.Second)
}

// A queue that crashes again and again under the running engine is there again, and the
// next request runs.
func TestAQueueThatCrashesIsDeclaredAgain(t *testing.T) {
	testkit.NeedsSlow(t, "a queue is crashed half a dozen times")
	b := setup(t)
	b.worker(t, "w1", 4)
	b.engine(t)
	b.runs(t, 20*time.Second)
	b.crash(t, message.QueueExecutionRequests, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM engine_replica WHERE details->'recreated' @> $1::jsonb`,
			fmt.Sprintf(`[{"queue": %q}]`, message.QueueExecutionRequests)) == 1
	})
	b.runs(t, 15*time.Second)
	b.settled(t, 20*time.Second)
}

// A database that was restored beside a live broker: thousands of messages tell of
// executions that it does not have. A new request does not wait for them to be given up:
// it runs before any of them has been tried to the end. They become one dead letter a
// queue.
func TestMessagesOfALostDatabaseHoldUpNothing(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "serve hundreds of messages of a database that is gone")
	b := setup(t)
	b.worker(t, "w1", 4)
	const n, first = 3000, 10_000_000
	var stale []broker.Message
	for i := range int64(n) {
		report := message.New(message.TypeExecutionCompleted,
			message.ExecutionCompleted{ExecutionID: first + i, Status: "completed"}, time.Now(), "test")
		body, err := report.Encode()
		require.NoError(t, err)
		stale = append(stale, requestMessage(t, first+i, fmt.Sprintf("request-%d", i)), broker.Message{
			ID: report.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionCompleted,
			Type: message.TypeExecutionCompleted, Body: body,
		})
	}
	for _, outcome := range b.connect(t, "before").Publisher().Publish(testkit.Context(t), stale) {
		require.NoError(t, outcome.Err)
	}
	b.engine(t)
	began := time.Now()
	b.runs(t, time.Minute)
	t.Logf("the fresh request ended after %s, it started %d ms after it was made",
		time.Since(began).Round(time.Millisecond),
		testkit.Count(t, b.store, `SELECT (extract(epoch FROM max(started_at - created)) * 1000)::int FROM execution`))
	require.Zero(t,
		testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter WHERE headers->>'x-attune-attempts' = '7'`),
		"nothing was waited for until it was given up")
	testkit.Eventually(t, func() bool { // the last few wait for their rows
		return testkit.Count(t, b.store,
			`SELECT coalesce(sum((evidence->'alike'->>'count')::int), 0) FROM dead_letter WHERE decision IS NULL`) >= 2*n-100
	}, 2*time.Minute, "each is counted")
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`))
	b.runs(t, 10*time.Second)
	b.settled(t, 10*time.Second)
}

// Ten messages of 16 MiB, readable or not, cost a replica less than 256 MiB in all.
func TestLargeMessagesDoNotFillTheMemory(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "measure the memory of a replica")
	limit := 256
	if info, ok := debug.ReadBuildInfo(); ok &&
		slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		limit *= 4 // the race detector's own memory
	}
	b := setup(t)
	id := b.request(t, "core.echo", 1, `{}`)[0]
	channel := testkit.Forger(t, b.AMQP)
	large := strings.Repeat("x", 16<<20-1000)
	for i := range 10 {
		body := large
		if i%2 == 0 {
			report := message.New(message.TypeExecutionCompleted, message.ExecutionCompleted{
				ExecutionID: id, Status: "completed", Result: []byte(`"` + large + `"`),
			}, time.Now(), "test")
			raw, err := report.Encode()
			require.NoError(t, err)
			body = string(raw)
		}
		confirm, err := channel.PublishWithDeferredConfirm("", message.QueueExecutionCompleted, false, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)})
		require.NoError(t, err)
		require.True(t, confirm.Wait())
	}
	replica := startReplica(t, b.servers)
	b.worker(t, "w1", 4)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`) >= 5
	}, 2*time.Minute, "the unreadable messages are in the ledger")
	b.runs(t, time.Minute)
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", replica.Process.Pid))
	require.NoError(t, err)
	var peak int
	for line := range strings.SplitSeq(string(raw), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, err := fmt.Sscan(rest, &peak)
			require.NoError(t, err)
		}
	}
	t.Logf("peak %d MiB", peak>>10)
	require.Less(t, peak>>10, limit)
}
