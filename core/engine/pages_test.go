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

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
)

// workflowsPage is what the workflows of docs/workflows.md and docs/inquiries.md come to.
type workflowsPage struct {
	Actions map[string]struct {
		Prints, Format, Script string
	} `yaml:"actions"`
	Examples []struct {
		Ref        string         `yaml:"ref"`
		Parameters map[string]any `yaml:"parameters"`
		Answers    map[string]any `yaml:"answers"` // by prompt
		Result     map[string]any `yaml:"result"`  // of the workflow; succeeded: true if empty
		Ran        []string       `yaml:"ran"`     // executions of its tasks, with index and status, sorted
		Inputs     map[string]any `yaml:"inputs"`  // the parameters of a task's last execution
	} `yaml:"examples"`
}

// pagePacks are a folder of packs, by path.
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
	_, err = catalog.New(b.store, b.relay).Apply(t.Context(), catalog.Request{Set: files.Set, Mistakes: files.Mistakes, Actor: "ada", Source: "test"})
	require.NoError(t, err)
	return root
}

// pageWorker runs the files of packs.
func (b *bundle) pageWorker(t *testing.T, name, packs string, change ...func(*worker.Config)) {
	t.Helper()
	cfg := worker.Config{Name: name, HeartbeatInterval: 500 * time.Millisecond, PacksDir: packs, Actions: builtin.Actions()}
	for _, c := range change {
		c(&cfg)
	}
	w, err := worker.New(cfg, worker.Deps{Store: b.store, Broker: b.connect(t, name), Logger: testkit.Logger(t)})
	require.NoError(t, err)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
}

// outcome waits for the end of an execution.
func (b *bundle) outcome(t *testing.T, id int64) (status attune.Status, result map[string]any) {
	t.Helper()
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id).Terminal() }, 60*time.Second, "execution %d ends", id)
	var raw []byte
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `SELECT status, result FROM execution WHERE id = $1`, id).Scan(&status, &raw))
	require.NoError(t, json.Unmarshal(raw, &result))
	return status, result
}

func page(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	return string(raw)
}

// reading is a row of the page's table of results.
type reading struct{ task, own, later, value string }

var readings = regexp.MustCompile("(?m)^\\|.*\\| `([^`]+)` \\| `(task\\.(\\w+)[^`]+)` \\| `([^`]+)` \\|$")

// withReadings makes a workflow give both columns of each row of the table of results.
func withReadings(t *testing.T, source string, rows []reading) string {
	t.Helper()
	var definition map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(source), &definition))
	output := map[string]any{}
	for i, row := range rows {
		own, found := fmt.Sprintf("own%d", i), false
		for _, one := range definition["tasks"].([]any) {
			if task := one.(map[string]any); task["name"] == row.task {
				next, _ := task["next"].([]any)
				task["next"] = append(next, map[string]any{"publish": []any{map[string]any{own: "{{ " + row.own + " }}"}}})
				found = true
			}
		}
		require.True(t, found, row.task)
		output[own], output[fmt.Sprintf("later%d", i)] = "{{ workflow."+own+" }}", "{{ "+row.later+" }}"
	}
	definition["output_map"] = output
	raw, err := yaml.Marshal(definition)
	require.NoError(t, err)
	return string(raw)
}

// Every workflow, pack and rule that a page shows is applied and run to its end by one
// engine, and each row of the table of results is read.
func TestExamplesOfPagesRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine(t)
	t.Run("Workflows", func(t *testing.T) { workflowsOfPages(t, b) })
	t.Run("Pack", func(t *testing.T) { packOfPage(t, b) })
	t.Run("Readme", func(t *testing.T) { packOfReadme(t, b) })
	t.Run("Rule", func(t *testing.T) { ruleOfPage(t, b) })
}

func workflowsOfPages(t *testing.T, b *bundle) {
	raw, err := os.ReadFile("testdata/workflows_page.yaml")
	require.NoError(t, err)
	var want workflowsPage
	require.NoError(t, yaml.Unmarshal(raw, &want))
	text := page(t, "workflows.md")
	sources := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text+page(t, "inquiries.md"), -1)
	require.Len(t, sources, len(want.Examples), "every example of the pages has its outcome in testdata")
	var rows []reading
	for _, m := range readings.FindAllStringSubmatch(text, -1) {
		rows = append(rows, reading{task: m[3], own: m[1], later: m[2], value: m[4]})
	}
	require.GreaterOrEqual(t, len(rows), 10)

	packs := pagePacks{}
	for ref, action := range want.Actions {
		if action.Format == "" {
			action.Format = "json"
		}
		if action.Script == "" {
			action.Script = "printf '%s' '" + action.Prints + "'"
		}
		name := ref[strings.Index(ref, ".")+1:]
		packs.add(ref, "actions/", ".yaml", "ref: "+ref+"\nentry_point: "+name+".sh\noutput_format: "+action.Format+"\n")
		packs.add(ref, "actions/", ".sh", action.Script+"\n")
	}
	for i, example := range want.Examples {
		source := sources[i][1]
		if example.Ref == "docs.gives" {
			source = withReadings(t, source, rows)
		}
		packs.add(example.Ref, "workflows/", ".workflow.yaml", source)
	}
	root := packs.write(t, b)
	b.pageWorker(t, "plain", root)
	b.pageWorker(t, "media", root, func(c *worker.Config) {
		c.Labels = map[string]string{"gpu": "true", "arch": "amd64"}
		c.Taints = []worker.Taint{{Key: "dedicated", Value: "media", Effect: "no_schedule"}}
	})
	ids := make([]int64, len(want.Examples))
	for i, example := range want.Examples {
		parameters, err := json.Marshal(example.Parameters)
		require.NoError(t, err)
		ids[i] = b.request(t, example.Ref, 1, string(parameters))[0]
	}
	operator := triage.New(triage.Config{Actor: "ada"}, b.store, b.relay)
	for i, example := range want.Examples {
		for prompt, answer := range example.Answers {
			question, _ := b.question(t, prompt)
			response, err := json.Marshal(answer)
			require.NoError(t, err)
			_, err = operator.Answer(testkit.Context(t), triage.AnswerOrder{Inquiry: question, Response: response})
			require.NoError(t, err)
		}
		status, result := b.outcome(t, ids[i])
		require.Equal(t, attune.StatusCompleted, status, "%s: %v", example.Ref, result)
		switch {
		case example.Ref == "docs.gives":
			requireReadings(t, rows, result)
		case example.Result == nil:
			require.Equal(t, map[string]any{"succeeded": true}, result, example.Ref)
		default:
			requireJSON(t, example.Result, result, example.Ref)
		}
		require.Equal(t, example.Ran, append([]string{}, b.tasks(t, ids[i])...), example.Ref)
		for task, input := range example.Inputs {
			var config []byte
			require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `SELECT config FROM execution
				WHERE parent = $1 AND workflow_task ->> 'task_name' = $2 ORDER BY id DESC LIMIT 1`, ids[i], task).Scan(&config))
			requireJSON(t, input, json.RawMessage(config), task)
		}
	}
}

// packOfPage runs the pack of docs/packs.md: an event fires its rule, which runs its action.
func packOfPage(t *testing.T, b *bundle) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to run the example with")
	}
	text := page(t, "packs.md")
	files := regexp.MustCompile("(?m)^    ref: .*\n(?:    .*\n)+").FindAllString(text, -1)
	require.Len(t, files, 5, "a pack, an action, a trigger, a rule and a runtime")
	script := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(text)
	require.NotNil(t, script)
	packs := pagePacks{"deploy/actions/build.py": script[1]}
	for i, path := range []string{"pack.yaml", "actions/build.yaml", "triggers/push.yaml", "rules/on_push.yaml", "runtimes/cobol.yaml"} {
		packs["deploy/"+path] = files[i]
	}
	b.pageWorker(t, "python", packs.write(t, b), func(c *worker.Config) {
		c.Interpreters = map[string][]string{"python": {python}}
	})
	status, result := b.fired(t, "deploy.push", `{"branch": "main", "commit": "a1b2"}`)
	require.Equal(t, attune.StatusCompleted, status, "%v", result)
	requireJSON(t, map[string]any{"image": "app:a1b2"}, result["data"], "data")
}

// filesOfPage are the files that a page shows below their path.
func filesOfPage(t *testing.T, name string) pagePacks {
	t.Helper()
	packs := pagePacks{}
	for _, file := range regexp.MustCompile("(?m)^    # packs/(\\S+)\n((?:    .*\n)+)").FindAllStringSubmatch(page(t, name), -1) {
		packs[file[1]] = file[2]
	}
	return packs
}

// packOfReadme runs the action of README.md.
func packOfReadme(t *testing.T, b *bundle) {
	packs := filesOfPage(t, filepath.Join("..", "README.md"))
	require.Len(t, packs, 3, "a pack and an action with its script")
	b.pageWorker(t, "readme", packs.write(t, b))
	status, result := b.outcome(t, b.request(t, "hello.greet", 1, `{"name": "Ada"}`)[0])
	require.Equal(t, attune.StatusCompleted, status, "%v", result)
	require.Equal(t, "Hello Ada", result["stdout"])
}

// ruleOfPage runs the rule of docs/events.md.
func ruleOfPage(t *testing.T, b *bundle) {
	packs := filesOfPage(t, "events.md")
	require.Len(t, packs, 2, "a trigger and a rule")
	packs["shop/pack.yaml"] = "ref: shop\nversion: 1.0.0\n"
	b.pageWorker(t, "rules", packs.write(t, b))
	status, result := b.fired(t, "shop.ordered", `{"order": 7, "count": 12, "country": "france"}`)
	require.Equal(t, attune.StatusCompleted, status, "%v", result)
	require.Equal(t, "order 7 is a big one", result["stdout"])
	small := b.emitTo(t, "shop.ordered", `{"order": 8, "count": 9, "country": "france"}`)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM event_matched WHERE event = $1`, small) == 1
	}, 30*time.Second, "the event is compared with the rule")
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM enforcement WHERE event = $1`, small))
}

func (b *bundle) emitTo(t *testing.T, trigger, payload string) (event int64) {
	t.Helper()
	made, err := submit.New(b.store, b.relay).EmitEvents(testkit.Context(t), []submit.Event{{TriggerRef: trigger, Payload: json.RawMessage(payload)}})
	require.NoError(t, err)
	return made[0].ID
}

// fired emits an event and waits for the end of the execution that its rule leads to.
func (b *bundle) fired(t *testing.T, trigger, payload string) (attune.Status, map[string]any) {
	t.Helper()
	event := b.emitTo(t, trigger, payload)
	var id int64
	testkit.Eventually(t, func() bool {
		return b.store.Pool().QueryRow(testkit.Context(t), `SELECT e.id FROM execution e
			JOIN enforcement f ON f.id = e.enforcement WHERE f.event = $1`, event).Scan(&id) == nil
	}, 30*time.Second, "the rule fires")
	return b.outcome(t, id)
}

// tasks are the executions of a workflow's tasks, with index and status, sorted.
func (b *bundle) tasks(t *testing.T, id int64) (ran []string) {
	t.Helper()
	rows, err := b.store.Pool().Query(testkit.Context(t), `SELECT concat_ws(' ', workflow_task ->> 'task_name',
		workflow_task ->> 'task_index', status::text) FROM execution WHERE parent = $1`, id)
	require.NoError(t, err)
	for rows.Next() {
		var one string
		require.NoError(t, rows.Scan(&one))
		ran = append(ran, one)
	}
	require.NoError(t, rows.Err())
	slices.Sort(ran)
	return ran
}

func requireReadings(t *testing.T, rows []reading, result map[string]any) {
	t.Helper()
	for i, row := range rows {
		requireJSON(t, json.RawMessage(row.value), result[fmt.Sprintf("own%d", i)], row.own)
		requireJSON(t, json.RawMessage(row.value), result[fmt.Sprintf("later%d", i)], row.later)
	}
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
