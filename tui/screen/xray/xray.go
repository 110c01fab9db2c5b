// Package xray shows the tree around an execution: its topmost workflow or parent, the executions that
// each one started, and the chain of its attempts.
package xray

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Xray is the view.
type Xray struct {
	env    *screen.Env
	table  *list.Table[row]
	id     int64
	folded map[int64]bool
	// found is true once the cursor was put on the execution.
	found bool
}

type row struct {
	*monitor.Relative

	hasChildren bool
}

// New makes the view.
func New(env *screen.Env) *Xray {
	v := &Xray{env: env, folded: map[int64]bool{}}
	v.table = list.NewTable(env, func(r *row) string { return strconv.FormatInt(r.ID, 10) }, []list.Field[row]{
		list.Draw("TREE", 40, v.name).Grow(),
		list.State("STATUS", 13, func(r *row) string { return r.Status }),
		list.Lasts("FOR", 7, func(e *screen.Env, r *row) time.Duration { return e.Lasted(&r.Execution) }),
		list.Text("TRY", 5, func(r *row) string {
			if r.RetryCount == 0 {
				return "-"
			}
			return "#" + strconv.FormatInt(r.RetryCount+1, 10)
		}).Right().Priority(2),
		list.Text("WORKER", 18, func(r *row) string { return monitor.WorkerName(r.WorkerID, r.WorkerName) }).Middle().
			Priority(3),
		list.Text("REASON", 36, func(r *row) string { return r.Reason }).Dim().Priority(4),
	})
	return v
}

// name is indented by the depth in the tree.
func (v *Xray) name(_ *screen.Env, r *row) widget.Cell {
	sign := "  "
	switch {
	case r.hasChildren && v.folded[r.ID]:
		sign = "▸ "
	case r.hasChildren:
		sign = "▾ "
	}
	name := widget.Blank(2*min(r.Depth, 16)) + sign + strconv.FormatInt(r.ID, 10) + "  " + r.ActionRef
	if task := r.TaskName(); task != "" {
		name += "  " + task
	}
	if r.More {
		name += "  (the newest of more)"
	}
	if r.ID == v.id {
		return widget.Cell{Text: name, Role: theme.Accent}
	}
	return widget.Cell{Text: name}
}

// Table is the list, with its columns.
func (v *Xray) Table() *widget.Table { return v.table.Table }

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
	v.id, v.folded, v.found = id, map[int64]bool{}, false
	v.table.SetList(nil)
	v.Changed(screen.FeedFamily)
}

// Shown names that execution.
func (v *Xray) Shown() string { return strconv.FormatInt(v.id, 10) }

// family is the tree, nil until it was read.
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
		right = v.env.Plural(int64(len(f.Tree)), "execution", "executions")
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
	v.listRows(f)
	if !v.found {
		v.found = true
		v.table.Seek(strconv.FormatInt(v.id, 10))
	}
}

// listRows lists the tree without the rows below a fold.
func (v *Xray) listRows(f *monitor.Family) {
	var rows []row
	hidden := -1
	for i := range f.Tree {
		r := &f.Tree[i]
		if hidden >= 0 && r.Depth > hidden {
			continue
		}
		hidden = -1
		hasChildren := i+1 < len(f.Tree) && f.Tree[i+1].Depth > r.Depth
		rows = append(rows, row{Relative: r, hasChildren: hasChildren})
		if hasChildren && v.folded[r.ID] {
			hidden = r.Depth
		}
	}
	v.table.SetList(rows)
}

// Do carries out an action.
func (v *Xray) Do(action keymap.Action) screen.Effect {
	r := v.table.Current()
	switch {
	case r == nil:
		return screen.Effect{}
	case action == keymap.Open:
		return screen.OpenExecution(r.ID)
	case action == keymap.Left:
		v.fold(r)
	case action == keymap.Right:
		delete(v.folded, r.ID)
	case action == keymap.FoldAll:
		v.foldAll()
	default:
		return screen.Effect{Handled: screen.MoveTable(v.table.Table, action)}
	}
	if f := v.family(); f != nil {
		v.listRows(f)
	}
	return screen.Effect{Handled: true}
}

// fold folds a row, or selects its parent.
func (v *Xray) fold(r *row) {
	if r.hasChildren && !v.folded[r.ID] {
		v.folded[r.ID] = true
		return
	}
	at := v.table.Cursor()
	for i := at; i >= 0; i-- {
		if v.table.List[i].Depth < r.Depth {
			v.table.Move(i - at)
			return
		}
	}
}

// foldAll unfolds every row, or folds all but the topmost.
func (v *Xray) foldAll() {
	if len(v.folded) > 0 {
		v.folded = map[int64]bool{}
		return
	}
	for _, r := range v.table.List {
		if r.hasChildren && r.Depth > 0 {
			v.folded[r.ID] = true
		}
	}
}

// Acts is the menu for the row under the cursor.
func (v *Xray) Acts() (act.Menu, bool) {
	if r := v.table.Current(); r != nil {
		return act.ForExecution(&r.Execution), true
	}
	return act.Menu{}, false
}

// Relations lists what is related to the row under the cursor.
func (v *Xray) Relations() (title string, related []screen.Relation, ok bool) {
	r, f := v.table.Current(), v.family()
	if r == nil {
		return "", nil, false
	}
	if r.ID != v.id {
		f = nil
	}
	return "execution " + strconv.FormatInt(r.ID, 10), screen.ExecutionRelations(&r.Execution, f), true
}

// Len is the number of rows.
func (v *Xray) Len() int { return v.table.Len() }

// Key identifies a row.
func (v *Xray) Key(row int) string { return v.table.Key(row) }

// Thing is the execution of a row.
func (v *Xray) Thing(row int) screen.Thing {
	r := *v.table.List[row].Relative
	return screen.ExecutionThing(&r.Execution, r)
}

// Beyond says that the tree was cut.
func (v *Xray) Beyond() string {
	if f := v.family(); f != nil && f.More {
		return "the tree is cut at a bound"
	}
	return ""
}

// Render draws the view.
func (v *Xray) Render(w, h int) []string {
	f := v.family()
	if f == nil {
		return v.env.Missing(screen.FeedFamily, "the tree of execution "+strconv.FormatInt(v.id, 10), w)
	}
	attempts := v.attempts(f)
	room := max(2, h-len(attempts))
	lines := widget.Fit(v.table.Lines(w, room, v.env.Theme), w, room)
	return append(lines, attempts...)[:min(h, len(lines)+len(attempts))]
}

// Places is where the tree is drawn.
func (v *Xray) Places(w, h int) screen.Places {
	f := v.family()
	if f == nil {
		return nil
	}
	return screen.Places{{Table: v.table.Table, W: w, H: max(2, h-len(v.attempts(f)))}}
}

// attempts is a line with the chain of attempts; none for a single attempt.
func (v *Xray) attempts(f *monitor.Family) []string {
	if len(f.Attempts) < 2 {
		return nil
	}
	e := v.env
	parts := []string{" " + e.Dim("ATTEMPTS of "+strconv.FormatInt(v.id, 10))}
	for _, a := range f.Attempts {
		parts = append(parts, strconv.FormatInt(a.ID, 10)+" "+e.State(a.Status))
	}
	return []string{strings.Join(parts, "  ")}
}
