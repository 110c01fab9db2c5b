package proof

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/lab/testkit"
)

// death is the place and the moment at which a replica dies.
type death struct {
	point string
	nth   int
}

func (d death) String() string { return fmt.Sprintf("%s at reach %d", d.point, d.nth) }

// flowPoints are the points between two effects on the way from an event to the end of its workflow.
func flowPoints() []string {
	return slices.Concat(crashpoint.Events(), crashpoint.Engine(), crashpoint.Workflows())
}

// deaths are deaths at all points, at the first reach and at a later one. The batch of the later one differs from
// point to point. The fast tests use the points of workflows and one other, since other tests cover the rest.
func deaths(t testing.TB) (all []death) {
	t.Helper()
	others := testkit.Some(t, slices.Concat(crashpoint.Events(), crashpoint.Engine()), 1)
	for i, point := range slices.Concat(others, crashpoint.Workflows()) {
		all = append(all, death{point, 1}, death{point, 4 + 3*(i%4)})
	}
	return all
}

// F1, F16, S10–S12: a replica dies at each point between the event and the end of its workflow. Another one
// continues from the database and the broker, and every workflow ends as without faults: the same tasks, items and
// retries with the same outcomes, each run once.
func TestAWorkflowSurvivesAReplicaThatDiesAtAnyPoint(t *testing.T) {
	t.Parallel()
	for _, course := range testkit.Courses(deaths(t)) {
		t.Run(fmt.Sprint(course), func(t *testing.T) {
			t.Parallel()
			f := newFlow(t)
			f.worker("w1")
			f.worker("w2")
			for _, d := range course {
				f.until(f.serve(dieAt(d.point, d.nth)).killed)
				f.age()
			}
			next := f.serve()
			f.over()
			f.requireFlows()
			require.Zero(t, next.stop(t))
		})
	}
}

// The same for two replicas that work at the same time and die at two points; a third one finishes.
func TestAWorkflowSurvivesTwoReplicasThatDie(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "end two replicas in workflows; another test ends one")
	for i, pair := range pairs(flowPoints()) {
		t.Run(pair[0]+" and "+pair[1], func(t *testing.T) {
			t.Parallel()
			f := newFlow(t)
			f.worker("w1")
			f.worker("w2")
			first, second := f.serve(dieAt(pair[0], 1+i%5)), f.serve(dieAt(pair[1], 1+i/5%5))
			f.until(func() bool { return first.killed() && second.killed() })
			f.age()
			third := f.serve()
			f.over()
			f.requireFlows()
			require.Zero(t, third.stop(t))
		})
	}
}
