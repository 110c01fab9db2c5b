package workflows

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// progressWidth is how wide the bar of a workflow is.
const progressWidth = 8

// paused is the state of a workflow that starts nothing more.
const paused = "paused"

// Len is the number of rows.
func (v *Workflows) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *Workflows) Key(row int) string { return v.keys[row] }

// Cells are the texts of a row.
func (v *Workflows) Cells(row int, into []widget.Cell) []widget.Cell {
	e, w := v.env, &v.rows[row]
	return append(into,
		widget.Cell{Text: strconv.FormatInt(w.Execution, 10)},
		widget.Cell{Text: w.ActionRef},
		e.StateCell(state(w)),
		widget.Cell{Text: tasks(w)},
		v.progress(w),
		widget.Cell{Text: widget.Age(v.lasted(w))},
		widget.Cell{Text: dash(strings.Join(w.Current, ", ")), Role: theme.Dim},
		widget.Cell{Text: dash(w.Error), Role: theme.Dim},
	)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// state is the status of a workflow as people see it.
func state(w *monitor.Workflow) string {
	if (w.Paused || w.PausedAbove != 0) && !attune.Status(w.Status).Terminal() {
		return paused
	}
	return w.Status
}

func over(w *monitor.Workflow) int {
	if attune.Status(w.Status).Terminal() {
		return 1
	}
	return 0
}

// tasks writes how many tasks need nothing more, of how many.
func tasks(w *monitor.Workflow) string {
	total := widget.Unknown
	if w.Tasks.Total > 0 {
		total = strconv.FormatInt(w.Tasks.Total, 10)
	}
	return strconv.FormatInt(w.Tasks.Completed+w.Tasks.Skipped, 10) + "/" + total
}

// share is the part of its tasks that need nothing more. Those that a completed
// workflow never came to are among them.
func share(w *monitor.Workflow) float64 {
	if w.Status == string(attune.StatusCompleted) {
		return 1
	}
	return float64(w.Tasks.Completed+w.Tasks.Skipped) / float64(max(w.Tasks.Total, 1))
}

// lasted is how long a workflow ran, or has been running.
func (v *Workflows) lasted(w *monitor.Workflow) time.Duration {
	from := w.Created
	if w.StartedAt != nil {
		from = *w.StartedAt
	}
	if w.FinishedAt != nil {
		return w.FinishedAt.Sub(from)
	}
	return v.env.Since(from)
}

// progress draws what is done, what has failed and what is left. What has failed is
// never too little to be seen, and of a completed workflow nothing is left, whichever
// of its branches it never took.
func (v *Workflows) progress(w *monitor.Workflow) widget.Cell {
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
		Text: strings.Repeat("█", done) + strings.Repeat(v.env.Theme.Glyphs.Failed, failed) + strings.Repeat("░", progressWidth-done-failed),
	}
	if failed > 0 {
		cell.Role = theme.Bad
	}
	return cell
}
