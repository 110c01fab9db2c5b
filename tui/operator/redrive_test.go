package operator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/operator"
)

// fakeDesk answers as a test says.
type fakeDesk struct {
	queue  redrive.Queue
	plan   redrive.Plan
	order  redrive.Order
	beside bool
	err    error
	spool  redrive.SpoolState
	list   []*redrive.Spooled

	unknown int
}

func (d *fakeDesk) Queue() string                                { return "attune.dlx.queue" }
func (d *fakeDesk) Look(context.Context) (*redrive.Queue, error) { return &d.queue, d.err }
func (d *fakeDesk) Spool() ([]*redrive.Spooled, error)           { return d.list, d.err }

func (d *fakeDesk) SpoolState() redrive.SpoolState { return d.spool }
func (d *fakeDesk) SetSpool(on bool)               { d.spool.On = on }

func (d *fakeDesk) Snapshot(_ context.Context, beside bool) (*redrive.Snapshot, error) {
	d.beside = beside
	return &redrive.Snapshot{Queue: d.queue, Letters: make([]redrive.Letter, 2), Cut: "only the first 2 are read"}, d.err
}

func (d *fakeDesk) Plan(_ context.Context, order redrive.Order) (*redrive.Plan, error) {
	d.order = order
	p := d.plan
	p.Order = order
	return &p, d.err
}

func (d *fakeDesk) Run(_ context.Context, p *redrive.Plan, _ string, tell redrive.Tell) (*redrive.Receipt, error) {
	tell(redrive.Progress{Done: 1, Total: 2, Out: true, Before: 5, Target: "attune.execution.requests", TargetBefore: 612})
	return &redrive.Receipt{
		Op: "op", Do: p.Do, Planned: 2, Done: 1, Failed: 1, Unknown: d.unknown, Before: 5, After: 3, Expected: 4, Stopped: "blocked", Errors: []string{"no route"}, Undoable: true,
	}, nil
}

func withDesk(t *testing.T, d *fakeDesk) *operator.Operator {
	t.Helper()
	return operator.New(operator.Config{Desk: d}, nil, nil)
}

func TestASnapshotRunsAtOnceUnlessAHandlerIsThere(t *testing.T) {
	t.Parallel()
	d := &fakeDesk{queue: redrive.Queue{Type: "classic", Ready: 7}}
	o := withDesk(t, d)
	order := act.Order{Kind: act.SnapshotLetters}
	plan, err := o.Plan(t.Context(), order)
	require.NoError(t, err)
	require.True(t, plan.AtOnce)
	receipt, err := o.Run(t.Context(), plan, "", &act.Progress{})
	require.NoError(t, err)
	require.Equal(t, "2 letters read of 7 ready. Only the first 2 are read.", receipt.Text)
	require.IsType(t, &redrive.Snapshot{}, receipt.Result)
	require.False(t, d.beside)

	d.queue.Consumers = 1
	plan, err = o.Plan(t.Context(), order)
	require.NoError(t, err)
	require.False(t, plan.AtOnce)
	require.Contains(t, text(plan.Lines), "Read beside it?")
	_, err = o.Run(t.Context(), plan, "", &act.Progress{})
	require.NoError(t, err)
	require.True(t, d.beside)

	d.queue = redrive.Queue{Type: "stream"}
	plan, err = o.Plan(t.Context(), order)
	require.NoError(t, err)
	require.Contains(t, plan.Nothing, "it is a stream")
	d.err = errors.New("no broker")
	_, err = o.Plan(t.Context(), order)
	require.ErrorContains(t, err, "no broker")
	_, err = operator.New(operator.Config{}, nil, nil).Plan(t.Context(), order)
	require.ErrorContains(t, err, "not configured")
}

func TestAPlanOnTheBrokersLettersSaysWhatItDoesAndWhatNot(t *testing.T) {
	t.Parallel()
	letters := make([]redrive.Letter, 60)
	items := []redrive.Item{}
	for i := range letters {
		item := redrive.Item{Letter: &letters[i], Verdict: redrive.Verdict{Do: redrive.Requeue}}
		if i < 3 {
			item.Verdict, item.Skip = redrive.Verdict{Do: redrive.Stale, Why: fmt.Sprintf("execution %d completed", i)}, "stale"
		}
		items = append(items, item)
	}
	d := &fakeDesk{plan: redrive.Plan{
		Op: "01J9ZKAA", Items: items, Bound: 99, Rate: 20, Spool: true, Target: "attune.executions", TargetKey: "execution.requested",
		Checks: []redrive.Check{{OK: true, Text: "exchange attune.executions exists"}, {Warn: true, Text: "it has 0 consumers"}},
	}}
	o := withDesk(t, d)
	plan, err := o.Plan(t.Context(), act.Order{Kind: act.RequeueLetter, Letters: letters})
	require.NoError(t, err)
	require.Equal(t, "Requeue 57 letters  op 01J9ZKAA", plan.Title)
	require.Equal(t, "requeue 57", plan.Word)
	said := text(plan.Lines)
	for _, part := range []string{
		"   57  requeue: rows failed → requested", "    3  skipped, stale: execution 0 completed; execution 1 completed; execution 2 completed",
		"to       attune.executions  key execution.requested  which queues have it is unknown", "how many are ahead is unknown", "▲ it has 0 consumers", "bound    99", "rate     20/s, stop after 3 errors; est. 3 s",
	} {
		require.Contains(t, said, part)
	}
	progress := &act.Progress{}
	receipt, err := o.Run(t.Context(), plan, "", progress)
	require.NoError(t, err)
	done, total := progress.Read()
	require.Equal(t, []int64{1, 2}, []int64{done, total})
	require.Equal(t, &act.Counts{Done: 1, Depths: "dlq 5 → 4   attune.execution.requests 612 → 613"}, progress.Counts())
	require.True(t, receipt.Partly)
	require.Equal(t, "Requeue: planned 2, done 1, changed 0, gone 0, failed 1, left 0.", receipt.Text)
	require.Contains(t, text(receipt.Lines), "queue 5 → 3, expected 4")
	require.Contains(t, text(receipt.Lines), "not the expected one")
	require.Equal(t, "op", receipt.Undo.Target.Ref)

	d.unknown = 1
	for kind, part := range map[act.Kind]string{
		act.RequeueLetter: "whether the request was sent", act.DiscardLetter: "whether they have left", act.MoveLetters: "may be in both queues",
		act.UndoLetters: "whether the queue has them",
	} {
		plan, err = o.Plan(t.Context(), act.Order{Kind: kind, Letters: letters, Target: act.Target{Ref: "op"}})
		require.NoError(t, err)
		receipt, err = o.Run(t.Context(), plan, "", progress)
		require.NoError(t, err)
		require.Contains(t, receipt.Text, "failed 1, unknown 1, left 0.")
		require.Contains(t, text(receipt.Lines), part)
	}

	for kind, want := range map[act.Kind]string{act.PurgeLetters: "purge for good", act.MoveLetters: "move 57"} {
		plan, err = o.Plan(t.Context(), act.Order{Kind: kind, Letters: letters, Values: map[string]string{act.FieldReal: map[bool]string{true: "yes"}[kind == act.PurgeLetters], act.FieldKey: "parking"}})
		require.NoError(t, err)
		require.Equal(t, want, plan.Word)
	}
	require.Equal(t, "parking", d.order.Key)
	_, err = o.Plan(t.Context(), act.Order{Kind: act.UndoLetters, Target: act.Target{Ref: "op"}})
	require.NoError(t, err)
	require.Equal(t, "op", d.order.Op)
	require.Equal(t, redrive.DoUndo, d.order.Do)
}

func TestMarkedLettersAreRequeuedDiscardedAndReopened(t *testing.T) {
	t.Parallel()
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.many")
	action := testkit.Action(t, b.store, "pk.many")
	targets := func(status attune.Status, n int) (list []act.Target) {
		for range n {
			x := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) { e.Status, e.Worker = status, &worker.ID })
			list = append(list, act.Target{ID: b.letter(x.ID, worker.ID)})
		}
		return list
	}
	failed, done := targets(attune.StatusFailed, 2), targets(attune.StatusCompleted, 1)
	all := append(append([]act.Target{}, failed...), done...)
	plan := func(kind act.Kind, targets []act.Target) *act.Plan {
		p, err := b.Plan(t.Context(), act.Order{Kind: kind, Targets: targets})
		require.NoError(t, err)
		return p
	}
	p := plan(act.RequeueLetter, all)
	require.Contains(t, text(p.Lines), "3 marked: 2 will be requeued")
	require.Contains(t, text(p.Lines), "1 skipped, what is advised is "+monitor.AdviseDiscard)
	require.Equal(t, "Requeue: planned 2, done 2, changed 0, failed 0, left 0.", b.run(p).Text)
	require.Equal(t, 2, testkit.Count(t, b.store, `select count(*) from execution where retry_reason = 'manual_retry'`))
	require.NotEmpty(t, plan(act.RequeueLetter, all).Nothing)

	p = plan(act.DiscardLetter, all)
	require.Contains(t, text(p.Lines), "3 marked: 1 wait, 2 are decided already")
	receipt := b.run(p)
	require.Len(t, receipt.Undo.Targets, 1)
	undo, err := b.Plan(t.Context(), *receipt.Undo)
	require.NoError(t, err)
	require.Equal(t, "Reopen: planned 1, done 1, changed 0, failed 0, left 0.", b.run(undo).Text)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from dead_letter where decision is null`))
}
