package advancement_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// phase is a workflow under way, and its end.
type phase struct {
	definition string
	// children are "TASK[INDEX].RETRY STATUS [after TASK]", in the order in which the other engine made them.
	children []string
	// completed, failed and current are its columns; variables are published ones.
	completed, failed, current []string
	variables                  map[string]any
	change                     string // of the rows, SQL with $1 for the workflow's execution

	// first are the tasks that run before something happens, all are the tasks that run until the end.
	first, all []string
	then       string // what happens, SQL with $1
	ends       lifecycle.Status
	result     map[string]any // besides succeeded and error
}

const (
	straight = `
tasks:
  - {name: a, action: pk.a, next: [{when: "{{ succeeded() }}", publish: [{x: "{{ result().n }}"}], do: [b]}]}
  - {name: b, action: pk.b, next: [{when: "{{ succeeded() }}", do: [c]}]}
  - {name: c, action: pk.c, input: {x: "{{ x }}"}}
output_map: {x: "{{ x }}"}`
	joined = `
tasks:
  - {name: a, action: pk.a, next: [{publish: [{x: 1}], do: [c]}]}
  - {name: b, action: pk.b, next: [{publish: [{y: 2}], do: [c, d]}]}
  - {name: c, action: pk.c, join: 2, input: {x: "{{ x }}"}}
  - {name: d, action: pk.d}
output_map: {x: "{{ x }}"}`
	listed = `
tasks:
  - {name: a, action: pk.a, next: [{do: [each]}]}
  - {name: each, action: pk.each, with_items: "{{ task.a.items }}", concurrency: 2, input: {n: "{{ item }}"},
	next: [{do: [b]}]}
  - {name: b, action: pk.b}`
	entry = `
tasks:
  - {name: each, action: pk.each, with_items: [1, 2, 3, 4], concurrency: 2, input: {n: "{{ item }}"}, next: [{do: [b]}]}
  - {name: b, action: pk.b}`
	approved = `
tasks:
  - {name: a, action: pk.a, next: [{do: [ask]}]}
  - {name: ask, action: core.ask, input: {prompt: "Deploy?"}, next: [{when: "{{ succeeded() }}", do: [b]}]}
  - {name: b, action: pk.b, next: [{do: [c]}]}
  - {name: c, action: pk.c}`
	retried = `
tasks:
  - name: a
    action: pk.a
    retry: {count: 2, delay: 0}
    next: [{when: "{{ succeeded() }}", do: [b]}, {when: "{{ failed() }}", do: [c]}]
  - {name: b, action: pk.b}
  - {name: c, action: pk.c}
  - {name: d, action: pk.d, next: [{do: [b]}]}`
	handled = `
tasks:
  - {name: a, action: pk.a, next: [{when: "{{ failed() }}", do: [b]}]}
  - {name: b, action: pk.b, next: [{do: [c]}]}
  - {name: c, action: pk.c}`
	nested = `
tasks:
  - {name: a, action: pk.a, next: [{do: [INNER]}]}
  - {name: INNER, action: INNER, next: [{do: [b]}]}
  - {name: b, action: pk.b}`
	answer = `WITH e AS (
			UPDATE execution SET status = 'completed', result = '{"response": true}'
			WHERE parent = $1 AND action_ref = 'core.ask' RETURNING id)
		UPDATE inquiry i SET status = 'responded', response = 'true', settled = true FROM e WHERE i.execution = e.id`
)

var phases = map[string]phase{
	"its first task runs": {
		definition: straight,
		children:   []string{"a scheduled"},
		all:        []string{"a", "b", "c"},
		result:     map[string]any{"x": 7.0},
	},
	"nothing has started": {
		definition: straight,
		all:        []string{"a", "b", "c"},
		result:     map[string]any{"x": 7.0},
	},
	"one of two entries was made": {
		definition: joined,
		children:   []string{"a scheduled"},
		all:        []string{"a", "b", "c", "d"},
		result:     map[string]any{"x": 1.0},
	},
	"the second runs": {
		definition: straight,
		children:   []string{"a completed", "b scheduled after a"},
		completed:  []string{"a"},
		current:    []string{"b"},
		variables:  map[string]any{"x": 5},
		all:        []string{"b", "c"},
		result:     map[string]any{"x": 5.0},
	},
	"its first task has ended meanwhile": {
		definition: straight,
		children:   []string{"a completed!"},
		all:        []string{"b", "c"},
		result:     map[string]any{"x": 9.0},
	},
	"the last task has ended meanwhile": {
		definition: straight,
		children:   []string{"a completed", "b completed after a", "c completed! after b"},
		completed:  []string{"a", "b"},
		current:    []string{"c"},
		variables:  map[string]any{"x": 5},
		result:     map[string]any{"x": 5.0},
	},
	"the second was requested": {
		definition: straight,
		children:   []string{"a completed", "b requested after a"},
		completed:  []string{"a"},
		current:    []string{"b"},
		variables:  map[string]any{"x": 5},
		all:        []string{"b", "c"},
		result:     map[string]any{"x": 5.0},
	},
	"one of two has arrived at a join": {
		definition: joined,
		children:   []string{"a completed", "b scheduled"},
		completed:  []string{"a"},
		variables:  map[string]any{"x": 5},
		all:        []string{"b", "c", "d"},
		result:     map[string]any{"x": 5.0},
	},
	"both have ended, one was processed": {
		definition: joined,
		children:   []string{"a completed", "b completed!"},
		completed:  []string{"a", "b"},
		variables:  map[string]any{"x": 5},
		all:        []string{"c", "d"},
		result:     map[string]any{"x": 5.0},
	},
	"behind the join": {
		definition: joined,
		children:   []string{"a completed", "b completed", "c scheduled after b", "d completed after b"},
		completed:  []string{"a", "b", "d"},
		current:    []string{"c"},
		variables:  map[string]any{"x": 5, "y": 6},
		all:        []string{"c"},
		result:     map[string]any{"x": 5.0},
	},
	"a list is half done": {
		definition: listed,
		children: []string{
			"a completed", "each[0] completed after a", "each[1] scheduled after a", "each[2] completed after a",
			"each[3] scheduled after a", "each[4] requested after a", "each[5] requested after a",
		},
		completed: []string{"a"},
		all:       []string{"b", "each[1]", "each[3]", "each[4]", "each[5]"},
	},
	"the items of a list have ended meanwhile": {
		definition: listed,
		children: []string{
			"a completed", "each[0] completed after a", "each[1] failed! after a",
		},
		completed: []string{"a"},
		all:       []string{"b"},
	},
	"an item of a list waits for an answer": {
		definition: listed,
		children:   []string{"a completed", "each[0] completed after a", "each[1] completed? after a"},
		completed:  []string{"a"},
		then: `UPDATE inquiry i SET status = 'responded', response = 'true', settled = true FROM execution e
			WHERE e.parent = $1 AND i.execution = e.id`,
		all: []string{"b"},
	},
	"a list of an entry is half done": {
		definition: entry,
		children:   []string{"each[0] completed", "each[1] completed", "each[2] scheduled", "each[3] requested"},
		all:        []string{"b", "each[2]", "each[3]"},
	},
	"an early item of an entry runs alone": {
		definition: entry,
		children:   []string{"each[0] scheduled", "each[1] completed", "each[2] completed", "each[3] completed"},
		all:        []string{"b", "each[0]"},
	},
	"it waits for a person": {
		definition: approved,
		children:   []string{"a completed", "ask running after a"},
		completed:  []string{"a"},
		current:    []string{"ask"},
		then:       answer,
		all:        []string{"b", "c"},
	},
	"its question was deleted": {
		definition: approved,
		children:   []string{"a completed"},
		completed:  []string{"a"},
		current:    []string{"ask"},
		ends:       lifecycle.StatusFailed,
	},
	"a failed attempt has two retries left": {
		definition: retried,
		children:   []string{"a failed!", "d completed"},
		completed:  []string{"d"},
		all:        []string{"a.1", "b"},
	},
	"a failed attempt counts as failed already": {
		definition: retried,
		children:   []string{"a failed!", "d completed"},
		completed:  []string{"d"},
		failed:     []string{"a"},
		all:        []string{"a.1", "b"},
	},
	"the last attempt has failed meanwhile": {
		definition: retried,
		children:   []string{"a failed", "a.1 failed", "a.2 failed!"},
		all:        []string{"c", "d", "b"},
	},
	"a retry waits": {
		definition: retried,
		children:   []string{"d completed", "a failed", "a.1 requested"},
		completed:  []string{"d"},
		all:        []string{"a.1", "b"},
	},
	"a retry runs": {
		definition: retried,
		children:   []string{"d completed", "a failed", "a.1 scheduled"},
		completed:  []string{"d"},
		all:        []string{"a.1", "b"},
	},
	"a failure was handled": {
		definition: handled,
		children:   []string{"a failed", "b scheduled after a"},
		completed:  []string{"a"},
		current:    []string{"b"},
		all:        []string{"b", "c"},
	},
	"a failure was not handled": {
		definition: joined,
		children:   []string{"a failed", "d completed", "b scheduled"},
		completed:  []string{"d"},
		failed:     []string{"a"},
		all:        []string{"b"},
		ends:       lifecycle.StatusFailed,
	},
	"it is being cancelled": {
		definition: straight,
		children:   []string{"a completed", "b running after a"},
		completed:  []string{"a"},
		change: `WITH w AS (
				UPDATE workflow_execution SET status = 'cancelled', current_tasks = '{}',
					error_message = 'x' WHERE execution = $1)
			UPDATE execution SET status = 'canceling' WHERE id = $1`,
		then: `UPDATE execution SET status = 'completed' WHERE parent = $1 AND status = 'running'`,
		ends: lifecycle.StatusCancelled,
	},
	"its list is being cancelled": {
		definition: entry,
		children:   []string{"each[0] completed", "each[1] running", "each[2] requested", "each[3] requested"},
		change:     `UPDATE execution SET status = 'canceling' WHERE id = $1`,
		then:       `UPDATE execution SET status = 'completed' WHERE parent = $1 AND status = 'running'`,
		ends:       lifecycle.StatusCancelled,
	},
	"it is paused": {
		definition: straight,
		children:   []string{"a completed", "b scheduled after a"},
		completed:  []string{"a"},
		current:    []string{"b"},
		variables:  map[string]any{"x": 5},
		change:     `UPDATE workflow_execution SET paused = true WHERE execution = $1`,
		first:      []string{"b"},
		then:       `UPDATE workflow_execution SET paused = false WHERE execution = $1`,
		all:        []string{"b", "c"},
		result:     map[string]any{"x": 5.0},
	},
	"a workflow within it is under way": {
		definition: nested,
		children:   []string{"a completed", "INNER running after a"},
		completed:  []string{"a"},
		current:    []string{"INNER"},
		all:        []string{"b", "b", "c"},
	},
}

// changes are what has become of a definition meanwhile.
var changes = map[string]func(map[string]any){
	"unchanged": func(map[string]any) {},
	"a task in front": func(definition map[string]any) {
		definition["tasks"] = append([]any{map[string]any{
			"name": "front", "action": "pk.front", "next": []any{map[string]any{"do": []any{"a"}}},
		}}, definition["tasks"].([]any)...)
	},
	"renamed": func(definition map[string]any) {
		raw, _ := json.Marshal(definition["tasks"])
		for _, name := range []string{"a", "b", "c", "d", "each", "ask"} {
			raw = []byte(strings.ReplaceAll(string(raw), `"`+name+`"`, `"new_`+name+`"`))
		}
		var tasks []any
		_ = json.Unmarshal(raw, &tasks)
		definition["tasks"] = tasks
	},
	"removed": func(definition map[string]any) {
		definition["tasks"] = []any{map[string]any{"name": "other", "action": "pk.other"}}
	},
	"a missing action, strict": func(definition map[string]any) {
		for _, task := range definition["tasks"].([]any) {
			task.(map[string]any)["action"] = "pk.gone"
		}
		definition["strict"] = true
	},
}

// underWay is one workflow of the course.
type underWay struct {
	phase

	name  string
	id    int64
	inner int64
}

// A workflow that another engine started ends as that engine would have ended it: no task runs twice, and none before
// its time. It makes no difference what has become of its definition, and which ended children retention has deleted.
func TestAWorkflowUnderWayEndsAsItsOwnEngineWouldEndIt(t *testing.T) {
	w := setupOn(t, testkit.AdoptedDatabase(t))
	var all []*underWay
	for i, name := range slices.Sorted(maps.Keys(phases)) {
		for j, change := range slices.Sorted(maps.Keys(changes)) {
			for _, deleted := range []bool{false, true} {
				if turn := (i + j) % len(changes); !testkit.Slow() && (turn > 1 || deleted != (turn == 1)) {
					continue // two of each phase; make chaos tries all
				}
				of := w.underWay(len(all), phases[name], changes[change], deleted)
				of.name = fmt.Sprintf("%s; its definition: %s; deleted: %t", name, change, deleted)
				all = append(all, of)
			}
		}
	}
	w.does = func(task string, _, _ int) end {
		return end{lifecycle.StatusCompleted, map[string]any{"n": 7, "task": task}}
	}
	before := w.ids(`SELECT id FROM execution WHERE status IN ('completed', 'failed')`)
	told := map[int64]bool{} // reported earlier, or the report is lost
	for _, id := range before {
		told[id] = true
	}
	w.goOn(all, told)
	w.take(before, nil) // their messages may come again
	w.goOn(all, told)
	for _, of := range all {
		if of.then == "" {
			continue
		}
		require.Equal(t, slices.Sorted(slices.Values(of.first)), w.ranOf(of), "%s: %v", of.name, w.log(of.id))
		testkit.Exec(t, w.store, of.then, of.id)
	}
	w.poll()
	w.take(before, nil)
	w.goOn(all, told)
	for _, of := range all {
		status, result := w.outcome(of.id)
		about := of.name + "\n" + strings.Join(w.log(of.id), "\n")
		assert.Equal(t, cmp.Or(of.ends, lifecycle.StatusCompleted), status, "%s\n%v", about, result)
		assert.Equal(t, slices.Sorted(slices.Values(of.phase.all)), w.ranOf(of), about)
		for key, value := range of.result {
			assert.Equal(t, value, result[key], "%s: %s", about, key)
		}
	}
	require.Zero(t, testkit.Count(t, w.store,
		`SELECT count(*) FROM execution WHERE status NOT IN ('completed', 'failed', 'cancelled')`))
	testkit.Invariants(t, w.store)
}

// setupOn is setup on a database.
func setupOn(t *testing.T, database string) *world {
	t.Helper()
	w := &world{
		t: t, store: testkit.OpenStore(t, database, func(c *store.Config) { c.HotPath = true }), relay: &relay{},
		sources: advancement.NewSources(),
	}
	w.begin()
	return w
}

// underWay writes the rows of a workflow as the other engine does.
func (w *world) underWay(n int, p phase, changed func(map[string]any), deleted bool) *underWay {
	w.t.Helper()
	of := &underWay{phase: p}
	inner := fmt.Sprintf("pk.inner%d", n)
	if strings.Contains(p.definition, "INNER") {
		w.define(inner, "version: \"1\""+straight)
	}
	action := w.define(fmt.Sprintf("pk.flow%d", n), "version: \"1\""+strings.ReplaceAll(p.definition, "INNER", inner))
	graph := w.graphOf(action)
	testkit.Exec(w.t, w.store, `UPDATE workflow_definition SET definition = $2 WHERE ref = $1`, action.Ref,
		w.changed(action.Ref, changed))
	var old []int64
	of.id, old = w.published(action, graph, p, inner)
	if strings.Contains(p.definition, "INNER") {
		of.inner = w.ids(`SELECT id FROM execution WHERE parent = $1 AND action_ref = $2`, of.id, inner)[0]
		action := testkit.ActionRow{ID: w.ids(`SELECT id FROM action WHERE ref = $1`, inner)[0], Ref: inner}
		graph := w.graphOf(action)
		testkit.Exec(w.t, w.store, `UPDATE workflow_definition SET definition = $2 WHERE ref = $1`, inner,
			w.changed(inner, changed))
		_, more := w.publishedAs(of.inner, action, graph, phases["the second runs"], "")
		old = append(old, more...)
	}
	if deleted {
		testkit.Exec(w.t, w.store, `DELETE FROM execution WHERE id = ANY ($1)`, old)
	}
	return of
}

// changed is the definition of a workflow after a change.
func (w *world) changed(ref string, change func(map[string]any)) []byte {
	w.t.Helper()
	definition := map[string]any{}
	stored := w.text(`SELECT definition FROM workflow_definition WHERE ref = $1`, ref)
	require.NoError(w.t, json.Unmarshal([]byte(stored), &definition))
	change(definition)
	raw, err := json.Marshal(definition)
	require.NoError(w.t, err)
	return raw
}

// published writes the rows of a running workflow. old are its ended and processed children.
func (w *world) published(action testkit.ActionRow, graph []byte, p phase, inner string) (id int64, old []int64) {
	w.t.Helper()
	id = testkit.Execution(w.t, w.store, action,
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning }).ID
	return w.publishedAs(id, action, graph, p, inner)
}

func (w *world) publishedAs(
	id int64, action testkit.ActionRow, graph []byte, p phase, inner string,
) (_ int64, old []int64) {
	w.t.Helper()
	variables, err := json.Marshal(p.variables)
	require.NoError(w.t, err)
	testkit.Exec(w.t, w.store, `INSERT INTO workflow_execution
			(execution, workflow_def, task_graph, status, variables, completed_tasks, failed_tasks, current_tasks)
		SELECT $1, a.workflow_def, $3, 'running', coalesce(nullif($4::jsonb, 'null'), '{}'), $5, $6,
			$7 FROM action a WHERE a.id = $2`,
		id, action.ID, graph, variables, p.completed, p.failed, replaced(p.current, inner))
	definition, err := workflow.ParseTaskGraph(graph, nil)
	require.NoError(w.t, err)
	for _, text := range p.children {
		child, done := w.publishedChild(id, definition, strings.ReplaceAll(text, "INNER", inner))
		if done {
			old = append(old, child)
		}
	}
	if p.change != "" {
		testkit.Exec(w.t, w.store, p.change, id)
	}
	return id, old
}

func replaced(names []string, inner string) []string {
	list := []string{}
	for _, name := range names {
		list = append(list, strings.ReplaceAll(name, "INNER", inner))
	}
	return list
}

// publishedChild writes a child of phase.children. It reports whether its end was processed: it has neither an
// exclamation mark nor a question mark.
func (w *world) publishedChild(parent int64, definition *workflow.Definition, text string) (id int64, old bool) {
	w.t.Helper()
	words := strings.Fields(text)
	name, retry := words[0], int32(0)
	var index any
	if at := strings.LastIndexAny(name, "."); at > 0 && !strings.HasPrefix(name, "pk.") {
		_, err := fmt.Sscan(name[at+1:], &retry)
		require.NoError(w.t, err)
		name = name[:at]
	}
	if at := strings.Index(name, "["); at > 0 {
		var i int
		_, err := fmt.Sscan(strings.Trim(name[at:], "[]"), &i)
		require.NoError(w.t, err)
		name, index = name[:at], i
	}
	status := lifecycle.Status(strings.TrimRight(words[1], "!?"))
	asks := strings.HasSuffix(words[1], "?")
	task := definition.Task(name)
	require.NotNil(w.t, task, text)
	of := testkit.ActionRow{Ref: task.Action}
	of.ID = w.ids(`SELECT id FROM action WHERE ref = $1`, of.Ref)[0]
	about := map[string]any{
		"workflow_execution": w.workflowOf(parent), "task_name": name, "task_index": index, "task_batch": nil,
		"retry_count": retry, "max_retries": 0, "timed_out": false,
	}
	if task.Retry != nil {
		about["max_retries"] = task.Retry.Count
	}
	if len(words) > 3 {
		about["triggered_by"] = words[3]
	}
	id = testkit.Execution(w.t, w.store, of, func(e *testkit.ExecutionRow) {
		e.Parent, e.Status, e.WorkflowTask, e.RetryCount = &parent, status, about, retry
		if status != lifecycle.StatusRequested && task.Action != "core.ask" &&
			!strings.HasPrefix(task.Action, "pk.inner") {
			e.Worker = &w.worker
		}
		e.Result = map[string]any{"n": 9, "items": []int{1, 2}}
		if asks {
			e.Result = map[string]any{"__inquiry": map[string]any{"prompt": "Deploy?"}}
		}
	}).ID
	if retry == 0 {
		testkit.Exec(w.t, w.store,
			`INSERT INTO workflow_task_dispatch (workflow_execution, task_name, task_index, execution_id)
			VALUES ($1, $2, $3, $4)`, w.workflowOf(parent), name, index, id)
	}
	if task.Action == "core.ask" || asks {
		testkit.Exec(w.t, w.store,
			`INSERT INTO inquiry (execution, prompt, status) VALUES ($1, 'Deploy?', 'pending')`, id)
	}
	return id, status.Terminal() && !strings.ContainsAny(words[1], "!?")
}

// goOn advances the workflows as messages and the sweep do, until nothing moves.
func (w *world) goOn(all []*underWay, told map[int64]bool) {
	w.t.Helper()
	var requests []advancement.Request
	for _, of := range all {
		for _, id := range []int64{of.inner, of.id} {
			if id != 0 {
				requests = append(requests, advancement.Request{Workflow: w.workflowOf(id)})
			}
		}
	}
	for len(requests) > 0 {
		step := advancement.NewStep(w.cfg, w.sources, requests)
		result, err := w.batches.Run(testkit.Context(w.t), step)
		require.NoError(w.t, err)
		w.advance(result)
		requests = step.Again()
	}
	for range 200 {
		var requested, ended []int64
		for _, id := range w.ids(`SELECT id FROM execution e WHERE status = 'requested'
				AND NOT EXISTS (SELECT FROM execution_admission_entry q WHERE q.execution_id = e.id)`) {
			due := testkit.Count(w.t, w.store,
				`WITH d AS (UPDATE execution_retry SET due = now() WHERE execution = $1 AND waiting RETURNING 1)
				SELECT count(*) FROM d`, id) > 0
			if due || w.requested(id) {
				requested = append(requested, id)
			}
		}
		handed := w.dispatched()
		for _, child := range handed {
			w.finish(child)
		}
		for _, id := range w.ids(`SELECT id FROM execution WHERE status IN ('completed', 'failed', 'cancelled') ORDER BY id`) {
			if !told[id] {
				told[id], ended = true, append(ended, id)
			}
		}
		if len(requested)+len(handed)+len(ended) == 0 {
			return
		}
		w.take(ended, requested)
	}
	require.Fail(w.t, "it never ends")
}

// ranOf are the tasks that ran after the workflow was taken over, as in phase.all.
func (w *world) ranOf(of *underWay) []string {
	w.t.Helper()
	list := testkit.Column[string](w.t, w.store.Pool(), `SELECT x.task FROM (
			SELECT workflow_task ->> 'task_name' || coalesce('[' || (workflow_task ->> 'task_index') || ']', '') ||
				CASE WHEN retry_count > 0 THEN '.' || retry_count ELSE '' END AS task, r.n
			FROM unnest($1::bigint[]) WITH ORDINALITY r (id, n) JOIN execution e ON e.id = r.id WHERE e.parent IN ($2,
				$3)) x
		ORDER BY x.task COLLATE "C"`, w.runs, of.id, of.inner)
	return append([]string(nil), list...) // nil if there are none
}
