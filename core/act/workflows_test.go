package act_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

const delivery = `{"version": "1", "tasks": [{"name": "pay", "action": "shop.pay", "next": [{"do": ["ship"]}]}, {"name": "ship", "action": "shop.ship"}]}`

// workflow makes a workflow with a task that runs and returns the execution that it
// runs for.
func (b *bundle) workflow(ref string) int64 {
	b.t.Helper()
	action := testkit.Action(b.t, b.store, ref)
	e := testkit.Execution(b.t, b.store, action, func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusRunning })
	testkit.Exec(b.t, b.store, `
		with d as (
			insert into workflow_definition (ref, pack, pack_ref, label, version, definition)
			select $2, a.pack, a.pack_ref, 'w', '1', $4 from action a where a.id = $1 returning id),
		s as (insert into workflow_source (digest, definition) values ($2, $4) returning id)
		insert into workflow_execution (execution, workflow_def, source, task_graph, status, current_tasks, state)
		select $3, d.id, s.id, '{}', 'running', '{"pay"}', '{"status": "running", "tasks": {"pay": {"status": "running", "total": 1, "next": 1, "open": 1}}}' from d, s`,
		action.ID, ref, e.ID, delivery)
	return e.ID
}

// child makes the execution of the task pay of a workflow.
func (b *bundle) child(of int64, status lifecycle.Status, settled bool) int64 {
	b.t.Helper()
	action := testkit.Action(b.t, b.store, "shop.pay"+map[bool]string{true: "ed"}[settled])
	e := testkit.Execution(b.t, b.store, action, func(r *testkit.ExecutionRow) {
		r.Status, r.Parent, r.WorkflowTask = status, &of, map[string]any{"task_name": "pay"}
	})
	testkit.Exec(b.t, b.store, `insert into workflow_task_dispatch (workflow_execution, task_name, execution_id, settled)
		select w.id, 'pay', $2, $3 from workflow_execution w where w.execution = $1`, of, e.ID, settled)
	return e.ID
}

func TestAWorkflowIsPausedAndResumed(t *testing.T) {
	b := setup(t)
	id := b.workflow("shop.deliver")
	plan := b.plan(act.PauseWorkflow, act.Target{ID: id})
	require.Contains(t, text(plan.Lines), "shop.deliver  running → paused")
	require.Contains(t, text(plan.Lines), "pay  running: goes on to its end", "it names the tasks that it touches")
	require.Contains(t, text(plan.Lines), "not begun: ship")
	paused := func() int { return testkit.Count(t, b.store, `select count(*) from workflow_execution where paused`) }
	require.Zero(t, paused(), "a plan changes nothing")
	require.Equal(t, "it is not paused", b.plan(act.ResumeWorkflow, act.Target{ID: id}).Nothing)
	receipt := b.run(plan)
	require.Contains(t, receipt.Text, "starts nothing more; what runs goes on to its end.")
	require.Equal(t, "a test", b.reason(receipt))
	require.Equal(t, 1, paused())
	require.Equal(t, "it is paused already", b.plan(act.PauseWorkflow, act.Target{ID: id}).Nothing)
	plan = b.plan(act.ResumeWorkflow, act.Target{ID: id})
	require.Contains(t, text(plan.Lines), "It was paused: a test (by ann@desk).")
	b.run(plan)
	require.Zero(t, paused())
	require.Equal(t, "there is no workflow 1099511627776", b.plan(act.PauseWorkflow, act.Target{ID: 1 << 40}).Nothing)
	child := b.child(id, lifecycle.StatusRunning, false)
	require.Contains(t, b.plan(act.PauseWorkflow, act.Target{ID: child}).Nothing, "is no workflow but task pay")
}

func TestAWorkflowIsCancelledAndRetried(t *testing.T) {
	b := setup(t)
	id := b.workflow("shop.deliver")
	require.Contains(t, b.plan(act.RetryWorkflow, act.Target{ID: id}).Nothing, "it has not ended")
	plan := b.plan(act.CancelWorkflow, act.Target{ID: id})
	require.Contains(t, text(plan.Lines), "pay  running: ")
	require.Contains(t, text(plan.Lines), "allow_finish")
	require.Contains(t, text(plan.Lines), "cannot be undone")
	b.run(plan)
	require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, id))
	require.Equal(t, "it has ended", b.plan(act.CancelWorkflow, act.Target{ID: id}).Nothing)
	require.Equal(t, "it has ended: cancelled", b.plan(act.PauseWorkflow, act.Target{ID: id}).Nothing)
	plan = b.plan(act.RetryWorkflow, act.Target{ID: id})
	require.Contains(t, text(plan.Lines), "All its tasks run again")
	require.Contains(t, b.run(plan).Text, "as attempt 2")
}

// The effect of a retried task depends on whether its workflow has continued.
func TestARetryOfATaskNamesItsEffectOnTheWorkflow(t *testing.T) {
	b := setup(t)
	waits, goneOn := b.workflow("shop.waits"), b.workflow("shop.gone_on")
	open, heard := b.child(waits, lifecycle.StatusFailed, false), b.child(goneOn, lifecycle.StatusFailed, true)
	require.Contains(t, text(b.plan(act.RetryTask, act.Target{ID: open}).Lines), "waits for the retry instead")
	plan := b.plan(act.RetryTask, act.Target{ID: heard})
	require.Contains(t, text(plan.Lines), "has gone on from this end")
	b.run(plan)
	testkit.Exec(t, b.store, `update execution set status = 'failed' where id = $1`, waits)
	require.Contains(t, text(b.plan(act.RetryTask, act.Target{ID: open}).Lines), "has ended (failed) and stays so")
}

// asking makes an execution with an inquiry.
func (b *bundle) asking(ref string, assigned any) (execution, id int64) {
	b.t.Helper()
	action := testkit.Action(b.t, b.store, ref)
	execution = testkit.Execution(b.t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	id = int64(testkit.Count(b.t, b.store, `INSERT INTO inquiry (execution, prompt, assigned_to, response_schema)
		VALUES ($1, 'deploy?', $2, '{"ok": {"type": "boolean", "required": true}, "host": {"type": "string", "pattern": "^h"}}') RETURNING id`, execution, assigned))
	return execution, id
}

func TestAnInquiryIsAnswered(t *testing.T) {
	b := setup(t)
	execution, id := b.asking("pk.ask", nil)
	plan := b.plan(act.AnswerInquiry, act.Target{ID: id}, "answer.ok", "yes", "answer.host", "h1")
	require.Contains(t, text(plan.Lines), "deploy?")
	require.Contains(t, text(plan.Lines), `{"host":"h1","ok":true}`)
	require.Contains(t, text(plan.Lines), "completes with it")
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, execution), "a plan changes nothing")
	receipt := b.run(plan)
	require.Contains(t, receipt.Text, "is answered.")
	require.Equal(t, "a test", b.reason(receipt))
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, execution))
	require.Contains(t, b.plan(act.AnswerInquiry, act.Target{ID: id}, "answer.ok", "no").Nothing,
		"it was answered already by ann@desk")
	require.Contains(t, b.plan(act.AnswerInquiry, act.Target{ID: id}).Nothing, "it was answered already",
		"with any values")
	require.Equal(t, "there is no inquiry 1099511627776", b.plan(act.AnswerInquiry, act.Target{ID: 1 << 40}).Nothing)
}

func TestAnInvalidAnswerNamesItsFields(t *testing.T) {
	b := setup(t)
	ada := testkit.Count(t, b.store, `INSERT INTO identity (login) VALUES ('ada') RETURNING id`)
	_, id := b.asking("pk.ask", ada)
	problems := func(values map[string]string) map[string]string {
		_, err := b.Plan(t.Context(), act.Request{Kind: act.AnswerInquiry, Target: act.Target{ID: id}, Values: values})
		var invalid *act.InvalidError
		require.ErrorAs(t, err, &invalid)
		return invalid.Problems
	}
	found := problems(map[string]string{"answer.host": "x"})
	require.Equal(t, "it is required", found["answer.ok"])
	require.Contains(t, found["answer.host"], "^h")
	require.Contains(t, problems(map[string]string{"answer.ok": "yes"})[act.FieldAs], "it is assigned to ada")
	require.Contains(t, problems(map[string]string{"answer.ok": "yes", act.FieldAs: "eve"})[act.FieldAs], "no identity")
	b.run(b.plan(act.AnswerInquiry, act.Target{ID: id}, "answer.ok", "yes", act.FieldAs, "ada"))
}

// Two operators answer at once: one answer is stored, and the other operator sees the name of the first.
func TestOfTwoAnswersOneIsTaken(t *testing.T) {
	b := setup(t)
	_, id := b.asking("pk.ask", nil)
	plans := []*act.Plan{
		b.plan(act.AnswerInquiry, act.Target{ID: id}, "answer.ok", "yes"),
		b.plan(act.AnswerInquiry, act.Target{ID: id}, "answer.ok", "no"),
	}
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i, plan := range plans {
		both.Go(func() { _, errs[i] = b.Run(t.Context(), plan, "", &act.Progress{}) })
	}
	both.Wait()
	lost := errs[0]
	if lost == nil {
		lost = errs[1]
	} else {
		require.NoError(t, errs[1])
	}
	var refused *triage.AnswerRefusedError
	require.ErrorAs(t, lost, &refused)
	require.Contains(t, lost.Error(), "it was answered already by ann@desk")
	require.Equal(t, 1,
		testkit.Count(t, b.store, `select count(*) from operator_audit where action = 'inquiry.respond'`))
}
