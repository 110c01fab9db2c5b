package deadletter

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

func dispatch(t *testing.T, execution, worker int64, attempt int32) []byte {
	t.Helper()
	body, err := message.New(message.TypeExecutionRequested, message.Dispatch{
		ExecutionID: execution, WorkerID: worker, Attempt: attempt,
		ScheduledAttemptUpdatedAt: time.Unix(1_700_000_000, 123_456_000),
	}, time.Now(), "test").Encode()
	require.NoError(t, err)
	return body
}

func died(reason, queue string, at time.Time, count int64, keys ...any) broker.Table {
	return broker.Table{"x-death": []any{broker.Table{
		"reason": reason, "queue": queue, "exchange": "attune.executions",
		"time": at, "count": count, "routing-keys": keys,
	}}}
}

// A fingerprint names one dead-lettering of one message: the same however often
// it is delivered, another when the message dies again.
func TestAFingerprintIsOneDeathOfOneMessage(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	of := func(change func(*broker.Delivery)) string {
		d := &broker.Delivery{
			Properties: broker.Properties{MessageID: "m", Type: "x", Headers: died("expired", "q", at, 1)},
			RoutingKey: "event.created",
			Body:       []byte("{}"),
		}
		if change != nil {
			change(d)
		}
		return Read(d).fingerprint
	}
	require.Equal(t, of(nil), of(func(d *broker.Delivery) { d.Redelivered, d.Exchange = true, "attune.dlx.unrouted" }))
	prints := map[string]bool{of(nil): true}
	for _, change := range []func(*broker.Delivery){
		func(d *broker.Delivery) { d.MessageID = "n" },
		func(d *broker.Delivery) { d.Body = []byte("another that bears the same id") },
		func(d *broker.Delivery) { d.Headers = died("rejected", "q", at, 1) },
		func(d *broker.Delivery) { d.Headers = died("expired", "p", at, 1) },
		func(d *broker.Delivery) { d.Headers = died("expired", "q", at.Add(time.Second), 1) },
		func(d *broker.Delivery) { d.Headers = died("expired", "q", at, 2) },
		func(d *broker.Delivery) { d.MessageID = "" },
		func(d *broker.Delivery) { d.MessageID, d.Body = "", []byte("other") },
		func(d *broker.Delivery) {
			d.Headers = broker.Table{broker.HeaderReason: "no", broker.HeaderDied: at.Format(time.RFC3339Nano)}
		},
		func(d *broker.Delivery) {
			d.Headers = broker.Table{broker.HeaderReason: "no", broker.HeaderDied: at.Add(1).Format(time.RFC3339Nano)}
		},
	} {
		prints[of(change)] = true
	}
	require.Len(t, prints, 11)
}

// A queue or a policy may give dead letters another key; the headers of the broker have the original one. The
// headers of the engine come before an older death.
func TestOriginsOfDeadLetters(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	l := Read(&broker.Delivery{
		Properties: broker.Properties{
			Type:    message.TypeExecutionRequested,
			Headers: died("expired", "worker.7.executions", at, 1, "execution.dispatch.worker.7"),
		},
		RoutingKey: "#",
		Exchange:   "attune.dlx",
		Body:       dispatch(t, 5, 7, 3),
	})
	require.Equal(t, []any{
		"execution.dispatch.worker.7", "attune.executions", "expired", "worker.7.executions",
		int64(5), int64(7), int32(3),
	},
		[]any{l.key, l.exchange, l.reason, l.queue, l.Execution, l.worker, l.attempt})
	require.Equal(t, kindDispatch, l.kind)
	require.Equal(t, at, l.died)

	l = Read(&broker.Delivery{
		Properties: broker.Properties{Headers: died("expired", "mirror", at, 1,
			"mirror.key")},
		RoutingKey: "execution.completed",
		Exchange:   "attune.dlx",
	})
	require.Equal(t, "mirror.key", l.key, "a queue may replace the key too")

	headers := died("expired", "q", at, 1)
	headers[broker.HeaderReason], headers[broker.HeaderQueue], headers[broker.HeaderExchange] = "no such row",
		"attune.execution.requests.queue", "attune.executions"
	headers[broker.HeaderDied] = at.Add(time.Hour).Format(time.RFC3339Nano)
	l = Read(&broker.Delivery{
		Properties: broker.Properties{Headers: headers}, RoutingKey: "execution.requested", Exchange: "attune.dlx",
	})
	require.Equal(t, []any{ReasonPoison, "attune.execution.requests.queue", "attune.executions", "no such row"},
		[]any{l.reason, l.queue, l.exchange, l.said})
	require.True(t, at.Add(time.Hour).Equal(l.died))

	l = Read(&broker.Delivery{
		Properties: broker.Properties{Type: message.TypeExecutionRequested},
		RoutingKey: "execution.requested",
		Exchange:   "attune.dlx",
	})
	require.Equal(t, []any{ReasonUnknown, "attune.executions"}, []any{l.reason, l.exchange},
		"it does not say, but there is one place for it")
}

// A batch decides only about executions that are still scheduled at that worker, with that attempt;
// existing engines give the time of the dispatch instead.
func TestBatchesDecideOnlyAboutTheDispatchedAttempt(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 123_456_000)
	for name, c := range map[string]struct {
		attempt int32
		change  func(*execution)
		round   bool
	}{
		"this attempt":                      {3, nil, true},
		"another attempt":                   {2, nil, false},
		"another worker":                    {3, func(e *execution) { e.Worker = 8 }, false},
		"no worker":                         {3, func(e *execution) { e.Worker = 0 }, false},
		"running":                           {3, func(e *execution) { e.Status = lifecycle.StatusRunning }, false},
		"waiting again":                     {3, func(e *execution) { e.Status = lifecycle.StatusRequested }, false},
		"ended":                             {3, func(e *execution) { e.Status = lifecycle.StatusTimeout }, false},
		"touched since, but attempts count": {3, func(e *execution) { e.Updated = at.Add(time.Second) }, true},
		"an engine without attempts":        {0, nil, true},
		"the same microsecond":              {0, func(e *execution) { e.Updated = at.Add(100) }, true},
		"dispatched again by such":          {0, func(e *execution) { e.Updated = at.Add(time.Microsecond) }, false},
	} {
		e := execution{ID: 5, Status: lifecycle.StatusScheduled, Attempt: 3, Worker: 7, Updated: at}
		if c.change != nil {
			c.change(&e)
		}
		l := Read(&broker.Delivery{RoutingKey: "execution.dispatch.worker.7", Body: dispatch(t, 5, 7, c.attempt)})
		l.seen.execution = &e
		v := l.decide()
		require.Equal(t, c.round, v.needsBatch, "%s: %s", name, v.detail)
		if !c.round {
			require.Equal(t, Stale, v.decision, name)
		}
		l.failure = "the round failed"
		require.Equal(t, c.round, l.decide().decision == "", "%s: what no round can decide waits, unless it is over",
			name)
	}
}

func TestARowHasAValueForEveryColumn(t *testing.T) {
	t.Parallel()
	l := Read(&broker.Delivery{RoutingKey: "x"})
	row := l.columns(l.decide())
	require.Len(t, row, 21)
	require.Contains(t, store.RecordDeadLetter, "$21")
	require.NotContains(t, store.RecordDeadLetter, "$22")
}

// FuzzRead: every message becomes a dead letter whose row the database accepts, and only a readable
// dispatch reaches a batch.
func FuzzRead(f *testing.F) {
	f.Add("execution.dispatch.worker.7", "ExecutionRequested", "expired", "m",
		[]byte(`{"message_type":"ExecutionRequested","timestamp":"2026-01-01T00:00:00Z","payload":{"execution_id":5,"worker_id":7,"attempt":1}}`), int64(1))
	f.Add("execution.completed", "", "", "", []byte("\x00"), int64(0))
	f.Add("execution.cancel.worker.x", "a\x00b", "\xff", "m", []byte(`{"payload":`), int64(-1))
	f.Add("#", "attune.other", "rejected", "", []byte(`[]`), int64(9))
	f.Fuzz(func(t *testing.T, key, kind, reason, id string, body []byte, count int64) {
		headers := broker.Table{
			"x-death": []any{broker.Table{
				"reason": reason, "queue": kind, "count": count,
				"routing-keys": []any{key, kind}, "time": time.Unix(count, 0),
			}, count},
			reason: body, "nested": broker.Table{key: []any{id, count, body, broker.Table{kind: id}}},
		}
		if count%3 == 0 {
			headers[broker.HeaderReason], headers[broker.HeaderDied], headers[broker.HeaderQueue] = reason, id, kind
		}
		d := &broker.Delivery{
			Properties: broker.Properties{Type: kind, MessageID: id, Headers: headers, Timestamp: time.Unix(count, 0)},
			RoutingKey: key,
			Body:       body,
		}
		l := Read(d)
		require.Equal(t, l.fingerprint, Read(d).fingerprint)
		for _, e := range []*execution{nil, {ID: l.Execution, Status: lifecycle.StatusScheduled, Worker: 7,
			Attempt: 1}} {
			l.seen.execution = e
			v := l.decide()
			require.False(t, v.needsBatch && (l.kind != kindDispatch || l.Execution <= 0),
				"only a dispatch is for a round")
			require.False(t, v.needsBatch && v.decision != "")
			require.True(t, v.decision == "" || v.decision == Stale || v.decision == Released, v.decision)
			for i, value := range l.columns(v) {
				switch value := value.(type) {
				case *string:
					require.True(t, value == nil || utf8.ValidString(*value) && !strings.ContainsRune(*value, 0),
						"argument %d", i)
				case []byte:
					if i == 11 { // the body
						continue
					}
					require.True(t, value == nil || json.Valid(value), "argument %d", i)
					require.NotContains(t, strings.ReplaceAll(string(value), `\\`, ""), `\u0000`, "argument %d", i)
				}
			}
		}
	})
}

// With any error of the broker's clock, an execution waits for capacity until five minutes after a
// batch first read its dead letter, by the clock of the database.
func TestTheTimeoutStartsWithTheFirstRead(t *testing.T) {
	t.Parallel()
	now := time.Now()
	handed := now.Add(-4 * time.Minute)
	for _, died := range []time.Time{
		{},
		now.AddDate(-1, 0, 0), now.Add(-time.Hour), now, now.Add(time.Hour),
		now.AddDate(1, 0, 0),
	} {
		l := &Message{delivery: &broker.Delivery{}, died: died}
		require.Equal(t, 9*time.Minute, l.wait(now, handed), died)
		require.Equal(t, 9*time.Minute, l.wait(now.Add(4*time.Minute), handed), "later looks change nothing")
		require.Equal(t, roomTimeout, (&Message{delivery: &broker.Delivery{Redelivered: true}, died: died}).wait(now,
			handed), "others may have seen it")
	}
	early := &Message{delivery: &broker.Delivery{}}
	require.Equal(t, roomTimeout, early.wait(now, now.Add(time.Second)), "dispatched again meanwhile")
}

// A message that ended a process is a dead letter that no code decodes, and the unreadable messages of a forged batch
// are one dead letter.
func TestForgedMessagesAreOneDeadLetterEach(t *testing.T) {
	t.Parallel()
	unread := &broker.Delivery{
		Properties: broker.Properties{
			Type: message.TypeExecutionBatchRequested, Headers: broker.Table{broker.HeaderUnread: true},
		},
		RoutingKey: message.DispatchKey(7),
		Body:       dispatch(t, 1, 7, 1),
	}
	found := readAll(unread, message.QueueDeadLetter)
	require.Len(t, found, 1)
	require.Equal(t, kindUnknown, found[0].kind)
	require.Zero(t, found[0].Execution)
	require.Equal(t, broker.ErrEndedProcess.Error(), found[0].trouble)

	batch := func(headers broker.Table, items ...string) []*Message {
		return readAll(&broker.Delivery{
			Properties: broker.Properties{MessageID: "b", Type: message.TypeExecutionBatchRequested, Headers: headers},
			RoutingKey: message.DispatchKey(7),
			Body: []byte(`{"message_type":"ExecutionBatchRequested","timestamp":"2026-03-01T12:00:00Z","payload":{"executions":[` +
				strings.Join(items, ",") + `]}}`),
		}, message.QueueDeadLetter)
	}
	items := []string{`{"execution_id":1,"worker_id":7}`, `{}`, `{}`, `{"execution_id":2,"worker_id":7}`, `7`}
	found = batch(nil, items...)
	require.Len(t, found, 3)
	require.Equal(t, []int64{1, 0, 2}, []int64{found[0].Execution, found[1].Execution, found[2].Execution})
	require.Equal(t, kindUnknown, found[1].kind)
	require.Contains(t, found[1].trouble, "message 2 of 5: ")
	require.Equal(t, "b", found[1].delivery.MessageID)
	require.Contains(t, string(found[1].delivery.Body), items[0], "the whole batch")
	require.Len(t, batch(broker.Table{broker.HeaderReason: "bad"}, items...), 1, "its reader gave it up")
	found = batch(broker.Table{broker.HeaderUnread: true}, items...)
	require.Equal(t, broker.ErrEndedProcess.Error(), found[0].trouble, "it is not decoded")
	require.Len(t, batch(nil, slices.Repeat(items[:1], message.MaxBatchItems+1)...), 1)
}

// Replicas may have the same dead letters in other orders, after a reconnect: all record them in one order, so that
// none waits for a row of another that waits for its own.
func TestBatchesRecordDeadLettersInOneOrder(t *testing.T) {
	t.Parallel()
	one, two := &Message{fingerprint: "a", Execution: 1}, &Message{fingerprint: "b", Execution: 2}
	for _, delivered := range [][]*Message{{one, two}, {two, one}} {
		require.Equal(t, []int64{1, 2}, NewStep(delivered, 0).Executions())
	}
}

func TestLargeDeadLettersAreStoredInParts(t *testing.T) {
	t.Parallel()
	of := func(sizes ...int) (parts []int) {
		list := make([]*Message, len(sizes))
		for i, size := range sizes {
			list[i] = &Message{delivery: &broker.Delivery{Body: make([]byte, size)}}
		}
		for _, part := range chunks(list) {
			parts = append(parts, len(part))
		}
		return parts
	}
	require.Empty(t, of())
	require.Equal(t, []int{100, 100, 1}, of(make([]int, 201)...))
	require.Equal(t, []int{4, 1}, of(1<<20, 1<<20, 1<<20, 1<<20, 1))
	require.Equal(t, []int{4, 2}, of(16<<20, 1<<20, 1<<20+1, 1<<20, 3<<20, 2<<20), "a larger body is cut")
}
