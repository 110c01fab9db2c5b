package scheduler_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// hinted is a step for requests whose messages say the same of each.
func hinted(hint scheduler.Hint, ids ...int64) *scheduler.RequestStep {
	said := make(map[int64]scheduler.Hint, len(ids))
	for _, id := range ids {
		said[id] = hint
	}
	return scheduler.NewRequestStep(ids).WithHints(said)
}

// reported is a step for completions whose messages name an action.
func reported(hint scheduler.Hint, ids ...int64) *scheduler.CompletionStep {
	reports := make([]scheduler.Report, len(ids))
	for i, id := range ids {
		reports[i] = scheduler.Report{Execution: id, ActionID: hint.ActionID, ActionRef: hint.ActionRef}
	}
	return scheduler.NewCompletionStep(scheduler.CompletionConfig{}, reports)
}

func named(action testkit.ActionRow) scheduler.Hint {
	return scheduler.Hint{ActionID: action.ID, ActionRef: action.Ref}
}

// anyHint is the hint of some message about an execution of the action: right, incomplete or wrong.
func anyHint(action, other testkit.ActionRow) scheduler.Hint {
	return []scheduler.Hint{
		named(action), named(action),
		{ActionRef: action.Ref},
		{},
		named(other),
		{ActionID: 1 << 40, ActionRef: "no.such"},
	}[rand.IntN(6)]
}

// The rows decide under the locks whatever messages say of their executions: an execution
// takes and returns a slot of its own queue, once, and the next queued execution gets it.
func TestMessagesOnlyHintAtTheQueuesOfTheirExecutions(t *testing.T) {
	b := setup(t)
	worker := testkit.Worker(t, b.store, "w1", announces(50, nil))
	action, other := testkit.Action(t, b.store, "pk.hinted"), testkit.Action(t, b.store, "pk.other")
	testkit.Policy(t, b.store, action, 1)
	active := func(action testkit.ActionRow) int {
		return testkit.Count(t, b.store,
			`SELECT coalesce(sum(active_count), 0) FROM execution_admission_state WHERE action_id = $1`, action.ID)
	}
	for name, hint := range map[string]scheduler.Hint{
		"right": named(action), "by reference": {ActionRef: action.Ref}, "missing": {},
		"another action": named(other), "another id": {ActionID: other.ID, ActionRef: action.Ref},
		"no such action": {ActionID: 1 << 40, ActionRef: "no.such"},
	} {
		ids := b.request(t, action, 2)
		require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 1},
			b.run(t, scheduler.FillStep{}, hinted(hint, ids...)), name)
		require.Equal(t, scheduler.Result{}, b.run(t, scheduler.FillStep{}, hinted(hint, ids...)),
			"%s: delivered twice", name)
		require.Equal(t, scheduler.Result{}, b.run(t, reported(hint, ids...), scheduler.FillStep{}),
			"%s: reported before its end", name)
		require.Equal(t, []int{1, 0}, []int{active(action), active(other)}, name)

		b.finish(t, lifecycle.StatusCompleted, ids[0])
		require.Equal(t, scheduler.Result{Released: 1, Granted: 1},
			b.run(t, reported(hint, ids[0]), scheduler.FillStep{}), name)
		require.Equal(t, scheduler.Result{}, b.run(t, reported(hint, ids[0]), scheduler.FillStep{}),
			"%s: reported twice", name)
		b.finish(t, lifecycle.StatusCompleted, ids[1])
		require.Equal(t, scheduler.Result{Released: 1}, b.run(t, reported(hint, ids[1]), scheduler.FillStep{}), name)
		require.Equal(t, []int{0, 0}, []int{active(action), active(other)}, name)
	}
	require.Zero(t, testkit.Count(t, b.store, `SELECT assigned FROM worker_load WHERE worker = $1`, worker.ID))
	missing := int64(1 << 40)
	require.Equal(t, []int64{missing}, b.run(t, scheduler.FillStep{}, hinted(named(action), missing)).Missing)
	require.Equal(t, []int64{missing}, b.run(t, reported(named(action), missing), scheduler.FillStep{}).Missing)
	b.quiet(t)
}

// A worker, an attempt and a queue that changed after the message was sent are those of the row.
func TestAHintedReportReleasesTheWorkerAndAttemptOfTheRow(t *testing.T) {
	b := setup(t)
	first, second := testkit.Worker(t, b.store, "w1"), testkit.Worker(t, b.store, "w2")
	action := testkit.Action(t, b.store, "pk.moved")
	ids := b.request(t, action, 1)
	require.Equal(t, scheduler.Result{Granted: 1}, b.run(t, scheduler.FillStep{}, hinted(named(action), ids...)))
	from := b.workerOf(t, ids[0])
	to := first.ID + second.ID - from
	testkit.Exec(t, b.store, `UPDATE execution_holder SET worker = $2, attempt = 2 WHERE execution = $1`, ids[0], to)
	testkit.Exec(t, b.store, `UPDATE worker_load SET assigned = (worker = $1)::int`, to)
	testkit.Exec(t, b.store, `UPDATE execution SET worker = $2, attempt = 2 WHERE id = $1`, ids[0], to)
	b.finish(t, lifecycle.StatusFailed, ids[0])
	require.Equal(t, scheduler.Result{Released: 1}, b.run(t, reported(named(action), ids...), scheduler.FillStep{}))
	require.Zero(t, testkit.Count(t, b.store, `SELECT sum(assigned) FROM worker_load`))
	b.quiet(t)
}

// Groups and shared limits come from the parameters of the row. Their slots are released by any replica, not only by
// the one that granted them, and go to the next execution.
func TestHintsDoNotMisleadAboutGroupsAndSharedLimits(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", announces(50, nil))
	action, beside := testkit.Action(t, b.store, "pk.grouped"), testkit.Action(t, b.store, "pk.beside")
	testkit.Policy(t, b.store, action, 1, func(p *testkit.PolicyRow) { p.Parameters = []string{"env"} })
	testkit.Policy(t, b.store, action, 1, testkit.OfPack(action))
	hint := func(config string) scheduler.Hint {
		said := named(action)
		if config != "" {
			said.Config = json.RawMessage(config)
		}
		return said
	}
	for _, config := range []string{`{"env":"prod"}`, `{"env":"test"}`, ``} {
		for _, release := range []*scheduler.Scheduler{b.scheduler, b.replica(t)} {
			id := b.requestWith(t, action, func(e *testkit.ExecutionRow) { e.Config = map[string]any{"env": "prod"} })
			require.Equal(t, scheduler.Result{Granted: 1}, b.run(t, scheduler.FillStep{}, hinted(hint(config), id)),
				config)
			require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution_holder h JOIN execution_admission_state s ON s.id = h.state_id
				WHERE h.execution = $1 AND s.group_key_normalized LIKE '%prod%'`, id))
			waits := b.request(t, beside, 1)
			require.Equal(t, scheduler.Result{Enqueued: 1},
				b.run(t, scheduler.FillStep{}, hinted(named(beside), waits...)), "the pack has one slot")
			b.finish(t, lifecycle.StatusCompleted, id)
			result, err := release.Run(testkit.Context(t), reported(named(action), id), scheduler.FillStep{})
			require.NoError(t, err)
			require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, result, config)
			b.finish(t, lifecycle.StatusCompleted, waits...)
			require.Equal(t, scheduler.Result{Released: 1},
				b.run(t, reported(named(beside), waits...), scheduler.FillStep{}))
		}
	}
	// A limit that was removed after the grant is still given back.
	id := b.requestWith(t, action, func(e *testkit.ExecutionRow) { e.Config = map[string]any{"env": "prod"} })
	b.run(t, scheduler.FillStep{}, hinted(hint(`{"env":"prod"}`), id))
	testkit.Exec(t, b.store, `DELETE FROM policy`)
	b.finish(t, lifecycle.StatusCompleted, id)
	result, err := b.replica(t).Run(testkit.Context(t), reported(named(action), id), scheduler.FillStep{})
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Released: 1}, result)
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution_slot`))
	b.quiet(t)
}

// A replica that has not seen a queue yet promotes its waiting executions with the slot that
// it releases, in the same batch.
func TestAReplicaThatKnowsNothingOfAQueuePromotesItsHead(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1", announces(1, nil))
	limited, other := testkit.Action(t, b.store, "pk.limited"), testkit.Action(t, b.store, "pk.other")
	testkit.Policy(t, b.store, limited, 1)
	ids := b.request(t, limited, 2)
	b.run(t, scheduler.FillStep{}, hinted(named(limited), ids...))
	others := b.request(t, other, 3)
	require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 1},
		b.run(t, scheduler.FillStep{}, hinted(named(other), others...)), "the worker is full")
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	result, err := b.replica(t).Run(testkit.Context(t), reported(named(limited), ids[0]), scheduler.FillStep{})
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, result,
		"the queue's own head, which has waited longest")
	b.finish(t, lifecycle.StatusCompleted, ids[1])
	result, err = b.replica(t).Run(testkit.Context(t), reported(named(limited), ids[1]), scheduler.FillStep{})
	require.NoError(t, err)
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, result, "the queue that waits for the worker")
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, others[2]))
	b.quiet(t)
}
