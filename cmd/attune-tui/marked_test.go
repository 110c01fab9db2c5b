package main

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// marksTwo marks the first two rows of a list.
func (x *terminal) marksTwo() {
	x.t.Helper()
	x.press("g", "g", "Space", "Space")
	x.shows("2 marked")
}

// bulk is an action on two marked rows of three.
type bulk struct {
	kind  act.Kind
	title string
	// fills fills in the form of the action.
	fills func(x *terminal)
	// effect counts the changed rows, which must be want.
	effect string
	want   int
}

// TestMarkedRowsAreActedUponByKeys acts on exactly two rows of three in every list that needs no engine.
func TestMarkedRowsAreActedUponByKeys(t *testing.T) {
	t.Parallel()
	for view, test := range map[string]struct {
		seed  func(t *testing.T, st *store.Store)
		first string // a text of the loaded list
		bulks []bulk
	}{
		"queues": {threeQueues, "demo.c", []bulk{
			{
				kind: act.PauseQueue, title: "Pause 2 queues",
				effect: `select count(*) from execution_admission_state where paused`, want: 2,
			},
			{
				kind: act.ResumeQueue, title: "Resume 2 queues",
				effect: `select count(*) from execution_admission_state where paused`,
			},
		}},
		"workers": {threeWorkers, "worker-c", []bulk{
			{
				kind: act.CordonWorker, title: "Cordon 2 workers", effect: `select count(*) from worker where cordoned`,
				want: 2,
			},
			{
				kind: act.UncordonWorker, title: "Uncordon 2 workers",
				effect: `select count(*) from worker where cordoned`,
			},
			{
				kind: act.DrainWorker, title: "Drain 2 workers", effect: `select count(*) from worker where draining`,
				want: 2,
			},
		}},
		"inquiries": {threeQuestions, "Shall it be deployed?", []bulk{
			{
				kind: act.AnswerInquiry, title: "Answer 2 inquiries",
				fills: func(x *terminal) {
					x.press("y", "Enter")
				},
				effect: `select count(*) from inquiry where status = 'responded' and response = '{"ok": true}'`,
				want:   2,
			},
		}},
		"dlq": {threeDeadLetters, "waiting for a person 3", []bulk{
			{
				kind: act.DiscardDeadLetter, title: "Discard 2 dead letters",
				effect: `select count(*) from dead_letter where decision = 'discarded'`, want: 2,
			},
			{
				kind: act.UndoDeadLetters, title: "Reopen 2 dead letters",
				effect: `select count(*) from dead_letter where decision is not null`,
			},
			{
				kind: act.RequeueDeadLetter, title: "Requeue 2 dead letters",
				effect: `select count(*) from execution where original_execution is not null`, want: 2,
			},
		}},
	} {
		t.Run(view, func(t *testing.T) {
			t.Parallel()
			url := testkit.Database(t)
			st := testkit.OpenStore(t, url)
			test.seed(t, st)
			x := openTerminal(t, url, "--view", view)
			x.shows(test.first)
			x.shows(" RW ")
			for _, b := range test.bulks {
				x.marksTwo()
				if b.fills == nil {
					x.plansMarked(b.kind, b.title)
				} else {
					x.shows("yes or no, required") // the form is loaded
					x.choose(x.itemOf(b.kind, menusOfMany()), "choose")
					b.fills(x)
				}
				x.shows(b.title)
				x.runs(b.title)
				require.Equal(t, b.want, testkit.Count(t, st, b.effect), b.kind)
				x.hides("2 marked")
			}
		})
	}
}

func threeQueues(t *testing.T, st *store.Store) {
	t.Helper()
	for _, ref := range []string{"demo.a", "demo.b", "demo.c"} {
		testkit.State(t, st, testkit.Action(t, st, ref), 4, func(r *testkit.StateRow) { r.Active = 1 })
	}
}

func threeWorkers(t *testing.T, st *store.Store) {
	t.Helper()
	for _, name := range []string{"worker-a", "worker-b", "worker-c"} {
		testkit.Worker(t, st, name, func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	}
}

func threeQuestions(t *testing.T, st *store.Store) {
	t.Helper()
	action := testkit.Action(t, st, "demo.ask")
	for range 3 {
		asks := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning })
		testkit.Exec(t, st, `insert into inquiry (execution, prompt, response_schema)
			values ($1, 'Shall it be deployed?', '{"ok": {"type": "boolean", "required": true}}')`, asks.ID)
	}
}

func threeDeadLetters(t *testing.T, st *store.Store) {
	t.Helper()
	worker := testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	action := testkit.Action(t, st, "demo.sleep")
	for range 3 {
		failed := testkit.Execution(t, st, action,
			func(e *testkit.ExecutionRow) { e.Status, e.Worker = lifecycle.StatusFailed, &worker.ID })
		testkit.Exec(t, st, `insert into dead_letter (message_id, message_type, exchange, routing_key, queue, reason, execution, worker, attempt, body)
			values (gen_random_uuid()::text, 'ExecutionScheduled', 'attune.executions', 'execution.dispatch.worker.1', 'worker.1.executions', 'expired', $1, $2, 1, '{}')`,
			failed.ID, worker.ID)
	}
}

// TestMarkedExecutionsReachTheWorker cancels two of three running executions, and retries them.
func TestMarkedExecutionsReachTheWorker(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "act upon marked executions; another test has a single one")
	i := install(t)
	testkit.Policy(t, i.store, testkit.Action(t, i.store, "demo.hold"), 5)
	i.request("demo.hold", 3)
	i.began(3)
	i.running(3)
	x := i.open("--view", "executions")
	x.shows("demo.hold")
	x.shows(" RW ")
	x.marksTwo()
	x.plansMarked(act.CancelExecution, "Cancel 2 executions")
	x.runs("Cancel 2 executions")
	i.becomes(2, `select count(*) from execution where status = 'cancelled'`)
	require.EqualValues(t, 2, i.asked.Load())
	require.Equal(t, 1, testkit.Count(t, i.store, `select count(*) from execution where status = 'running'`))
	x.marksTwo()
	x.plansMarked(act.RetryExecution, "Retry 2 executions")
	x.runs("Retry 2 executions")
	i.began(5)
	require.Equal(t, 2, testkit.Count(t, i.store,
		`select count(distinct original_execution) from execution where retry_reason = 'manual_retry'`))
	for range 3 {
		i.ends <- struct{}{}
	}
	i.becomes(0, `select count(*) from execution where finished_at is null`)
}

// TestMarkedWorkflowsAreControlledByKeys pauses, resumes, cancels and retries two of three workflows.
func TestMarkedWorkflowsAreControlledByKeys(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "control marked workflows; another test controls one")
	i := install(t)
	i.flow("shop.deliver")
	i.request("shop.deliver", 3)
	i.began(3)
	x := i.open("--view", "workflows")
	x.shows("shop.deliver")
	x.shows(" RW ")
	x.marksTwo()
	x.plansMarked(act.PauseWorkflow, "Pause 2 workflows")
	x.runs("Pause 2 workflows")
	for range 3 {
		i.ends <- struct{}{}
	}
	i.becomes(3, `select count(*) from workflow_execution where completed_tasks = '{pay}'`)
	i.began(4) // the third workflow continues
	require.Equal(t, 2, testkit.Count(t, i.store, `select count(*) from workflow_execution where paused`))
	x.marksTwo()
	x.plansMarked(act.ResumeWorkflow, "Resume 2 workflows")
	x.runs("Resume 2 workflows")
	i.began(6)
	i.running(3)
	x.marksTwo()
	x.plansMarked(act.CancelWorkflow, "Cancel 2 workflows")
	x.runs("Cancel 2 workflows")
	for range 3 {
		i.ends <- struct{}{}
	}
	i.becomes(2, `select count(*) from execution where action_ref = 'shop.deliver' and status = 'cancelled'`)
	i.becomes(1, `select count(*) from execution where action_ref = 'shop.deliver' and status = 'completed'`)
	x.shows("✓ completed")
	x.marksTwo()
	x.plansMarked(act.RetryWorkflow, "Retry 2 workflows")
	x.runs("Retry 2 workflows")
	i.began(8)
}

// TestATaskIsRetriedAndATreeCancelledByKeys retries a task after its workflow has continued, and cancels all running
// executions of the tree.
func TestATaskIsRetriedAndATreeCancelledByKeys(t *testing.T) {
	i := install(t)
	i.flow("shop.deliver")
	i.request("shop.deliver", 1)
	i.began(1)
	i.ends <- struct{}{}
	i.began(2)
	x := i.open("--view", "workflows")
	x.shows("pay")
	x.shows(" RW ")
	x.press("Tab")
	x.plans(act.RetryTask, "Retry execution")
	x.shows("has gone on from this end")
	x.runs("Retry execution")
	i.began(3)
	i.becomes(1, `select count(*) from execution where action_ref = 'shop.pay' and retry_reason = 'manual_retry'`)
	i.running(2)
	x.press("Tab")
	x.plans(act.CancelTree, "Cancel the tree of execution")
	x.runs("Cancel the tree of execution")
	i.becomes(0, `select count(*) from execution where finished_at is null`)
	require.EqualValues(t, 2, i.asked.Load())
	i.audited("execution.cancel")
}

func TestCountersThatAreWrongAreRepairedByKeys(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.State(t, st, testkit.Action(t, st, "demo.sleep"), 4, func(r *testkit.StateRow) { r.Active = 3 })
	x := openTerminal(t, url, "--view", "queues")
	x.shows("demo.sleep")
	x.shows(" RW ")
	x.plans(act.RepairQueue, "Repair the queues of demo.sleep")
	require.Equal(t, 3, testkit.Count(t, st, `select active_count from execution_admission_state`))
	x.runs("Repair the queues of demo.sleep")
	require.Zero(t, testkit.Count(t, st, `select active_count from execution_admission_state`))
}

// TestAWorkerThatIsGoneIsForgottenByKeys checks the worker's row and its queues.
func TestAWorkerThatIsGoneIsForgottenByKeys(t *testing.T) {
	i := install(t)
	gone := testkit.StartFakeWorker(t,
		testkit.FakeWorkerConfig{AMQPURL: i.amqp, DatabaseURL: i.database, Name: "worker-b"})
	require.NoError(t, gone.Stop(t.Context()))
	testkit.Exec(t, i.store,
		`update worker set status = 'inactive', last_heartbeat = now() - interval '1 day' where name = 'worker-b'`)
	require.True(t, i.declared(gone.ID))
	x := i.open("--view", "workers")
	x.shows("worker-b")
	x.shows(" RW ")
	x.press("G") // the second of two
	x.plans(act.ForgetWorker, "Forget worker worker-b")
	x.types("worker-b", "Forget worker worker-b")
	require.Zero(t, testkit.Count(t, i.store, `select count(*) from worker where name = 'worker-b'`))
	require.False(t, i.declared(gone.ID))
	i.audited("worker.forget")
}

// declared reports whether the broker has the queue of a worker's executions.
func (i *deployment) declared(worker int64) bool {
	i.t.Helper()
	conn, err := amqp.Dial(i.amqp)
	require.NoError(i.t, err)
	defer func() { _ = conn.Close() }() // the queue has been read
	channel, err := conn.Channel()
	require.NoError(i.t, err)
	_, err = channel.QueueDeclarePassive(fmt.Sprintf("worker.%d.executions", worker), true, false, false, false, nil)
	return err == nil
}
