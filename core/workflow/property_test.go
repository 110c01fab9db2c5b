package workflow_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/workflow"
)

// anyDefinition draws a workflow with everything that one may have: lenient ones also
// have tasks without actions and expressions that cannot be read, and lead in circles. In
// one that is free of order nothing depends on which of two tasks ends first.
func anyDefinition(rt *rapid.T, free bool) *workflow.Definition {
	strict := rapid.Bool().Draw(rt, "strict")
	circles := !strict && !free && rapid.Bool().Draw(rt, "circles")
	count := rapid.IntRange(1, 9).Draw(rt, "tasks")
	tasks := make([]map[string]any, count)
	inbound := make([]map[int]bool, count)
	for i := range tasks {
		inbound[i] = map[int]bool{}
	}
	for i := range tasks {
		tasks[i] = anyTask(rt, i, free)
		var next []any
		for range rapid.IntRange(0, 3).Draw(rt, "transitions") {
			next = append(next, anyTransition(rt, i, inbound, free, circles))
		}
		if next != nil {
			tasks[i]["next"] = next
		}
	}
	for i := range tasks {
		if rapid.IntRange(0, 20).Draw(rt, "without action") == 0 && !strict {
			delete(tasks[i], "action")
		}
		if n := len(inbound[i]); n > 0 {
			switch rapid.IntRange(0, 2).Draw(rt, "join") {
			case 1:
				tasks[i]["join"] = rapid.IntRange(1, n).Draw(rt, "joined")
			case 2:
				tasks[i]["join"] = "all"
			}
		}
	}
	raw, err := json.Marshal(map[string]any{
		"version": "1.0.0", "strict": strict, "tasks": tasks, "vars": map[string]any{"n": 0, "seen": []any{}},
		"output_map":          map[string]any{"n": "{{ n }}", "seen": "{{ seen }}", "who": "{{ parameters.who }}"},
		"cancellation_policy": rapid.SampledFrom([]string{"allow_finish", "cancel_running"}).Draw(rt, "policy"),
	})
	require.NoError(rt, err)
	d, err := workflow.ParseJSON(raw)
	require.NoError(rt, err, string(raw))
	return d
}

func anyTask(rt *rapid.T, i int, free bool) map[string]any {
	name := fmt.Sprintf("t%d", i)
	task := map[string]any{"name": name}
	if !free && rapid.IntRange(0, 9).Draw(rt, "conditional") == 0 {
		task["when"] = rapid.SampledFrom([]string{
			"{{ n > 1 }}", "{{ false }}", "{{ nothing }}",
			"{{ succeeded() }}",
		}).Draw(rt, "when")
	}
	if rapid.IntRange(0, 5).Draw(rt, "parallel") == 0 {
		task["type"] = "parallel"
		var subs []any
		for j := range rapid.IntRange(1, 3).Draw(rt, "parts") {
			subs = append(subs, anyAction(rt, map[string]any{"name": fmt.Sprintf("%sp%d", name, j)}))
		}
		task["tasks"] = subs
		return task
	}
	if !free && i > 0 && rapid.IntRange(0, 6).Draw(rt, "looks") == 0 {
		task["input"] = map[string]any{
			"of":   fmt.Sprintf("{{ task.t%d }}", rapid.IntRange(0, i-1).Draw(rt, "at")),
			"last": "{{ result() }}",
		}
	}
	return anyAction(rt, task)
}

func anyAction(rt *rapid.T, task map[string]any) map[string]any {
	task["action"] = "core.act"
	if rapid.IntRange(0, 3).Draw(rt, "listed") == 0 {
		size := rapid.SampledFrom([]string{
			"[]", "range(1)", "range(2)", "range(7)", "[1, 'x', parameters]", "7",
			"missing",
		}).Draw(rt, "list")
		task["with_items"] = "{{ " + size + " }}"
		task["concurrency"] = rapid.IntRange(1, 4).Draw(rt, "concurrency")
		task["input"] = map[string]any{"x": rapid.SampledFrom([]string{
			"{{ item }}", "{{ index }}",
			"{{ item + 1 }}",
		}).Draw(rt, "item")}
		if rapid.Bool().Draw(rt, "batched") {
			task["batch_size"] = rapid.IntRange(1, 3).Draw(rt, "batch")
		}
	}
	if rapid.IntRange(0, 2).Draw(rt, "repeated") == 0 {
		retry := map[string]any{
			"count": rapid.IntRange(1, 2).Draw(rt, "count"),
			"delay": rapid.IntRange(0, 5).Draw(rt, "delay"),
		}
		if rapid.Bool().Draw(rt, "asked") {
			retry["on_error"] = rapid.SampledFrom([]string{
				"{{ timed_out() }}", "{{ result().code > 1 }}",
				"{{ nothing }}",
			}).Draw(rt, "on_error")
		}
		task["retry"] = retry
	}
	return task
}

func anyTransition(rt *rapid.T, from int, inbound []map[int]bool, free, circles bool) map[string]any {
	count := len(inbound)
	transition := map[string]any{}
	when := rapid.SampledFrom([]string{
		"", "", "{{ succeeded() }}", "{{ succeeded() }}", "{{ failed() }}", "{{ not succeeded() }}",
		"{{ timed_out() or failed() }}",
		"{{ n > 2 }}", "{{ result().code == 1 and failed() }}", "{{ nothing }}", "nothing", "result().code == 1",
	}).Draw(rt, "when")
	if when != "" {
		transition["when"] = when
	}
	if circles && rapid.IntRange(0, 5).Draw(rt, "cannot be read") == 0 {
		transition["when"] = rapid.SampledFrom([]string{"{{ n > > 1 }}", "n > > 1", "{{ n }} > 1"}).Draw(rt, "broken")
		transition["publish"] = []any{map[string]any{"n": "{{ | }}"}}
	}
	if !free && rapid.Bool().Draw(rt, "publishes") {
		transition["publish"] = []any{map[string]any{
			"n": "{{ n + 1 }}", "seen": fmt.Sprintf("{{ seen + [['t%d', result(), n]] }}", from),
		}}
	}
	least := from + 1
	if circles {
		least = 0
	}
	if least < count {
		var targets []any
		for range rapid.IntRange(0, 3).Draw(rt, "targets") {
			to := rapid.IntRange(least, count-1).Draw(rt, "to")
			targets = append(targets, fmt.Sprintf("t%d", to))
			inbound[to][from] = true
		}
		if targets != nil {
			transition["do"] = targets
		}
	}
	return transition
}

// outcomes are the random ends of children and of each retry, which are the same in every order.
type outcomes map[string]end

type end struct {
	status lifecycle.Status
	result any
}

func (o outcomes) of(rt *rapid.T, key workflow.Child, retries int) end {
	name := fmt.Sprintf("%s[%d] %d", key.Task, key.Index, retries)
	if e, ok := o[name]; ok {
		return e
	}
	e := end{
		status: rapid.SampledFrom([]lifecycle.Status{
			completed, completed, completed, failed, timeout, cancelled,
			abandoned,
		}).Draw(rt, name),
		result: rapid.SampledFrom([]any{
			nil, "text",
			map[string]any{"code": int64(1)},
			map[string]any{"code": int64(2), "data": map[string]any{"k": "v"}},
		}).Draw(rt, name+" gives"),
	}
	o[name] = e
	return e
}

func (o outcomes) end(rt *rapid.T, w *world, key workflow.Child) workflow.Happening {
	e := o.of(rt, key, w.children[key].retries)
	return w.ended(key.Task, key.Index, e.status, e.result)
}

// openKeys are the children that have not ended, in the order in which they were made.
func (w *world) openKeys() []workflow.Child {
	var keys []workflow.Child
	for _, key := range w.order {
		if w.children[key].open {
			keys = append(keys, key)
		}
	}
	return keys
}

// holds checks the invariants after each decision.
func (w *world) holds() {
	w.t.Helper()
	open := map[string]int{}
	for _, key := range w.openKeys() {
		open[key.Task]++
	}
	busy := false
	for _, t := range w.def.All() {
		st := w.state.Tasks[t.Name]
		if st == nil {
			require.Zero(w.t, open[t.Name])
			continue
		}
		busy = busy || st.Status == workflow.TaskRunning || st.Status == workflow.TaskReady
		if t.Kind != workflow.KindParallel {
			held := 0
			for _, r := range w.state.Held {
				if r.Task == t.Name {
					held++
				}
			}
			require.Equal(w.t, st.Open, open[t.Name]+held, "%s has as many open as there are", t.Name)
		}
		if t.WithItems != nil {
			require.LessOrEqual(w.t, st.Open, t.Concurrency)
		}
		require.Equal(w.t, st.Next, st.Open+st.Succeeded+st.Failed+st.TimedOut)
		if st.Status == workflow.TaskRunning && t.Within == nil {
			enough := min(max(t.Join, 1), len(t.Inbound))
			require.Len(w.t, st.Arrived, enough, "%s was started by enough, and at once", t.Name)
			require.Subset(w.t, t.Inbound, st.Arrived)
			require.Len(w.t, slices.Compact(slices.Sorted(slices.Values(st.Arrived))), len(st.Arrived),
				"each arrives once")
		}
	}
	if w.end == nil {
		require.True(w.t, busy, "nothing runs, is held or is ready, and it has not ended")
		w.idlesNot()
	}
}

// idlesNot checks that everything was started that may be.
func (w *world) idlesNot() {
	w.t.Helper()
	if w.state.Paused || w.more {
		return
	}
	require.Empty(w.t, w.state.Held)
	for _, t := range w.def.All() {
		st := w.state.Tasks[t.Name]
		if st == nil {
			continue
		}
		require.NotEqual(w.t, workflow.TaskReady, st.Status)
		if st.Status == workflow.TaskRunning && t.WithItems != nil {
			require.Equal(w.t, min(t.Concurrency, st.Total-st.Next+st.Open), st.Open, "%s runs as many as it may",
				t.Name)
		}
	}
}

// A workflow ends, whatever its tasks do and whenever it is paused.
func TestEveryWorkflowEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := worldOf(rt, anyDefinition(rt, false))
		w.def.StartAtMost(rapid.IntRange(0, 3).Draw(rt, "portion"))
		drawn := outcomes{}
		w.tell(workflow.Happening{Kind: workflow.Started})
		w.holds()
		for step := 0; w.end == nil; step++ {
			require.Less(rt, step, 2000, "it hangs: %v", w.log)
			var batch []workflow.Happening
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				batch = append(batch, pause)
			case 1:
				batch = append(batch, look)
			}
			open := w.openKeys()
			for range min(len(open), rapid.IntRange(0, 4).Draw(rt, "ends")) {
				i := rapid.IntRange(0, len(open)-1).Draw(rt, "which")
				batch = append(batch, drawn.end(rt, w, open[i]))
				open = slices.Delete(open, i, i+1)
			}
			if len(open) == 0 || rapid.Bool().Draw(rt, "resumes") {
				batch = append(batch, resume)
			}
			w.tell(batch...)
			w.holds()
		}
		require.Contains(rt, []lifecycle.Status{completed, failed}, w.end.Status)
		require.Empty(rt, w.openKeys())
		require.Empty(rt, w.lists4().Current)
		require.Equal(rt, w.end.Status == failed, len(w.lists4().Failed) > 0, "%v", w.end)
		for name, st := range w.state.Tasks {
			require.True(rt, st.Status.Ended(), name)
		}
	})
}

// Equal happenings in equal order have equal consequences, in batches of any size and with duplicates.
func TestItDoesNotMatterHowManyThingsAreToldAtATime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		def := anyDefinition(rt, false)
		one, drawn := worldOf(rt, def), outcomes{}
		tape := []workflow.Happening{{Kind: workflow.Started}}
		one.tell(tape[0])
		for one.end == nil && len(tape) < 2000 {
			h := workflow.Happening{Kind: rapid.SampledFrom([]workflow.HappeningKind{
				workflow.Rechecked, workflow.Paused, workflow.Resumed, workflow.ChildEnded, workflow.ChildEnded,
				workflow.ChildEnded,
			}).Draw(rt, "what")}
			if rapid.IntRange(0, 60).Draw(rt, "breaks off") == 0 {
				h.Kind = rapid.SampledFrom([]workflow.HappeningKind{
					workflow.Cancelled, workflow.Canceling,
					workflow.TimedOut,
				}).Draw(rt, "how")
			}
			if open := one.openKeys(); h.Kind == workflow.ChildEnded {
				if len(open) == 0 {
					continue
				}
				h = drawn.end(rt, one, rapid.SampledFrom(open).Draw(rt, "which"))
			}
			one.tell(h)
			tape = append(tape, h)
		}
		for range min(3, len(one.openKeys())) { // after it was cancelled
			tape = append(tape, drawn.end(rt, one, one.openKeys()[0]))
			one.tell(tape[len(tape)-1])
		}

		many := worldOf(rt, def)
		for at := 0; at < len(tape); {
			size := many.possible(tape[at:], rapid.IntRange(1, 6).Draw(rt, "at a time"))
			for _, h := range tape[at : at+size] {
				if h.Kind == workflow.ChildEnded {
					e := drawn.of(rt, workflow.Child{Task: h.Task, Index: h.Index}, h.Retries)
					many.ended(h.Task, h.Index, e.status, e.result)
				}
			}
			many.tell(tape[at : at+size]...)
			at += size
		}
		same(rt, one, many)
	})
}

// possible counts the happenings that fit into one batch: no child ends that an earlier one of them creates.
func (w *world) possible(tape []workflow.Happening, most int) int {
	taken := map[workflow.Child]bool{}
	for i, h := range tape[:min(most, len(tape))] {
		if h.Kind != workflow.ChildEnded {
			continue
		}
		key := workflow.Child{Task: h.Task, Index: h.Index}
		child := w.children[key]
		if child == nil || !child.open || taken[key] {
			return i
		}
		taken[key] = true
	}
	return min(most, len(tape))
}

// same compares how two worlds have ended.
func same(t tester, a, b *world) {
	t.Helper()
	require.Equal(t, a.state, b.state)
	require.Equal(t, a.lists4(), b.lists4())
	require.Equal(t, a.end, b.end)
	require.Equal(t, a.order, b.order)
	require.Equal(t, a.repeats, b.repeats)
	require.Equal(t, a.stopped, b.stopped)
	require.Equal(t, a.log, b.log)
	require.Equal(t, slices.Sorted(maps.Keys(a.lists)), slices.Sorted(maps.Keys(b.lists)))
	for key := range a.children {
		require.Equal(t, a.children[key].start, b.children[key].start)
	}
}

// Decide changes nothing that it is given, and gives the same for the same.
func TestDecideIsAFunction(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w, drawn := worldOf(rt, anyDefinition(rt, false)), outcomes{}
		happened := []workflow.Happening{{Kind: workflow.Started}}
		for steps := 0; w.end == nil && steps < 50; steps++ {
			before, variables := w.roundTrip(w.state), fmt.Sprint(w.state.Variables)
			first := w.decide(w.state, happened)
			require.Equal(rt, before, w.state)
			require.Equal(rt, variables, fmt.Sprint(w.state.Variables))
			for range 3 {
				require.Equal(rt, first, w.decide(w.state, happened))
			}
			w.apply(first)
			happened = []workflow.Happening{{Kind: workflow.Rechecked}}
			if open := w.openKeys(); len(open) > 0 {
				happened = append(happened, drawn.end(rt, w, rapid.SampledFrom(open).Draw(rt, "which")))
			}
		}
	})
}

// Pauses change only the order: with outcomes that do not depend on it the same tasks run.
func TestPausesChangeNothingButTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		def, drawn := anyDefinition(rt, true), outcomes{}
		calm, disturbed := worldOf(rt, def), worldOf(rt, def)
		for _, w := range []*world{calm, disturbed} {
			w.tell(workflow.Happening{Kind: workflow.Started})
			for w.end == nil {
				if w == disturbed {
					w.tell(rapid.SampledFrom([]workflow.Happening{pause, resume, pause}).Draw(rt, "disturb"))
				}
				if open := w.openKeys(); len(open) > 0 {
					w.tell(drawn.end(rt, w, open[0]))
				} else {
					w.tell(resume)
				}
			}
		}
		require.ElementsMatch(rt, calm.order, disturbed.order)
		require.ElementsMatch(rt, calm.repeats, disturbed.repeats)
		require.Equal(rt, calm.end.Status, disturbed.end.Status)
		require.Equal(rt, calm.lists4(), disturbed.lists4())
	})
}

// The bound of children in a plan changes only the order: with outcomes that do not depend on it the same children
// run, each once, and never more at once than allowed. Other happenings lose none of them.
func TestPortionsChangeNothingButTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		def, drawn := anyDefinition(rt, true), outcomes{}
		whole := worldOf(rt, def)
		whole.tell(workflow.Happening{Kind: workflow.Started})
		for whole.end == nil {
			whole.tell(drawn.end(rt, whole, whole.openKeys()[0]))
		}

		portioned := *def
		size := rapid.IntRange(1, 3).Draw(rt, "portion")
		portioned.StartAtMost(size)
		w := worldOf(rt, &portioned)
		batch := []workflow.Happening{{Kind: workflow.Started}}
		for step := 0; w.end == nil; step++ {
			require.Less(rt, step, 2000, "it hangs: %v", w.log)
			plan := w.once(batch...)
			w.holds()
			listed := slices.DeleteFunc(slices.Clone(plan.Start), func(s workflow.Start) bool { return s.Index == nil })
			require.LessOrEqual(rt, len(listed), size)
			open := w.openKeys()
			if batch = nil; plan.More && (len(open) == 0 || rapid.Bool().Draw(rt, "looks")) {
				batch = append(batch, look)
				continue
			}
			for range min(len(open), rapid.IntRange(1, 4).Draw(rt, "ends")) {
				i := rapid.IntRange(0, len(open)-1).Draw(rt, "which")
				batch = append(batch, drawn.end(rt, w, open[i]))
				open = slices.Delete(open, i, i+1)
			}
		}
		require.False(rt, w.more)
		require.ElementsMatch(rt, whole.order, w.order)
		require.ElementsMatch(rt, whole.repeats, w.repeats)
		require.Equal(rt, whole.end, w.end)
		require.Equal(rt, whole.lists4(), w.lists4())
	})
}
