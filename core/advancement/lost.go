package advancement

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/workflow"
)

// readLost finds deleted children of workflows without other happenings. They count as abandoned without a retry, since
// no report will come. If the rows belong to a newer version than the one read before, the batch plans again.
func (s *Step) readLost(ctx context.Context, plan *scheduler.Plan) error {
	var rechecked []*advance
	var ids []int64
	for _, c := range s.advances {
		if c.phase == continues && len(c.happened) == 1 && c.happened[0].Kind == workflow.Rechecked {
			rechecked, ids = append(rechecked, c), append(ids, c.row.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := plan.Queries().CountOpenTasks(ctx, ids)
	if err != nil {
		return fmt.Errorf("count the open tasks of %d workflows: %w", len(ids), err)
	}
	open := map[int64]map[string]int{}
	for _, row := range rows {
		if open[row.WorkflowExecution] == nil {
			open[row.WorkflowExecution] = map[string]int{}
		}
		open[row.WorkflowExecution][row.TaskName] = int(row.Open)
	}
	for _, c := range rechecked {
		if err := c.endMissing(ctx, plan, open[c.row.ID]); err != nil {
			return err
		}
	}
	return nil
}

// endMissing adds the end of each missing child.
func (c *advance) endMissing(ctx context.Context, plan *scheduler.Plan, open map[string]int) error {
	missing := map[string]int{}
	for name, st := range c.before.Tasks {
		if task := c.source.definition.Task(name); st.Status == workflow.TaskRunning && task != nil &&
			task.Kind != workflow.KindParallel {
			missing[name] = st.Open - open[name]
			if st.Found { // open ones that are not due count too: the search below finds these
				missing[name] = st.Open
			}
		}
	}
	for _, held := range c.before.Held { // its row is settled; it counts as open again after a pause
		missing[held.Task]--
	}
	var lost []workflow.Happening
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if missing[name] <= 0 {
			continue
		}
		there, err := plan.Queries().ReadTaskIndexes(ctx, c.row.ID, name)
		if err != nil {
			return fmt.Errorf("read the children of task %s of workflow %d: %w", name, c.row.ID, err)
		}
		st, known := c.before.Tasks[name], map[int]bool{}
		for _, row := range there {
			known[int(row.Index)] = true
			if st.Found && !row.Settled && int(row.Index) < st.Next {
				missing[name]--
			}
		}
		for index := 0; index < st.Next && missing[name] > 0; index++ {
			if !known[index] {
				missing[name]--
				lost = append(lost, workflow.Happening{
					Kind: workflow.ChildEnded, Task: name, Index: index, Status: lifecycle.StatusAbandoned,
					Retries: maxRetries,
				})
			}
		}
	}
	if len(lost) > 0 {
		c.happened = lost
	}
	return nil
}

// maxRetries exceeds the retries of any task.
const maxRetries = 1 << 20
