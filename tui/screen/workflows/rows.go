package workflows

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// progressWidth is the width of a progress bar.
const progressWidth = 8

var fields = []list.Field[row]{
	{Column: widget.Column{Title: "EXEC", Width: 9, Right: true}, Cell: list.Plain(key)},
	{
		Column: widget.Column{Title: "WORKFLOW", Width: 18, Grow: true, Middle: true},
		Cell:   list.Plain(action),
		Term:   filter.Field{Name: "action"}, Texts: list.TextOf(action), Complete: true,
		Sort: list.Order[row]{Key: 4, Name: "name", Compare: list.Ascending(action)},
	},
	{
		Column: widget.Column{Title: "STATUS", Width: 11},
		Cell:   func(e *screen.Env, w *row) widget.Cell { return e.StateCell(state(w)) },
		Sort:   list.Order[row]{Key: 1, Name: "running first", Compare: list.Ascending(terminal)},
	},
	{
		Column: widget.Column{Title: "TASKS", Width: 7, Right: true}, Cell: list.Plain(tasks),
		Sort: list.Order[row]{Key: 5, Name: "tasks done", Compare: list.Descending(share)},
	},
	{Column: widget.Column{Title: "PROGRESS", Width: progressWidth, Priority: 1}, Cell: progress},
	{
		Column: widget.Column{Title: "FOR", Width: 7, Right: true},
		Cell:   func(e *screen.Env, w *row) widget.Cell { return widget.Cell{Text: widget.Age(duration(e, w))} },
		Sort: list.Order[row]{Key: 3, Name: "for", Compare: func(e *screen.Env, x, y *row) int {
			return cmp.Compare(duration(e, y), duration(e, x))
		}},
	},
	{
		Column: widget.Column{Title: "NOW", Width: 20, Priority: 2},
		Cell:   list.Dim(func(w *row) string { return cmp.Or(strings.Join(w.Current, ", "), "-") }),
		Term:   filter.Field{Name: "task"},
		Texts:  func(_ *screen.Env, w *row) []string { return w.Current }, Complete: true,
		Sort: list.Order[row]{
			Key: 2, Name: "newest",
			Compare: list.Descending(func(w *row) int64 { return w.Execution }),
		},
	},
	{
		Column: widget.Column{Title: "ERROR", Width: 30, Priority: 3},
		Cell:   list.Dim(func(w *row) string { return cmp.Or(w.Error, "-") }),
	},
}

func key(w *row) string    { return strconv.FormatInt(w.Execution, 10) }
func action(w *row) string { return w.ActionRef }

// state is the status, or paused.
func state(w *row) string {
	if (w.Paused || w.PausedAbove != 0) && terminal(w) == 0 {
		return "paused"
	}
	return w.Status
}

// terminal is 1 for an ended workflow and 0 for an open one.
func terminal(w *row) int {
	if lifecycle.Status(w.Status).Terminal() {
		return 1
	}
	return 0
}

// tasks is the number of finished tasks, of how many.
func tasks(w *row) string {
	total := widget.Unknown
	if w.Tasks.Total > 0 {
		total = strconv.FormatInt(w.Tasks.Total, 10)
	}
	return strconv.FormatInt(w.Tasks.Completed+w.Tasks.Skipped, 10) + "/" + total
}

// share is the finished part of the tasks. A completed workflow is finished, although it never
// reached some of them.
func share(w *row) float64 {
	if w.Status == string(lifecycle.StatusCompleted) {
		return 1
	}
	return float64(w.Tasks.Completed+w.Tasks.Skipped) / float64(max(w.Tasks.Total, 1))
}

func duration(e *screen.Env, w *row) time.Duration {
	from := w.Created
	if w.StartedAt != nil {
		from = *w.StartedAt
	}
	if w.FinishedAt != nil {
		return w.FinishedAt.Sub(from)
	}
	return e.Since(from)
}

// progress draws finished, failed and remaining tasks. At least one cell shows failed tasks.
func progress(e *screen.Env, w *row) widget.Cell {
	t := w.Tasks
	if t.Total <= 0 {
		return widget.Cell{Text: widget.Unknown, Role: theme.Dim}
	}
	failed := int(t.Failed * progressWidth / t.Total)
	if t.Failed > 0 {
		failed = min(max(failed, 1), progressWidth)
	}
	done := min(int(share(w)*progressWidth), progressWidth-failed)
	cell := widget.Cell{Text: strings.Repeat("█", done) + strings.Repeat(e.Theme.Glyphs.Failed, failed) +
		strings.Repeat("░", progressWidth-done-failed)}
	if failed > 0 {
		cell.Role = theme.Bad
	}
	return cell
}
