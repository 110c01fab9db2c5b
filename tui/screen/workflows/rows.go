package workflows

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// progressWidth is the width of a progress bar.
const progressWidth = 8

var fields = []list.Field[row]{
	list.Text("EXEC", 9, key).Right(),
	list.Text("WORKFLOW", 18, func(w *row) string { return w.ActionRef }).Grow().Middle().
		Term("action", "").Sort(4, "name"),
	list.State("STATUS", 11, (*row).State).SortBy(1, "running first", list.Ascending(terminal)),
	list.Text("TASKS", 7, func(w *row) string { return w.Tasks.Ended() }).Right().
		SortBy(5, "tasks done", list.Descending(share)),
	list.Draw("PROGRESS", progressWidth, progress).Priority(1),
	list.Lasts("FOR", 7, duration).Sort(3, "for"),
	list.Text("NOW", 20, func(w *row) string { return cmp.Or(strings.Join(w.Current, ", "), "-") }).Dim().Priority(2).
		Term("task", "").Texts(func(_ *screen.Env, w *row) []string { return w.Current }),
	list.Order(2, "newest", list.Descending(func(w *row) int64 { return w.Execution })),
	list.Text("ERROR", 30, func(w *row) string { return cmp.Or(w.Error, "-") }).Dim().Priority(3),
}

func key(w *row) string { return strconv.FormatInt(w.Execution, 10) }

// terminal is 1 for an ended workflow and 0 for an open one.
func terminal(w *row) int {
	if lifecycle.Status(w.Status).Terminal() {
		return 1
	}
	return 0
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
