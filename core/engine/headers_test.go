package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/doctor/checkup"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// names are headers that the broker or the engine reads, and others.
var names = []string{
	"x-death", "x-death", "x-death", "x-first-death-queue", "x-first-death-reason", "x-first-death-exchange",
	"x-last-death-queue", "x-delivery-count",
	"X-Death", "x-message-ttl", "x-match", "x-stream-offset", "x-opt-deaths", "x-invalid-headers", "x-retry",
	"x-priority",
	broker.HeaderReason, broker.HeaderAttempts, broker.HeaderReplica, broker.HeaderQueue, broker.HeaderExchange,
	broker.HeaderKey,
	broker.HeaderDied, broker.HeaderDropped, broker.HeaderUnreadable, "x-attune-put-back", "traceparent",
	testkit.ForgedLong,
	"", "a", "nul\x00", "caf\xe9", strings.Repeat("n", 255),
}

// value draws a value of any type that AMQP has.
func value(dice *rand.Rand, depth int) any {
	kinds := 16
	if depth > 4 {
		kinds = 14
	}
	switch dice.IntN(kinds) {
	case 0:
		return int8(dice.Int64())
	case 1:
		return uint8(dice.Uint32())
	case 2:
		return int16(dice.Int64())
	case 3:
		return uint16(dice.Uint32())
	case 4:
		return int32(dice.Int64())
	case 5:
		return dice.Uint32()
	case 6:
		return int64(dice.Uint64())
	case 7:
		return dice.Float32()
	case 8:
		return dice.NormFloat64() * 1e300
	case 9:
		return amqp.Decimal{Scale: uint8(dice.Uint32()), Value: int32(dice.Int64())}
	case 10:
		return time.Unix(int64(dice.Uint64()>>dice.IntN(64)), 0)
	case 11:
		return []byte(fmt.Sprint(dice.Uint64()))
	case 12:
		return []any{nil, true, false}[dice.IntN(3)]
	case 13:
		words := []string{
			"", "rejected", "expired", "\x00", "\xff\xfe", message.QueueExecutionRequests,
			message.KeyExecutionRequested, strings.Repeat("w", 5000), "{}",
		}
		return words[dice.IntN(len(words))]
	case 14:
		list := make([]any, dice.IntN(4))
		for i := range list {
			list[i] = value(dice, depth+1)
		}
		return list
	default:
		table := amqp.Table{}
		for range dice.IntN(4) {
			table[[]string{
				"queue", "reason", "count", "time", "exchange", "routing-keys", "x",
				testkit.ForgedLong,
			}[dice.IntN(8)]] = value(dice, depth+1)
		}
		return table
	}
}

// headers generates headers, sometimes deeper or wider than clients read.
func headers(dice *rand.Rand) amqp.Table {
	table := amqp.Table{}
	for range dice.IntN(6) {
		table[names[dice.IntN(len(names))]] = value(dice, 0)
	}
	switch dice.IntN(20) {
	case 0:
		for i := range 9000 {
			table[fmt.Sprint(i)] = nil
		}
	case 1:
		for range 60 {
			table = amqp.Table{"x-death": []any{table}}
		}
	case 2:
		table["big"] = strings.Repeat("b", 100_000)
	case 3:
		table["CC"], table["BCC"] = []any{int32(1), "nowhere"}, []any{nil, "nowhere"}
	}
	return table
}

// Messages with any headers, with ids and without, on every queue of the engine and of a
// worker: each is in the ledger once, no queue is lost, and the next request runs. The
// long course is part of `make fuzz`.
func TestForgedHeadersCostNothing(t *testing.T) {
	t.Parallel()
	dice, n := testkit.Dice(t), 120
	if testkit.Slow() {
		n = 5000
	}
	b := setup(t)
	b.worker(t, "w1", 4)
	all := append(ofWorker(b.workerRow(t)), queues...)
	e := b.engine(t)
	b.runs(t, time.Minute)
	forger := testkit.Forger(t, b.AMQP)
	bodies := []string{
		"not json %d", `{"n": %d}`, `{"message_type":"ExecutionRequested","payload":%d}`, "[%d",
		"\x00\xff%d",
	}
	var last *amqp.DeferredConfirmation
	for i := range n {
		m := amqp.Publishing{
			DeliveryMode: uint8(dice.IntN(3)), Headers: headers(dice),
			Body: fmt.Appendf(nil, bodies[dice.IntN(len(bodies))], i),
		}
		if dice.IntN(2) == 0 {
			m.MessageId, m.Type = fmt.Sprintf("m%d", i), []string{message.TypeExecutionRequested, "", "x"}[dice.IntN(3)]
		}
		var err error
		last, err = forger.PublishWithDeferredConfirm("", all[dice.IntN(len(all))], false, false, m)
		require.NoError(t, err)
	}
	require.True(t, last.Wait())
	b.runs(t, time.Minute)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(DISTINCT body) FROM dead_letter`) == n
	}, 5*time.Minute, "each is in the ledger")
	b.runs(t, time.Minute)
	b.settled(t, time.Minute)
	require.Equal(t, n, testkit.Count(t, b.store, `SELECT count(*) FROM dead_letter`), "each once")
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM engine_replica WHERE details ? 'recreated'`),
		"no queue was lost")
	for _, check := range e.Ready(testkit.Context(t)) {
		require.True(t, check.OK, "%s: %s", check.Name, check.Detail)
	}
	testkit.Exec(t, b.store, `UPDATE dead_letter SET decision = 'discarded' WHERE decision IS NULL`)
	management, err := broker.NewManagement(b.Management, testkit.VHostName(t, b.AMQP), 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(management.Close)
	cfg := b.config()
	cfg.MessageQueue.RabbitMQ.WorkerQueueTTL = worker.QueueTTLDefault
	report := checkup.Run(testkit.Context(t), checkup.Deps{
		Config: cfg, Store: b.store, Broker: b.connect(t, "doctor"), Management: management, Version: "test",
	}, checkup.Options{})
	require.True(t, report.Well(), "%+v", report.Checks)
}
