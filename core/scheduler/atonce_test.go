package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// completed is a step for messages that say that executions of an action completed.
func completed(action testkit.ActionRow, ids ...int64) *scheduler.CompletionStep {
	reports := make([]scheduler.Report, len(ids))
	for i, id := range ids {
		reports[i] = scheduler.Report{
			Execution: id, ActionID: action.ID, ActionRef: action.Ref, Said: lifecycle.StatusCompleted,
		}
	}
	return scheduler.NewCompletionStep(scheduler.CompletionConfig{}, reports)
}

// A message that an execution completed releases it without a read only if everything is as the message makes believe;
// whatever differs, the rows decide.
func TestReleasesWithoutAReadAreVerified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, b *bundle, action testkit.ActionRow, id int64)
		want    func(id int64) scheduler.Result
	}{
		"it completed":     {nil, nil},
		"it failed":        {nil, nil},
		"it has not ended": {nil, func(int64) scheduler.Result { return scheduler.Result{} }},
		"it is a task of a workflow": {func(t *testing.T, b *bundle, _ testkit.ActionRow, id int64) {
			testkit.Exec(t, b.store, `UPDATE execution SET workflow_task = '{"workflow_execution": 7}' WHERE id = $1`, id)
		}, func(id int64) scheduler.Result {
			return scheduler.Result{Released: 1, Tasks: []scheduler.Task{{Workflow: 7, Child: id}}}
		}},
		"it holds a slot of a shared limit": {func(t *testing.T, b *bundle, _ testkit.ActionRow, id int64) {
			testkit.Exec(t, b.store, `WITH s AS (INSERT INTO admission_scope (kind, scope_key, max_concurrent, active_count)
				VALUES ('pack', 'gone', 5, 1) RETURNING id)
				INSERT INTO execution_slot (execution, scope_id) SELECT $1, s.id FROM s`, id)
		}, nil},
		"its queue has got a limit, and another execution waits": {
			func(t *testing.T, b *bundle, action testkit.ActionRow, _ int64) {
				testkit.Policy(t, b.store, action, 1)
				next := b.request(t, action, 1)
				result, err := b.replica(t).Run(t.Context(), scheduler.FillStep{}, scheduler.NewRequestStep(next))
				require.NoError(t, err)
				require.Equal(t, 1, result.Enqueued)
			}, func(int64) scheduler.Result { return scheduler.Result{Released: 1, Granted: 1} },
		},
		"an execution of another queue waits for its place at the worker": {
			func(t *testing.T, b *bundle, _ testkit.ActionRow, _ int64) {
				next := b.request(t, testkit.Action(t, b.store, "pk.other"), 8)
				result, err := b.replica(t).Run(t.Context(), scheduler.FillStep{}, scheduler.NewRequestStep(next))
				require.NoError(t, err)
				require.Positive(t, result.Enqueued)
			}, func(int64) scheduler.Result { return scheduler.Result{Released: 1, Granted: 1} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			testkit.Worker(t, b.store, "w1", announces(1, nil))
			action := testkit.Action(t, b.store, "pk.once")
			id := b.request(t, action, 1)[0]
			require.Equal(t, 1, b.dispatch(t, id).Granted)
			if c.prepare != nil {
				c.prepare(t, b, action, id)
			}
			switch name {
			case "it has not ended":
			case "it failed":
				b.finish(t, lifecycle.StatusFailed, id)
			default:
				b.finish(t, lifecycle.StatusCompleted, id)
			}
			want := scheduler.Result{Released: 1}
			if c.want != nil {
				want = c.want(id)
			}
			require.Equal(t, want, b.run(t, completed(action, id), scheduler.FillStep{}))
			require.Zero(t, b.run(t, completed(action, id, id+1<<40), scheduler.FillStep{}).Released,
				"a second message, with a forged one")
			require.Zero(t, testkit.Count(t, b.store,
				`SELECT count(*) FROM execution_slot WHERE execution = $1`, id))
			require.Zero(t, testkit.Count(t, b.store,
				`SELECT coalesce(sum(active_count), 0) FROM admission_scope WHERE scope_key = 'gone'`))
			testkit.Invariants(t, b.store)
		})
	}
}
