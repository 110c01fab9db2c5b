package workflows

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// progressWidth is how wide the bar of a workflow is.
const progressWidth = 8

// paused is the state of a workflow that starts nothing more.
const paused = "paused"

var fields = []list.Field[row]{
	{Column: widget.Column{Title: "EXEC", Width: 9, Right: true}, Cell: list.Plain(key)},
	{
		Column: widget.Column{Title: "WORKFLOW", Width: 18, Grow: true, Middle: true},
		Cell:   list.Plain(func(w *row) string { return w.ActionRef }),
		Sort: list.Order[row]{Key: 4, Name: "name",
			Compare: list.Ascending(func(w *row) string { return w.ActionRef })},
	},
	{
		Column: widget.Column{Title: "STATUS", Width: 11},
		Cell:   func(e *screen.Env, w *row) widget.Cell { return e.StateCell(state(w)) },
		Sort:   list.Order[row]{Key: 1, Name: "running first", Compare: list.Ascending(over)},
	},
	{
		Column: widget.Column{Title: "TASKS", Width: 7, Right: true}, Cell: list.Plain(tasks),
		Sort: list.Order[row]{Key: 5, Name: "tasks done", Compare: list.Descending(share)},
	},
	{Column: widget.Column{Title: "PROGRESS", Width: progressWidth, Priority: 1}, Cell: progress},
	{
		Column: widget.Column{Title: "FOR", Width: 7, Right: true},
		Cell:   func(e *screen.Env, w *row) widget.Cell { return widget.Cell{Text: widget.Age(lasted(e, w))} },
		Sort: list.Order[row]{Key: 3, Name: "for", Compare: func(e *screen.Env, x, y *row) int {
			return cmp.Compare(lasted(e, y), lasted(e, x))
		}},
	},
	{
		Column: widget.Column{Title: "NOW", Width: 20, Priority: 2},
		Cell:   list.Dim(func(w *row) string { return cmp.Or(strings.Join(w.Current, ", "), "-") }),
		Sort: list.Order[row]{Key: 2, Name: "newest",
			Compare: list.Descending(func(w *row) int64 { return w.Execution })},
	},
	{
		Column: widget.Column{Title: "ERROR", Width: 30, Priority: 3},
		Cell:   list.Dim(func(w *row) string { return cmp.Or(w.Error, "-") }),
	},
}

func key(w *row) string { return strconv.FormatInt(w.Execution, 10) }

// state is the status of a workflow as people see it.
func state(w *row) string {
	if (w.Paused || w.PausedAbove != 0) && !attune.Status(w.Status).Terminal() {
		return paused
	}
	return w.Status
}

func over(w *row) int {
	if attune.Status(w.Status).Terminal() {
		return 1
	}
	return 0
}

// tasks writes how many tasks need nothing more, of how many.
func tasks(w *row) string {
	total := widget.Unknown
	if w.Tasks.Total > 0 {
		total = strconv.FormatInt(w.Tasks.Total, 10)
	}
	return strconv.FormatInt(w.Tasks.Completed+w.Tasks.Skipped, 10) + "/" + total
}

// share is the part of its tasks that need nothing more. Those that a completed
// workflow never came to are among them.
func share(w *row) float64 {
	if w.Status == string(attune.StatusCompleted) {
		return 1
	}
	return float64(w.Tasks.Completed+w.Tasks.Skipped) / float64(max(w.Tasks.Total, 1))
}

// lasted is how long a workflow ran, or has been running.
func lasted(e *screen.Env, w *row) time.Duration {
	from := w.Created
	if w.StartedAt != nil {
		from = *w.StartedAt
	}
	if w.FinishedAt != nil {
		return w.FinishedAt.Sub(from)
	}
	return e.Since(from)
}

// progress draws what is done, what has failed and what is left. What has failed is
// never too little to be seen, and of a completed workflow nothing is left, whichever
// of its branches it never took.
func progress(e *screen.Env, w *row) widget.Cell {
	t := w.Tasks
	if t.Total <= 0 {
		return widget.Cell{Text: widget.Unknown, Role: theme.Dim}
	}
	failed := int(t.Failed * progressWidth / t.Total)
	if t.Failed > 0 {
		failed = max(failed, 1)
	}
	failed = min(failed, progressWidth)
	done := min(int(share(w)*progressWidth), progressWidth-failed)
	cell := widget.Cell{
		Text: strings.Repeat("█", done) + strings.Repeat(e.Theme.Glyphs.Failed, failed) + strings.Repeat("░",
			progressWidth-done-failed),
	}
	if failed > 0 {
		cell.Role = theme.Bad
	}
	return cell
}
