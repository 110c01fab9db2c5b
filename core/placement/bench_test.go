package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/placement"
)

func crowd(n int) []placement.Worker {
	workers := make([]placement.Worker, n)
	for i := range workers {
		workers[i] = worker(int64(i+1), fmt.Sprintf(
			`{"runtimes": ["python", "shell"], "runtime_versions": {"python": ["3.%d"]}, "labels": {"zone": "z%d"}}`, 8+i%6, i%3))
		workers[i].Assigned = 1 + i%5
	}
	return workers
}

// Choosing happens under locks: it makes no garbage once a fleet has been asked
// for the same before, placed or not.
func TestChoosingMakesNoGarbage(t *testing.T) { //nolint:paralleltest // counting garbage needs the process for itself
	need := placement.NewNeed(placement.Spec{
		Runtimes: []string{"python"}, Version: ">=3.9",
		Own: placement.Own{
			Selector: []byte(`{"zone": "z1"}`),
		},
	})
	for name, c := range map[string]struct {
		need placement.Need
		room int
	}{
		"plain": {placement.Need{}, 1 << 20}, "needy": {need, 1 << 20}, "busy": {placement.Need{}, 0},
		"incompatible": {placement.NewNeed(placement.Spec{Runtimes: []string{"ruby"}}), 1},
	} {
		workers := crowd(100)
		for i := range workers {
			workers[i].Capacity, workers[i].Assigned = c.room, 2
		}
		fleet := placement.NewFleet(workers, 0)
		fleet.Choose(c.need)
		require.Zero(t, testing.AllocsPerRun(100, func() { fleet.Choose(c.need) }), name)
	}
}

func BenchmarkChoose(b *testing.B) {
	workers := crowd(1000)
	action := placement.NewNeed(placement.Spec{
		Runtimes: []string{"python"}, Version: ">=3.9",
		Own: placement.Own{
			Affinity: []byte(`{"preferred": [{"preference": {"match_labels": {"zone": "z1"}}}]}`),
		},
	})
	avoiding := action
	avoiding.Avoid = []int64{5, 17}
	for name, need := range map[string]placement.Need{"plain": {}, "needy": action, "avoiding": avoiding} {
		b.Run(name+" 100 of 1000 workers", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fleet := placement.NewFleet(workers, 7)
				for range 100 {
					fleet.Choose(need)
				}
			}
		})
		b.Run(name+" one", func(b *testing.B) {
			b.ReportAllocs()
			fleet := placement.NewFleet(workers, 7)
			for b.Loop() {
				if v := fleet.Choose(need); v.Outcome == placement.Placed {
					fleet.Release(v.Worker)
				}
			}
		})
	}
}

func BenchmarkOverride(b *testing.B) {
	action := placement.NewNeed(placement.Spec{Runtimes: []string{"python"}, Version: ">=3.9"})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := action.Override(placement.Own{Selector: []byte(`{"zone": "a"}`)}); err != nil {
			b.Fatal(err)
		}
	}
}
