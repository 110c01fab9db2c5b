package monitor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// Workflow is one workflow, known by its execution.
type Workflow struct {
	Execution   int64  `json:"execution"`
	ID          int64  `json:"workflow_execution"`
	ActionRef   string `json:"action_ref"`
	Status      string `json:"status"`
	Paused      bool   `json:"paused"`
	PauseReason string `json:"pause_reason,omitempty"`
	// PausedAbove is the nearest paused ancestor, which pauses this one too; 0 if there is none.
	PausedAbove int64          `json:"paused_above,omitempty"`
	Tasks       WorkflowCounts `json:"task_counts"`
	// Current are the running tasks.
	Current []string `json:"current_tasks"`
	// Error is the reason of the failure, cut short.
	Error      string     `json:"error,omitempty"`
	Parent     *int64     `json:"parent"`
	Created    time.Time  `json:"created"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
}

// State is the status, or that an open workflow is paused.
func (w *Workflow) State() string {
	if (w.Paused || w.PausedAbove != 0) && !lifecycle.Status(w.Status).Terminal() {
		return WorkflowPaused
	}
	return w.Status
}

// Ended is how many tasks have ended, and of how many.
func (n *WorkflowCounts) Ended() string {
	total := "--"
	if n.Total > 0 {
		total = strconv.FormatInt(n.Total, 10)
	}
	return strconv.FormatInt(n.Completed+n.Failed+n.Skipped, 10) + "/" + total
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
	// From is the cursor of this page: ids are smaller; 0 is the newest.
	From int64      `json:"from,omitempty"`
	List []Workflow `json:"list"`
	// Next is the cursor of the next page; 0 at the end.
	Next int64 `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound, so that older matches may exist.
	Bounded bool `json:"bounded,omitempty"`
}

// Workflows reads one page of matching workflows below the cursor, the newest first; 0 is the
// newest. A filtered search reads a bounded number of rows and says so.
func (m *Monitor) Workflows(ctx context.Context, filter WorkflowFilter, cursor int64) (*Workflows, error) {
	x := &Workflows{Filter: filter, From: cursor, List: []Workflow{}}
	if err := filter.Check(); err != nil {
		return x, err
	}
	err := m.Read(ctx, "workflows", &x.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
		}
		return x.read(ctx, tx, part{open: filter.allLive()})
	})
	return x, err
}

// part selects open or ended workflows; the zero value selects all.
type part struct {
	open, ended bool
	// past is how many further rows an unfiltered read may skip.
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
	// Where an alternative stopped, its rows below are missing.
	x.List = slices.DeleteFunc(x.List, func(w Workflow) bool { return w.Execution < x.Next })
	if page := cmp.Or(x.Filter.Limit, DefaultPage); len(x.List) > page {
		x.List, x.Next = x.List[:page], x.List[page-1].Execution
	}
	return nil
}

// readOne reads the page of one alternative in scan rows.
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
	if len(edge) > 0 { // older rows were not read
		x.Next, x.Bounded = edge[0]+1, true
	}
	return nil
}

// window sets the range of ids.
func (x *Workflows) window(ctx context.Context, tx *store.Tx, arg *store.ViewWorkflowPageParams) error {
	if arg.Before = x.From; arg.Before <= 0 {
		arg.Before = math.MaxInt64
	}
	floor, ceiling, err := timeWindow(ctx, tx, x.Filter.MaxAge, x.Filter.MinAge)
	arg.Floor, arg.Before = floor, min(arg.Before, ceiling)
	return err
}

func workflowOf(r *store.ViewWorkflowPageRow) Workflow {
	return Workflow{
		Execution: r.Execution, ID: r.ID, ActionRef: r.ActionRef, Status: r.Status, Paused: r.Paused,
		PauseReason: r.PauseReason, PausedAbove: r.PausedAbove,
		Tasks: WorkflowCounts{
			Total: int64(r.Total), Completed: int64(r.Completed), Failed: int64(r.Failed), Skipped: int64(r.Skipped),
		},
		Current: r.Current, Error: cutText(r.Error, 300), Parent: r.Parent, Created: r.Created, StartedAt: r.StartedAt,
		FinishedAt: r.FinishedAt,
	}
}

// WorkflowPaused is a status in filters: open workflows that are paused, themselves or by an
// ancestor.
const WorkflowPaused = "paused"

// WorkflowFilter selects workflows. The zero value selects all.
type WorkflowFilter struct {
	// Statuses keeps statuses of their executions, and WorkflowPaused.
	Statuses []string `json:"statuses,omitempty"`
	// Action keeps actions whose ref matches; a star matches anything.
	Action string `json:"action,omitempty"`
	// Paused keeps workflows that are paused, themselves or by an ancestor; NotPaused the others.
	Paused    bool `json:"paused,omitempty"`
	NotPaused bool `json:"not_paused,omitempty"`
	// Trouble keeps failed or paused workflows and those with a failed task.
	Trouble bool `json:"trouble,omitempty"`
	// MaxAge keeps workflows requested within it, MinAge workflows requested before.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	MinAge time.Duration `json:"min_age_ns,omitempty"`
	// Match are regular expressions that the action's ref must all match, Unmatch must not match.
	// Case does not matter. Errors and NotErrors do the same for the error, Tasks and NotTasks for
	// running or failed tasks.
	Match     []string `json:"match,omitempty"`
	Unmatch   []string `json:"unmatch,omitempty"`
	Errors    []string `json:"errors,omitempty"`
	NotErrors []string `json:"not_errors,omitempty"`
	Tasks     []string `json:"tasks,omitempty"`
	NotTasks  []string `json:"not_tasks,omitempty"`
	// MinFailed and MaxFailed bound the number of failed tasks.
	MinFailed int64  `json:"min_failed,omitempty"`
	MaxFailed *int64 `json:"max_failed,omitempty"`
	// Parent keeps the children of one execution. Parented is ParentedAny or ParentedNone.
	Parent   int64   `json:"parent,omitempty"`
	Parented string  `json:"parented,omitempty"`
	IDs      []int64 `json:"ids,omitempty"`
	// Or are alternatives. Their own limits and alternatives are ignored.
	Or []WorkflowFilter `json:"or,omitempty"`
	// Limit bounds a page; 0 means DefaultPage.
	Limit int `json:"limit,omitempty"`
}

// Check refuses an invalid filter, so that a mistyped one is never applied.
func (f *WorkflowFilter) Check() error {
	var allowed []string
	for _, status := range lifecycle.Statuses {
		allowed = append(allowed, string(status))
	}
	words := slices.DeleteFunc(slices.Clone(f.Statuses), func(word string) bool { return word == WorkflowPaused })
	if err := checkWords("status", words, allowed); err != nil {
		return err
	}
	if f.Limit < 0 {
		return fmt.Errorf("%w has a negative number", ErrFilter)
	}
	for i := range f.Or {
		if err := f.Or[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// alternatives are the filter and those of Or, each alone.
func (f *WorkflowFilter) alternatives() []WorkflowFilter {
	all := append([]WorkflowFilter{*f}, f.Or...)
	for i := range all {
		all[i].Or, all[i].Limit = nil, f.Limit
	}
	return all
}

// live reports whether only open workflows can match, ended whether only ended ones.
func (f *WorkflowFilter) live() bool {
	return f.Paused || len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, terminal)
}

func (f *WorkflowFilter) ended() bool {
	return !f.Paused && len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses,
		func(word string) bool { return !terminal(word) })
}

func terminal(word string) bool { return lifecycle.Status(word).Terminal() }

// allLive is live for every alternative.
func (f *WorkflowFilter) allLive() bool {
	return !slices.ContainsFunc(f.alternatives(), func(one WorkflowFilter) bool { return !one.live() })
}

// unfiltered reports whether every row matches.
func (f *WorkflowFilter) unfiltered() bool {
	return f.Action == "" && len(f.Statuses) == 0 && !f.Paused && !f.NotPaused && !f.Trouble && f.MinFailed == 0 &&
		f.MaxFailed == nil &&
		f.Parent == 0 && f.Parented == "" &&
		len(f.IDs)+len(f.Match)+len(f.Unmatch)+len(f.Errors)+len(f.NotErrors)+len(f.Tasks)+len(f.NotTasks) == 0
}

// params are the parameters of the query without its range.
func (f *WorkflowFilter) params() store.ViewWorkflowPageParams {
	arg := store.ViewWorkflowPageParams{
		Pattern: Pattern(f.Action, false), Statuses: list(f.Statuses), OnlyPaused: f.Paused, NotPaused: f.NotPaused,
		OnlyTrouble: f.Trouble, Match: list(f.Match), Unmatch: list(f.Unmatch), Errors: list(f.Errors),
		NotErrors: list(f.NotErrors), Tasks: list(f.Tasks), NotTasks: list(f.NotTasks), MinFailed: f.MinFailed,
		MaxFailed: NoLimit, Parent: f.Parent, Parented: f.Parented, Ids: list(f.IDs),
		Page: int32(min(cmp.Or(f.Limit, DefaultPage), scanBound)),
	}
	if f.MaxFailed != nil {
		arg.MaxFailed = *f.MaxFailed
	}
	return arg
}

// WorkflowBoard lists open workflows, the newest first, and ended ones below them.
type WorkflowBoard struct {
	Reading
	Filter WorkflowFilter `json:"filter"`
	// From is the cursor of the ended ones: ids are smaller; 0 is the newest.
	From int64 `json:"from,omitempty"`
	// List holds a page of each kind, of the ended ones at most DefaultPage. The first Open of it
	// are open.
	List []Workflow `json:"list"`
	Open int        `json:"open"`
	// MoreOpen says that further open ones match. Next is the cursor of the ended ones; 0 at the
	// end.
	MoreOpen bool  `json:"more_open,omitempty"`
	Next     int64 `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound, so that older matches may exist.
	Bounded bool `json:"bounded,omitempty"`
}

// WorkflowBoard reads matching workflows: open ones, and ended ones below an id; 0 is the newest.
// Searches read a bounded number of rows and say so.
func (m *Monitor) WorkflowBoard(ctx context.Context, filter WorkflowFilter, below int64) (*WorkflowBoard, error) {
	b := &WorkflowBoard{Filter: filter, From: below, List: []Workflow{}}
	if err := filter.Check(); err != nil {
		return b, err
	}
	err := m.Read(ctx, "workflows", &b.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
		}
		open := &Workflows{Filter: filter}
		if err := open.read(ctx, tx, part{open: true}); err != nil {
			return err
		}
		ended := &Workflows{Filter: filter, From: below}
		ended.Filter.Limit = min(cmp.Or(filter.Limit, DefaultPage), DefaultPage)
		if err := ended.read(ctx, tx, part{ended: true, past: ended.Filter.Limit}); err != nil {
			return err
		}
		b.List, b.Open, b.MoreOpen = list(append(open.List, ended.List...)), len(open.List), open.Next != 0
		b.Next, b.Bounded = ended.Next, ended.Bounded
		return nil
	})
	return b, err
}
