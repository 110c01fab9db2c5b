package act_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type noRelay struct{}

func (noRelay) Published(int64, []outbox.Message) {}

// bundle is a database with an operator on it.
type bundle struct {
	*act.Operator
	t     *testing.T
	store *store.Store
}

func setup(t *testing.T, change ...func(*act.Config)) *bundle {
	t.Helper()
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	var cfg act.Config
	for _, c := range change {
		c(&cfg)
	}
	connected := triage.New(triage.Config{Actor: "ann@desk", Source: "attune-tui", Pace: time.Microsecond}, st, nil)
	return &bundle{
		Operator: act.New(cfg, connected,
			alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil)),
		t: t, store: st,
	}
}

// waiting makes an action with one execution in its slot and the others in its queue.
func (b *bundle) waiting(ref string, n int) (action testkit.ActionRow, ids []int64) {
	b.t.Helper()
	testkit.Worker(b.t, b.store, ref, func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(100) })
	action = testkit.Action(b.t, b.store, ref)
	testkit.Policy(b.t, b.store, action, 1)
	for range n {
		ids = append(ids, testkit.Execution(b.t, b.store, action).ID)
	}
	rounds := scheduler.New(scheduler.Config{},
		scheduler.Deps{Store: b.store, Relay: noRelay{}, Logger: testkit.Logger(b.t)})
	_, err := rounds.Run(b.t.Context(), scheduler.FillStep{}, scheduler.NewRequestStep(ids))
	require.NoError(b.t, err)
	return action, ids
}

// queue is the menu of an action's queue as the dashboard would show it.
func (b *bundle) queue(action testkit.ActionRow) act.Menu {
	b.t.Helper()
	read := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: b.store}), nil, nil)
	list, err := read.Queues(b.t.Context(), monitor.QueueFilter{})
	require.NoError(b.t, err)
	for i := range list.List {
		if list.List[i].ActionRef == action.Ref {
			return act.ForQueue(&list.List[i])
		}
	}
	require.Fail(b.t, "there is no queue of "+action.Ref)
	return act.Menu{}
}

func (b *bundle) plan(kind act.Kind, target act.Target, values ...string) *act.Plan {
	b.t.Helper()
	request := act.Request{Kind: kind, Target: target, Values: map[string]string{}}
	for i := 0; i+1 < len(values); i += 2 {
		request.Values[values[i]] = values[i+1]
	}
	plan, err := b.Plan(b.t.Context(), request)
	require.NoError(b.t, err)
	require.Equal(b.t, request, plan.Request)
	return plan
}

func (b *bundle) run(plan *act.Plan) *act.Receipt {
	b.t.Helper()
	require.Empty(b.t, plan.Nothing)
	receipt, err := b.Run(b.t.Context(), plan, "a test", &act.Progress{})
	require.NoError(b.t, err)
	require.NotEmpty(b.t, receipt.Audits)
	for _, id := range receipt.Audits {
		require.Equal(b.t, 1, testkit.Count(b.t, b.store,
			`select count(*) from operator_audit where id = $1 and actor = 'ann@desk' and source = 'attune-tui'`, id))
	}
	return receipt
}

func (b *bundle) reason(receipt *act.Receipt) string {
	b.t.Helper()
	var text string
	require.NoError(b.t, b.store.Pool().QueryRow(b.t.Context(),
		`select coalesce(reason, '') from operator_audit where id = $1`, receipt.Audits[0]).Scan(&text))
	return text
}

func text(lines []act.TextLine) string {
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = l.Text
	}
	return strings.Join(parts, "\n")
}

func TestAQueueIsPausedAndResumed(t *testing.T) {
	b := setup(t)
	action, _ := b.waiting("pk.pause", 4)
	target := b.queue(action).Target
	plan := b.plan(act.PauseQueue, target)
	require.Equal(t, "Pause pk.pause", plan.Title)
	require.Contains(t, text(plan.Lines), "pk.pause  open → paused   1 running, 3 waiting")
	require.Empty(t, plan.Word)
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from execution_admission_state where paused`),
		"a plan changes nothing")
	receipt := b.run(plan)
	require.Equal(t, "1 queue is paused, 3 executions wait.", receipt.Text)
	require.Equal(t, "a test", b.reason(receipt))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from execution_admission_state where paused`))
	require.NotEmpty(t, b.queue(action).Items[0].Not, "its menu says so")
	require.Equal(t, "nothing would change", b.plan(act.PauseQueue, target).Nothing)
	b.run(b.plan(act.ResumeQueue, target))
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from execution_admission_state where paused`))
}

func TestALimitIsSetAndReset(t *testing.T) {
	b := setup(t)
	action, _ := b.waiting("pk.limit", 3)
	target := b.queue(action).Target
	plan := b.plan(act.LimitQueue, target, act.FieldLimit, " 5 ")
	require.Equal(t, "Limit to 5 pk.limit", plan.Title)
	require.Contains(t, text(plan.Lines), "limit 1 → 5")
	require.Contains(t, text(plan.Lines), "5 is above the policy's limit of 1")
	require.NotContains(t, text(b.plan(act.LimitQueue, target, act.FieldLimit, "1").Lines), "above")
	receipt := b.run(plan)
	require.Contains(t, receipt.Next, "has room now")
	b.run(b.plan(act.ResetQueue, target))
	_, err := b.Plan(t.Context(),
		act.Request{Kind: act.LimitQueue, Target: target, Values: map[string]string{act.FieldLimit: "0"}})
	require.EqualError(t, err, `"0" is not a limit: it is a number from 1 to 2147483646`)
}

func TestClearingAQueueCancelsItsWaitingExecutions(t *testing.T) {
	b := setup(t)
	action, ids := b.waiting("pk.clear", 53)
	target := b.queue(action).Target
	require.Equal(t, "no execution waits", b.plan(act.ClearQueue, target, act.FieldOlderThan, "1h").Nothing)
	plan := b.plan(act.ClearQueue, target, act.FieldOlderThan, "")
	require.Contains(t, text(plan.Lines), "52 executions in 1 queue")
	require.Equal(t, "pk.clear", plan.Word, "so many ask for a word")
	progress := &act.Progress{}
	receipt, err := b.Run(t.Context(), plan, "wrong host", progress)
	require.NoError(t, err)
	require.Equal(t, "52 of 52 cancelled.", receipt.Text)
	require.Equal(t, "wrong host", b.reason(receipt))
	require.False(t, receipt.Partly)
	done, total := progress.Read()
	require.Equal(t, []int64{52, 52}, []int64{done, total})
	require.NotEqual(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, ids[0]))
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, ids[1]))
}

func TestAnInterruptedClearingCountsTheRest(t *testing.T) {
	b := setup(t)
	action, _ := b.waiting("pk.stop", 4)
	plan := b.plan(act.ClearQueue, b.queue(action).Target)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	receipt, err := b.Run(ctx, plan, "", &act.Progress{})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, receipt.Partly)
	require.Equal(t, "the same again goes on where it stopped", receipt.Next)
	require.Equal(t, 1, testkit.Count(t, b.store,
		`select count(*) from operator_audit where id = $1 and outcome = 'interrupted'`, receipt.Audits[0]),
		"also of what was stopped there is a record")
}

func TestQueuesAreRepaired(t *testing.T) {
	b := setup(t)
	action, _ := b.waiting("pk.repair", 3)
	target := b.queue(action).Target
	require.NotEmpty(t, b.plan(act.RepairQueue, target).Nothing)
	testkit.Exec(t, b.store, `update execution_admission_state set active_count = 7 where action_id = $1`, action.ID)
	plan := b.plan(act.RepairQueue, target)
	require.Contains(t, text(plan.Lines), "is 7, counted 1")
	receipt := b.run(plan)
	require.Contains(t, receipt.Text, "repaired 1, 0 remain.")
	require.False(t, receipt.Partly)
	require.Equal(t, 1,
		testkit.Count(t, b.store, `select active_count from execution_admission_state where action_id = $1`, action.ID))
}

func TestExecutionsAreCancelled(t *testing.T) {
	b := setup(t)
	action, ids := b.waiting("pk.cancel", 2)
	worker := testkit.Worker(t, b.store, "pk.other")
	running := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
		e.Status, e.Worker = lifecycle.StatusRunning, &worker.ID
	})
	child := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) { e.Parent = &running.ID })
	plan := b.plan(act.CancelExecution, act.Target{ID: ids[1]})
	require.Contains(t, text(plan.Lines), "requested → cancelled")
	require.Contains(t, text(plan.Lines), "cannot be undone")
	receipt := b.run(plan)
	require.Equal(t, "1 execution cancelled.", receipt.Text)
	require.Equal(t, "a test", b.reason(receipt))
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, ids[1]))
	require.Equal(t, "it has ended", b.plan(act.CancelExecution, act.Target{ID: ids[1]}).Nothing)
	none := b.plan(act.CancelExecution, act.Target{ID: 1 << 40})
	require.Equal(t, "there is no execution 1099511627776", none.Nothing)

	plan = b.plan(act.CancelTree, act.Target{ID: running.ID})
	require.Contains(t, text(plan.Lines), "2 executions")
	require.Contains(t, text(plan.Lines), "worker pk.other is asked to stop it")
	b.run(plan)
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, b.store, running.ID))
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, child.ID))
}

func TestAnExecutionIsRetriedOnce(t *testing.T) {
	b := setup(t)
	action, ids := b.waiting("pk.retry", 1)
	failed := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusFailed })
	require.Contains(t, b.plan(act.RetryExecution, act.Target{ID: ids[0]}).Nothing, "it has not ended")
	require.Equal(t, "there is no execution 1099511627776", b.plan(act.RetryExecution, act.Target{ID: 1 << 40}).Nothing)
	first, second := b.plan(act.RetryExecution, act.Target{ID: failed.ID}), b.plan(act.RetryExecution,
		act.Target{ID: failed.ID})
	require.Contains(t, text(first.Lines), "pk.retry ended as failed; 1 attempt so far.")
	receipt := b.run(first)
	require.Contains(t, receipt.Text, "as attempt 2")
	_, err := b.Run(t.Context(), second, "", &act.Progress{})
	var already *triage.AlreadyRetriedError
	require.ErrorAs(t, err, &already)
	require.Contains(t, b.plan(act.RetryExecution, act.Target{ID: failed.ID}).Nothing, "it has been repeated already")
}

func TestAWorkerIsCordonedDrainedAndGivenWorkAgain(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.worker")
	testkit.Worker(t, b.store, "pk.second")
	target := act.Target{ID: worker.ID}
	plan := b.plan(act.CordonWorker, target)
	require.Equal(t, "Cordon worker pk.worker", plan.Title)
	receipt := b.run(plan)
	require.Equal(t, "Worker pk.worker is given nothing new; what it has goes on.", receipt.Text)
	require.Equal(t, "a test", b.reason(receipt))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from worker where cordoned and not draining`))
	require.Contains(t, b.plan(act.CordonWorker, target).Nothing, "is cordoned already")
	b.run(b.plan(act.DrainWorker, target))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from worker where draining`))
	b.run(b.plan(act.UncordonWorker, target))
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from worker where cordoned or draining`))
}

func TestTheLastWorkerOfARuntimeAsksForItsName(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "pk.only")
	plan := b.plan(act.DrainWorker, act.Target{ID: worker.ID})
	require.Contains(t, text(plan.Lines), "last worker that is given work for")
	require.Equal(t, "pk.only", plan.Word)
}

func TestForgettingAWorkerNeedsTheBroker(t *testing.T) {
	b := setup(t)
	alive := testkit.Worker(t, b.store, "pk.alive")
	require.Contains(t, b.plan(act.ForgetWorker, act.Target{ID: alive.ID}).Nothing, "it sends heartbeats")
	gone := testkit.Worker(t, b.store, "pk.gone", func(w *testkit.WorkerRow) {
		w.Status, w.HeartbeatAge = "inactive", time.Hour
	})
	plan := b.plan(act.ForgetWorker, act.Target{ID: gone.ID})
	require.Equal(t, "pk.gone", plan.Word, "it cannot be undone")
	_, err := b.Run(t.Context(), plan, "", &act.Progress{})
	require.ErrorIs(t, err, triage.ErrNoBroker)
}

func TestAWorkerIsForgottenWithItsQueues(t *testing.T) {
	url := testkit.VHost(t)
	var b *bundle
	b = setup(t, func(c *act.Config) {
		c.WithBroker = func(ctx context.Context) (*triage.Triage, func(), error) {
			link := broker.New(broker.Config{URL: url, ConnectionName: t.Name()}, testkit.Logger(t),
				broker.NewMetrics(nil))
			if err := link.Start(ctx); err != nil {
				return nil, nil, err
			}
			connected := triage.New(triage.Config{Actor: "ann@desk", Source: "attune-tui"}, b.store, nil)
			return connected.With(link), link.Stop, nil
		}
	})
	gone := testkit.Worker(t, b.store, "pk.gone", func(w *testkit.WorkerRow) {
		w.Status, w.HeartbeatAge = "inactive", time.Hour
	})
	b.run(b.plan(act.ForgetWorker, act.Target{ID: gone.ID}))
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from worker where id = $1`, gone.ID))
}

func TestMissingTargetsAreOneSentence(t *testing.T) {
	b := setup(t)
	plan, err := b.Plan(t.Context(), act.Request{Kind: act.PauseQueue, Target: act.Target{Action: "no.such"}})
	require.NoError(t, err)
	var target *triage.TargetError
	require.ErrorAs(t, plan.Problem, &target)
	require.Equal(t, target.Error(), plan.Nothing)
	_, err = b.Plan(t.Context(), act.Request{Kind: "nonsense"})
	require.ErrorContains(t, err, "nonsense is not something that can be done from here")
	_, err = b.Run(t.Context(), &act.Plan{}, "", &act.Progress{})
	require.ErrorContains(t, err, "this plan cannot be run")
}
