package placement_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/placement"
)

// world is a fleet and a need in their simplest form, a reference of the documented rules.
type world struct {
	workers []placement.Worker
	asks    []ask
}

// ask is a need in plain values.
type ask struct {
	Runtime   string
	MinMinor  uint64 // of version 3; 0 for any
	Zone      string // selector
	Tolerates []string
	Required  []string // zones, any of which
	Anti      string   // a zone
	Prefers   map[string]int
	Avoid     []int64
	Fence     bool
	Except    int64
}

var zones = []string{"", "a", "b", "c"}

func drawWorld(t *rapid.T) world {
	w := world{}
	ids := rapid.SliceOfNDistinct(rapid.Int64Range(1, 7), 0, 6, rapid.ID[int64]).Draw(t, "workers")
	for _, id := range ids {
		w.workers = append(w.workers, drawWorker(t, id))
	}
	for range rapid.IntRange(1, 3).Draw(t, "asks") {
		w.asks = append(w.asks, drawAsk(t))
	}
	return w
}

// drawAsk makes few requirements, so that a worker often fits.
func drawAsk(t *rapid.T) ask {
	var a ask
	for range rapid.IntRange(0, 4).Draw(t, "things") {
		switch rapid.IntRange(0, 8).Draw(t, "thing") {
		case 0:
			a.Runtime = rapid.SampledFrom([]string{"python", "shell"}).Draw(t, "runtime")
		case 1:
			a.Runtime, a.MinMinor = "python", rapid.SampledFrom([]uint64{9, 12}).Draw(t, "minor")
		case 2:
			a.Zone = rapid.SampledFrom(zones).Draw(t, "zone")
		case 3:
			a.Tolerates = append(a.Tolerates, rapid.SampledFrom([]string{"gpu", "spot"}).Draw(t, "tolerates"))
		case 4:
			a.Required = rapid.SliceOfNDistinct(rapid.SampledFrom(zones[1:]), 1, 3, rapid.ID).Draw(t, "required")
		case 5:
			a.Anti = rapid.SampledFrom(zones).Draw(t, "anti")
		case 6:
			a.Prefers = rapid.MapOfN(rapid.SampledFrom(zones[1:]), rapid.IntRange(1, 3), 1, 2).Draw(t, "prefers")
		case 7:
			a.Avoid = rapid.SliceOfN(rapid.Int64Range(1, 6), 1, 3).Draw(t, "avoid")
		default:
			a.Fence = rapid.Bool().Draw(t, "fence")
			a.Except = rapid.Int64Range(0, 4).Draw(t, "except")
		}
	}
	return a
}

func drawWorker(t *rapid.T, id int64) placement.Worker {
	w := placement.Worker{
		ID: id, Host: rapid.SampledFrom([]string{"", "h1", "h2"}).Draw(t, "host"),
		Capacity: rapid.IntRange(0, 3).Draw(t, "capacity"), Assigned: rapid.IntRange(0, 4).Draw(t, "assigned"),
		Standing: rapid.SampledFrom([]placement.Standing{
			placement.Live, placement.Live, placement.Live, placement.Live, placement.Live, placement.Live,
			placement.Live, placement.Live,
			placement.Deaf, placement.Suspect, placement.Unwell, placement.Silent, placement.Cordoned,
		}).Draw(t, "standing"),
		Health: rapid.SampledFrom([]placement.Health{
			"", placement.Healthy, placement.Healthy,
			placement.Degraded,
		}).Draw(t, "health"),
		AttemptFence: rapid.IntRange(0, 3).Draw(t, "fences") > 0,
		Runtimes: rapid.SampledFrom([][]string{
			nil,
			{"python"},
			{"shell", "python"},
			{"shell", "python"},
			{"shell"},
		}).Draw(t, "runtimes"),
		Labels: map[string]string{}, Versions: map[string][]placement.Version{},
	}
	if minor := rapid.SampledFrom([]uint64{0, 9, 11, 12}).Draw(t, "has minor"); minor > 0 {
		w.Versions["python"] = []placement.Version{{Major: 3, Minor: minor}}
	}
	if zone := rapid.SampledFrom(zones).Draw(t, "zone"); zone != "" {
		w.Labels["zone"] = zone
	}
	for _, key := range rapid.SampledFrom([][]string{
		nil, nil, nil,
		{"spot"},
		{"spot"},
		{"gpu"},
		{"gpu", "spot"},
	}).Draw(t, "taints") {
		effect := placement.NoSchedule
		if key == "spot" {
			effect = placement.PreferNoSchedule
		}
		w.Taints = append(w.Taints, placement.Taint{Key: key, Effect: effect})
	}
	return w
}

// need writes the ask as the database would.
func (a ask) need(t *rapid.T) placement.Need {
	spec := placement.Spec{}
	if a.Runtime != "" {
		spec.Runtimes = []string{a.Runtime}
	}
	if a.MinMinor > 0 {
		spec.Version = fmt.Sprintf(">=3.%d", a.MinMinor)
	}
	if a.Zone != "" {
		spec.Selector = document(map[string]string{"zone": a.Zone})
	}
	tolerations, terms := []any{}, []any{}
	for _, key := range a.Tolerates {
		tolerations = append(tolerations, map[string]string{"key": key, "operator": "exists"})
	}
	for _, zone := range a.Required {
		terms = append(terms, map[string]any{"match_labels": map[string]string{"zone": zone}})
	}
	affinity := map[string]any{"required": terms}
	if a.Anti != "" {
		affinity["anti_affinity"] = []any{map[string]any{"match_expressions": []any{
			map[string]any{"key": "zone", "operator": "in", "values": []string{a.Anti}},
		}}}
	}
	preferred := []any{}
	for zone, weight := range a.Prefers {
		preferred = append(preferred, map[string]any{
			"weight":     weight,
			"preference": map[string]any{"match_labels": map[string]string{"zone": zone}},
		})
	}
	affinity["preferred"] = preferred
	own, err := placement.NewNeed(spec).Override(placement.Own{
		Tolerations: document(tolerations),
		Affinity:    document(affinity),
	})
	if err != nil {
		t.Fatal(err)
	}
	own.Avoid, own.Fence, own.Except = a.Avoid, a.Fence, a.Except
	return own
}

func document(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

// fits are the hard rules.
func (a ask) fits(w placement.Worker) bool {
	zone, tainted := w.Labels["zone"], false
	for _, taint := range w.Taints {
		tainted = tainted || taint.Effect == placement.NoSchedule && !slices.Contains(a.Tolerates, taint.Key)
	}
	versions := w.Versions[a.Runtime]
	return (a.Runtime == "" || slices.Contains(w.Runtimes, a.Runtime)) &&
		(a.Runtime == "" || a.MinMinor == 0 || len(versions) > 0 && versions[0].Minor >= a.MinMinor) &&
		(a.Zone == "" || zone == a.Zone) && !tainted &&
		(len(a.Required) == 0 || slices.Contains(a.Required, zone)) &&
		(a.Anti == "" || zone != a.Anti) && (!a.Fence || w.AttemptFence) && (a.Except == 0 || w.ID != a.Except)
}

// rank is the order of choice of two workers that fit and have room, and
// equal where neither goes before the other.
func (a ask) rank(w placement.Worker) []float64 {
	shunned := 0.0
	for _, taint := range w.Taints {
		if taint.Effect == placement.PreferNoSchedule && !slices.Contains(a.Tolerates, taint.Key) {
			shunned = 1
		}
	}
	degraded := 0.0
	if w.Health == placement.Degraded {
		degraded = 1
	}
	return []float64{
		degraded, -float64(a.Prefers[w.Labels["zone"]]), shunned,
		float64(w.Assigned) / float64(max(w.Capacity, 1)),
	}
}

func (a ask) nearness(all []placement.Worker, w placement.Worker) int {
	if slices.Contains(a.Avoid, w.ID) {
		return 2
	}
	for _, other := range all {
		if other.Host != "" && other.Host == w.Host && slices.Contains(a.Avoid, other.ID) {
			return 1
		}
	}
	return 0
}

// expected is the outcome of the rules as documented, and the workers that may be chosen.
func (a ask) expected(all []placement.Worker) (placement.Outcome, []int64) {
	var live, waited, present []placement.Worker
	for _, w := range all {
		if w.Standing.Absent() {
			continue
		}
		present = append(present, w)
		switch {
		case !a.fits(w):
		case w.Standing == placement.Live:
			live = append(live, w)
		default:
			waited = append(waited, w)
		}
	}
	switch {
	case len(present) == 0:
		return placement.NoWorkers, nil
	case len(live) == 0 && len(waited) == 0:
		return placement.Incompatible, nil
	case len(live) == 0:
		return placement.Busy, nil
	}
	nearest := slices.MinFunc(live, func(x, y placement.Worker) int { return a.nearness(all, x) - a.nearness(all, y) })
	var open []placement.Worker
	for _, w := range live {
		if a.nearness(all, w) == a.nearness(all, nearest) && w.Assigned < w.Capacity+placement.HeadroomPerWorker {
			open = append(open, w)
		}
	}
	if len(open) == 0 {
		return placement.Busy, nil
	}
	best := slices.MinFunc(open, func(x, y placement.Worker) int { return slices.Compare(a.rank(x), a.rank(y)) })
	var ids []int64
	for _, w := range open {
		if slices.Compare(a.rank(w), a.rank(best)) == 0 {
			ids = append(ids, w.ID)
		}
	}
	return placement.Placed, ids
}

// Choosing agrees with a plain reading of the rules for any requests, fleet and order. So no
// execution is placed on a worker that breaks a hard rule, and no worker gets more than it has
// capacity for.
func TestChoosingAgreesWithTheDocumentedRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		fleet := placement.NewFleet(w.workers, rapid.Int().Draw(t, "turn"))
		for range 20 {
			a := rapid.SampledFrom(w.asks).Draw(t, "ask")
			outcome, may := a.expected(w.workers)
			got := fleet.Choose(a.need(t))
			if got.Outcome != outcome || outcome == placement.Placed && !slices.Contains(may, got.Worker) {
				t.Fatalf("%+v is %+v, not %d %v of %+v", a, got, outcome, may, w.workers)
			}
			if (got.Reason == "") != (outcome == placement.Placed) {
				t.Fatalf("%+v has the reason %q", a, got.Reason)
			}
			for i := range w.workers {
				one := &w.workers[i]
				switch {
				case outcome == placement.Placed && one.ID == got.Worker:
					one.Assigned++
				case rapid.IntRange(0, 9).Draw(t, "release") == 0:
					one.Assigned = max(one.Assigned-1, 0)
					fleet.Release(one.ID)
				}
			}
		}
	})
}

// Equal workers are chosen in turn.
func TestEqualWorkersAreChosenInTurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "workers")
		var workers []placement.Worker
		for id := range n {
			workers = append(workers, placement.Worker{ID: int64(id + 1), Capacity: 1})
		}
		fleet := placement.NewFleet(workers, rapid.Int().Draw(t, "turn"))
		seen := map[int64]int{}
		for range 3 * n {
			seen[fleet.Choose(placement.Need{}).Worker]++
		}
		for id, times := range seen {
			if times != 3 || id == 0 {
				t.Fatalf("%v", seen)
			}
		}
		if verdict := fleet.Choose(placement.Need{}); verdict.Outcome != placement.Busy {
			t.Fatalf("%+v", verdict)
		}
	})
}

// Any values of rows can be read: a malformed need is an error, and malformed capabilities are ignored.
func TestMalformedRowsAreRead(t *testing.T) {
	t.Parallel()
	pieces := []string{
		`{`, `}`, `[`, `]`, `"`, `,`, `:`, `null`, `true`, `-1`, `1e999`, `"key"`, `"operator"`, `"in"`, `"values"`,
		`"labels"`, `"taints"`,
		`"runtimes"`, `"runtime_versions"`, `"detected_interpreters"`, `"required"`, `"preferred"`, `"match_labels"`,
		`"python"`, `">=3"`, "\x00",
		`{"required": [{"match_expressions": [{"key": "a", "operator": "in", "values": ["b"]}]}]}`, `{"zone": "a"}`,
		`[{"key": "gpu"}]`,
		`{"taints": `, `{"runtime_versions": `, `{"labels": `, `{"detected_interpreters": `,
	}
	draw := rapid.Custom(func(t *rapid.T) []byte {
		var text []byte
		for _, piece := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces") {
			text = append(text, piece...)
		}
		return text
	})
	rapid.Check(t, func(t *rapid.T) {
		need := placement.NewNeed(placement.Spec{
			Runtimes: []string{string(draw.Draw(t, "runtime"))}, Version: string(draw.Draw(t, "version")),
			Required: draw.Draw(t, "required"),
			Own: placement.Own{
				Selector:    draw.Draw(t, "selector"),
				Tolerations: draw.Draw(t, "tolerations"),
				Affinity:    draw.Draw(t, "affinity"),
			},
		})
		own, err := need.Override(placement.Own{
			Selector:    draw.Draw(t, "own selector"),
			Tolerations: draw.Draw(t, "own tolerations"),
			Affinity:    draw.Draw(t, "own affinity"),
		})
		if (err == nil) != (own.Err() == nil) {
			t.Fatalf("%v and %v", err, own.Err())
		}
		row := placement.Row{ID: 1, Status: "active", Capabilities: draw.Draw(t, "capabilities")}
		fleet := placement.NewFleet([]placement.Worker{row.Worker(stale)}, 0)
		fleet.Explain(own)
		if verdict := fleet.Choose(own); verdict.Outcome != placement.Placed &&
			verdict.Outcome != placement.Incompatible {
			t.Fatalf("%+v", verdict)
		}
		if len(own.Kind()) > 600 {
			t.Fatalf("a kind of %d bytes", len(own.Kind()))
		}
	})
}
