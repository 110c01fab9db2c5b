package deadletter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// as gives an execution a status.
func as(status lifecycle.Status) func(*testkit.ExecutionRow) {
	return func(e *testkit.ExecutionRow) { e.Status = status }
}

// poisoned is a message that the engine gave up on in the queue of requests.
func poisoned(m broker.Message) broker.Message {
	m.Headers = broker.Table{
		broker.HeaderReason: "it cannot be", broker.HeaderQueue: message.QueueExecutionRequests,
		broker.HeaderExchange: message.ExchangeExecutions,
		broker.HeaderDied:     time.Now().UTC().Format(time.RFC3339Nano), broker.HeaderAttempts: "7",
	}
	return m
}

// Each kind of dead letter is decided as in the table of docs/dead-letters.md, and the unknown ones
// wait for an operator.
func TestEveryKindOfDeadLetterIsDecided(t *testing.T) {
	d := newService(t)
	d.open(t)
	action := testkit.Action(t, d.store, "pk.do")
	w := testkit.Worker(t, d.store, "w1")
	running := testkit.Execution(t, d.store, action, as(lifecycle.StatusRunning),
		func(e *testkit.ExecutionRow) { e.Worker, e.Attempt = &w.ID, 1 })
	done := testkit.Execution(t, d.store, action, as(lifecycle.StatusCompleted))
	requested := testkit.Execution(t, d.store, action)
	again := testkit.Execution(t, d.store, action, as(lifecycle.StatusScheduled),
		func(e *testkit.ExecutionRow) { e.Worker, e.Attempt = &w.ID, 2 })
	elsewhere := testkit.Execution(t, d.store, action, as(lifecycle.StatusScheduled),
		func(e *testkit.ExecutionRow) { e.Worker, e.Attempt = &w.ID, 1 })
	const missing = 987654
	report := func(id int64) broker.Message {
		return deadLetter(t, message.KeyExecutionCompleted, message.TypeExecutionCompleted,
			message.ExecutionCompleted{ExecutionID: id, Status: "completed"})
	}
	request := func(id int64) broker.Message {
		return deadLetter(t, message.KeyExecutionRequested, message.TypeExecutionRequested,
			message.ExecutionRequested{ExecutionID: id})
	}
	raw := func(key, kind, body string) broker.Message {
		return broker.Message{Exchange: message.ExchangeDeadLetter, RoutingKey: key, Type: kind, Body: []byte(body)}
	}
	type want struct{ decision, detail string }
	cases := []struct {
		name string
		m    broker.Message
		want want
	}{
		{
			"dispatch, running", expired(t, w.ID, message.Dispatch{ExecutionID: running.ID, Attempt: 1}),
			want{"stale", "moved on: running"},
		},
		{
			"dispatch, ended", expired(t, w.ID, message.Dispatch{ExecutionID: done.ID, Attempt: 1}),
			want{"stale", "has ended: completed"},
		},
		{
			"dispatch, older attempt", expired(t, w.ID, message.Dispatch{ExecutionID: again.ID, Attempt: 1}),
			want{"stale", "at attempt 2"},
		},
		{
			"dispatch, other worker", expired(t, w.ID+1, message.Dispatch{ExecutionID: elsewhere.ID, Attempt: 1}),
			want{"stale", "was handed to worker"},
		},
		{
			"dispatch, dispatched again by an engine without attempts",
			expired(t, w.ID,
				message.Dispatch{ExecutionID: elsewhere.ID, ScheduledAttemptUpdatedAt: time.Now().Add(-time.Hour)}),
			want{"stale", "dispatched again"},
		},
		{
			"dispatch, no row", expired(t, w.ID, message.Dispatch{ExecutionID: missing, Attempt: 1}),
			want{"stale", "no such execution"},
		},
		{
			"dispatch, body names another worker",
			func() broker.Message {
				m := deadLetter(t, message.DispatchKey(w.ID), message.TypeExecutionRequested,
					message.Dispatch{ExecutionID: elsewhere.ID, WorkerID: w.ID + 9, Attempt: 1})
				return m
			}(),
			want{"", "names worker"},
		},
		{"report, ended", report(done.ID), want{"released", "has ended"}},
		{"report, running", report(running.ID), want{"", "is running"}},
		{"report, no row", report(missing), want{"", "no such execution"}},
		{"request, given up", poisoned(request(requested.ID)), want{"", "given up: it cannot be"}},
		{"request, moved on", poisoned(request(running.ID)), want{"stale", "moved on"}},
		{"request, no row", request(missing), want{"", "no such execution"}},
		{
			"cancel", deadLetter(t, message.CancelKey(w.ID), message.TypeExecutionCancelRequested,
				message.ExecutionCancelRequested{ExecutionID: running.ID, WorkerID: w.ID}),
			want{"stale", "repeats cancel requests"},
		},
		{
			"cancel, no row", deadLetter(t, message.CancelKey(w.ID), message.TypeExecutionCancelRequested,
				message.ExecutionCancelRequested{ExecutionID: missing, WorkerID: w.ID}),
			want{"stale", "no such execution"},
		},
		{
			"status", deadLetter(t, message.KeyExecutionStatusChanged, message.TypeExecutionStatusChanged,
				message.ExecutionStatusChanged{ExecutionID: running.ID}),
			want{"stale", "news only"},
		},
		{
			"event", deadLetter(t, message.KeyEventCreated, message.TypeEventCreated, message.EventCreated{EventID: 1}),
			want{"", "no part of this engine"},
		},
		{"enforcement", deadLetter(t, message.KeyEnforcementCreated, message.TypeEnforcementCreated,
			message.EnforcementCreated{EnforcementID: 1}), want{"", "no part"}},
		{
			"inquiry", deadLetter(t, message.KeyInquiryResponded, message.TypeInquiryResponded,
				message.InquiryResponded{InquiryID: 1, ExecutionID: running.ID}),
			want{"", "no part"},
		},
		{
			"garbage", raw(message.KeyExecutionRequested, "ExecutionRequested", "\x00\xff{not JSON"),
			want{"", "not a JSON object"},
		},
		{"nothing", raw(message.KeyExecutionCompleted, "", ""), want{"", "not a JSON object"}},
		{"a type that does not fit its key", func() broker.Message {
			m := request(requested.ID)
			m.RoutingKey = message.KeyExecutionCompleted
			return m
		}(), want{"", "is unknown"}},
		{
			"too deep", raw(message.KeyEventCreated, "EventCreated", strings.Repeat("[", 1000)),
			want{"", "nested too deeply"},
		},
		{"a negative id", request(-1), want{"", "execution_id"}},
	}
	wanted := map[string]int{}
	for i := range cases {
		cases[i].m.ID = fmt.Sprintf("letter-%02d", i)
		wanted[cases[i].m.ID] = i
		d.send(t, cases[i].m)
	}
	for _, got := range d.settled(t, len(cases)) {
		c := cases[wanted[got.MessageID]]
		require.Equal(t, c.want.decision, got.Decision, "%s: %s", c.name, got.Detail)
		require.Contains(t, got.Detail, c.want.detail, c.name)
		require.Equal(t, got.Decision != "", got.At != nil && got.By == deadletter.HandledBy, c.name)
	}
	counted := func() error {
		return testutil.GatherAndCompare(d.registry, strings.NewReader(`
		# HELP attune_dead_letters_total Dead letters stored in the ledger, by how they died and what was decided.
		# TYPE attune_dead_letters_total counter
		attune_dead_letters_total{decision="failed",reason="expired"} 0
		attune_dead_letters_total{decision="failed",reason="poison"} 0
		attune_dead_letters_total{decision="failed",reason="rejected"} 0
		attune_dead_letters_total{decision="released",reason="expired"} 0
		attune_dead_letters_total{decision="released",reason="poison"} 0
		attune_dead_letters_total{decision="released",reason="rejected"} 0
		attune_dead_letters_total{decision="released",reason="unknown"} 1
		attune_dead_letters_total{decision="retried",reason="expired"} 0
		attune_dead_letters_total{decision="retried",reason="poison"} 0
		attune_dead_letters_total{decision="retried",reason="rejected"} 0
		attune_dead_letters_total{decision="stale",reason="expired"} 6
		attune_dead_letters_total{decision="stale",reason="poison"} 1
		attune_dead_letters_total{decision="stale",reason="rejected"} 0
		attune_dead_letters_total{decision="stale",reason="unknown"} 3
		attune_dead_letters_total{decision="waiting",reason="expired"} 0
		attune_dead_letters_total{decision="waiting",reason="poison"} 1
		attune_dead_letters_total{decision="waiting",reason="rejected"} 0
		attune_dead_letters_total{decision="waiting",reason="unknown"} 12
	`), "attune_dead_letters_total")
	}
	testkit.Eventually(t, func() bool { return counted() == nil }, 5*time.Second, "%v", counted())
	require.Equal(t, []int64{done.ID}, <-d.ended)
	require.Empty(t, d.ended)
	require.Zero(t, testkit.Count(t, d.store, `SELECT count(*) FROM execution_history WHERE operation = 'UPDATE'`),
		"S9: no execution was touched")
	require.Zero(t, testkit.Count(t, d.store, `SELECT count(*) FROM outbox`))
}

// Messages with values that text or JSON columns refuse are stored nevertheless, whole within the bounds of size.
func TestOddDeadLettersAreKept(t *testing.T) {
	d := newService(t)
	d.open(t)
	big := bytes.Repeat([]byte("x"), 5<<20)
	odd := broker.Message{
		ID: "odd\x00\xff", Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyEventCreated,
		Type: "a\x00b\xc3\x28", Body: []byte("\x00\x01\xff"),
		Headers: broker.Table{
			"nul": "a\x00b", "latin\xff": "caf\xe9", "bytes": []byte{0, 1, 2}, "long": strings.Repeat("é", 20_000),
			"time": time.Unix(1, 0),
			"list": []any{int32(1), "two", broker.Table{"three": int64(3)}, []any{[]byte{0xff}}}, "none": nil,
			"real": 1.5,
			"x-death": []any{
				broker.Table{"reason": "a\x00b", "count": "many", "time": "never", "queue": "\xff"},
				"no table",
			},
		},
	}
	large := broker.Message{
		ID: "large", Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyEventCreated,
		Body: big,
	}
	crowd := broker.Table{}
	for i := range 1200 {
		crowd[fmt.Sprintf("header-%04d", i)] = strings.Repeat("y", 40)
	}
	many := broker.Message{
		ID: "many", Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyEventCreated,
		Headers: crowd,
	}
	d.send(t, odd, large, many)

	rows := d.settled(t, 3)
	require.Equal(t, "odd\uFFFD\uFFFD", rows[0].MessageID)
	require.Equal(t, map[string]any{"base64": "YQBi"}, rows[0].Headers["nul"])
	require.Equal(t, map[string]any{"base64": "Y2Fm6Q=="}, rows[0].Headers["latin\uFFFD"])
	require.Equal(t, true, at(t, rows[0].Headers, "long", "cut"))
	require.InDelta(t, 1.5, rows[0].Headers["real"], 0)
	require.Len(t, rows[0].XDeath, 2)
	var body []byte
	require.NoError(t, d.store.Pool().QueryRow(testkit.Context(t), `SELECT body FROM dead_letter WHERE id = $1`,
		rows[0].ID).Scan(&body))
	require.Equal(t, odd.Body, body)
	require.Equal(t, 1<<20,
		testkit.Count(t, d.store, `SELECT length(body) FROM dead_letter WHERE message_id = 'large'`))
	require.Equal(t, []any{float64(len(big)), true},
		[]any{at(t, rows[1].Evidence, "body", "bytes"), at(t, rows[1].Evidence, "body", "cut")})
	require.Len(t, at(t, rows[1].Evidence, "body", "sha256"), 64)
	require.Less(t,
		testkit.Count(t, d.store, `SELECT length(headers::text) FROM dead_letter WHERE message_id = 'many'`), 100_000)
	require.Empty(t, rows[0].Decision)
}

// A dead letter that the database refuses is stored in a reduced form. If the database refuses that
// too, it stays with the broker, delays no other, and is stored as soon as possible.
func TestADeadLetterThatTheDatabaseDoesNotTakeIsReducedAndNeverDropped(t *testing.T) {
	d := newService(t)
	testkit.Exec(t, d.store,
		`ALTER TABLE dead_letter ADD CONSTRAINT picky CHECK (message_id <> 'picky' OR headers IS NULL)`)
	testkit.Exec(t, d.store, `ALTER TABLE dead_letter ADD CONSTRAINT never CHECK (message_id <> 'never')`)
	d.open(t)
	m := func(id string) broker.Message {
		return broker.Message{
			ID: id, Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyEventCreated,
			Body: []byte(`{}`), Headers: broker.Table{"a": "b"},
		}
	}
	d.send(t, m("good"), m("never"), m("picky"), m("fine"))
	rows := d.settled(t, 3)
	for _, got := range rows {
		if got.MessageID == "picky" {
			require.Nil(t, got.Headers)
			require.Contains(t, got.Evidence["reduced"], "headers")
		}
	}
	testkit.Exec(t, d.store, `ALTER TABLE dead_letter DROP CONSTRAINT never`)
	require.Equal(t, "never", d.settled(t, 4)[3].MessageID)
	raw, err := json.Marshal(d.settled(t, 4)[3].Headers)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":"b"}`, string(raw))
}

// A taken message that the database refuses is stored in a reduced form, and its neighbours as they are.
func TestATakenMessageThatTheDatabaseDoesNotTakeIsReduced(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `ALTER TABLE dead_letter ADD CONSTRAINT picky CHECK (message_id <> 'picky' OR headers IS NULL)`)
	var page []broker.Delivery
	for _, id := range []string{"good", "picky", "fine"} {
		page = append(page, broker.Delivery{
			Properties: broker.Properties{MessageID: id, Headers: broker.Table{"a": "b"}},
			RoutingKey: "k",
			Body:       []byte(`{}`),
		})
	}
	taken, err := deadletter.Take(testkit.Context(t), st, page, deadletter.TakeInfo{Queue: "q", By: "ann"},
		func(context.Context, *store.Tx, deadletter.Taken) error { return nil })
	require.NoError(t, err)
	require.Len(t, taken.Entries, 3)
	require.Equal(t, 2, testkit.Count(t, st, `SELECT count(*) FROM dead_letter WHERE headers->>'a' = 'b'`))
	require.Equal(t, 1,
		testkit.Count(t, st, `SELECT count(*) FROM dead_letter WHERE message_id = 'picky' AND headers IS NULL`))
}

// Probes are dropped; nothing of them is stored, and their neighbours are.
func TestProbesAreDropped(t *testing.T) {
	d := newService(t)
	d.open(t)
	for _, probe := range d.wire.ProbeDeadLetters(testkit.Context(t), message.DeadLetterKeys()) {
		require.True(t, probe.Routed, "%s: %v", probe.Key, probe.Err)
	}
	d.send(t, broker.Message{
		Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyEventCreated,
		Type: broker.TypeProbe, Body: []byte(`{}`),
	},
		broker.Message{
			ID: "letter", Exchange: message.ExchangeDeadLetter, RoutingKey: message.KeyEventCreated,
			Body: []byte(`{}`),
		})
	require.Equal(t, "letter", d.settled(t, 1)[0].MessageID)
}

// Messages about rows that do not exist share one row of the ledger for each queue and type, with a count. After an
// operator's decision the next message begins a new row. Other dead letters have a row each.
func TestDeadLettersWithoutARowAreCounted(t *testing.T) {
	d := newService(t)
	h := d.open(t)
	sent := 0
	about := func(id int64) broker.Message {
		sent++
		m := deadLetter(t, message.KeyExecutionRequested, message.TypeExecutionRequested,
			message.ExecutionRequested{ExecutionID: id})
		m = poisoned(m)
		m.ID, m.Headers[broker.HeaderReason] = fmt.Sprintf("ghost-%d", sent), deadletter.NoRow("execution", id).Error()
		return m
	}
	ghost := func(id int64) { d.send(t, about(id)) }
	counted := func(want ...int) {
		t.Helper()
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, d.store, `SELECT count(*) FROM dead_letter WHERE $1::int[] = (
				SELECT array_agg(coalesce((evidence->'alike'->>'count')::int, 1) ORDER BY id) FROM dead_letter)`, want) == len(want)
		}, 20*time.Second, "%v", want)
	}
	for id := range int64(25) {
		ghost(1000 + id)
	}
	counted(25)
	testkit.Exec(t, d.store, `UPDATE dead_letter SET decision = 'discarded'`)
	ghost(2000)
	counted(25, 1)
	ghost(2001)
	counted(25, 2)
	d.send(t,
		poisoned(deadLetter(t, message.KeyExecutionRequested, message.TypeExecutionRequested,
			message.ExecutionRequested{ExecutionID: 3000})))
	counted(25, 2, 1)
	require.Equal(t, 24, testkit.Count(t, d.store,
		`SELECT jsonb_array_length(evidence->'alike'->'executions') FROM dead_letter ORDER BY id LIMIT 1`))

	// Dead letters that the engine writes by itself count at the same row. If the row exists by then, the engine
	// decides.
	read := func(id int64) *deadletter.Message {
		m := about(id)
		return deadletter.Read(&broker.Delivery{
			Properties: broker.Properties{MessageID: m.ID, Type: m.Type, Headers: m.Headers},
			Exchange:   m.Exchange,
			RoutingKey: m.RoutingKey,
			Body:       m.Body,
		})
	}
	existing := read(testkit.Execution(t, d.store, testkit.Action(t, d.store, "demo.there")).ID)
	exist, err := h.Absent(testkit.Context(t), []*deadletter.Message{read(4000), existing, read(4001)})
	require.NoError(t, err)
	require.Equal(t, []*deadletter.Message{existing}, exist)
	counted(25, 4, 1)
	testkit.Exec(t, d.store, `UPDATE dead_letter SET decision = 'discarded'`)
	exist, err = h.Absent(testkit.Context(t), []*deadletter.Message{read(4002), read(4003)})
	require.NoError(t, err)
	require.Empty(t, exist)
	counted(25, 4, 1, 2)
}
