// Package worker shows one worker: whether it is there and was over the last hour,
// what it has, its queue at the broker, and what became of it.
package worker

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Worker is the view of one worker.
type Worker struct {
	env   *screen.Env
	id    int64
	table *widget.Table
	rows  []monitor.WorkerRun
	// inHistory is true while the keys go to what changed, of which scroll lines are
	// scrolled past.
	inHistory bool
	scroll    int
	screen.RowSearch
	// top is the line on which the rows of the table begin, as they were last drawn.
	top int
}

// historyPage is how many lines of what changed are taken for a page.
const historyPage = 10

// New makes the view.
func New(env *screen.Env) *Worker { return &Worker{env: env, table: newTable()} }

func newTable() *widget.Table {
	return widget.NewTable([]widget.Column{
		{Title: "EXEC", Width: 9, Right: true},
		{Title: "STATUS", Width: 11},
		{Title: "ACTION", Width: 18, Grow: true, Middle: true},
		{Title: "FOR", Width: 7, Right: true},
		{Title: "OWNER QUEUE", Width: 24, Middle: true, Priority: 1},
	})
}

// View is the name of the screen.
func (v *Worker) View() screen.View { return keymap.InWorker }

// Feeds is what the view needs polled.
func (v *Worker) Feeds() []screen.Feed {
	return []screen.Feed{screen.FeedWorkers, screen.FeedWorker, screen.FeedWorkersPast}
}

// ID is the worker in sight.
func (v *Worker) ID() int64 { return v.id }

// Show turns to another worker.
func (v *Worker) Show(name string) {
	id := screen.Number(name)
	if id == v.id {
		return
	}
	v.id, v.rows, v.inHistory, v.scroll = id, nil, false, 0
	v.table = newTable()
	if d := Detail(v.env, id); d != nil { // the list has read it already
		v.Changed(screen.FeedWorker)
	}
}

// Shown names the worker in sight.
func (v *Worker) Shown() string { return strconv.FormatInt(v.id, 10) }

// Title is the text of the title rule.
func (v *Worker) Title() (left, right string) {
	s := Find(v.env, v.id)
	right = "id " + strconv.FormatInt(v.id, 10)
	if s.Worker.Host != "" {
		right += " · " + widget.Clean(s.Worker.Host)
	}
	if s.Worker.Role != "" {
		right += " · " + widget.Clean(s.Worker.Role)
	}
	return "Workers › " + widget.Clean(s.Name()), right + v.env.Mark(screen.FeedWorkers)
}

// Changed takes over new data.
func (v *Worker) Changed(feed screen.Feed) {
	if d := Detail(v.env, v.id); feed == screen.FeedWorker && d != nil {
		v.rows = d.Running
		v.table.SetRows(v)
	}
}

// Search looks for a text in the rows of what runs.
func (v *Worker) Search(text string) int { return v.SearchIn(v.table, text) }

// Do carries out an action.
func (v *Worker) Do(action keymap.Action) screen.Effect {
	if v.Again(v.table, action) {
		return screen.Effect{Handled: true}
	}
	switch action {
	case keymap.NextPane, keymap.PrevPane:
		v.inHistory = !v.inHistory
		return screen.Effect{Handled: true}
	case keymap.Open:
		if at := v.table.Cursor(); at >= 0 && !v.inHistory {
			return screen.OpenExecution(v.rows[at].ID)
		}
		return screen.OpenList(keymap.InExecutions, "worker:"+strconv.FormatInt(v.id, 10))
	}
	if !v.inHistory {
		return screen.Effect{Handled: screen.MoveTable(v.table, action)}
	}
	return screen.Effect{Handled: screen.Scroll(&v.scroll, action, historyPage)}
}

// Select puts the cursor on a line of the body.
func (v *Worker) Select(line int) bool {
	if v.top == 0 || line < v.top || !v.table.Select(line-v.top) {
		return false
	}
	v.inHistory = false
	return true
}

// Acts is what may be done with the execution under the cursor, or with the worker where
// the keys go to its history and where it has no rows.
func (v *Worker) Acts() (act.Menu, bool) {
	if at := v.table.Cursor(); at >= 0 && !v.inHistory {
		r := v.rows[at]
		return act.ForExecution(&monitor.Execution{ID: r.ID, ActionRef: r.ActionRef, Status: r.Status}), true
	}
	s := Find(v.env, v.id)
	if s.Orphan || v.env.Data.Workers == nil {
		return act.Menu{}, false
	}
	return act.ForWorker(&s.Worker, v.env.Data.Workers.At, v.env.Data.StaleAfter()), true
}

// Relations is what the worker has to do with.
func (v *Worker) Relations() (title string, list []screen.Relation, ok bool) {
	s := Find(v.env, v.id)
	list = screen.WorkerRelations(v.id)
	if at := v.table.Cursor(); at >= 0 {
		id := v.rows[at].ID
		list = append(list, screen.Relation{Key: "e", Label: "execution", Help: strconv.FormatInt(id, 10), To: screen.OpenExecution(id)})
	}
	return "worker " + s.Name(), list, true
}

// Len is the number of rows.
func (v *Worker) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *Worker) Key(i int) string { return strconv.FormatInt(v.rows[i].ID, 10) }

// Cells are the texts of a row.
func (v *Worker) Cells(i int, into []widget.Cell) []widget.Cell {
	return cells(v.env, &v.rows[i], into)
}
