package list

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Title is the text of the title rule.
func (l *List[R]) Title() (left, right string) {
	right = l.Arrangement()
	if l.spec.Loaded() {
		right += " · " + strconv.Itoa(len(l.rows)) + l.env.Mark(l.spec.Feed)
	}
	return l.spec.Title, right
}

// Arrangement describes the order, mode and filter of the list.
func (l *List[R]) Arrangement() string {
	order := "sort " + l.SortKey() + l.order.Arrow(!l.orders[l.order.Column].ascending)
	return screen.ListTitle(order, l.problems, l.text)
}

// PreviewLines is how many lines the preview takes.
func (l *List[R]) PreviewLines(w, h int) int {
	if l.spec.Preview == nil {
		return 0
	}
	if l.spec.PreviewHeight != nil {
		return l.spec.PreviewHeight(w, h)
	}
	return screen.PreviewHeight(w, h, !l.plain)
}

// Render draws the view.
func (l *List[R]) Render(w, h int) []string {
	if !l.spec.Loaded() {
		return l.env.Missing(l.spec.Feed, "the "+l.spec.Plural, w)
	}
	if l.spec.Header == nil && len(l.rows) == 0 {
		return l.Nothing()
	}
	lines, foot, ph, room := l.around(w, h)
	table := l.Nothing
	if len(l.rows) > 0 {
		table = func() []string { return l.table.Lines(w, room, l.env.Theme) }
	}
	body := table()
	if l.spec.BelowTable != nil {
		body = append(body, l.spec.BelowTable(w, room-len(body))...)
	}
	lines = append(lines, widget.Fit(body, w, room)...)
	if ph > 0 {
		lines = append(lines, widget.Fit(l.spec.Preview(w, ph), w, ph)...)
	}
	return append(lines, foot...)
}

// around draws what stands above and below the table, and divides the height between preview and table.
func (l *List[R]) around(w, h int) (head, foot []string, preview, table int) {
	if l.spec.Header != nil {
		head = l.spec.Header(w)
	}
	if l.spec.Footer != nil {
		foot = l.spec.Footer(w)
	}
	preview = l.PreviewLines(w, h)
	return head, foot, preview, max(2, h-len(head)-preview-len(foot))
}

// Places is where the table is drawn.
func (l *List[R]) Places(w, h int) screen.Places {
	if !l.spec.Loaded() {
		return nil
	}
	head, _, _, room := l.around(w, h)
	return screen.Places{{Table: l.table, Top: len(head), W: w, H: room}}
}

// Nothing says why the list is empty, and how to see more.
func (l *List[R]) Nothing() []string {
	what, goesOn := "No "+l.spec.Singular, ""
	if l.spec.GoesOn != nil {
		goesOn = l.spec.GoesOn()
	}
	switch {
	case l.none && l.spec.Empty != nil, l.text == "" && !l.problems && l.spec.Empty != nil:
		return append([]string{""}, l.spec.Empty()...)
	case l.none, l.text == "" && !l.problems:
		return append([]string{""}, l.spec.EmptyText...)
	case goesOn != "":
		what = l.env.Paint(theme.Warn, goesOn)
	case l.text == "":
		what = l.env.Paint(theme.Good, "✓") + " " + cmp.Or(l.spec.NoProblem, what+" has a problem.") + "  z shows all"
	case l.problems:
		what += " with a problem matches /" + widget.Clean(l.text) + " (z shows all)."
	default:
		what += " matches /" + widget.Clean(l.text) + "."
	}
	lines := []string{"", " " + what}
	if l.text != "" {
		lines = append(lines, " esc clears the filter; terms: "+strings.Join(l.schema.Examples(), "  "))
	}
	return lines
}

// PartSearched says so of a search that has found nothing before its end.
func PartSearched(part bool) string {
	if part {
		return "No match yet, and only a part was searched: G goes on."
	}
	return ""
}

// Gone says that the row under the cursor has left the data.
func (l *List[R]) Gone() string {
	return l.env.GoneNote(l.table, "the "+l.spec.Singular+" under the cursor")
}
