package placement_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/placement"
)

const stale = 90 * time.Second

// worker is a live worker that announces this.
func worker(id int64, capabilities string, change ...func(*placement.Row)) placement.Worker {
	row := placement.Row{ID: id, Name: "w" + string(rune('0'+id)), Status: "active", Capabilities: []byte(capabilities)}
	for _, c := range change {
		c(&row)
	}
	return row.Worker(stale)
}

func selector(text string) placement.Spec {
	return placement.Spec{Own: placement.Own{Selector: []byte(text)}}
}

func tolerates(text string) placement.Spec {
	return placement.Spec{Own: placement.Own{Tolerations: []byte(text)}}
}

func affinity(text string) placement.Spec {
	return placement.Spec{Own: placement.Own{Affinity: []byte(text)}}
}

func choose(need placement.Need, workers ...placement.Worker) placement.Verdict {
	return placement.NewFleet(workers, 0).Choose(need)
}

// Each hard rule of placement: which workers fit, and the verdict about others.
func TestHardRules(t *testing.T) {
	t.Parallel()
	python := func(version string) placement.Spec {
		return placement.Spec{Runtimes: []string{"Python 3", "python3"}, Version: version}
	}
	required := func(text string) placement.Spec { return placement.Spec{Required: []byte(text)} }
	gpu := `{"taints": [{"key": "gpu", "value": "true"}]}`
	zone := `{"labels": {"zone": "a"}}`
	for name, c := range map[string]struct {
		spec    placement.Spec
		worker  string
		because string // empty: it fits
	}{
		"no runtime: any worker":               {worker: `{}`},
		"no capabilities at all":               {worker: ``},
		"capabilities that are not JSON":       {worker: `{`},
		"the runtime by an alias":              {spec: python(""), worker: `{"runtimes": ["python"]}`},
		"the runtime by its name, in any case": {spec: python(""), worker: `{"runtimes": ["PYTHON 3"]}`},
		"another runtime": {
			spec: python(""), worker: `{"runtimes": ["shell"]}`,
			because: "lacks runtime python 3 or python",
		},
		"runtimes that are not a list of names": {
			spec: python(""), worker: `{"runtimes": "python"}`,
			because: "lacks runtime python 3 or python",
		},

		"a version": {
			spec:   python(">=3.11"),
			worker: `{"runtimes": ["python"], "runtime_versions": {"python": ["3.9", "3.12.1"]}}`,
		},
		"a version under another spelling": {
			spec:   python(">=3.11"),
			worker: `{"runtimes": ["python3"], "runtime_versions": {"Python3": ["3.12"]}}`,
		},
		"an older version": {
			spec: python(">=3.11"), worker: `{"runtimes": ["python"], "runtime_versions": {"python": ["3.9"]}}`,
			because: "lacks runtime python 3 or python >=3.11",
		},
		"no version announced": {
			spec: python(">=3.11"), worker: `{"runtimes": ["python"]}`,
			because: "lacks runtime python 3 or python >=3.11",
		},
		"a version that cannot be read": {
			spec: python(">=3.11"), worker: `{"runtimes": ["python"], "runtime_versions": {"python": ["new"]}}`,
			because: "lacks runtime python 3 or python >=3.11",
		},
		"an interpreter that was found": {
			spec: python("3.11"), worker: `{"runtimes": ["python"], "detected_interpreters": [{"name": "python3", "path": "/usr/bin/python3", "version": "3.11.2"}]}`,
		},
		"versions that were stated go before interpreters that were found": {
			spec: python("3.11"), because: "lacks runtime python 3 or python 3.11",
			worker: `{"runtimes": ["python"], "runtime_versions": {"python": ["3.9"]}, "detected_interpreters": [{"name": "python3", "version": "3.11.2"}]}`,
		},
		"the version of another runtime": {
			spec: python(">=3"), because: "lacks runtime python 3 or python >=3",
			worker: `{"runtimes": ["python", "node"], "runtime_versions": {"node": ["20"]}}`,
		},
		"a constraint without a runtime asks for nothing": {spec: placement.Spec{Version: ">=3"}, worker: `{}`},
		"a blank constraint":                              {spec: python(" "), worker: `{"runtimes": ["python"]}`},

		"a required runtime in any version": {spec: required(`{"NodeJS": "*"}`), worker: `{"runtimes": ["node"]}`},
		"a required runtime in a version": {
			spec:   required(`{"node.js": "^18.2"}`),
			worker: `{"runtimes": ["node"], "runtime_versions": {"node": ["18.3"]}}`,
		},
		"a required runtime is missing": {
			spec:   required(`{"bash": "*", "node": "*"}`),
			worker: `{"runtimes": ["node"]}`, because: "lacks the required runtime shell",
		},
		"a required runtime in no such version": {
			spec: required(`{"node": ">=20"}`), worker: `{"runtimes": ["node"], "runtime_versions": {"node": ["18"]}}`,
			because: "lacks the required runtime node >=20",
		},

		"a selector": {spec: selector(`{"zone": "a"}`), worker: zone},
		"a selector with another value": {
			spec: selector(`{"zone": "b"}`), worker: zone,
			because: "lacks the label zone=b",
		},
		"a selector of several labels": {
			spec:   selector(`{"zone": "a", "disk": "ssd", "arch": "arm"}`),
			worker: zone, because: "lacks the labels arch=arm, disk=ssd",
		},
		"a label that is a number": {
			spec:   selector(`{"cores": "8", "big": "true"}`),
			worker: `{"labels": {"cores": 8, "big": true, "odd": {}}}`,
		},
		"labels that are no object are none": {
			spec: selector(`{"zone": "a"}`), worker: `{"labels": ["zone"]}`,
			because: "lacks the label zone=a",
		},

		"a taint": {
			worker:  gpu,
			because: "has the taint gpu=true:no_schedule that is not tolerated",
		},
		"a taint without a value": {
			worker:  `{"taints": [{"key": "gpu"}]}`,
			because: "has the taint gpu:no_schedule that is not tolerated",
		},
		"a taint that only asks": {worker: `{"taints": [{"key": "gpu", "effect": "prefer_no_schedule"}]}`},
		"taints that cannot be read": {
			worker:  `{"taints": {"gpu": 1}}`,
			because: "has the taint (unreadable):no_schedule that is not tolerated",
		},
		"a taint without a key": {
			worker:  `{"taints": [{"value": "x"}]}`,
			because: "has the taint (unreadable):no_schedule that is not tolerated",
		},
		"a taint with an unknown effect": {
			worker:  `{"taints": [{"key": "gpu", "effect": "evict"}]}`,
			because: "has the taint gpu:no_schedule that is not tolerated",
		},
		"an equal toleration": {spec: tolerates(`[{"key": "gpu", "value": "true"}]`), worker: gpu},
		"an equal toleration, explicitly": {spec: tolerates(
			`[{"key": "gpu", "operator": "equal", "value": "true", "effect": "no_schedule"}]`), worker: gpu},
		"a toleration of another value": {
			spec: tolerates(`[{"key": "gpu", "value": "false"}]`), worker: gpu,
			because: "has the taint gpu=true:no_schedule that is not tolerated",
		},
		"a toleration without a value": {
			spec: tolerates(`[{"key": "gpu"}]`), worker: gpu,
			because: "has the taint gpu=true:no_schedule that is not tolerated",
		},
		"neither has a value": {
			spec:   tolerates(`[{"key": "gpu"}]`),
			worker: `{"taints": [{"key": "gpu"}]}`,
		},
		"a toleration of whatever value": {
			spec:   tolerates(`[{"key": "gpu", "operator": "exists"}]`),
			worker: gpu,
		},
		"a toleration of the other effect": {
			spec: tolerates(
				`[{"key": "gpu", "operator": "exists", "effect": "prefer_no_schedule"}]`), worker: gpu,
			because: "has the taint gpu=true:no_schedule that is not tolerated",
		},
		"one of two taints is tolerated": {
			spec:    tolerates(`[{"key": "gpu", "operator": "exists"}]`),
			worker:  `{"taints": [{"key": "gpu"}, {"key": "spot"}]}`,
			because: "has the taint spot:no_schedule that is not tolerated",
		},
		"a toleration needs no taint to be there": {
			spec:   tolerates(`[{"key": "gpu", "operator": "exists"}]`),
			worker: `{}`,
		},

		"required affinity": {spec: affinity(
			`{"required": [{"match_labels": {"zone": "b"}}, {"match_labels": {"zone": "a"}}]}`), worker: zone},
		"no required term matches": {
			spec:   affinity(`{"required": [{"match_labels": {"zone": "b"}}]}`),
			worker: zone, because: "matches none of the required affinity terms",
		},
		"all of a term must match":        {spec: affinity(`{"required": [{"match_labels": {"zone": "a"}, "match_expressions": [{"key": "disk", "operator": "exists"}]}]}`), worker: zone, because: "matches none of the required affinity terms"},
		"an empty term matches everybody": {spec: affinity(`{"required": [{}]}`), worker: `{}`},
		"in": {
			spec: affinity(
				`{"required": [{"match_expressions": [{"key": "zone", "operator": "in", "values": ["b", "a"]}]}]}`),
			worker: zone,
		},
		"in, without the label": {
			spec: affinity(
				`{"required": [{"match_expressions": [{"key": "zone", "operator": "in", "values": ["a"]}]}]}`),
			worker: `{}`, because: "matches none of the required affinity terms",
		},
		"not_in": {
			spec: affinity(
				`{"required": [{"match_expressions": [{"key": "zone", "operator": "not_in", "values": ["b"]}]}]}`),
			worker: zone,
		},
		"not_in, with the value": {
			spec: affinity(
				`{"required": [{"match_expressions": [{"key": "zone", "operator": "not_in", "values": ["a"]}]}]}`),
			worker: zone, because: "matches none of the required affinity terms",
		},
		"not_in, without the label": {
			spec: affinity(
				`{"required": [{"match_expressions": [{"key": "zone", "operator": "not_in", "values": ["a"]}]}]}`),
			worker: `{}`,
		},
		"does_not_exist": {spec: affinity(
			`{"required": [{"match_expressions": [{"key": "zone", "operator": "does_not_exist"}]}]}`), worker: `{}`},
		"does_not_exist, with the label": {
			spec: affinity(
				`{"required": [{"match_expressions": [{"key": "zone", "operator": "does_not_exist"}]}]}`), worker: zone,
			because: "matches none of the required affinity terms",
		},
		"anti-affinity": {
			spec: affinity(
				`{"anti_affinity": [{"match_labels": {"zone": "b"}}, {"match_labels": {"zone": "a"}}]}`), worker: zone,
			because: "matches an anti-affinity term",
		},
		"anti-affinity to somebody else": {
			spec:   affinity(`{"anti_affinity": [{"match_labels": {"zone": "b"}}]}`),
			worker: zone,
		},
		"preferences are not rules": {spec: affinity(
			`{"preferred": [{"weight": 100, "preference": {"match_labels": {"zone": "b"}}}]}`), worker: zone},
		"empty and null fields ask nothing": {spec: placement.Spec{
			Required: []byte("null"),
			Own: placement.Own{
				Selector:    []byte("{}"),
				Tolerations: []byte("[]"),
				Affinity:    []byte("null"),
			},
		}, worker: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need := placement.NewNeed(c.spec)
			require.NoError(t, need.Err())
			verdict := choose(need, worker(1, c.worker))
			if c.because == "" {
				require.Equal(t, placement.Verdict{Outcome: placement.Placed, Worker: 1}, verdict)
				return
			}
			require.Equal(t, placement.Verdict{
				Outcome: placement.Incompatible, Reason: "no compatible worker: 1 live worker " + c.because,
			}, verdict)
		})
	}
}

// A malformed field of an action or an execution is an error that names it.
func TestBadFieldsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec placement.Spec
		want string
	}{
		"version": {
			placement.Spec{Version: ">=new"},
			`action.runtime_version_constraint: ">=new" is not a version constraint`,
		},
		"required": {
			placement.Spec{Required: []byte(`["node"]`)},
			"action.required_worker_runtimes: it must be an object of version constraints by runtime, not an array",
		},
		"required version": {
			placement.Spec{Required: []byte(`{"node": "new"}`)},
			`action.required_worker_runtimes: node: "new" is not a version constraint`,
		},
		"required nameless": {
			placement.Spec{Required: []byte(`{" ": "1"}`)},
			"action.required_worker_runtimes: a runtime has no name",
		},
		"selector": {
			selector(`"gpu"`),
			"action.worker_selector: it must be an object of labels",
		},
		"selector value": {
			selector(`{"gpu": true}`),
			"action.worker_selector: it must be an object of labels",
		},
		"selector empty": {
			selector(`{"gpu": " "}`),
			"action.worker_selector: the label gpu has no value",
		},
		"selector nameless": {
			selector(`{"": "a"}`),
			"action.worker_selector: a label has no name",
		},
		"not JSON": {selector(`{"gpu"`), "action.worker_selector: it is not JSON"},
		"tolerations": {
			tolerates(`{"key": "a"}`),
			"action.worker_tolerations: it must be a list of tolerations",
		},
		"toleration key": {
			tolerates(`[{"operator": "exists"}]`),
			"action.worker_tolerations: toleration 1 has no key",
		},
		"toleration operator": {
			tolerates(`[{"key": "a", "operator": "like"}]`),
			`action.worker_tolerations: the toleration of a has the operator "like"`,
		},
		"toleration value": {
			tolerates(`[{"key": "a", "value": ""}]`),
			"action.worker_tolerations: the toleration of a has an empty value",
		},
		"toleration effect": {
			tolerates(`[{"key": "a", "effect": "NoSchedule"}]`),
			`action.worker_tolerations: the toleration of a has the effect "NoSchedule"`,
		},
		"affinity":       {affinity(`[]x`), "action.worker_affinity: it is not JSON"},
		"affinity shape": {affinity(`{"required": {}}`), "action.worker_affinity: it must be an object of required, preferred and anti_affinity: required is an object"},
		"weight": {
			affinity(`{"preferred": [{"weight": 101, "preference": {}}]}`),
			"action.worker_affinity: preferred 1 has the weight 101",
		},
		"weight 0": {
			affinity(`{"preferred": [{"weight": 0, "preference": {}}]}`),
			"action.worker_affinity: preferred 1 has the weight 0",
		},
		"operator": {
			affinity(
				`{"required": [{"match_expressions": [{"key": "a", "operator": "gt", "values": ["1"]}]}]}`),
			`action.worker_affinity: required 1: the expression on a has the operator "gt"`,
		},
		"no values": {
			affinity(
				`{"anti_affinity": [{"match_expressions": [{"key": "a", "operator": "in"}]}]}`),
			"action.worker_affinity: anti_affinity 1: the expression on a needs values",
		},
		"an empty value": {
			affinity(
				`{"anti_affinity": [{"match_expressions": [{"key": "a", "operator": "not_in", "values": [""]}]}]}`),
			"action.worker_affinity: anti_affinity 1: the expression on a needs values",
		},
		"too many values": {affinity(`{"preferred": [{"preference": {"match_expressions": [{"key": "a", "operator": "exists", "values": ["1"]}]}}]}`), "action.worker_affinity: preferred 1: the expression on a takes no values"},
		"no key": {
			affinity(
				`{"required": [{"match_expressions": [{"operator": "exists"}]}]}`),
			"action.worker_affinity: required 1: an expression has no key",
		},
		"a label of a term": {
			affinity(`{"required": [{"match_labels": {"a": ""}}]}`),
			"action.worker_affinity: required 1: the label a has no value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, placement.NewNeed(c.spec).Err(), c.want)
			_, err := placement.NewNeed(c.spec).Override(placement.Own{Tolerations: []byte("null")})
			require.ErrorContains(t, err, c.want)
		})
	}
	good := placement.NewNeed(placement.Spec{})
	for _, c := range []struct{ selector, tolerations, affinity, want string }{
		{`[]`, ``, ``, "execution.worker_selector: "},
		{``, `{}`, ``, "execution.worker_tolerations: "},
		{``, ``, `[]`, "execution.worker_affinity: "},
	} {
		_, err := good.Override(placement.Own{
			Selector:    []byte(c.selector),
			Tolerations: []byte(c.tolerations),
			Affinity:    []byte(c.affinity),
		})
		require.ErrorContains(t, err, c.want)
	}
	bad := placement.NewNeed(selector(`[1]`))
	_, err := bad.Override(placement.Own{Selector: []byte(`{"zone": "a"}`)})
	require.NoError(t, err, "the malformed field of the action is replaced")
}

func TestAnExecutionReplacesEachFieldOfItsAction(t *testing.T) {
	t.Parallel()
	action := placement.NewNeed(placement.Spec{
		Runtimes: []string{"shell"},
		Own: placement.Own{
			Selector:    []byte(`{"zone": "a"}`),
			Tolerations: []byte(`[{"key": "gpu", "operator": "exists"}]`),
			Affinity:    []byte(`{"anti_affinity": [{"match_labels": {"old": "yes"}}]}`),
		},
	})
	inA := worker(1, `{"runtimes": ["shell"], "labels": {"zone": "a"}, "taints": [{"key": "gpu"}]}`)
	inB := worker(2, `{"runtimes": ["shell"], "labels": {"zone": "b", "old": "yes"}}`)
	nowhere := worker(3, `{"runtimes": ["shell"]}`)
	for name, c := range map[string]struct {
		selector, tolerations, affinity string
		want                            int64 // 0: no worker
	}{
		"nothing":                    {want: 1},
		"null":                       {"null", "null", "null", 1},
		"another selector":           {selector: `{"zone": "b"}`, want: 0},
		"and no affinity":            {selector: `{"zone": "b"}`, affinity: `{}`, want: 2},
		"no tolerations":             {tolerations: `[]`, want: 0},
		"no selector, no toleration": {selector: `{}`, tolerations: `[]`, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need, err := action.Override(placement.Own{
				Selector:    []byte(c.selector),
				Tolerations: []byte(c.tolerations),
				Affinity:    []byte(c.affinity),
			})
			require.NoError(t, err)
			fleet := placement.NewFleet([]placement.Worker{inA, inB, nowhere}, 0)
			require.Equal(t, placement.Placed, fleet.Choose(action).Outcome, "another need of the same fleet")
			require.Equal(t, c.want, fleet.Choose(need).Worker)
			_, err = action.Override(placement.Own{})
			require.NoError(t, err)
			require.Equal(t, int64(1), fleet.Choose(action).Worker, "the action's own need is as it was")
		})
	}
	shell, err := action.Override(placement.Own{
		Selector:    []byte(`{}`),
		Tolerations: []byte(`[]`),
		Affinity:    []byte(`{}`),
	})
	require.NoError(t, err)
	require.Equal(t, placement.Incompatible, choose(shell, worker(1, `{}`)).Outcome, "the runtime stays")
}

// Executions with equal requirements have the same kind, and there are few kinds.
func TestKindsAreFew(t *testing.T) {
	t.Parallel()
	require.Empty(t, placement.Need{}.Kind())
	action := placement.NewNeed(placement.Spec{Runtimes: []string{"Python", "py"}, Version: ">=3.11"})
	require.Equal(t, "python py >=3.11", action.Kind())
	same, err := action.Override(placement.Own{})
	require.NoError(t, err)
	require.Equal(t, action.Kind(), same.Kind())
	kinds := map[string]bool{}
	for id := range int64(200) {
		avoiding := action
		avoiding.Avoid = []int64{id}
		kinds[avoiding.Kind()] = true
		own, err := action.Override(placement.Own{Selector: []byte(`{"id": "` + strconv.FormatInt(id, 10) + `"}`)})
		require.NoError(t, err)
		kinds[own.Kind()] = true
	}
	require.Len(t, kinds, 8)
	for kind := range kinds {
		require.Regexp(t, `^python py >=3.11/[0-7]$`, kind)
	}
	long := make([]byte, 4000)
	for i := range long {
		long[i] = 'x'
	}
	one := placement.NewNeed(selector(`{"a": "` + string(long) + `1"}`))
	two := placement.NewNeed(selector(`{"a": "` + string(long) + `2"}`))
	require.Less(t, len(one.Kind()), 520)
	require.NotEqual(t, one.Kind(), two.Kind())
}

func TestARowMakesAWorker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*placement.Row)
		want   placement.Standing
	}{
		"active": {func(*placement.Row) {}, placement.Live},
		// upstream 17
		"a clock that is ahead": {func(r *placement.Row) { r.HeartbeatAge = -3600 }, placement.Live},
		"just fresh":            {func(r *placement.Row) { r.HeartbeatAge = 89.9 }, placement.Live},
		"just stale":            {func(r *placement.Row) { r.HeartbeatAge = 90 }, placement.Silent},
		"no heartbeat ever":     {func(r *placement.Row) { r.HeartbeatAge = math.Inf(1) }, placement.Silent},
		"inactive":              {func(r *placement.Row) { r.Status = "inactive" }, placement.Inactive},
		"cordoned":              {func(r *placement.Row) { r.Cordoned = true }, placement.Cordoned},
		"draining":              {func(r *placement.Row) { r.Draining = true }, placement.Draining},
		"cut off":               {func(r *placement.Row) { r.Status = "error" }, placement.Deaf},
		"cut off and silent": {
			func(r *placement.Row) { r.Status, r.HeartbeatAge = "error", 1000 },
			placement.Silent,
		},
		"busy": {func(r *placement.Row) { r.Status = "busy" }, placement.Occupied},
		"suspected": {
			func(r *placement.Row) { r.Suspect, r.SuspectReason = true, "no queue" },
			placement.Suspect,
		},
		"suspected and cordoned by hand": {
			func(r *placement.Row) { r.Suspect, r.Cordoned = true, true },
			placement.Cordoned,
		},
		"suspected, and cut off it knows": {
			func(r *placement.Row) { r.Suspect, r.Status = true, "error" },
			placement.Suspect,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worker(1, `{"max_concurrent_executions": 4}`, c.change)
			require.Equal(t, c.want, w.Standing)
			require.Equal(t, c.want >= placement.Silent, w.Standing.Absent())
			room := 0
			if c.want == placement.Live {
				room = 6
			}
			require.Equal(t, room, w.Room())
		})
	}
	require.Equal(t, "no queue",
		worker(1, ``, func(r *placement.Row) { r.Suspect, r.SuspectReason = true, "no queue" }).Note)
	for text, want := range map[string]int{
		`{}`: 10, `{"max_concurrent_executions": 3}`: 3, `{"max_concurrent_executions": 0}`: 10,
		`{"max_concurrent_executions": "many"}`: 10, `{"max_concurrent_executions": 1e300}`: 10,
		`{"max_concurrent_executions": null}`: 10,
	} {
		require.Equal(t, want, worker(1, text).Capacity, text)
	}
	require.True(t, worker(1, `{"attempt_fence": true}`).AttemptFence)
	require.False(t, worker(1, `{"attempt_fence": "yes"}`).AttemptFence)
	require.Zero(t, worker(1, ``, func(r *placement.Row) { r.Assigned = -1 }).Assigned)
}
