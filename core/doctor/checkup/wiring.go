package checkup

import (
	"context"
	"strings"

	"github.com/attune-go/attune/core/monitor"
)

// lookWiring checks whether a queue loses expired, rejected or overflowing messages, by the same
// checks as the dashboard. lookDeadLetters checks the routes and the consumers of dead letters.
func lookWiring(_ context.Context, v *visit) (Finding, error) {
	if v.wires == nil {
		return skipped("shows in the management API only"), nil
	}
	var workers []int64
	if v.workers != nil && !v.workers.More {
		workers = []int64{}
		for i := range v.workers.List {
			workers = append(workers, v.workers.List[i].ID)
		}
	}
	var wrong, notes, fixes []string
	for _, c := range monitor.CheckTopology(v.wires.Wiring, workers) {
		switch {
		case c.Name == monitor.CheckDeadLetterQueue:
		case c.Status == monitor.CheckProblem:
			wrong, fixes = append(wrong, c.Text), append(fixes, c.Fix)
		case c.Status != monitor.CheckOK:
			notes = append(notes, c.Text)
		}
	}
	if len(wrong) > 0 {
		return failed(strings.Join(fixes, "; "), "%s", differ(len(wrong))).with(wrong...).with(notes...), nil
	}
	return passed("%d queues: none deletes what expires, is rejected or overflows",
		len(v.wires.queues)).with(notes...), nil
}
