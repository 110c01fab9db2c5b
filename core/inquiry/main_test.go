package inquiry_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// relay records committed messages, instead of a broker.
type relay struct {
	mu       sync.Mutex
	messages []outbox.Message
}

func (r *relay) Published(_ int64, messages []outbox.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, messages...)
}

// completions lists the executions of all completion messages, with duplicates.
func (r *relay) completions(t *testing.T) map[int64]int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	told := map[int64]int{}
	for _, m := range r.messages {
		if m.Type == message.TypeExecutionCompleted {
			sent, err := message.Decode[message.ExecutionCompleted](m.Body)
			require.NoError(t, err)
			told[sent.Payload.ExecutionID]++
		}
	}
	return told
}

// bundle is a database with a workflow that runs, and its action that asks.
type bundle struct {
	store    *store.Store
	relay    *relay
	ask, act testkit.ActionRow
	workflow int64 // the execution of the workflow
}

func setup(t *testing.T) *bundle {
	t.Helper()
	st := testkit.Store(t)
	b := &bundle{store: st, relay: &relay{}, act: testkit.Action(t, st, "pk.act")}
	if testkit.Adopted() { // where it comes with the files of a pack
		b.ask = testkit.Action(t, st, inquiry.Action)
	} else {
		b.ask = testkit.ActionRow{
			Ref: inquiry.Action,
			ID:  int64(testkit.Count(t, st, `SELECT id FROM action WHERE ref = $1`, inquiry.Action)),
		}
	}
	flow := testkit.Action(t, st, "pk.flow")
	b.workflow = testkit.Execution(t, st, flow, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	return b
}

// asked is an execution that asks, and its question.
type asked struct{ execution, inquiry int64 }

// task opens the question of a core.ask.
func (b *bundle) task(t *testing.T, change ...func(*inquiry.Question)) asked {
	t.Helper()
	execution := testkit.Execution(t, b.store, b.ask, func(e *testkit.ExecutionRow) {
		e.Status, e.Parent = lifecycle.StatusRunning, &b.workflow
		e.WorkflowTask = map[string]any{"task_name": "approve", "timed_out": false}
	}).ID
	q := inquiry.Question{Execution: execution, Prompt: "go on?"}
	for _, c := range change {
		c(&q)
	}
	opening, err := inquiry.Prepare(testkit.Context(t), b.store.Queries, []inquiry.Question{q})
	require.NoError(t, err)
	require.Empty(t, opening.Faults)
	require.NoError(t, b.open(testkit.Context(t), opening))
	return asked{execution, opening.Questions[0].ID}
}

// result opens the question in the result of a completed execution.
func (b *bundle) result(t *testing.T, result any) asked {
	t.Helper()
	execution := b.completed(t, result)
	opening, err := inquiry.Read(testkit.Context(t), b.store.Queries, []int64{execution})
	require.NoError(t, err)
	require.Len(t, opening.Questions, 1)
	require.NoError(t, b.open(testkit.Context(t), opening))
	return asked{execution, opening.Questions[0].ID}
}

func (b *bundle) completed(t *testing.T, result any) int64 {
	t.Helper()
	return testkit.Execution(t, b.store, b.act, func(e *testkit.ExecutionRow) {
		e.Status, e.Parent, e.Result = lifecycle.StatusCompleted, &b.workflow, result
	}).ID
}

// open runs an opening in a transaction of its own.
func (b *bundle) open(ctx context.Context, o *inquiry.Opening) error {
	return b.store.Tx(ctx, "open", func(ctx context.Context, tx *store.Tx) error {
		var now time.Time
		if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
			return err
		}
		p := tx.Pipeline()
		for _, s := range o.Statements() {
			p.Exec(s.SQL, s.Args...)
		}
		if err := p.Send(ctx); err != nil {
			return err
		}
		messages, err := o.Messages(now, "test")
		if err != nil || len(messages) == 0 {
			return err
		}
		row, err := outbox.Append(ctx, tx, messages)
		tx.AfterCommit(func() { b.relay.Published(row, messages) })
		return err
	})
}

// respond gives an answer in a transaction of its own.
func (b *bundle) respond(ctx context.Context, a inquiry.Answer) (*inquiry.Answered, error) {
	if a.By == "" {
		a.By = "a test"
	}
	var done *inquiry.Answered
	err := b.store.Tx(ctx, "respond", func(ctx context.Context, tx *store.Tx) (err error) {
		if done, err = inquiry.Respond(ctx, tx, a); err != nil {
			return err
		}
		row, err := outbox.Append(ctx, tx, done.Messages)
		tx.AfterCommit(func() { b.relay.Published(row, done.Messages) })
		return err
	})
	return done, err
}

func (b *bundle) yes(ctx context.Context, id int64) (*inquiry.Answered, error) {
	return b.respond(ctx, inquiry.Answer{Inquiry: id, Response: json.RawMessage(`{"approved": true}`)})
}

// watch starts the watch of a replica.
func (b *bundle) watch(t *testing.T, change ...func(*inquiry.WatchConfig)) {
	t.Helper()
	cfg := inquiry.WatchConfig{Interval: 20 * time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	w := inquiry.NewWatch(cfg, b.store, b.relay, testkit.Logger(t), inquiry.NewMetrics(nil), nil)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
}

// over makes the time of a question end a moment ago.
func (b *bundle) over(t *testing.T, id int64) {
	t.Helper()
	testkit.Exec(t, b.store, `UPDATE inquiry SET timeout_at = now() - interval '1 second' WHERE id = $1`, id)
}

func (b *bundle) status(t *testing.T, id int64) inquiry.Status {
	t.Helper()
	var status string
	require.NoError(t,
		b.store.Pool().QueryRow(t.Context(), `SELECT status::text FROM inquiry WHERE id = $1`, id).Scan(&status))
	return inquiry.Status(status)
}

func (b *bundle) resultOf(t *testing.T, execution int64) string {
	t.Helper()
	var result string
	require.NoError(t, b.store.Pool().QueryRow(t.Context(), `SELECT result::text FROM execution WHERE id = $1`,
		execution).Scan(&result))
	return result
}

// becomes waits for the end of a question and for its consequences.
func (b *bundle) becomes(t *testing.T, a asked, status inquiry.Status, execution lifecycle.Status) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE id = $1 AND status::text = $2 AND settled`,
			a.inquiry, string(status)) == 1
	}, 10*time.Second, "inquiry %d becomes %s", a.inquiry, status)
	require.Equal(t, execution, testkit.StatusOf(t, b.store, a.execution))
}
