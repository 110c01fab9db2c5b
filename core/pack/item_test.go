package pack_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/pack"
)

// kinds are the kinds of items by the folders of a pack.
var kinds = map[string]pack.Kind{
	"actions": pack.KindAction, "runtimes": pack.KindRuntime, "triggers": pack.KindTrigger, "rules": pack.KindRule,
	"workflows": pack.KindWorkflow, "actions/workflows": pack.KindWorkflow, "policies": pack.KindPolicy,
	".": pack.KindPack,
}

// sources are the files of packs below a folder of testdata.
func sources(t *testing.T, folder string) []pack.Source {
	t.Helper()
	var list []pack.Source
	root := os.DirFS("testdata/packs")
	require.NoError(t, fs.WalkDir(root, folder, func(name string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		ref, within, _ := strings.Cut(name, "/")
		kind, known := kinds[path.Dir(within)]
		if entry.IsDir() || !known {
			return nil
		}
		content, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		list = append(list, pack.Source{Name: name, Kind: kind, Root: ref, Path: within, Content: content})
		return nil
	}))
	return list
}

// one is a set of one file.
func one(kind pack.Kind, content string) (set *pack.Set, mistakes []pack.Mistake) {
	within := map[pack.Kind]string{
		pack.KindAction: "actions/f.yaml", pack.KindWorkflow: "actions/workflows/f.workflow.yaml",
		pack.KindPack: "pack.yaml",
	}[kind]
	return pack.Read([]pack.Source{{Name: "f", Kind: kind, Path: within, Content: []byte(content)}})
}

func item(t *testing.T, set *pack.Set, kind pack.Kind, ref string) *pack.Item {
	t.Helper()
	for _, item := range set.Of(kind) {
		if item.Ref == ref {
			return item
		}
	}
	require.Fail(t, "there is no "+string(kind)+" "+ref)
	return nil
}

// Packs in the published form are read without a mistake, with the values that the existing loader stores.
func TestPublishedPacksRead(t *testing.T) {
	t.Parallel()
	set, mistakes := pack.Read(append(sources(t, "core"), sources(t, "examples")...))
	require.Empty(t, texts(mistakes))
	last := len(set.Warnings) - 1
	require.Contains(t, set.Warnings[last].String(), "core/workflows/install.yaml:", "the workflow that cannot be run")
	require.Contains(t, set.Warnings[last].Text, "the file is left out")
	require.Equal(t, []string{
		"core/actions/ask.yaml:4:1: enabled of an action has no effect (4 files)",
		"core/actions/ask.yaml:21:1: tags of an action has no effect (3 files)",
		"core/actions/build_envs.yaml:1:1: name of an action has no effect",
		"core/actions/build_envs.yaml:33:1: examples of an action has no effect",
		"core/pack.yaml:6:1: author of a pack has no effect",
		"core/pack.yaml:7:1: email of a pack has no effect",
		"core/pack.yaml:34:1: enabled of a pack has no effect (2 files)",
		"core/pack.yaml:35:1: testing of a pack has no effect",
		"core/runtimes/python.yaml:2:1: pack_ref of a runtime has no effect",
		"core/runtimes/python.yaml:19:1: versions of a runtime has no effect",
		"core/triggers/alert.yaml:4:1: type of a trigger has no effect (2 files)",
		"core/triggers/crontimer.yaml:1:1: name of a trigger has no effect",
		"core/triggers/crontimer.yaml:26:1: tags of a trigger has no effect",
		"core/triggers/crontimer.yaml:27:1: examples of a trigger has no effect",
	}, texts(set.Warnings[:last]), "every key once a kind")
	require.Equal(t, []string{"core", "examples"}, set.Whole)

	core := item(t, set, pack.KindPack, "core").Columns
	require.Equal(t, true, core["is_standard"])
	require.Equal(t, "1.0.3", core["version"])
	require.Equal(t, []any{"shell", "python", "native"}, core["runtime_deps"])

	request := item(t, set, pack.KindAction, "core.http_request")
	require.Equal(t, "shell", request.Runtime)
	require.Equal(t, "http_request.sh", request.Columns["entrypoint"])
	require.Equal(t, "dotenv", request.Columns["parameter_format"])
	require.Equal(t, 0, request.Columns["max_retries"])
	require.Nil(t, request.Columns["timeout_seconds"])
	envs := item(t, set, pack.KindAction, "core.build_envs")
	require.Equal(t, "Build Envs", envs.Columns["label"])
	require.Equal(t, ">=3.9", envs.Columns["runtime_version_constraint"])
	require.Equal(t, 600, envs.Columns["timeout_seconds"])
	require.Equal(t, map[string]any{"python": ">=3.9"}, envs.Columns["required_worker_runtimes"])
	require.Equal(t, []any{"python", "python3"}, item(t, set, pack.KindRuntime, "core.python").Columns["aliases"])
	require.Equal(t, "Crontimer", item(t, set, pack.KindTrigger, "core.crontimer").Columns["label"])

	news := item(t, set, pack.KindAction, "examples.news")
	require.Equal(t, "workflows/news.workflow.yaml", news.Columns["entrypoint"])
	require.Equal(t, "examples.news", news.Workflow)
	require.Empty(t, news.Runtime)
	definition := item(t, set, pack.KindWorkflow, "examples.news")
	require.Equal(t, "News", definition.Columns["label"])
	require.Equal(t, news.Columns["param_schema"], definition.Columns["param_schema"], "the action's are authoritative")
	require.Len(t, definition.Uses, 3)
	stored, ok := definition.Columns["definition"].(map[string]any)
	require.True(t, ok)
	require.Equal(t, "examples.news", stored["ref"])
}

// All mistakes of a file are reported at once, at their places.
func TestItemMistakes(t *testing.T) {
	t.Parallel()
	const action = "ref: a_b.x\nentry_point: x.sh\n"
	const rule = "ref: ab.r\ntrigger: ab.t\naction: ab.x\n"
	for name, tc := range map[string]struct {
		kind    pack.Kind
		content string
		want    []string
	}{
		"Pack": {pack.KindPack, "ref: Deploy\nversion: 1\n", []string{`f:1:1: ref is "Deploy"; that of a pack has two or more characters: a letter, then a-z, 0-9, _ and -, in lower case`, "f:2:10: version is 1; it must have three parts, as in 1.0.0"}},
		"PackNoRef": {
			pack.KindPack, "label: x\n",
			[]string{"f:1:1: the pack has no ref", "f:1:1: the pack has no version"},
		},
		"Nothing": {pack.KindAction, "# later\n", []string{"f: it describes no action"}},
		"List": {
			pack.KindAction, "- ref: ab.x\n",
			[]string{"f:1:1: this is not an action: write a mapping with ref and so on"},
		},
		"Syntax": {
			pack.KindRule, "ref: [\n",
			[]string{"f:1: this is not YAML: did not find expected node content"},
		},
		"Action": {pack.KindAction, action, nil},
		"TwoEntries": {
			pack.KindAction, action + "workflow_file: workflows/a.yaml\n",
			[]string{
				"f:2:1: entry_point and workflow_file in line 3 exclude each other: keep one",
				"f:3:1: there is no file actions/workflows/a.yaml in the pack",
			},
		},
		"TwoNames": {
			pack.KindAction, action + "entrypoint: y.sh\n",
			[]string{"f:3:1: entrypoint and entry_point in line 2 both give entry_point: keep one"},
		},
		"NoFile": {
			pack.KindAction, "ref: ab.x\nworkflow_file: workflows/a.yaml\n",
			[]string{"f:2:1: there is no file actions/workflows/a.yaml in the pack"},
		},
		"FileOutside": {pack.KindAction, "ref: ab.x\nworkflow_file: ../a.yaml\n", []string{`f:2:1: workflow_file is "../a.yaml"; it is a path below actions/workflows, such as workflows/rollout.workflow.yaml`}},
		"EntryOutside": {
			pack.KindAction, "ref: ab.x\nentry_point: ../../x.sh\n",
			[]string{`f:2:14: entry_point is "../../x.sh"; it must lie within the pack`},
		},
		"NoDot": {
			pack.KindAction, "ref: x\nentry_point: x.sh\n",
			[]string{`f:1:1: ref is "x"; it must be the pack, a dot and a name in lower case, as in deploy.rollout`},
		},
		"Words": {pack.KindAction, action + "parameter_delivery: env\noutput_format: xml\nmax_retries: -1\ntimeout_seconds: 0\naccesses_mcp: maybe\nworker_selector: a\nworker_tolerations: {}\nruntime_version: '>>3'\n", []string{
			`f:3:21: parameter_delivery is "env"; it must be stdin or file`,
			`f:4:16: output_format is "xml"; it must be text, json, yaml or jsonl`,
			"f:5:14: max_retries is -1; it must be a whole number of at least 0",
			"f:6:18: timeout_seconds is 0; it must be at least 1s",
			`f:7:15: accesses_mcp is "maybe"; it must be true or false`,
			`f:8:18: worker_selector is "a"; it must be a mapping`,
			"f:9:21: worker_tolerations is a mapping; it must be a list",
			`f:10:18: runtime_version: ">>3" is not a version constraint: ">3" is not a version`,
		}},
		"Retention": {
			pack.KindAction, action + "log_retention_limit: 3\nartifact_retention_policy: days\n",
			[]string{
				"f:3:1: log_retention_limit needs log_retention_policy",
				"f:4:1: artifact_retention_policy needs artifact_retention_limit",
			},
		},
		"Schema": {pack.KindAction, action +
			"parameters:\n  a: string\n  b: {type: text}\n  c: {type: string, required: x, enum: y}\n", []string{
			"f:4:6: the parameter a must be described by a mapping, as in {type: string}",
			`f:5:13: the parameter b is of type "text"; known are array, boolean, integer, null, number, object, string`,
			"f:6:31: required of the parameter c must be true or false",
			"f:6:40: enum of the parameter c must be a list",
		}},
		"Defaults": {pack.KindAction, action + "parameters:\n  a: {type: string, default: 3}\n  b: {type: integer, minimum: 2, default: 1}\n  c: {type: integer, required: true}\n  d: {type: object, default: {}}\n", []string{
			"f:4:30: the default of the parameter a does not fit: a is an integer, not a string",
			"f:5:43: the default of the parameter b does not fit: b is below 2",
		}},
		"SchemaOfList": {pack.KindAction, action + "output: {type: array, items: {type: object}}\nparameters: {properties: {a: {type: string}}, required: [a]}\n", nil},
		"DefaultsBelow": {
			pack.KindAction,
			action + "parameters:\n  type: object\n  properties: {a: {type: array, default: x}}\n",
			[]string{
				"f:5:42: the default of the parameter a does not fit: a is a string, not an array",
			},
		},
		"Rule": {pack.KindRule, rule + "conditions: []\naction_params: {a: '{{ event.payload.b }}'}\n", nil},
		"RuleNoTrigger": {
			pack.KindRule, "ref: ab.r\n",
			[]string{"f:1:1: the rule ab.r has no action", "f:1:1: the rule ab.r has no trigger"},
		},
		"RuleOperator": {
			pack.KindRule,
			rule + "conditions:\n  - {field: a, operator: equals, value: 1}\n  - {field: a, operator: like, value: 1}\n",
			[]string{`f:6:26: conditions[1].operator: "like" is unknown: use equals, not_equals, contains`},
		},
		"RuleConditions": {pack.KindRule, rule + "conditions:\n  - {field: a, operator: like}\n  - {operator: equals, value: 1}\n  - {field: a,\n     operator: equals}\n", []string{
			`f:5:26: conditions[0].operator: "like" is unknown: use equals, not_equals, contains`,
			"f:6:5: conditions[1].field: it must name a field of the payload",
			"f:7:5: conditions[2].value: the operator equals needs a value; write value: null to mean null",
		}},
		"RuleAny": {pack.KindRule, rule + "conditions:\n  any:\n    - {field: a, operator: equals, value: 1}\n", nil},
		"NaN": {
			pack.KindRule, rule + "action_params: {a: .nan}\n",
			[]string{`f:4:20: .nan is no number that can be stored`},
		},
		"NUL": {
			pack.KindTrigger, "ref: ab.t\nlabel: \"a\\0\"\noutput: {type: object, x: \"\\0\"}\n",
			[]string{
				"f:2:8: label holds a character that cannot be stored",
				"f:3:27: this holds a character that cannot be stored",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, mistakes := one(tc.kind, tc.content)
			if tc.want == nil {
				tc.want = []string{}
			}
			require.Equal(t, tc.want, texts(mistakes))
		})
	}
}

// Values that other loaders accept and that have no or less effect here are warnings.
func TestWarningsOfFiles(t *testing.T) {
	t.Parallel()
	const rule = "trigger: ab.t\naction: ab.x\n"
	for name, tc := range map[string]struct {
		kind    pack.Kind
		content string
		items   int
		want    []string
	}{
		"NoEntry": {pack.KindAction, "ref: ab.x\n", 1, []string{"f:1:1: the action ab.x has no entry_point and no workflow_file: only a worker that has a function for it runs it"}},
		"NoRef": {
			pack.KindAction, "name: x\nentry_point: x.sh\n", 0,
			[]string{"f:1:1: it is left out: the action has no ref", "f:1:1: name of an action has no effect"},
		},
		"NullRef": {
			pack.KindAction, "ref:\nentry_point: x.sh\n", 0,
			[]string{"f:1:1: it is left out: the action has no ref"},
		},
		"RuleNoRef":    {pack.KindRule, rule, 0, []string{"f:1:1: it is left out: the rule has no ref"}},
		"TriggerNoRef": {pack.KindTrigger, "label: x\n", 0, []string{"f:1:1: it is left out: the trigger has no ref"}},
		"RuntimeNoRef": {pack.KindRuntime, "name: x\n", 0, []string{"f:1:1: it is left out: the runtime has no ref"}},
		"OneOfTwo": {
			pack.KindTrigger, "label: x\n---\nref: ab.t\n", 1,
			[]string{"f:1:1: it is left out: the trigger has no ref"},
		},
		"Unknown": {
			pack.KindAction,
			"ref: ab.x\nentry_point: x.sh\ncolour: 3\n\"a b\": 1\nx-own: 1\n_own: 2\nenabled: true\n", 1,
			[]string{
				"f:3:1: colour is not a known key of an action and has no effect",
				"f:4:1: a b is not a known key of an action and has no effect",
				"f:7:1: enabled of an action has no effect",
			},
		},
		"PackNames": {
			pack.KindPack, "ref: ab\nversion: 1.0.0\nname: AB\nmetadata: {a: 1}\nkeywords: [x]\n", 1,
			[]string{},
		},
		"PackBoth": {
			pack.KindPack, "ref: ab\nversion: 1.0.0\nname: AB\nlabel: B\nkeywords: [x]\ntags: [y]\n", 1,
			[]string{"f:3:1: name of a pack has no effect", "f:5:1: keywords of a pack has no effect"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, mistakes := one(tc.kind, tc.content)
			require.Empty(t, texts(mistakes))
			require.Len(t, set.Items, tc.items)
			require.Equal(t, tc.want, texts(set.Warnings))
		})
	}
	set, _ := one(pack.KindPack, "ref: ab\nversion: 1.0.0\nname: AB\nmetadata: {a: 1}\nkeywords: [x]\n")
	require.Equal(t, "AB", set.Items[0].Columns["label"])
	require.Equal(t, map[string]any{"a": int64(1)}, set.Items[0].Columns["meta"])
	require.Equal(t, []any{"x"}, set.Items[0].Columns["tags"])
	set, _ = one(pack.KindAction, "ref: ab.x\n")
	require.Empty(t, set.Items[0].Columns["entrypoint"])
	require.NotNil(t, set.Items[0].Columns["entrypoint"])
	require.Equal(t, "shell", set.Items[0].Runtime)

	set, _ = one(pack.KindAction, "ref: ab.x\nentry_point: x\nrunner_type: cobol\n")
	mistakes, warnings := set.Check(pack.World{
		Has:      map[pack.Kind]map[string]pack.Found{pack.KindPack: {"ab": {Pack: "ab"}}},
		Runtimes: []pack.Runtime{{Ref: "core.python"}},
	})
	require.Empty(t, texts(mistakes))
	require.Equal(t, []string{"f:3:14: there is no runtime cobol; known are core.python: the action has none"},
		texts(warnings))
}

// A key that resembles a known one is refused, and in a rule any unknown key is. Published
// keys that mean nothing to the engine are not.
func TestUnknownKeysOfItems(t *testing.T) {
	t.Parallel()
	const rule = "ref: ab.r\ntrigger: ab.t\naction: ab.a\n"
	for name, tc := range map[string]struct {
		kind           pack.Kind
		content        string
		want, warnings []string
	}{
		"Misspelt": {
			pack.KindAction, "ref: ab.x\nentry_point: x.sh\ntimout: 3\n",
			[]string{"f:3:1: timout is not a known key of an action; the nearest is timeout"},
			[]string{},
		},
		"MisspeltRef": {
			pack.KindAction, "rfe: ab.x\n",
			[]string{"f:1:1: rfe is not a known key of an action; the nearest is ref"},
			[]string{"f:1:1: it is left out: the action has no ref"},
		},
		"EachPlace": {pack.KindTrigger, "ref: ab.a\nenbaled: 1\n---\nref: ab.b\nenbaled: 1\n", []string{
			"f:2:1: enbaled is not a known key of a trigger; the nearest is enabled",
			"f:5:1: enbaled is not a known key of a trigger; the nearest is enabled",
		}, []string{}},
		"Rule": {pack.KindRule, rule + "conditon: []\ncriteria: []\nx-own: 1\n", []string{
			"f:4:1: conditon is not a known key of a rule; the nearest is conditions",
			"f:5:1: criteria is not a known key of a rule",
		}, []string{}},
		"Published": {
			pack.KindRule, rule + "is_adhoc: false\ntrace_tag_template: x\nname: n\n",
			[]string{},
			[]string{
				"f:4:1: is_adhoc of a rule has no effect", "f:5:1: trace_tag_template of a rule has no effect",
				"f:6:1: name of a rule has no effect",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, mistakes := one(tc.kind, tc.content)
			require.Equal(t, tc.want, texts(mistakes))
			require.Equal(t, tc.warnings, texts(set.Warnings))
		})
	}
}

// Unknown keys of conditions are warnings at their places.
func TestWarningsOfConditions(t *testing.T) {
	t.Parallel()
	set, mistakes := one(pack.KindRule, "ref: ab.r\ntrigger: ab.t\naction: ab.x\nconditions:\n  any:\n    - {field: a, operator: equals, value: 1, note: b}\n")
	require.Empty(t, mistakes)
	require.Equal(t, []string{"f:6:52: conditions.any[0].note: it has no effect; known here is field, operator, value"},
		texts(set.Warnings))
}

// Unknown paths and refused parameters are reported at their places.
func TestWarningsOfNames(t *testing.T) {
	t.Parallel()
	trigger := func(schema any) pack.World {
		return pack.World{Has: map[pack.Kind]map[string]pack.Found{
			pack.KindPack: {"ab": {Pack: "ab"}}, pack.KindAction: {"ab.x": {Pack: "ab"}, "core.ask": {Pack: "core"}},
			pack.KindTrigger: {"ab.t": {Pack: "ab", OutSchema: schema}},
		}}
	}
	known := trigger(map[string]any{"branch": map[string]any{"type": "string"}})
	const nothing = "will be null: "
	for params, want := range map[string][]string{
		"{a: '{{ event.payload.branch }} {{ system.rule.ref }} {{ pack.config.x.y }} {{ event.id }}'}": {},
		"{a: {b: ['{{ event.paylod.branch }}']}}":                                                      {"a.b[0]: {{ event.paylod.branch }} " + nothing + "event.paylod is not known; the nearest is payload"},
		"{a: '{{ events.id }}'}": {"a: {{ events.id }} " + nothing +
			"events is not known; the nearest is event"},
		"{a: '{{ event.payload.brnch }}'}": {"a: {{ event.payload.brnch }} " + nothing +
			"event.payload.brnch is not known; the nearest is branch"},
	} {
		set, mistakes := one(pack.KindRule, "ref: ab.r\ntrigger: ab.t\naction: ab.x\naction_params: "+params+"\n")
		require.Empty(t, texts(mistakes))
		_, warnings := set.Check(known)
		for i := range want {
			want[i] = "f:4:1: " + want[i]
		}
		require.Equal(t, want, texts(warnings), params)
	}
	set, _ := one(pack.KindRule,
		"ref: ab.r\ntrigger: ab.t\naction: ab.x\naction_params: {a: '{{ event.payload.brnch }}'}\n")
	_, warnings := set.Check(trigger(nil))
	require.Empty(t, warnings, "the fields of events are unknown")

	for input, want := range map[string][]string{
		"{prompt: x, response_schema: {ok: {type: boolean, required: true}}}": {},
		"{promt: x}": {"core.ask has no parameter promt; the nearest is prompt"},
		"{prompt: x, response_schema: {ok: {type: bool}}}":      {"response_schema: ok: type bool is not understood"},
		"{prompt: x, response_schema: {ok: {type: '{{ 1 }}'}}}": {},
	} {
		set, mistakes := one(pack.KindWorkflow,
			"ref: ab.w\nversion: 1.0.0\ntasks:\n  - {name: t, action: core.ask, input: "+input+"}\n")
		require.Empty(t, texts(mistakes))
		mistakes, warnings := set.Check(known)
		require.Empty(t, texts(warnings))
		for i := range want {
			want[i] = "f:4:12: the task t will fail: " + want[i]
		}
		require.Equal(t, want, texts(mistakes), input)
	}
}

// Parameters that the action of a rule would refuse are refused in the rule.
func TestParametersOfRulesAndTasks(t *testing.T) {
	t.Parallel()
	const rule = "ref: ab.r\ntrigger: ab.t\naction: ab.x\n"
	world := pack.World{Has: map[pack.Kind]map[string]pack.Found{
		pack.KindPack:    {"ab": {Pack: "ab"}},
		pack.KindTrigger: {"ab.t": {Pack: "ab"}},
		pack.KindAction: {"ab.x": {Pack: "ab", ParamSchema: map[string]any{
			"a": map[string]any{"type": "integer", "required": true},
			"b": map[string]any{"type": "integer", "default": json.Number("1"), "minimum": json.Number("1")},
		}}},
	}}
	for params, want := range map[string][]string{
		"{a: 1}": {}, "{a: '{{ event.payload.a }}', c: 1}": {},
		"{}":     {"f:4:1: the action ab.x will not take the parameters of this rule: a is missing"},
		"{a: x}": {"f:4:1: the action ab.x will not take the parameters of this rule: a is a string, not an integer"},
	} {
		set, mistakes := one(pack.KindRule, rule+"action_params: "+params+"\n")
		require.Empty(t, texts(mistakes))
		mistakes, warnings := set.Check(world)
		require.Empty(t, texts(warnings))
		require.Equal(t, want, texts(mistakes), params)
	}
	set, mistakes := one(pack.KindWorkflow, "ref: ab.w\nversion: 1.0.0\ntasks:\n  - {name: t, action: ab.x, input: {b: '{{ 1 }}'}}\n  - {name: u, action: ab.x}\n")
	require.Empty(t, texts(mistakes))
	mistakes, _ = set.Check(world)
	require.Equal(t, []string{"f:4:12: the action ab.x will not take the parameters of the task t: a is missing"},
		texts(mistakes))
}
