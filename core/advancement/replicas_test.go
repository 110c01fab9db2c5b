package advancement_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

const diamond = `
version: "1"
vars: {count: 0}
tasks:
  - name: start
    action: pk.start
    next: [{publish: [{count: "{{ count + 1 }}"}], do: [left, right, each]}]
  - {name: left, action: pk.left, retry: {count: 3, delay: 0}, next: [{publish: [{count: "{{ count + 1 }}"}], do: [join]}]}
  - {name: right, action: pk.right, next: [{publish: [{count: "{{ count + 1 }}"}], do: [join]}]}
  - {name: each, action: pk.each, with_items: "{{ range(12) }}", concurrency: 4, input: {i: "{{ item }}"}, next: [{publish: [{count: "{{ count + 1 }}"}], do: [join]}]}
  - {name: join, action: pk.join, join: all, input: {n: "{{ length(task.each.results) }}"}}
output_map: {count: "{{ count }}"}
`

// Three replicas get every message twice, in any order: each task runs once, no published variable is lost, no list
// exceeds its concurrency, and the versions have no gap (S10, S11, S12, upstream 44).
func TestThreeReplicasThatGetEveryMessageTwice(t *testing.T) {
	w := setup(t)
	action := w.define("pk.diamond", diamond)
	var parents []int64
	for range 8 {
		parents = append(parents, w.request(action, nil))
	}
	crowd := newCrowd(w, 3)
	crowd.tell(parents, nil)
	deadline := time.Now().Add(testkit.TestTimeout)
	ended := map[int64]bool{}
	for testkit.Count(t, w.store,
		`SELECT count(*) FROM execution WHERE parent IS NULL AND status = 'completed'`) < len(parents) {
		require.True(t, time.Now().Before(deadline), "the workflows come to an end")
		var told []int64
		for _, child := range w.dispatched() {
			running := testkit.Count(t, w.store, `SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM execution
				WHERE action_ref = 'pk.each' AND status IN ('scheduled', 'running') GROUP BY parent) x`)
			require.LessOrEqual(t, running, 4)
			if child.Task == "left" && child.Retries < 2 {
				w.does = func(string, int,
					int,
				) end {
					return end{lifecycle.StatusFailed, map[string]any{"error": "again"}}
				}
			} else {
				w.does = func(string, int,
					int,
				) end {
					return end{lifecycle.StatusCompleted, map[string]any{"i": child.Index}}
				}
			}
			w.finish(child)
		}
		for _, id := range w.ids(`SELECT id FROM execution WHERE status IN ('completed', 'failed')`) {
			if !ended[id] {
				ended[id] = true
				told = append(told, id)
			}
		}
		due := w.ids(`SELECT execution FROM execution_retry WHERE waiting AND due <= now()`)
		crowd.tell(due, told)
	}
	crowd.stop()
	for _, id := range parents {
		_, result := w.outcome(id)
		require.Equal(t, map[string]any{"count": 4.0, "succeeded": true}, result)
		require.Equal(t, 1, w.reports(id), "its end is announced, once")
	}
	require.Equal(t, len(parents)*(1+3+1+12+1),
		testkit.Count(t, w.store, `SELECT count(*) FROM execution WHERE parent IS NOT NULL`))
	w.sound()
}

// crowd is several engines on one database.
type crowd struct {
	w       *world
	mu      sync.Mutex
	pending []message
	wake    chan struct{}
	done    sync.WaitGroup
	cancel  context.CancelFunc
	runners []*advancement.Runner
}

// message is a message for one replica.
type message struct {
	id    int64
	ended bool
}

func newCrowd(w *world, replicas int) *crowd {
	c := &crowd{w: w, wake: make(chan struct{}, 1000)}
	ctx, cancel := context.WithCancel(testkit.Context(w.t))
	c.cancel = cancel
	for range replicas {
		batches := w.replica()
		classify := func(err error, tries int) batch.Verdict {
			if errors.Is(err, scheduler.ErrConflict) || store.ClassOf(err) != store.ClassFatal || tries < 20 {
				return batch.Again
			}
			return batch.Suspect
		}
		var runner *advancement.Runner
		runner = advancement.NewRunner(w.cfg, batches, classify, func(_ context.Context, result scheduler.Result) {
			runner.Begin(result.Starts...)
		}, testkit.Logger(w.t), nil)
		require.NoError(w.t, runner.Start(ctx))
		c.runners = append(c.runners, runner)
		c.done.Go(func() { c.serve(ctx, batches, runner) })
	}
	return c
}

// tell delivers every message twice to random replicas, in random order.
func (c *crowd) tell(requested, ended []int64) {
	c.mu.Lock()
	for range 2 {
		for _, id := range requested {
			c.pending = append(c.pending, message{id, false})
		}
		for _, id := range ended {
			c.pending = append(c.pending, message{id, true})
		}
	}
	rand.Shuffle(len(c.pending), func(i, j int) { c.pending[i], c.pending[j] = c.pending[j], c.pending[i] })
	c.mu.Unlock()
	for range c.runners {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// serve is the hot loop of one replica.
func (c *crowd) serve(ctx context.Context, batches *scheduler.Scheduler, runner *advancement.Runner) {
	for {
		c.mu.Lock()
		n := min(len(c.pending), 1+rand.IntN(6))
		taken := c.pending[:n]
		c.pending = c.pending[n:]
		c.mu.Unlock()
		if n == 0 {
			select {
			case <-ctx.Done():
				return
			case <-c.wake:
			}
			continue
		}
		var ended []scheduler.Report
		var requested []int64
		seen := map[message]bool{}
		for _, m := range taken {
			switch {
			case seen[m]:
			case m.ended:
				ended = append(ended, scheduler.Report{Execution: m.id})
			default:
				requested = append(requested, m.id)
			}
			seen[m] = true
		}
		for try := 0; ; try++ {
			result, err := batches.Run(ctx, scheduler.NewCompletionStep(scheduler.CompletionConfig{}, ended),
				scheduler.FillStep{}, scheduler.NewRequestStep(requested))
			if err == nil {
				runner.Begin(result.Starts...)
				runner.Advance(result.Tasks...)
				break
			}
			if ctx.Err() != nil {
				return
			}
			if try > 50 {
				panic(fmt.Sprintf("the batch never succeeds: %v", err))
			}
		}
	}
}

func (c *crowd) stop() {
	for _, runner := range c.runners {
		runner.Stop()
	}
	c.cancel()
	c.done.Wait()
}

// A replica that dies after a commit leaves its next steps to the sweep of another one.
func TestTheSweepFindsWorkOfADeadReplica(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.one", "version: \"1\"\ntasks: [{name: a, action: pk.a}]"), nil)
	w.take(nil, []int64{id})
	child := w.dispatched()[0]
	w.finish(child)
	w.released(child.ID)
	w.cfg.UnreportedAfter = time.Millisecond

	found := make(chan []int64, 100)
	sweep := advancement.NewSweep(w.cfg, 10*time.Millisecond, w.store, func(ids ...int64) { found <- ids }, nil,
		testkit.Logger(t), nil)
	require.NoError(t, sweep.Start(testkit.Context(t)))
	t.Cleanup(sweep.Stop)
	require.Equal(t, []int64{w.workflowOf(id)}, <-found)
	w.check(id)
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, w.store, id))
}

// A workflow whose batch always fails is ended alone, and the others go on.
func TestAWorkflowThatAlwaysFailsIsEnded(t *testing.T) {
	w := setup(t)
	action := w.define("pk.chain", chain)
	w.does = func(string, int, int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"data": map[string]any{"value": 1}}}
	}
	bad, good := w.request(action, map[string]any{"n": 666}), w.request(action, map[string]any{"n": 1})
	w.take(nil, []int64{bad, good})
	testkit.Exec(t, w.store,
		fmt.Sprintf(`ALTER TABLE execution ADD CHECK (NOT (action_ref = 'pk.b' AND parent = %d))`, bad))
	runner := advancement.NewRunner(w.cfg, w.batches, func(error, int) batch.Verdict { return batch.Suspect },
		func(context.Context, scheduler.Result) {}, testkit.Logger(t), nil)
	require.NoError(t, runner.Start(testkit.Context(t)))
	t.Cleanup(runner.Stop)
	for _, child := range w.dispatched() {
		w.finish(child)
		result, err := w.batches.Run(testkit.Context(t), completionOf(child.ID))
		require.NoError(t, err)
		runner.Advance(result.Tasks...)
	}
	testkit.Eventually(t, func() bool { return len(w.dispatched()) == 1 }, 20*time.Second, "the good one goes on")
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, w.store, bad) == lifecycle.StatusFailed },
		60*time.Second, "the bad one ends")
	_, result := w.outcome(bad)
	require.Contains(t, result["error"], "execution_check")
	runner.Stop() // the row is committed before the message is handed to the relay
	require.Equal(t, 1, w.reports(bad))
}

// A batch makes a bounded number of children. The next batches make the rest.
func TestABatchMakesABoundedNumberOfChildren(t *testing.T) {
	w := setup(t)
	action := w.define("pk.wide", `
version: "1"
tasks: [{name: each, action: pk.each, with_items: "{{ range(600) }}", concurrency: 600, input: {}}]
`)
	var ids []int64
	var requests []advancement.Request
	for range 3 {
		id := w.request(action, nil)
		ids, requests = append(ids, id), append(requests, advancement.Request{Start: id})
	}
	step := advancement.NewStep(w.cfg, w.sources, requests)
	_, err := w.batches.Run(testkit.Context(t), step)
	require.NoError(t, err)
	require.Equal(t, 600, testkit.Count(t, w.store, `SELECT count(*) FROM execution WHERE parent IS NOT NULL`))
	require.Len(t, step.Again(), 2)
	w.order(step.Again()...)
	require.Equal(t, 1200, testkit.Count(t, w.store, `SELECT count(*) FROM execution WHERE parent IS NOT NULL`))
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, ids[0]))
}

// A decision about an older version, or about a workflow that was closed meanwhile, writes nothing (S11).
func TestAnOldVersionIsNotWritten(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.chain", chain), map[string]any{"n": 1})
	w.take(nil, []int64{id})
	require.Equal(t, "1", w.text(`SELECT version FROM workflow_execution`))
	for version, wasOpen := range map[int]bool{0: true, 2: true, 1: false} {
		w.refuses(store.AdvanceWorkflows, fmt.Sprintf(`[{"id": %d, "version": %d, "was_open": %t, "open": true,
			"status": "failed", "state": {}, "variables": {}, "log": [], "current": [], "completed": [], "failed": [],
			"skipped": []}]`, w.workflowOf(id), version, wasOpen))
	}
	require.Equal(t, "running 1", w.text(`SELECT status || ' ' || version FROM workflow_execution`))
}

// refuses expects a statement to find other rows than were read.
func (w *world) refuses(sql string, args ...any) {
	w.t.Helper()
	_, err := w.store.Pool().Exec(testkit.Context(w.t), sql, args...)
	require.ErrorContains(w.t, err, "AT001", "%.40s %v", sql, args)
}

// The statements of a decision repeat what it has read of children and parents.
func TestRowsThatChangedMeanwhileAreNotWritten(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.chain", chain), map[string]any{"n": 1})
	w.take(nil, []int64{id})
	task := w.ids(`SELECT id FROM workflow_task_dispatch`)[0]
	child := w.ids(`SELECT execution_id FROM workflow_task_dispatch`)[0]
	w.refuses(store.SettleTasks, []int64{task}, []int64{child + 1})
	w.refuses(store.InsertTasks, []int64{child}, []int64{w.workflowOf(id)}, []string{"a"}, []int32{-1})
	testkit.Exec(t, w.store, `UPDATE workflow_task_dispatch SET settled = true`)
	w.refuses(store.SettleTasks, []int64{task}, []int64{child})

	w.refuses(store.RunWorkflowParents, []int64{id}) // it runs
	action := testkit.Action(t, w.store, "pk.held")
	state := testkit.State(t, w.store, action, 1, func(s *testkit.StateRow) { s.Active = 1 })
	holder := testkit.Execution(t, w.store, action, func(e *testkit.ExecutionRow) {
		e.Status, e.AdmissionState = lifecycle.StatusScheduling, &state.ID
	}).ID
	w.refuses(store.RunWorkflowParents, []int64{holder}) // it has a slot
	testkit.Exec(t, w.store, `UPDATE execution SET worker = $2 WHERE id = $1`, id, w.worker)
	w.refuses(store.EndWorkflowParents, []int64{id}, []string{"failed"}, []string{"{}"})
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, w.store, id))
}

// The end of the last child counts although the workflow is overdue when both are read.
func TestAnEndBeforeTheTimeoutIsSeenCounts(t *testing.T) {
	w := setup(t)
	id := w.request(w.define("pk.short", `{version: "1", tasks: [{name: a, action: pk.a}]}`), nil)
	w.take(nil, []int64{id})
	testkit.Exec(t, w.store, `UPDATE workflow_execution SET deadline = now() - interval '1 second'`)
	require.Equal(t, lifecycle.StatusCompleted, w.afterFirst(id))
}

// A child that fails after a cancel request counts as cancelled: it is not repeated.
func TestAFailureAfterACancelRequestIsNotRepeated(t *testing.T) {
	w := setup(t)
	w.does = func(string, int, int) end { return end{status: lifecycle.StatusFailed} }
	id := w.request(w.define("pk.again", `{version: "1", tasks: [{name: a, action: pk.a, retry: {count: 2}}]}`), nil)
	w.take(nil, []int64{id})
	testkit.Exec(t, w.store, `INSERT INTO execution_cancel (execution, actor, reason)
		SELECT execution_id, 'anna', 'wrong host' FROM workflow_task_dispatch`)
	require.Equal(t, lifecycle.StatusFailed, w.afterFirst(id))
	require.Len(t, w.ran, 1)
}

// afterFirst is the status of a workflow after its first dispatched child has ended.
func (w *world) afterFirst(id int64) lifecycle.Status {
	w.t.Helper()
	child := w.dispatched()[0]
	w.finish(child)
	w.take([]int64{child.ID}, nil)
	return testkit.StatusOf(w.t, w.store, id)
}
