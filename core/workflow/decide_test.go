package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/workflow"
)

const (
	completed = lifecycle.StatusCompleted
	failed    = lifecycle.StatusFailed
	timeout   = lifecycle.StatusTimeout
	cancelled = lifecycle.StatusCancelled
	abandoned = lifecycle.StatusAbandoned
	canceled  = lifecycle.StatusCanceling
)

// define reads tasks, written as YAML, as a definition without mistakes.
func define(t testing.TB, source string) *workflow.Definition {
	t.Helper()
	source = strings.ReplaceAll(strings.TrimLeft(source, "\n"), "\t", "  ")
	if strings.HasPrefix(source, "-") {
		source = "tasks:\n" + source
	}
	d, mistakes, _ := workflow.Parse("test.yaml", []byte("version: 1.0.0\n"+source))
	require.Empty(t, mistakes)
	return d
}

// tester is a test, or one try of a property.
type tester interface {
	require.TestingT
	Helper()
}

// world is the engine of a workflow in a test: it stores the state, the rows of children and the lists, and gives
// Decide the facts that it needs.
type world struct {
	t     tester
	def   *workflow.Definition
	state *workflow.State
	facts workflow.Facts

	children map[workflow.Child]*row
	order    []workflow.Child // in which they were made
	lists    map[string][]any
	end      *workflow.End
	stopped  []string
	gently   bool
	log      []string
	asked    []*workflow.NeedError
	repeats  []workflow.Repeat
	more     bool // as the last plan says
}

// row is a child, with its last retry.
type row struct {
	start   workflow.Start
	made    int
	retries int
	open    bool
	due     bool // waits for its time
	status  lifecycle.Status
	result  any
}

func newWorld(t testing.TB, source string) *world {
	t.Helper()
	return worldOf(t, define(t, source))
}

func worldOf(t tester, d *workflow.Definition) *world {
	t.Helper()
	return &world{
		t: t, def: d, state: d.Begin(), children: map[workflow.Child]*row{}, lists: map[string][]any{},
		facts: workflow.Facts{
			Parameters: map[string]any{"who": "me", "n": int64(3)}, Execution: 7,
			Begun: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Now: time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC),
		},
	}
}

// start begins the workflow.
func start(t testing.TB, source string) *world {
	t.Helper()
	w := newWorld(t, source)
	w.tell(workflow.Happening{Kind: workflow.Started})
	return w
}

// tell decides about happenings, repeatedly while the plan has more.
func (w *world) tell(happened ...workflow.Happening) *workflow.Plan {
	w.t.Helper()
	plan := w.once(happened...)
	for again := plan; again.More; {
		require.Nil(w.t, w.end, "it has ended")
		require.False(w.t, w.state.Paused, "it is paused")
		before := w.state
		again = w.once(look)
		require.NotEqual(w.t, before, w.state, "nothing came of it")
	}
	return plan
}

// once decides about happenings once.
func (w *world) once(happened ...workflow.Happening) *workflow.Plan {
	w.t.Helper()
	plan := w.decide(w.state, happened)
	if resumes := func(h workflow.Happening) bool { return h.Kind == workflow.Resumed }; w.state.Paused &&
		!slices.ContainsFunc(happened, resumes) {
		require.Empty(w.t, plan.Start, "it is paused")
		require.Empty(w.t, plan.Repeat, "it is paused")
	}
	if w.end != nil {
		require.Empty(w.t, plan.Start, "it has ended")
		require.Empty(w.t, plan.Repeat, "it has ended")
	}
	w.apply(plan)
	return plan
}

// decide asks until nothing is missing any more.
func (w *world) decide(state *workflow.State, happened []workflow.Happening) *workflow.Plan {
	w.t.Helper()
	facts := w.facts
	facts.Results, facts.Children, facts.Items = map[string]workflow.Result{}, map[workflow.Child]any{},
		map[string]workflow.Slice{}
	for range 100 {
		plan, err := w.def.Decide(state, happened, facts)
		var need *workflow.NeedError
		if err == nil {
			return plan
		}
		require.ErrorAs(w.t, err, &need)
		w.asked = append(w.asked, need)
		w.load(need, &facts)
	}
	require.Fail(w.t, "it asks for ever", "%v", w.asked[len(w.asked)-1])
	return nil
}

func (w *world) load(need *workflow.NeedError, facts *workflow.Facts) {
	w.t.Helper()
	for _, name := range need.Results {
		require.NotContains(w.t, facts.Results, name, "it was given")
		results := map[int]any{}
		for key, child := range w.children {
			if key.Task == name {
				require.False(w.t, child.open, "%s is asked for while it runs", name)
				results[key.Index] = child.result
			}
		}
		facts.Results[name] = w.def.Task(name).ResultOf(nil, results)
	}
	for _, key := range need.Children {
		require.NotContains(w.t, facts.Children, key, "it was given")
		facts.Children[key] = w.children[key].result
	}
	for task, r := range need.Items {
		list := w.lists[task]
		require.NotEmpty(w.t, list, "nothing was kept of %s", task)
		require.Positive(w.t, r.Count)
		require.LessOrEqual(w.t, r.From+r.Count, len(list))
		facts.Items[task] = workflow.Slice{From: r.From, Items: list[r.From : r.From+r.Count]}
	}
}

func (w *world) apply(plan *workflow.Plan) {
	w.t.Helper()
	w.state = w.roundTrip(plan.State)
	for _, s := range plan.Start {
		key := keyOf(s)
		_, made := w.children[key]
		require.False(w.t, made, "each child is made once: %v", key)
		w.children[key] = &row{start: s, open: true, made: 1}
		w.order = append(w.order, key)
	}
	for _, r := range plan.Repeat {
		child := w.children[workflow.Child{Task: r.Task, Index: r.Index}]
		require.False(w.t, child.open)
		child.open, child.due, child.status = true, true, ""
		child.made++
		child.retries++
		w.repeats = append(w.repeats, r)
	}
	for _, k := range plan.Keep {
		w.lists[k.Task] = k.Items
	}
	if plan.End != nil {
		require.Nil(w.t, w.end, "a workflow ends once")
		w.end = plan.End
		require.Equal(w.t, plan.End.Status, plan.State.Status)
	}
	w.stopped, w.gently = append(w.stopped, plan.Stop...), plan.StopUnstarted
	w.log, w.more = append(w.log, plan.Log...), plan.More
}

// roundTrip stores the state and reads it back.
func (w *world) roundTrip(s *workflow.State) *workflow.State {
	w.t.Helper()
	raw, err := workflow.MarshalState(s)
	require.NoError(w.t, err)
	back, err := workflow.ParseState(raw)
	require.NoError(w.t, err)
	back.Variables = s.Variables
	return back
}

func keyOf(s workflow.Start) workflow.Child {
	key := workflow.Child{Task: s.Task}
	if s.Index != nil {
		key.Index = *s.Index
	}
	return key
}

// ended makes the happening of the end of a child, and writes its row.
func (w *world) ended(task string, index int, status lifecycle.Status, result any) workflow.Happening {
	w.t.Helper()
	child := w.children[workflow.Child{Task: task, Index: index}]
	require.NotNil(w.t, child, "%s was not started", task)
	require.True(w.t, child.open, "%s has ended", task)
	child.open, child.due, child.status, child.result = false, false, status, result
	return workflow.Happening{
		Kind: workflow.ChildEnded, Task: task, Index: index, Status: status,
		Retries: child.retries,
	}
}

// ends lets the child of a task end.
func (w *world) ends(task string, status lifecycle.Status, result ...any) {
	w.t.Helper()
	w.item(task, 0, status, result...)
}

func (w *world) item(task string, index int, status lifecycle.Status, result ...any) {
	w.t.Helper()
	var value any
	if len(result) > 0 {
		value = expr.Value(result[0])
	}
	w.tell(w.ended(task, index, status, value))
}

// open lists the children that run.
func (w *world) open() []string {
	names := []string{}
	for _, key := range w.order {
		if child := w.children[key]; child.open {
			name := key.Task
			if child.start.Index != nil {
				name = fmt.Sprintf("%s[%d]", name, key.Index)
			}
			names = append(names, name)
		}
	}
	return names
}

func (w *world) runs(names ...string) {
	w.t.Helper()
	require.ElementsMatch(w.t, names, w.open(), "%s", strings.Join(w.log, "\n"))
}

func (w *world) hasEnded(status lifecycle.Status) {
	w.t.Helper()
	require.NotNil(w.t, w.end, "it goes on: %s", strings.Join(w.log, "\n"))
	require.Equal(w.t, status, w.end.Status, w.end.Error)
}

func (w *world) status(task string) workflow.TaskStatus {
	w.t.Helper()
	st := w.state.Tasks[task]
	if st == nil {
		return ""
	}
	return st.Status
}

func (w *world) lists4() workflow.Lists { return w.state.Lists(w.def) }

func (w *world) said(part string) {
	w.t.Helper()
	require.True(w.t, slices.ContainsFunc(w.log, func(line string) bool { return strings.Contains(line, part) }),
		"nothing says %q:\n%s", part, strings.Join(w.log, "\n"))
}

func (w *world) config(task string, index int) map[string]any {
	w.t.Helper()
	return w.children[workflow.Child{Task: task, Index: index}].start.Config
}

// A join waits for a task of a circle that can still start, whichever task of the circle is checked
// first.
func TestAJoinWaitsForATaskOfACircle(t *testing.T) {
	t.Parallel()
	w := start(t, `
- {name: back, action: p.a, next: [{do: [into, last]}]}
- {name: slow, action: p.a, next: [{do: [into]}]}
- {name: fast, action: p.a, next: [{do: [first, last]}]}
- {name: into, action: p.a, next: [{do: [back, first]}]}
- {name: first, action: p.a, join: all}
- {name: last, action: p.a, join: all}
`)
	w.runs("slow", "fast")
	for _, one := range []string{"fast", "slow", "into", "back", "first", "last"} {
		w.ends(one, completed)
	}
	w.hasEnded(completed)
	require.Empty(t, w.lists4().Skipped)
}
