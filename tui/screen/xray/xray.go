// Package xray shows the tree that an execution is in: the workflow or the parent
// above all, what each has started, and which of them repeat which.
package xray

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Xray is the view.
type Xray struct {
	env    *screen.Env
	table  *widget.Table
	id     int64
	folded map[int64]bool
	// rows are those of the tree that no fold hides.
	rows []row
	// sought is true until the cursor was put on the execution itself.
	sought bool
}

type row struct {
	*monitor.Relative

	// below is true for one that has others below it.
	below bool
}

var columns = []widget.Column{
	{Title: "TREE", Width: 40, Grow: true},
	{Title: "STATUS", Width: 13},
	{Title: "FOR", Width: 7, Right: true},
	{Title: "TRY", Width: 5, Right: true, Priority: 2},
	{Title: "WORKER", Width: 18, Middle: true, Priority: 3},
	{Title: "REASON", Width: 36, Priority: 4},
}

// New makes the view.
func New(env *screen.Env) *Xray {
	return &Xray{env: env, table: widget.NewTable(columns), folded: map[int64]bool{}}
}

// Table is the list, with its columns.
func (v *Xray) Table() *widget.Table { return v.table }

// View is the name of the screen.
func (*Xray) View() screen.View { return keymap.InXray }

// Feeds is what the view needs polled.
func (*Xray) Feeds() []screen.Feed { return []screen.Feed{screen.FeedFamily} }

// ID is the execution whose tree is shown.
func (v *Xray) ID() int64 { return v.id }

// Show turns to the tree of an execution.
func (v *Xray) Show(name string) {
	id := screen.Number(name)
	if id == v.id {
		return
	}
	v.id, v.folded, v.rows, v.sought = id, map[int64]bool{}, nil, false
	v.table.SetRows(v)
	v.Changed(screen.FeedFamily)
}

// Shown names the execution.
func (v *Xray) Shown() string { return strconv.FormatInt(v.id, 10) }

// family is the tree, once it was read.
func (v *Xray) family() *monitor.Family {
	if f := v.env.Data.Family; f != nil && f.ID == v.id {
		return f
	}
	return nil
}

// Title is the text of the title rule.
func (v *Xray) Title() (left, right string) {
	left = "Xray › tree of " + strconv.FormatInt(v.id, 10)
	if f := v.family(); f != nil {
		right = v.env.Num(int64(len(f.Tree))) + " executions"
		if f.More {
			right += ", cut at a bound"
		}
	}
	return left, right + v.env.Mark(screen.FeedFamily)
}

// Changed takes over a tree.
func (v *Xray) Changed(feed screen.Feed) {
	f := v.family()
	if feed != screen.FeedFamily || f == nil {
		return
	}
	v.arrange(f)
	if !v.sought {
		v.sought = true
		v.table.Seek(strconv.FormatInt(v.id, 10))
	}
}

// arrange lists the rows that no fold hides.
func (v *Xray) arrange(f *monitor.Family) {
	v.rows = v.rows[:0:0]
	hidden := -1
	for i := range f.Tree {
		r := &f.Tree[i]
		if hidden >= 0 && r.Depth > hidden {
			continue
		}
		hidden = -1
		below := i+1 < len(f.Tree) && f.Tree[i+1].Depth > r.Depth
		v.rows = append(v.rows, row{r, below})
		if below && v.folded[r.ID] {
			hidden = r.Depth
		}
	}
	v.table.SetRows(v)
}

// Select puts the cursor on a line of the body.
func (v *Xray) Select(line int) bool { return v.table.Select(line - 1) }

// Do carries out an action.
func (v *Xray) Do(action keymap.Action) screen.Effect {
	at := v.table.Cursor()
	switch {
	case at < 0:
		return screen.Effect{}
	case action == keymap.Open:
		return screen.OpenExecution(v.rows[at].ID)
	case action == keymap.Left:
		v.fold(at)
	case action == keymap.Right:
		delete(v.folded, v.rows[at].ID)
	case action == keymap.FoldAll:
		v.foldAll()
	default:
		return screen.Effect{Handled: screen.MoveTable(v.table, action)}
	}
	if f := v.family(); f != nil {
		v.arrange(f)
	}
	return screen.Effect{Handled: true}
}

// fold hides what is below a row, or goes to the one above it.
func (v *Xray) fold(at int) {
	r := v.rows[at]
	if r.below && !v.folded[r.ID] {
		v.folded[r.ID] = true
		return
	}
	for i := at; i >= 0; i-- {
		if v.rows[i].Depth < r.Depth {
			v.table.Move(i - at)
			return
		}
	}
}

// foldAll opens everything, or hides all but what is directly below the first.
func (v *Xray) foldAll() {
	if len(v.folded) > 0 {
		v.folded = map[int64]bool{}
		return
	}
	for _, r := range v.rows {
		if r.below && r.Depth > 0 {
			v.folded[r.ID] = true
		}
	}
}

// Acts is what may be done with the row under the cursor.
func (v *Xray) Acts() (act.Menu, bool) {
	at := v.table.Cursor()
	if at < 0 {
		return act.Menu{}, false
	}
	return act.ForExecution(&v.rows[at].Execution), true
}

// Relations is what the row under the cursor has to do with.
func (v *Xray) Relations() (title string, list []screen.Relation, ok bool) {
	at := v.table.Cursor()
	if at < 0 {
		return "", nil, false
	}
	r := v.rows[at]
	f := v.family()
	if r.ID != v.id {
		f = nil
	}
	return "execution " + strconv.FormatInt(r.ID, 10), screen.ExecutionRelations(&r.Execution, f), true
}

// Len is the number of rows.
func (v *Xray) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *Xray) Key(i int) string { return strconv.FormatInt(v.rows[i].ID, 10) }

// Cells are the texts of a row.
func (v *Xray) Cells(i int, into []widget.Cell) []widget.Cell {
	e, r := v.env, v.rows[i]
	sign := "  "
	switch {
	case r.below && v.folded[r.ID]:
		sign = "▸ "
	case r.below:
		sign = "▾ "
	}
	name := widget.Blank(2*min(r.Depth, 16)) + sign + strconv.FormatInt(r.ID, 10) + "  " + r.ActionRef
	if task := r.TaskName(); task != "" {
		name += "  " + task
	}
	if r.More {
		name += "  (the newest of more)"
	}
	role := theme.Plain
	if r.ID == v.id {
		role = theme.Accent
	}
	return append(into, widget.Cell{Text: name, Role: role}, e.StateCell(r.Status), widget.Cell{Text: widget.Age(e.Lasted(&r.Execution))},
		widget.Cell{Text: v.try(r.Relative)}, widget.Cell{Text: screen.WorkerName(r.WorkerID, r.WorkerName)}, widget.Cell{Text: r.Reason, Role: theme.Dim})
}

// try is which attempt it is, where it is one of several.
func (*Xray) try(r *monitor.Relative) string {
	if r.RetryCount == 0 {
		return "-"
	}
	return "#" + strconv.FormatInt(r.RetryCount+1, 10)
}

// Render draws the view.
func (v *Xray) Render(w, h int) []string {
	f := v.family()
	if f == nil {
		return v.env.Missing(screen.FeedFamily, "the tree of execution "+strconv.FormatInt(v.id, 10), w)
	}
	attempts := v.attempts(f)
	lines := widget.Fit(v.table.Lines(w, max(2, h-len(attempts)), v.env.Theme), w, max(2, h-len(attempts)))
	return append(lines, attempts...)[:min(h, len(lines)+len(attempts))]
}

// attempts is a line with the chain of repetitions that the execution is in.
func (v *Xray) attempts(f *monitor.Family) []string {
	if len(f.Attempts) < 2 {
		return nil
	}
	e := v.env
	parts := []string{" " + e.Paint(theme.Dim, "ATTEMPTS of "+strconv.FormatInt(v.id, 10))}
	for _, a := range f.Attempts {
		look := e.Theme.Of(a.Status)
		parts = append(parts, strconv.FormatInt(a.ID, 10)+" "+e.Paint(look.Role, look.Glyph+" "+widget.Clean(a.Status)))
	}
	return []string{strings.Join(parts, "  ")}
}
