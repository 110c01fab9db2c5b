package engine_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// program starts the built program, without the race detector and with the collector of a user's process.
func (b *bundle) program(t *testing.T, arguments ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(testkit.Program(t), arguments...)
	cmd.Env = append(os.Environ(), "GOGC=100", "ATTUNE__DATABASE__URL="+b.Database,
		"ATTUNE__DATABASE__SCHEMA="+testkit.Schema, "ATTUNE__MESSAGE_QUEUE__URL="+b.AMQP,
		fmt.Sprintf("ATTUNE__DATABASE__MAX_CONNECTIONS=%d", testkit.EngineConnections),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="+b.Management, "ATTUNE__EXECUTOR__HTTP__LISTEN=")
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // as above
		if t.Failed() {
			text := log.String()
			t.Logf("log of %v:\n%s", arguments, text[max(len(text)-5000, 0):])
		}
	})
	return cmd, &log
}

// enveloped is a message of a type with a long correlation id, or any other beginning of the envelope.
func enveloped(kind, correlation, payload string) string {
	return `{"message_id":"m","correlation_id":"` + correlation + `","message_type":"` + kind +
		`","timestamp":"2026-01-01T00:00:00Z","payload":` + payload + `}`
}

// abuse are messages of ten megabytes in all that took gigabytes of memory, thousands of goroutines or thousands of
// dead letters, each for another reason.
func abuse(worker int64) (list []amqp.Publishing) {
	batch := func(n int, item string) string {
		return `{"executions":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
	long := strings.Repeat("c", 1<<20)
	dispatch := fmt.Sprintf(`{"execution_id":9000001,"worker_id":%d,"attempt":2147483647,"action_ref":"%s"}`, worker, long)
	for _, kind := range []string{message.TypeExecutionBatchCompleted, message.TypeExecutionBatchRequested} {
		for _, body := range []string{
			enveloped(kind, long, batch(10_000, "{}")), // each item had a copy of the id
			enveloped(kind, strings.Repeat("c", 900), batch(message.MaxBatchItems, "{}")),
			enveloped(kind, strings.Repeat("c", 100<<10), batch(2_000, "{}")),
		} {
			list = append(list, amqp.Publishing{Type: kind, Body: []byte(body)})
		}
	}
	list = append(list, amqp.Publishing{
		Type: message.TypeExecutionBatchCompleted,
		Body: []byte(enveloped(message.TypeExecutionBatchCompleted, "c", batch(1_000_000, "{}"))),
	})
	var voids []any // 100 kB of headers with 100,000 values
	for range 12 {
		voids = append(voids, make([]any, 8000))
	}
	var deaths []any
	for range 300 {
		deaths = append(deaths, amqp.Table{
			"queue": "q", "reason": "expired", "exchange": "e", "count": int64(1), "routing-keys": []any{"k"},
		})
	}
	var names strings.Builder // a map of them takes many times their size
	for i := range 100_000 {
		fmt.Fprintf(&names, `"%x":0,`, i)
	}
	number := strings.Repeat("1", 1<<20)
	list = append(list,
		amqp.Publishing{Body: []byte("{}"), Headers: amqp.Table{"a": voids}},
		amqp.Publishing{Body: []byte("{}"), Headers: amqp.Table{"x-death": deaths}},
		amqp.Publishing{Body: []byte("{}"), Headers: amqp.Table{broker.HeaderReason: strings.Repeat("r", 100<<10)}},
		amqp.Publishing{Body: bytes.Repeat([]byte("["), 1<<20)},
		amqp.Publishing{Body: []byte(enveloped(message.TypeExecutionRequested, "c", dispatch))},
		amqp.Publishing{Body: []byte(enveloped(message.TypeExecutionRequested, "c", `{"execution_id":`+number+`}`))},
		amqp.Publishing{Body: []byte(enveloped(message.TypeExecutionCompleted, "c", `{`+names.String()+`"z":0}`))},
	)
	for i := range list {
		list[i].DeliveryMode = amqp.Persistent
	}
	return list
}

// large are messages of 30 megabytes in all, each below a mebibyte.
func large() (list []amqp.Publishing) {
	for i := range 30 {
		body := enveloped(message.TypeExecutionRequested, "c", fmt.Sprintf(`{"execution_id":%d,"config":{"a":"%s"}}`,
			9_100_000+i, strings.Repeat("x", 1_000_000)))
		list = append(list, amqp.Publishing{Body: []byte(body), DeliveryMode: amqp.Persistent})
	}
	return list
}

// Messages that multiply what they hold take neither the memory of an engine, a worker and a command, nor its time:
// a request beside them starts at once.
func TestAbuseOfQueues(t *testing.T) {
	b := setup(t)
	engine, _ := b.program(t, "serve")
	worker, workerLog := b.program(t, "worker", "--name", "w1", "--concurrency", "4")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM worker WHERE status = 'active'`) == 1
	}, 30*time.Second, "%s", workerLog)
	waited := func() (took time.Duration) {
		began := time.Now()
		id := b.request(t, "core.echo", 1, `{"message":"fresh"}`)[0]
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1 AND started_at IS NOT NULL`, id) == 1
		}, time.Minute, "a request starts")
		return time.Since(began)
	}
	control := time.Duration(0)
	for range 5 {
		control = max(control, waited())
	}
	processes := map[string]*exec.Cmd{"engine": engine, "worker": worker}
	rest := map[string]int{}
	for name, cmd := range processes {
		rest[name] = testkit.MemoryOf(t, cmd.Process.Pid).Now
		testkit.ForgetPeak(t, cmd.Process.Pid)
	}

	id := b.workerRow(t)
	channel := testkit.Forger(t, b.AMQP)
	send := func(exchange, key string, list []amqp.Publishing) int {
		for _, one := range list {
			require.NoError(t, channel.Publish(exchange, key, false, false, one))
		}
		return len(list)
	}
	sent, slowest := 0, []time.Duration{}
	for _, queue := range append(ofWorker(id), append(queues, message.QueueExecutionBatches)...) {
		sent += send("", queue, abuse(id))
		slowest = append(slowest, waited())
	}
	for _, key := range []string{message.DispatchKey(id), message.KeyExecutionCompleted, message.KeyEventCreated} {
		sent += send(message.ExchangeDeadLetter, key, abuse(id))
		slowest = append(slowest, waited())
	}
	for _, queue := range []string{
		message.QueueExecutionRequests, message.QueueEvents, message.WorkerExecutionsQueue(id),
	} {
		sent += send("", queue, large())
	}
	slowest = append(slowest, waited())
	t.Logf("a request started within %s before, and beside %d such messages within %s", control, sent, slowest)
	b.empty(t, append(append(ofWorker(id), message.QueueExecutionBatches), queues...)...)
	for name, cmd := range processes {
		memory := testkit.MemoryOf(t, cmd.Process.Pid)
		t.Logf("%s: %d MiB at rest, at most %d MiB", name, rest[name]>>20, memory.Peak>>20)
		require.Less(t, memory.Peak-rest[name], 256<<20, name)
	}
	slices.Sort(slowest) // the machine may pause
	require.Less(t, slowest[len(slowest)/2], max(2*time.Second, 10*control), "a request beside the messages")
	require.LessOrEqual(t, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`), sent, "one dead letter each")
	b.settled(t, 10*time.Second)
	require.Zero(t,
		testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status <> $1`, lifecycle.StatusCompleted))

	require.NoError(t, engine.Process.Signal(syscall.SIGTERM))
	require.NoError(t, engine.Wait())
	send("", message.QueueDeadLetter, append(abuse(id), large()...))
	take, _ := b.program(t, "dlq", "take", "--yes")
	peak := testkit.PeakUntilEnd(t, take)
	b.empty(t, message.QueueDeadLetter)
	t.Logf("dlq take: at most %d MiB", peak>>20)
	require.Less(t, peak-rest["engine"], 256<<20)
}
