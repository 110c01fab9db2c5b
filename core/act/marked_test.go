package act_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// ended makes failed executions and their targets.
func (b *bundle) ended(n int) []act.Target {
	b.t.Helper()
	action := testkit.Action(b.t, b.store, "demo.job")
	targets := make([]act.Target, n)
	for i := range targets {
		e := testkit.Execution(b.t, b.store, action,
			func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusFailed })
		targets[i] = act.Target{ID: e.ID, Name: fmt.Sprint(e.ID)}
	}
	return targets
}

func (b *bundle) planMany(kind act.Kind, targets []act.Target) *act.Plan {
	b.t.Helper()
	plan, err := b.Plan(b.t.Context(), act.Request{Kind: kind, Targets: targets})
	require.NoError(b.t, err)
	return plan
}

func words(lines []act.TextLine) string {
	text := ""
	for _, l := range lines {
		text += l.Text + "\n"
	}
	return text
}

// The plan says that a retry of a task does not reopen its workflow.
func TestManyRetriesNameTheOnesThatNoWorkflowWaitsFor(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "demo.job")
	row := func(status lifecycle.Status, parent *int64) act.Target {
		e := testkit.Execution(t, b.store, action,
			func(r *testkit.ExecutionRow) { r.Status, r.Parent = status, parent })
		return act.Target{ID: e.ID, Name: fmt.Sprint(e.ID)}
	}
	over, open := row(lifecycle.StatusFailed, nil), row(lifecycle.StatusRunning, nil)
	awaited := row(lifecycle.StatusFailed, &open.ID)
	marked := []act.Target{
		row(lifecycle.StatusFailed, nil), awaited, row(lifecycle.StatusFailed, &over.ID),
		row(lifecycle.StatusFailed, &over.ID),
	}
	require.Contains(t, words(b.planMany(act.RetryExecution, marked).Lines),
		fmt.Sprintf("2 of them have no waiting parent: it has ended (%d).", over.ID))
	require.NotContains(t, words(b.planMany(act.RetryExecution, marked[:2]).Lines), "Nobody waits")
}

func TestManyAreRepeatedAsOnePlan(t *testing.T) {
	b := setup(t)
	targets := b.ended(4)
	running := testkit.Execution(t, b.store, testkit.Action(t, b.store, "demo.other"),
		func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusRunning })
	marked := append(slices.Clone(targets), act.Target{ID: running.ID, Name: "running"},
		act.Target{ID: 1 << 40, Name: "gone"})
	plan := b.planMany(act.RetryExecution, marked)
	text := words(plan.Lines)
	require.Contains(t, text, "6 marked: 4 to retry, 2 skipped.")
	require.Contains(t, text, "skipped, it has not ended: running")
	require.Contains(t, text, "skipped, there is no such execution: 1099511627776")
	require.Contains(t, text, "Touches the queues of 1 action: demo.job.")
	require.Empty(t, plan.Word, "a few are run by a key")

	// Between the plan and the run another operator retries one of them.
	other := triage.New(triage.Config{Actor: "bob"}, b.store, nil)
	_, err := other.RetryExecution(t.Context(), targets[1].ID, "")
	require.NoError(t, err)
	progress := &act.Progress{}
	receipt, err := b.Run(t.Context(), plan, "a test", progress)
	require.NoError(t, err)
	require.Equal(t, "3 of 4 done, 1 changed meanwhile.", receipt.Text)
	require.Contains(t, words(receipt.Lines), "has been repeated already")
	require.True(t, receipt.Partly)
	require.Len(t, receipt.Audits, 3)
	done, total := progress.Read()
	require.Equal(t, []int64{4, 4}, []int64{done, total})
	require.Equal(t, 4,
		testkit.Count(t, b.store, `select count(*) from execution where original_execution is not null`), "each once")
}

// Retries wait in a paused queue. Plans name the operator who paused it, for one row and for many.
func TestAPlanOfRetriesNamesPausedQueues(t *testing.T) {
	b := setup(t)
	targets := b.ended(31)
	one := func() string { return words(b.plan(act.RetryExecution, targets[0]).Lines) }
	many := func() string { return words(b.planMany(act.RetryExecution, targets).Lines) }
	require.NotContains(t, one()+many(), "paused")
	require.Contains(t, many(), "One after the other, 20 a second, est. 2s;")
	for _, ref := range []string{"demo.job", "demo.unrelated"} {
		_, err := triage.New(triage.Config{Actor: "ann@ops"}, b.store, nil).Override(t.Context(),
			triage.Override{Target: triage.Target{Action: ref}, Act: triage.Pause, Reason: "db maintenance"})
		if ref == "demo.job" {
			require.NoError(t, err)
		}
	}
	for _, text := range []string{one(), many()} {
		require.Contains(t, text,
			"The queue demo.job is paused by ann@ops (db maintenance): retries wait there until you resume it.")
		require.NotContains(t, text, "unrelated")
	}
}

func TestTwoDashboardsRepeatEachRowOnce(t *testing.T) {
	b := setup(t)
	targets := b.ended(12)
	connected := func(name string) *act.Operator {
		return act.New(act.Config{},
			triage.New(triage.Config{Actor: name, Pace: time.Microsecond}, b.store, nil),
			alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: b.store}), nil, nil))
	}
	results := make(chan *act.Receipt, 2)
	for _, name := range []string{"ann", "bob"} {
		one := connected(name)
		plan, err := one.Plan(t.Context(), act.Request{Kind: act.RetryExecution, Targets: targets})
		require.NoError(t, err)
		go func() {
			receipt, _ := one.Run(context.WithoutCancel(t.Context()), plan, "", &act.Progress{})
			results <- receipt
		}()
	}
	first, second := <-results, <-results
	require.Len(t, append(first.Audits, second.Audits...), 12, "%s / %s", first.Text, second.Text)
	require.Equal(t, 12,
		testkit.Count(t, b.store, `select count(*) from execution where original_execution is not null`))
}

func TestManyAreCancelled(t *testing.T) {
	b := setup(t)
	_, ids := b.waiting("demo.sleep", 4)
	failed := b.ended(1)
	targets := failed
	for _, id := range ids[1:] {
		targets = append(targets, act.Target{ID: id, Name: fmt.Sprint(id)})
	}
	plan := b.planMany(act.CancelExecution, targets)
	require.Contains(t, words(plan.Lines), "4 marked: 3 to cancel, 1 skipped.")
	require.Contains(t, words(plan.Lines), "cannot be undone")
	require.Contains(t, words(plan.Lines), "First all waiting ones are withdrawn")
	testkit.Exec(t, b.store, `update execution set status = 'completed' where id = $1`, ids[3])
	receipt, err := b.Run(t.Context(), plan, "", &act.Progress{})
	require.NoError(t, err)
	require.Equal(t, "2 of 3 done, 1 changed meanwhile.", receipt.Text)
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, ids[1]))
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, ids[3]))
}

// published calls itself for every outbox row of an operator, before the operator goes on.
type published func()

func (p published) Published(int64, []outbox.Message) { p() }

// Marked executions are withdrawn before running ones are stopped: none starts in a slot that the cancellation frees,
// although workers obey and engines promote at once.
func TestMarkedExecutionsDoNotStartWhileOthersAreCancelled(t *testing.T) {
	b := setup(t)
	_, ids := b.waiting("demo.sleep", 16)
	rounds := scheduler.New(scheduler.Config{},
		scheduler.Deps{Store: b.store, Relay: noRelay{}, Logger: testkit.Logger(t)})
	obey := published(func() {
		testkit.Exec(t, b.store, `update execution set status = 'cancelled' where status = 'canceling'`)
		_, err := rounds.Run(t.Context(), scheduler.NewReleaseStep(ids), scheduler.FillStep{})
		require.NoError(t, err)
		testkit.Exec(t, b.store, `update execution set status = 'running' where status = 'scheduled'`)
	})
	obey()
	b.Operator = act.New(act.Config{},
		triage.New(triage.Config{Actor: "ann@desk", Source: "attune-tui", Pace: time.Microsecond}, b.store, obey),
		alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: b.store}), nil, nil))
	var targets []act.Target
	for _, id := range slices.Backward(ids) { // newest first, as the list has them
		targets = append(targets, act.Target{ID: id, Name: fmt.Sprint(id)})
	}
	receipt := b.run(b.planMany(act.CancelExecution, targets))
	require.Equal(t, "16 of 16 done.", receipt.Text)
	require.Equal(t, "15 executions cancelled, 1 asked to stop.", receipt.Lines[0].Text)
	require.Equal(t, []int{1, 16}, []int{
		testkit.Count(t, b.store, `select count(*) from execution where worker is not null`),
		testkit.Count(t, b.store, `select count(*) from execution where status = 'cancelled'`),
	}, "only the running one had begun")
}

// A cancellation that is stopped by hand leaves the marks of the executions that it did not reach, and these run on.
func TestACancellationStoppedByHandLeavesTheOthersMarked(t *testing.T) {
	b := setup(t)
	action, ids := b.waiting("demo.sleep", 5)
	worker := testkit.Worker(t, b.store, "w-2").ID
	var targets []act.Target
	for range 30 {
		ids = append(ids, testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
			e.Status, e.Worker = lifecycle.StatusRunning, &worker
		}).ID)
	}
	for _, id := range ids[1:] {
		targets = append(targets, act.Target{ID: id, Name: fmt.Sprint(id)})
	}
	ctx, stop := context.WithCancel(t.Context())
	rows := 0
	b.Operator = act.New(act.Config{}, triage.New(triage.Config{}, b.store, published(func() {
		if rows++; rows == 2 { // the withdrawn ones, and the first page of the others
			stop()
		}
	})), alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: b.store}), nil, nil))
	receipt, err := b.Run(ctx, b.planMany(act.CancelExecution, targets), "", &act.Progress{})
	require.NoError(t, err)
	require.Equal(t, "24 of 34 done.", receipt.Text)
	require.True(t, receipt.Partly)
	require.Equal(t, ids[25:], receipt.Left)
	require.Contains(t, words(receipt.Lines), "10 were not reached and stay marked.")
	require.Equal(t, 4, testkit.Count(t, b.store, `select count(*) from execution where status = 'cancelled'`))
	require.Equal(t, 10, testkit.Count(t, b.store, `select count(*) from execution where status = 'running'`))
}

func TestManyWorkersAndQueues(t *testing.T) {
	b := setup(t)
	var workers []act.Target
	for _, name := range []string{"w-1", "w-2"} {
		workers = append(workers, act.Target{ID: testkit.Worker(t, b.store, name).ID, Name: name})
	}
	connected := triage.New(triage.Config{Actor: "bob"}, b.store, nil)
	_, err := connected.ActOnWorker(t.Context(), triage.WorkerRequest{Act: triage.CordonWorker, Worker: "w-2"})
	require.NoError(t, err)
	plan := b.planMany(act.CordonWorker, append(workers, act.Target{ID: 999, Name: "nobody"}))
	require.Contains(t, words(plan.Lines), "3 marked: 1 to cordon, 2 skipped.")
	receipt, err := b.Run(t.Context(), plan, "", &act.Progress{})
	require.NoError(t, err)
	require.Equal(t, "1 of 1 done.", receipt.Text)
	require.Equal(t, 2, testkit.Count(t, b.store, `select count(*) from worker where cordoned`))

	one, _ := b.waiting("demo.one", 2)
	two, _ := b.waiting("demo.two", 2)
	queues := []act.Target{b.queue(one).Target, b.queue(two).Target, {ID: 7, Name: "left"}}
	plan = b.planMany(act.PauseQueue, queues)
	require.Contains(t, words(plan.Lines), "3 marked: 2 to pause, 1 skipped.")
	require.Contains(t, words(plan.Lines), "skipped, it is no longer in the list: left")
	_, err = connected.Override(t.Context(), triage.Override{Target: triage.Target{Action: two.Ref}, Act: triage.Pause})
	require.NoError(t, err)
	receipt, err = b.Run(t.Context(), plan, "", &act.Progress{})
	require.NoError(t, err)
	require.Equal(t, "1 of 2 done, 1 changed meanwhile.", receipt.Text)
}

func TestMoreThanFiftyNeedATypedWord(t *testing.T) {
	b := setup(t)
	require.Equal(t, "retry 51", b.planMany(act.RetryExecution, b.ended(51)).Word)
	_, err := b.Plan(t.Context(), act.Request{Kind: act.PauseQueue, Targets: make([]act.Target, 201)})
	require.ErrorContains(t, err, "at most 200 at once")
}

func TestManyStopAfterFailuresAndByHand(t *testing.T) {
	b := setup(t)
	targets := b.ended(6)
	plan := b.planMany(act.RetryExecution, targets)
	testkit.Exec(t, b.store, `alter table operator_audit rename to away`)
	receipt, err := b.Run(t.Context(), plan, "", &act.Progress{})
	require.NoError(t, err)
	require.Equal(t, "0 of 6 done, 3 failed.", receipt.Text)
	require.Contains(t, words(receipt.Lines), "Stopped after 3 failures in a row; 3 were not reached")
	require.Equal(t, []int64{targets[3].ID, targets[4].ID, targets[5].ID}, receipt.Left)
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from execution where original_execution is not null`))

	testkit.Exec(t, b.store, `alter table away rename to operator_audit`)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	receipt, err = b.Run(ctx, b.planMany(act.RetryExecution, targets), "", &act.Progress{})
	require.NoError(t, err)
	require.Len(t, receipt.Left, 6)
	require.Contains(t, words(receipt.Lines), "Stopped by hand; 6 were not reached")
}

func TestMarkedWorkflowsArePausedAsOnePlan(t *testing.T) {
	b := setup(t)
	one, two := b.workflow("shop.one"), b.workflow("shop.two")
	b.run(b.plan(act.PauseWorkflow, act.Target{ID: two}))
	var targets []act.Target
	for _, id := range []int64{one, two, 1 << 40} {
		targets = append(targets, act.Target{ID: id, Name: fmt.Sprint(id)})
	}
	plan := b.planMany(act.PauseWorkflow, targets)
	require.Equal(t, "Pause 1 workflow", plan.Title)
	require.Contains(t, words(plan.Lines), "3 marked: 1 to pause, 2 skipped.")
	require.Contains(t, words(plan.Lines), "skipped, it is paused already")
	require.Contains(t, words(plan.Lines), "skipped, there is no such workflow")
	require.Equal(t, "1 of 1 done.", b.run(plan).Text)
	require.Equal(t, 2, testkit.Count(t, b.store, `select count(*) from workflow_execution where paused`))
	plan = b.planMany(act.ResumeWorkflow, targets)
	require.Equal(t, "Resume 2 workflows", plan.Title)
	b.run(b.plan(act.ResumeWorkflow, act.Target{ID: one}))
	require.Equal(t, "1 of 2 done, 1 changed meanwhile.", b.run(plan).Text)
}

func TestMarkedInquiriesGetOneAnswer(t *testing.T) {
	b := setup(t)
	_, one := b.asking("pk.one", nil)
	_, two := b.asking("pk.two", nil)
	_, other := b.asking("pk.other", nil)
	testkit.Exec(t, b.store, `update inquiry set response_schema = '{"note": {"type": "string"}}' where id = $1`, other)
	_, text := b.asking("pk.text", nil)
	testkit.Exec(t, b.store,
		`update inquiry set response_schema = '{"ok": {"type": "string"}, "host": {"type": "string"}}' where id = $1`,
		text)
	_, over := b.asking("pk.over", nil)
	b.run(b.plan(act.AnswerInquiry, act.Target{ID: over}, "answer.ok", "yes"))
	request := act.Request{Kind: act.AnswerInquiry, Values: map[string]string{"answer.ok": "no", "answer.host": "h1"}}
	for _, id := range []int64{one, two, other, over, text} {
		request.Targets = append(request.Targets, act.Target{ID: id, Name: fmt.Sprint(id)})
	}
	plan, err := b.Plan(t.Context(), request)
	require.NoError(t, err)
	says := words(plan.Lines)
	require.Equal(t, "Answer 2 inquiries", plan.Title)
	require.Contains(t, says, "5 marked: 2 to answer, 3 skipped.")
	require.Contains(t, says, "skipped, the answer does not fit it",
		"what it would leave out is not answered with nothing")
	require.Contains(t, says, "skipped, it was answered already")
	require.Contains(t, says, "skipped, its form makes another answer of it")
	require.Contains(t, says, fmt.Sprintf("%d: deploy?", one))
	require.Contains(t, says, `{"host":"h1","ok":false}`)

	b.run(b.plan(act.AnswerInquiry, act.Target{ID: two}, "answer.ok", "yes"))
	receipt := b.run(plan)
	require.Equal(t, "1 of 2 done, 1 changed meanwhile.", receipt.Text, "the first answer counts")
	require.Len(t, receipt.Audits, 1)

	request.Targets, request.Values = request.Targets[:4], map[string]string{"answer.host": "x"}
	_, err = b.Plan(t.Context(), request)
	require.Error(t, err)
	request.Targets = request.Targets[2:3]
	_, err = b.Plan(t.Context(), request)
	var invalid *act.InvalidError
	require.ErrorAs(t, err, &invalid, "where it fits none, it leads back to the form")
}
