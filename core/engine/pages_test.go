package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/lab/testkit"
)

// pagesWorld has the outcomes of the examples of pages, and the output of their actions.
type pagesWorld struct {
	Actions map[string]struct {
		Prints, Format, Script string
	} `yaml:"actions"`
	Examples []example `yaml:"examples"`
}

// example is a workflow of docs/workflows.md or docs/inquiries.md.
type example struct {
	Ref        string         `yaml:"ref"`
	Parameters map[string]any `yaml:"parameters"`
	Answers    map[string]any `yaml:"answers"` // by prompt
	Result     map[string]any `yaml:"result"`  // of the workflow; succeeded: true if empty
	Ran        []string       `yaml:"ran"`     // executions of its tasks, with index and status, sorted
	Inputs     map[string]any `yaml:"inputs"`  // the parameters of a task's last execution
}

// pagePacks are the files of packs, by path.
type pagePacks map[string]string

func (p pagePacks) add(ref, folder, suffix, content string) {
	name, item, _ := strings.Cut(ref, ".")
	p[name+"/pack.yaml"] = "ref: " + name + "\nversion: 1.0.0\n"
	p[name+"/"+folder+item+suffix] = content
}

// write writes the files and applies them as `attune-executor apply` does.
func (p pagePacks) write(t *testing.T, b *bundle) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range p {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	files, err := catalog.Read([]string{root}, nil)
	require.NoError(t, err)
	require.Empty(t, files.Mistakes)
	_, err = catalog.New(b.store, b.relay).Apply(t.Context(),
		catalog.Request{Set: files.Set, Mistakes: files.Mistakes, Actor: "ada", Source: "test"})
	require.NoError(t, err)
	return root
}

// addActions adds the actions of the workflows.
func (p pagePacks) addActions(world pagesWorld) {
	for ref, action := range world.Actions {
		if action.Format == "" {
			action.Format = "json"
		}
		if action.Script == "" {
			action.Script = "printf '%s' '" + action.Prints + "'"
		}
		name := ref[strings.Index(ref, ".")+1:]
		p.add(ref, "actions/", ".yaml", "ref: "+ref+"\nentry_point: "+name+".sh\noutput_format: "+action.Format+"\n")
		p.add(ref, "actions/", ".sh", action.Script+"\n")
	}
}

// addWorkflows adds the workflows of two pages, and returns the rows of the table of results.
func (p pagePacks) addWorkflows(t *testing.T, world pagesWorld) (rows []reading) {
	t.Helper()
	text := page(t, "workflows.md") + page(t, "inquiries.md")
	for _, m := range readings.FindAllStringSubmatch(text, -1) {
		rows = append(rows, reading{task: m[3], own: m[1], later: m[2], value: m[4]})
	}
	require.GreaterOrEqual(t, len(rows), 10)
	sources := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	require.Len(t, sources, len(world.Examples), "every example of the pages has its outcome in testdata")
	for i, ex := range world.Examples {
		source := sources[i][1]
		if ex.Ref == readingsRef {
			source = withReadings(t, source, rows)
		}
		p.add(ex.Ref, "workflows/", ".workflow.yaml", source)
	}
	return rows
}

// addFiles adds the files that a page shows below their path.
func (p pagePacks) addFiles(t *testing.T, name string, n int) {
	t.Helper()
	files := regexp.MustCompile("(?m)^    # packs/(\\S+)\n((?:    .*\n)+)").FindAllStringSubmatch(page(t, name), -1)
	require.Len(t, files, n, name)
	for _, file := range files {
		p[file[1]] = file[2]
	}
}

// addPack adds the pack of docs/packs.md.
func (p pagePacks) addPack(t *testing.T) {
	t.Helper()
	text := page(t, "packs.md")
	files := regexp.MustCompile("(?m)^    ref: .*\n(?:    .*\n)+").FindAllString(text, -1)
	require.Len(t, files, 5, "a pack, an action, a trigger, a rule and a runtime")
	for i, path := range []string{
		"pack.yaml", "actions/build.yaml", "triggers/push.yaml", "rules/on_push.yaml",
		"runtimes/cobol.yaml",
	} {
		p["deploy/"+path] = files[i]
	}
	script := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(text)
	require.NotNil(t, script)
	p["deploy/actions/build.py"] = script[1]
}

func page(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	return string(raw)
}

// reading is a row of the table of results in docs/workflows.md.
type reading struct{ task, own, later, value string }

// readingsRef is the example to which the table belongs.
const readingsRef = "docs.gives"

var readings = regexp.MustCompile("(?m)^\\|.*\\| `([^`]+)` \\| `(task\\.(\\w+)[^`]+)` \\| `([^`]+)` \\|$")

// withReadings makes a workflow give both columns of each row of the table of results.
func withReadings(t *testing.T, source string, rows []reading) string {
	t.Helper()
	var definition struct {
		Version string           `yaml:"version"`
		Strict  bool             `yaml:"strict"`
		Tasks   []map[string]any `yaml:"tasks"`
		Output  map[string]any   `yaml:"output_map"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(source), &definition))
	definition.Output = map[string]any{}
	for i, row := range rows {
		own := fmt.Sprintf("own%d", i)
		at := slices.IndexFunc(definition.Tasks, func(task map[string]any) bool { return task["name"] == row.task })
		require.GreaterOrEqual(t, at, 0, row.task)
		task := definition.Tasks[at]
		next, _ := task["next"].([]any)
		task["next"] = append(next, map[string]any{"publish": []any{map[string]any{own: "{{ " + row.own + " }}"}}})
		definition.Output[own], definition.Output[fmt.Sprintf("later%d", i)] = "{{ workflow."+own+" }}", "{{ "+
			row.later+" }}"
	}
	raw, err := yaml.Marshal(definition)
	require.NoError(t, err)
	return string(raw)
}

func requireReadings(t *testing.T, rows []reading, result map[string]any) {
	t.Helper()
	for i, row := range rows {
		requireJSON(t, json.RawMessage(row.value), result[fmt.Sprintf("own%d", i)], row.own)
		requireJSON(t, json.RawMessage(row.value), result[fmt.Sprintf("later%d", i)], row.later)
	}
}

// Every workflow, pack and rule that a page shows is applied and run to its end by one
// engine, and each row of the table of results is read.
func TestExamplesOfPagesRun(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "run every example of the pages")
	raw, err := os.ReadFile("testdata/pages.yaml")
	require.NoError(t, err)
	var world pagesWorld
	require.NoError(t, yaml.Unmarshal(raw, &world))
	python, _ := exec.LookPath("python3") // without it the example in Python is applied, but not run
	packs := pagePacks{}
	packs.addActions(world)
	rows := packs.addWorkflows(t, world)
	packs.addFiles(t, "events.md", 2)
	packs.addFiles(t, filepath.Join("..", "README.md"), 3)
	packs.addPack(t)

	b := setup(t)
	if testkit.Adopted() {
		testkit.Action(t, b.store, "core.ask")
	}
	root := packs.write(t, b)
	b.engine(t)
	b.packWorker(t, "plain", root, func(c *worker.Config) {
		if python != "" {
			c.Interpreters = map[string][]string{"python": {python}}
		}
	})
	b.packWorker(t, "media", root, func(c *worker.Config) {
		c.Labels = map[string]string{"gpu": "true", "arch": "amd64"}
		c.Taints = []worker.Taint{{Key: "dedicated", Value: "media", Effect: "no_schedule"}}
	})
	ids := make([]int64, len(world.Examples))
	for i, ex := range world.Examples {
		parameters, err := json.Marshal(ex.Parameters)
		require.NoError(t, err)
		ids[i] = b.request(t, ex.Ref, 1, string(parameters))[0]
	}
	greeting := b.request(t, "hello.greet", 1, `{"name": "Ada"}`)[0]
	small := b.emitTo(t, "shop.ordered", `{"order": 8, "count": 9, "country": "france"}`)
	big := b.emitTo(t, "shop.ordered", `{"order": 7, "count": 12, "country": "france"}`)
	push := b.emitTo(t, "deploy.push", `{"branch": "main", "commit": "a1b2"}`)

	for i, ex := range world.Examples {
		b.requireExample(t, ex, ids[i], rows)
	}
	require.Equal(t, "Hello Ada", b.completed(t, greeting)["stdout"])
	require.Equal(t, "order 7 is a big one", b.completed(t, b.fired(t, big))["stdout"])
	b.compared(t, small)
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM enforcement WHERE event = $1`, small))
	build := b.fired(t, push)
	if python != "" {
		requireJSON(t, map[string]any{"image": "app:a1b2"}, b.completed(t, build)["data"], "data")
	}
}

// requireExample answers the inquiries of a workflow, waits for its completion and compares its outcome.
func (b *bundle) requireExample(t *testing.T, ex example, id int64, rows []reading) {
	t.Helper()
	for prompt, answer := range ex.Answers {
		question, _ := b.question(t, prompt)
		response, err := json.Marshal(answer)
		require.NoError(t, err)
		_, err = triage.New(triage.Config{Actor: "ada"}, b.store, b.relay).
			Answer(testkit.Context(t), triage.AnswerRequest{Inquiry: question, Response: response})
		require.NoError(t, err)
	}
	result := b.completed(t, id)
	switch {
	case ex.Ref == readingsRef:
		requireReadings(t, rows, result)
	case ex.Result == nil:
		require.Equal(t, map[string]any{"succeeded": true}, result, ex.Ref)
	default:
		requireJSON(t, ex.Result, result, ex.Ref)
	}
	require.Equal(t, ex.Ran, append([]string{}, b.tasks(t, id)...), ex.Ref)
	for task, input := range ex.Inputs {
		var config []byte
		require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `SELECT config FROM execution
			WHERE parent = $1 AND workflow_task ->> 'task_name' = $2 ORDER BY id DESC LIMIT 1`, id, task).Scan(&config))
		requireJSON(t, input, json.RawMessage(config), task)
	}
}

// packWorker starts a worker with the files of packs.
func (b *bundle) packWorker(t *testing.T, name, packs string, change func(*worker.Config)) {
	t.Helper()
	cfg := worker.Config{
		Name: name, HeartbeatInterval: 500 * time.Millisecond, PacksDir: packs,
		Actions: builtin.Actions(),
	}
	change(&cfg)
	w, err := worker.New(cfg, worker.Deps{Store: b.store, Broker: b.connect(t, name), Logger: testkit.Logger(t)})
	require.NoError(t, err)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
}

// completed waits for the end of an execution, which completes, and returns its result.
func (b *bundle) completed(t *testing.T, id int64) (result map[string]any) {
	t.Helper()
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id).Terminal() }, 60*time.Second,
		"execution %d ends", id)
	var raw []byte
	require.NoError(t,
		b.store.Pool().QueryRow(testkit.Context(t), `SELECT result FROM execution WHERE id = $1`, id).Scan(&raw))
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, id), "%s", raw)
	require.NoError(t, json.Unmarshal(raw, &result))
	return result
}

func (b *bundle) emitTo(t *testing.T, trigger, payload string) (event int64) {
	t.Helper()
	made, err := submit.New(b.store, b.relay).EmitEvents(testkit.Context(t),
		[]submit.Event{{TriggerRef: trigger, Payload: json.RawMessage(payload)}})
	require.NoError(t, err)
	return made[0].ID
}

// compared waits until an event has met its rules.
func (b *bundle) compared(t *testing.T, event int64) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM event_matched WHERE event = $1`, event) == 1
	}, 30*time.Second, "the event is compared with the rules")
}

// fired waits for the execution that an event leads to.
func (b *bundle) fired(t *testing.T, event int64) (execution int64) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return b.store.Pool().QueryRow(testkit.Context(t), `SELECT e.id FROM execution e
			JOIN enforcement f ON f.id = e.enforcement WHERE f.event = $1`, event).Scan(&execution) == nil
	}, 30*time.Second, "the rule fires")
	return execution
}

// tasks are the executions of a workflow's tasks, with index and status, sorted.
func (b *bundle) tasks(t *testing.T, id int64) (ran []string) {
	t.Helper()
	ran = testkit.Column[string](t, b.store.Pool(), `SELECT concat_ws(' ', workflow_task ->> 'task_name',
		workflow_task ->> 'task_index', status::text) FROM execution WHERE parent = $1`, id)
	slices.Sort(ran)
	return ran
}

// requireJSON compares values as JSON.
func requireJSON(t *testing.T, want, got any, what string) {
	t.Helper()
	wants, err := json.Marshal(want)
	require.NoError(t, err)
	has, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(wants), string(has), what)
}
