package monitor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
)

// WorkflowFilter selects workflows. The zero value selects all.
type WorkflowFilter struct {
	// Statuses keeps these statuses of the executions that workflows run for.
	Statuses []string `json:"statuses,omitempty"`
	// Action keeps actions whose ref matches; a star stands for anything.
	Action string `json:"action,omitempty"`
	// Paused keeps those that start nothing more until they, or one above them, are
	// resumed.
	Paused bool `json:"paused,omitempty"`
	// Trouble keeps those that have ended badly, are paused, or have a task that failed.
	Trouble bool `json:"trouble,omitempty"`
	// Limit bounds a page; zero means DefaultPage.
	Limit int `json:"limit,omitempty"`
}

// Check says what is wrong with a filter, so that a mistyped one is never applied
// as something else.
func (f *WorkflowFilter) Check() error {
	for _, word := range f.Statuses {
		if !slices.Contains(attune.Statuses, attune.Status(word)) {
			var words []string
			for _, status := range attune.Statuses {
				words = append(words, string(status))
			}
			return fmt.Errorf("%w names an unknown status %q: use one of %s", ErrFilter, word, strings.Join(words, ", "))
		}
	}
	if f.Limit < 0 {
		return fmt.Errorf("%w has a negative number", ErrFilter)
	}
	return nil
}

// live reports whether only workflows can match that have not ended.
func (f *WorkflowFilter) live() bool {
	if f.Paused {
		return true
	}
	for _, word := range f.Statuses {
		if attune.Status(word).Terminal() {
			return false
		}
	}
	return len(f.Statuses) > 0
}

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
	err := m.database(ctx, "workflows", &x.Reading, func(ctx context.Context, tx *store.Tx, s shape) error {
		if err := recordsWorkflows(ctx, tx, s); err != nil {
			return err
		}
		return x.read(ctx, tx, part{open: filter.live()})
	})
	return x, err
}

// recordsWorkflows is ErrUnmigrated where it is not recorded how far workflows are.
func recordsWorkflows(ctx context.Context, tx *store.Tx, s shape) error {
	if !s.ours {
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
	f, page := x.Filter, cmp.Or(x.Filter.Limit, DefaultPage)
	arg := store.ViewWorkflowPageParams{
		Pattern: pattern(f.Action, false), Statuses: f.Statuses, OnlyPaused: f.Paused, OnlyTrouble: f.Trouble, OnlyOpen: of.open, OnlyEnded: of.ended,
		Before: x.From, Scan: scanBound, Page: int32(min(page, scanBound)),
	}
	if arg.Before <= 0 {
		arg.Before = math.MaxInt64
	}
	if arg.Statuses == nil {
		arg.Statuses = []string{}
	}
	if f.Action == "" && len(f.Statuses) == 0 && !f.Paused && !f.Trouble {
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
	if arg.OnlyOpen {
		return nil
	}
	edge, err := tx.ViewWorkflowEdge(ctx, arg.Before, arg.Scan)
	if err != nil {
		return fmt.Errorf("find where the search of workflows ended: %w", err)
	}
	if len(edge) > 0 { // what is older was not looked at
		x.Next, x.Bounded = edge[0]+1, true
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
