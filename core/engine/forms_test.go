package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// form is a published form of a rule or an action with the outcome of a run. The tests of package advancement load
// the same files and run the workflows.
type form struct {
	Kind   string `yaml:"kind"`
	Source string `yaml:"source"`

	// Events are given to a rule in order. Runs are the parameters of the execution that
	// one leads to; without them it leads to none.
	Events []struct {
		Payload any `yaml:"payload"`
		Runs    any `yaml:"runs"`
	} `yaml:"events"`

	// Script is the file of an action, which is run with Parameters and gives Result.
	Script     string         `yaml:"script"`
	Parameters any            `yaml:"parameters"`
	Result     map[string]any `yaml:"result"`
}

// forms reads the forms of a kind by name.
func forms(t *testing.T, kind string) map[string]form {
	t.Helper()
	files, err := filepath.Glob("../advancement/testdata/published/*.yaml")
	require.NoError(t, err)
	found := map[string]form{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var f form
		require.NoError(t, yaml.Unmarshal(raw, &f))
		if f.Kind == kind {
			found[strings.TrimSuffix(filepath.Base(file), ".yaml")] = f
		}
	}
	require.NotEmpty(t, found)
	return found
}

// formPack is the pack of a form.
func formPack(path, content string) pagePacks {
	return pagePacks{"pk/pack.yaml": "ref: pk\nname: Pack\nversion: 1.0.0\n", "pk/" + path: content}
}

// Every published form of a rule, with each form of reference and condition, is applied,
// gets its events, and leads to the executions that it says, with these parameters.
func TestRulesOfPublishedDocumentsRun(t *testing.T) {
	t.Parallel()
	for name, f := range forms(t, "rule") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, f.Events, "a form of a rule says what events it gets")
			var its struct {
				Trigger string `yaml:"trigger_ref"`
				Action  string `yaml:"action_ref"`
			}
			require.NoError(t, yaml.Unmarshal([]byte(f.Source), &its))
			for _, ref := range []*string{&its.Trigger, &its.Action} {
				if !strings.Contains(*ref, ".") {
					*ref = "pk." + *ref
				}
			}
			b := setup(t)
			testkit.Action(t, b.store, its.Action)
			testkit.Exec(t, b.store, `INSERT INTO trigger (ref, label) VALUES ($1, 'x')`, its.Trigger)
			formPack("rules/form.yaml", f.Source).write(t, b)
			testkit.Exec(t, b.store,
				`UPDATE pack SET config = '{"token": "s3cr3t", "limits": {"max": 90}}' WHERE ref = 'pk'`)
			b.fake(t, nil)
			b.engine(t)
			for _, e := range f.Events {
				payload, err := json.Marshal(e.Payload)
				require.NoError(t, err)
				made, err := submit.New(b.store, b.relay).EmitEvents(testkit.Context(t),
					[]submit.Event{{TriggerRef: its.Trigger, Payload: payload}})
				require.NoError(t, err)
				testkit.Eventually(t, func() bool {
					return testkit.Count(t, b.store, `SELECT count(*) FROM event_matched WHERE event = $1`,
						made[0].ID) == 1
				}, 20*time.Second, "the event is compared with the rule")
				want := 0
				if e.Runs != nil {
					want = 1
				}
				require.Equal(t, want, testkit.Count(t, b.store, `SELECT count(*) FROM enforcement WHERE event = $1`,
					made[0].ID), "%s", payload)
				if want == 0 {
					continue
				}
				var config []byte
				testkit.Eventually(t, func() bool {
					return b.store.Pool().QueryRow(testkit.Context(t), `SELECT coalesce(e.config, '{}') FROM execution e
						JOIN enforcement f ON f.id = e.enforcement WHERE f.event = $1 AND e.status = 'completed'`, made[0].ID).Scan(&config) == nil
				}, 20*time.Second, "its execution completes")
				requireForm(t, e.Runs, config)
			}
		})
	}
}

// placeholders stand in a form for values that differ from run to run.
var placeholders = map[string]*regexp.Regexp{
	"<number>": regexp.MustCompile(`^\d+$`),
	"<time>":   regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`),
}

// requireForm compares parameters with those of a form.
func requireForm(t *testing.T, want any, config []byte) {
	t.Helper()
	raw, err := json.Marshal(want)
	require.NoError(t, err)
	var wants, got map[string]any
	require.NoError(t, json.Unmarshal(raw, &wants))
	require.NoError(t, json.Unmarshal(config, &got))
	for key, value := range wants {
		for mark, pattern := range placeholders {
			before, ok := strings.CutSuffix(fmt.Sprint(value), mark)
			if !ok {
				continue
			}
			text, ok := strings.CutPrefix(fmt.Sprint(got[key]), before)
			require.True(t, ok, "%s: %v", key, got[key])
			require.Regexp(t, pattern, text, key)
			wants[key] = got[key]
		}
	}
	require.Equal(t, wants, got)
}

// Every published form of an action is applied, and run by a worker with its file.
func TestActionsOfPublishedDocumentsRun(t *testing.T) {
	t.Parallel()
	for name, f := range forms(t, "action") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var its struct {
				Ref        string `yaml:"ref"`
				EntryPoint string `yaml:"entry_point"`
			}
			require.NoError(t, yaml.Unmarshal([]byte(f.Source), &its))
			b := setup(t)
			packs := formPack("actions/form.yaml", f.Source)
			packs["pk/actions/"+its.EntryPoint] = f.Script
			b.packWorker(t, "w1", packs.write(t, b), func(*worker.Config) {})
			b.engine(t)
			parameters, err := json.Marshal(f.Parameters)
			require.NoError(t, err)
			id := b.request(t, its.Ref, 1, string(parameters))[0]
			testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id).Terminal() }, 20*time.Second)
			var raw []byte
			require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `SELECT result FROM execution WHERE id = $1`,
				id).Scan(&raw))
			require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, id), "%s", raw)
			var got map[string]any
			require.NoError(t, json.Unmarshal(raw, &got))
			for key, value := range f.Result {
				want, err := json.Marshal(value)
				require.NoError(t, err)
				has, err := json.Marshal(got[key])
				require.NoError(t, err)
				require.JSONEq(t, string(want), string(has), key)
			}
		})
	}
}
