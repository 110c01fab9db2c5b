package advancement_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// form is a file of testdata/published: one form in which published documents show workflows and parts of them, with
// its outcome. The texts are our own.
type form struct {
	// Shows describes the form.
	Shows string `yaml:"shows"`
	// Kind is workflow (a whole file), graph (the file of an action), tasks (a list of
	// tasks), next (the transitions of one task), action or rule.
	Kind   string `yaml:"kind"`
	Action string `yaml:"action"` // the action file of a graph
	Source string `yaml:"source"`

	// Refused and Warns are the mistakes and warnings of the loader, without places.
	Refused []string `yaml:"refused"`
	Warns   []string `yaml:"warns"`

	// Parameters start a run. Gives has the outcomes of tasks (default: completed), and Answers the responses to
	// inquiries.
	Parameters map[string]any     `yaml:"parameters"`
	Gives      map[string]outcome `yaml:"gives"`
	Answers    map[string]any     `yaml:"answers"`
	// Ran are the tasks that workers run, with index and retries, Inputs the last
	// parameters of some of them, Status (completed, unless said) and Result those of the
	// workflow.
	Ran    []string         `yaml:"ran"`
	Inputs map[string]any   `yaml:"inputs"`
	Status lifecycle.Status `yaml:"status"`
	Result map[string]any   `yaml:"result"`
	// Events are the events for a rule, and Script is the file of an action. The tests of the engine run both.
	Events []any  `yaml:"events"`
	Script string `yaml:"script"`
	// Columns are some of the columns that the loader writes for an action or a rule.
	Columns map[string]any `yaml:"columns"`
}

type outcome struct {
	Status lifecycle.Status `yaml:"status"`
	Result any              `yaml:"result"`
}

// TestFormsOfPublishedDocuments loads every form with the pack loader and runs it to
// the stated end, or sees it refused with the stated words.
func TestFormsOfPublishedDocuments(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/published/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 20)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var f form
			decoder := yaml.NewDecoder(strings.NewReader(string(content)))
			decoder.KnownFields(true)
			require.NoError(t, decoder.Decode(&f))
			require.NotEmpty(t, f.Shows)
			item := f.load(t)
			switch {
			case len(f.Refused) > 0:
			case f.Kind == "action" || f.Kind == "rule":
				f.columns(t, item)
			default:
				f.run(t, item)
			}
		})
	}
}

// load reads the form as a part of a pack.
func (f *form) load(t *testing.T) *pack.Item {
	t.Helper()
	source := pack.Source{
		Kind: pack.KindWorkflow, Root: "pk", Path: "workflows/form.workflow.yaml", Content: []byte(f.wrapped(t)),
	}
	sources := []pack.Source{{
		Kind: pack.KindPack, Root: "pk", Path: "pack.yaml", Content: []byte("ref: pk\nname: Pack\nversion: 1.0.0\n"),
	}}
	kind := pack.KindWorkflow
	switch f.Kind {
	case "graph":
		source.Path = "actions/workflows/form.workflow.yaml"
		sources = append(sources,
			pack.Source{Kind: pack.KindAction, Root: "pk", Path: "actions/form.yaml", Content: []byte(f.Action)})
	case "action":
		kind, source.Kind, source.Path = pack.KindAction, pack.KindAction, "actions/form.yaml"
	case "rule":
		kind, source.Kind, source.Path = pack.KindRule, pack.KindRule, "rules/form.yaml"
	}
	set, mistakes := pack.Read(append(sources, source))
	require.Equal(t, f.Refused, words(mistakes), "mistakes")
	require.Equal(t, f.Warns, words(set.Warnings), "warnings")
	if len(mistakes) > 0 {
		return nil
	}
	require.Len(t, set.Of(kind), 1)
	return set.Of(kind)[0]
}

func words(mistakes []pack.Mistake) []string {
	var list []string
	for _, m := range mistakes {
		list = append(list, m.Text)
	}
	return list
}

// wrapped returns the form as a whole file. A part of a workflow is put into a workflow with the tasks that it leads
// to.
func (f *form) wrapped(t *testing.T) string {
	t.Helper()
	var tasks []map[string]any
	switch f.Kind {
	case "tasks":
		require.NoError(t, yaml.Unmarshal([]byte(f.Source), &tasks))
	case "next":
		var next []any
		require.NoError(t, yaml.Unmarshal([]byte(f.Source), &next))
		tasks = []map[string]any{{"name": "begin", "action": "pk.begin", "next": next}}
	default:
		return f.Source
	}
	known := map[string]bool{}
	for _, task := range tasks {
		known[fmt.Sprint(task["name"])] = true
	}
	var missing []string
	lead := func(to any) {
		names, list := to.([]any)
		if !list && to != nil && to != true {
			names = []any{to}
		}
		for _, name := range names {
			if text := fmt.Sprint(name); !known[text] {
				known[text], missing = true, append(missing, text)
			}
		}
	}
	for _, task := range tasks {
		for _, key := range []string{"on_success", "on_failure", "on_complete", "on_timeout"} {
			lead(task[key])
		}
		for key, leads := range map[string][]string{"next": {"do"}, "decision": {"next", "default"}} {
			branches, _ := task[key].([]any)
			for _, branch := range branches {
				fields, _ := branch.(map[string]any)
				for _, field := range leads {
					lead(fields[field])
				}
			}
		}
	}
	for _, name := range missing {
		tasks = append(tasks, map[string]any{"name": name, "action": "pk." + name})
	}
	raw, err := yaml.Marshal(map[string]any{"ref": "pk.form", "label": "Form", "version": "1.0.0", "tasks": tasks})
	require.NoError(t, err)
	return string(raw)
}

// asJSON gives values of YAML the types of JSON.
func asJSON(t *testing.T, value any) any {
	t.Helper()
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

func (f *form) columns(t *testing.T, item *pack.Item) {
	t.Helper()
	columns := maps.Clone(item.Columns)
	columns["ref"], columns["action_ref"], columns["trigger_ref"] = item.Ref, item.Action, item.Trigger
	given := map[string]any{}
	for key := range f.Columns {
		given[key] = columns[key]
	}
	require.NotEmpty(t, given)
	require.Equal(t, asJSON(t, f.Columns), asJSON(t, given))
}

func (f *form) run(t *testing.T, item *pack.Item) {
	t.Helper()
	raw, err := json.Marshal(item.Columns["definition"])
	require.NoError(t, err)
	definition, err := workflow.ParseJSON(raw)
	require.NoError(t, err)
	w := setup(t)
	for _, task := range definition.All() {
		if task.Action != "" &&
			testkit.Count(t, w.store, `SELECT count(*) FROM action WHERE ref = $1`, task.Action) == 0 {
			testkit.Action(t, w.store, task.Action)
		}
	}
	w.does = func(task string, _, _ int) end {
		given := f.Gives[task]
		result := map[string]any{"exit_code": 0, "duration_ms": 3, "succeeded": given.Status == ""}
		own, _ := given.Result.(map[string]any)
		maps.Copy(result, own)
		if given.Status == "" {
			given.Status = lifecycle.StatusCompleted
		}
		return end{given.Status, result}
	}
	id := w.request(w.keep("pk.form", raw), f.Parameters)
	w.run()
	for _, task := range slices.Sorted(maps.Keys(f.Answers)) {
		response, err := json.Marshal(f.Answers[task])
		require.NoError(t, err)
		asked := w.ids(`SELECT e.id FROM execution e JOIN inquiry i ON i.execution = e.id
			WHERE i.status = 'pending' AND e.workflow_task ->> 'task_name' = $1`, task)
		require.Len(t, asked, 1, "the question of %s", task)
		testkit.Exec(t, w.store,
			`UPDATE inquiry SET status = 'responded', response = $2, settled = true WHERE execution = $1`,
			asked[0], response)
		testkit.Exec(t, w.store, `UPDATE execution SET status = 'completed', result = jsonb_build_object('response', $2::jsonb)
			WHERE id = $1`, asked[0], response)
		w.run()
	}
	status, result := w.outcome(id)
	if f.Status == "" {
		f.Status = lifecycle.StatusCompleted
	}
	require.Equal(t, f.Status, status, "%v\n%s", result, strings.Join(w.log(id), "\n"))
	require.Equal(t, asJSON(t, f.Result), asJSON(t, result))
	require.Equal(t, f.Ran, w.ran)
	for task, input := range f.Inputs {
		text := w.text(`SELECT config FROM execution WHERE parent = $1 AND workflow_task ->> 'task_name' = $2
			ORDER BY id DESC LIMIT 1`, id, task)
		var got any
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, asJSON(t, input), got, task)
	}
	w.sound()
}
