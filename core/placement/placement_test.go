package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/placement"
)

func needs(runtimes ...string) placement.Need {
	return placement.NewNeed(placement.Spec{Runtimes: runtimes})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestChooseSpreadsOverTheLeastLoaded(t *testing.T) {
	t.Parallel()
	fleet := placement.NewFleet([]placement.Worker{
		{ID: 1, Capacity: 2}, {ID: 2, Capacity: 2}, {ID: 3, Capacity: 4, Assigned: 3},
	}, 0)
	counts := map[int64]int{}
	for range 5 {
		verdict := fleet.Choose(placement.Need{})
		require.Equal(t, placement.Placed, verdict.Outcome)
		counts[verdict.Worker]++
	}
	require.Equal(t, map[int64]int{1: 2, 2: 2, 3: 1}, counts, "3 of 4 is heavier than 1 of 2 but lighter than 2 of 2")
}

func TestChooseRotatesAmongEqualsBetweenBatches(t *testing.T) {
	t.Parallel()
	first := map[int64]bool{}
	for turn := range 3 {
		fleet := placement.NewFleet([]placement.Worker{
			{ID: 1, Capacity: 9},
			{ID: 2, Capacity: 9},
			{ID: 3, Capacity: 9},
		}, turn)
		first[fleet.Choose(placement.Need{}).Worker] = true
	}
	require.Len(t, first, 3)
}

func TestChooseRotatesAmongEqualsWithinABatch(t *testing.T) {
	t.Parallel()
	fleet := placement.NewFleet([]placement.Worker{{ID: 1, Capacity: 9}, {ID: 2, Capacity: 9}, {ID: 3, Capacity: 9}}, 0)
	seen := map[int64]bool{}
	for range 3 {
		verdict := fleet.Choose(placement.Need{})
		seen[verdict.Worker] = true
		fleet.Release(verdict.Worker)
	}
	require.Len(t, seen, 3)
}

func TestChooseGivesTheReason(t *testing.T) {
	t.Parallel()
	require.Equal(t, placement.Verdict{Outcome: placement.NoWorkers, Reason: "no workers available"},
		placement.NewFleet(nil, 0).Choose(placement.Need{}))

	full := placement.NewFleet([]placement.Worker{{ID: 1, Capacity: 1, Assigned: 3, Runtimes: []string{"shell"}}}, 0)
	require.Equal(t, placement.Busy, full.Choose(needs("shell")).Outcome)
	verdict := full.Choose(needs("python", "py"))
	require.Equal(t, placement.Incompatible, verdict.Outcome)
	require.Contains(t, verdict.Reason, "python or py")

	full.Release(1)
	full.Release(99) // a worker that is gone has no room to give back
	require.Equal(t, placement.Placed, full.Choose(needs("shell")).Outcome)
}

// A worker that is alive but cut off from the broker is waited for.
func TestChooseWaitsForDeafWorkers(t *testing.T) {
	t.Parallel()
	deaf := placement.Worker{ID: 1, Capacity: 5, Runtimes: []string{"shell"}, Standing: placement.Deaf}
	fleet := placement.NewFleet([]placement.Worker{deaf}, 0)
	require.Equal(t, placement.Busy, fleet.Choose(placement.Need{}).Outcome)
	require.Equal(t, placement.Incompatible, fleet.Choose(needs("python")).Outcome)

	fleet = placement.NewFleet([]placement.Worker{deaf, {ID: 2, Capacity: 1}}, 0)
	require.Equal(t, placement.Verdict{Outcome: placement.Placed, Worker: 2}, fleet.Choose(placement.Need{}))
}

func TestNormalizeRuntimes(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"node", "python", "shell", "native", "ruby", "go", "java", "perl", "r", "elixir"},
		placement.NormalizeRuntimes([]string{
			"Node.js", "nodejs", "python3", "bash", "builtin", "rb", "golang",
			"OpenJDK", "perl5", "Rscript", "Elixir", " ",
		}))
}
