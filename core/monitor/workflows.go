package monitor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Workflow is one workflow. It is known by the execution that it runs for.
type Workflow struct {
	Execution   int64  `json:"execution"`
	ID          int64  `json:"workflow_execution"`
	ActionRef   string `json:"action_ref"`
	Status      string `json:"status"`
	Paused      bool   `json:"paused"`
	PauseReason string `json:"pause_reason,omitempty"`
	// PausedAbove is the nearest workflow above it that is paused, so that this one
	// starts nothing either; 0 if there is none.
	PausedAbove int64 `json:"paused_above,omitempty"`
	// Tasks counts the tasks of its definition, and how many of them have ended how.
	Tasks WorkflowCounts `json:"task_counts"`
	// Current are the tasks that are on their way.
	Current []string `json:"current_tasks"`
	// Error is why it failed, cut short.
	Error      string     `json:"error,omitempty"`
	Parent     *int64     `json:"parent"`
	Created    time.Time  `json:"created"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
}

// WorkflowCounts counts tasks.
type WorkflowCounts struct {
	Total     int64 `json:"total"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Skipped   int64 `json:"skipped"`
}

// Workflows is one page of workflows, the newest first.
type Workflows struct {
	Reading
	Filter WorkflowFilter `json:"filter"`
	// From is the key that the page was read from: rows have smaller ids. Zero
	// means from the newest.
	From int64      `json:"from,omitempty"`
	List []Workflow `json:"list"`
	// Next continues the list; it is zero on the last page.
	Next int64 `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound before it had looked at
	// every row, so that older matches may exist.
	Bounded bool `json:"bounded,omitempty"`
}

// Workflows reads one page of the workflows that match the filter, the newest first,
// below the cursor; a cursor of zero begins at the newest. A filtered search looks
// at a bounded number of rows and says when it stopped there.
func (m *Monitor) Workflows(ctx context.Context, filter WorkflowFilter, cursor int64) (*Workflows, error) {
	x := &Workflows{Filter: filter, From: cursor, List: []Workflow{}}
	if err := filter.Check(); err != nil {
		return x, err
	}
	err := m.Read(ctx, "workflows", &x.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if err := RecordsWorkflows(ctx, tx, s); err != nil {
			return err
		}
		return x.read(ctx, tx, part{open: filter.allLive()})
	})
	return x, err
}

// RecordsWorkflows is ErrUnmigrated where it is not recorded how far workflows are.
func RecordsWorkflows(ctx context.Context, tx *store.Tx, s Shape) error {
	if !s.Ours {
		return ErrUnmigrated
	}
	recorded, err := tx.ViewWorkflowTables(ctx)
	if err != nil {
		return fmt.Errorf("look for the record of workflows: %w", err)
	}
	if !recorded {
		return ErrUnmigrated
	}
	return nil
}

// part is which of the workflows a read is about; the zero value is about all.
type part struct {
	open, ended bool
	// past is how many rows an unfiltered read may have to look past.
	past int
}

func (x *Workflows) read(ctx context.Context, tx *store.Tx, of part) error {
	filters := x.Filter.alternatives()
	for i := range filters {
		one := &Workflows{Filter: filters[i], From: x.From}
		if err := one.readOne(ctx, tx, of, int32(scanBound/len(filters))); err != nil {
			return err
		}
		x.List, x.Next, x.Bounded = append(x.List, one.List...), max(x.Next, one.Next), x.Bounded || one.Bounded
	}
	if len(filters) == 1 {
		return nil
	}
	slices.SortFunc(x.List, func(a, b Workflow) int { return cmp.Compare(b.Execution, a.Execution) })
	x.List = slices.CompactFunc(x.List, func(a, b Workflow) bool { return a.Execution == b.Execution })
	// Where one alternative has stopped, rows of it would be missing below.
	x.List = slices.DeleteFunc(x.List, func(w Workflow) bool { return w.Execution < x.Next })
	if page := cmp.Or(x.Filter.Limit, DefaultPage); len(x.List) > page {
		x.List, x.Next = x.List[:page], x.List[page-1].Execution
	}
	return nil
}

// readOne reads the page of one alternative, for which it looks at scan rows.
func (x *Workflows) readOne(ctx context.Context, tx *store.Tx, of part, scan int32) error {
	f := &x.Filter
	if of.open && f.ended() || of.ended && f.live() {
		return nil
	}
	arg := f.params()
	arg.OnlyOpen, arg.OnlyEnded, arg.Scan = of.open, of.ended, scan
	if err := x.window(ctx, tx, &arg); err != nil {
		return err
	}
	if f.unfiltered() {
		arg.Scan = min(arg.Page+int32(of.past), scanBound)
	}
	rows, err := tx.ViewWorkflowPage(ctx, arg)
	if err != nil {
		return fmt.Errorf("search workflows: %w", err)
	}
	for i := range rows {
		x.List = append(x.List, workflowOf(&rows[i]))
	}
	if len(rows) == int(arg.Page) {
		x.Next = rows[len(rows)-1].Execution
		return nil
	}
	if arg.OnlyOpen || len(f.IDs) > 0 {
		return nil
	}
	edge, err := tx.ViewWorkflowEdge(ctx, arg.Before, arg.Floor, arg.Scan)
	if err != nil {
		return fmt.Errorf("find where the search of workflows ended: %w", err)
	}
	if len(edge) > 0 { // what is older was not looked at
		x.Next, x.Bounded = edge[0]+1, true
	}
	return nil
}

// window sets from where to where the rows of a page are.
func (x *Workflows) window(ctx context.Context, tx *store.Tx, arg *store.ViewWorkflowPageParams) error {
	if arg.Before = x.From; arg.Before <= 0 {
		arg.Before = math.MaxInt64
	}
	if f := &x.Filter; f.MaxAge > 0 {
		floor, err := tx.MonitorFloor(ctx, f.MaxAge.Seconds())
		if err != nil {
			return fmt.Errorf("find where the time window begins: %w", err)
		}
		arg.Floor = floor
	}
	if f := &x.Filter; f.MinAge > 0 {
		ceiling, err := tx.MonitorFloor(ctx, f.MinAge.Seconds())
		if err != nil {
			return fmt.Errorf("find where the time window ends: %w", err)
		}
		arg.Before = min(arg.Before, ceiling)
	}
	return nil
}

func workflowOf(r *store.ViewWorkflowPageRow) Workflow {
	return Workflow{
		Execution: r.Execution, ID: r.ID, ActionRef: r.ActionRef, Status: r.Status, Paused: r.Paused, PauseReason: r.PauseReason, PausedAbove: r.PausedAbove,
		Tasks: WorkflowCounts{
			Total: int64(r.Tasks), Completed: int64(r.Completed), Failed: int64(r.Failed), Skipped: int64(r.Skipped),
		},
		Current: r.CurrentTasks, Error: r.Error, Parent: r.Parent, Created: r.Created, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
}
