// Package worker shows one worker: its health now and over the last hour, its executions, its queue at the
// broker, and its changes of the last day.
package worker

import (
	"cmp"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Worker is the view of one worker.
type Worker struct {
	env      *screen.Env
	id       int64
	assessed Assessed
	running  *list.Table[monitor.WorkerRun]
	// inHistory is true while the keys scroll the history instead of moving in the table.
	inHistory bool
	scroll    screen.Scroller
	screen.RowSearch
}

// historyPage is the page of the history in lines.
const historyPage = 10

// New makes the view.
func New(env *screen.Env) *Worker { return &Worker{env: env, running: newRunning(env)} }

// newRunning is a table of the executions of a worker.
func newRunning(env *screen.Env) *list.Table[monitor.WorkerRun] {
	id := func(r *monitor.WorkerRun) string { return strconv.FormatInt(r.ID, 10) }
	return list.NewTable(env, id, []list.Field[monitor.WorkerRun]{
		list.Text("EXEC", 9, id).Right(),
		list.State("STATUS", 11, func(r *monitor.WorkerRun) string { return r.Status }),
		list.Text("ACTION", 18, func(r *monitor.WorkerRun) string { return r.ActionRef }).Grow().Middle(),
		list.Age("FOR", 7, func(r *monitor.WorkerRun) *time.Time { return &r.Since }),
		list.Text("OWNER QUEUE", 24, func(r *monitor.WorkerRun) string { return cmp.Or(r.Queue, "-") }).Dim().Middle().
			Priority(1),
	})
}

// View is the name of the screen.
func (v *Worker) View() screen.View { return keymap.InWorker }

// Feeds are the feeds to poll while the view is open.
func (v *Worker) Feeds() []screen.Feed {
	return []screen.Feed{screen.FeedWorkers, screen.FeedWorker, screen.FeedWorkersPast}
}

// ID is the id of the shown worker.
func (v *Worker) ID() int64 { return v.id }

// Show turns to another worker.
func (v *Worker) Show(name string) {
	if id := screen.Number(name); id != v.id {
		v.id, v.inHistory, v.scroll, v.running = id, false, screen.Scroller{}, newRunning(v.env)
		v.Changed(screen.FeedWorkers)
		v.Changed(screen.FeedWorker) // the preview of the list may have read it
	}
}

// Shown names the shown worker.
func (v *Worker) Shown() string { return strconv.FormatInt(v.id, 10) }

// Title is the text of the title rule.
func (v *Worker) Title() (left, right string) {
	right = "id " + strconv.FormatInt(v.id, 10)
	for _, text := range []string{v.assessed.Host, v.assessed.Role} {
		if text != "" {
			right += " · " + widget.Clean(text)
		}
	}
	return "Workers › " + widget.Clean(v.assessed.Title()), right + v.env.Mark(screen.FeedWorkers)
}

// Changed judges the worker again when its row or its queue was read.
func (v *Worker) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedWorkers, screen.FeedBroker:
		v.assessed = assess(v.env, v.id)
	case screen.FeedWorker:
		if d := Detail(v.env, v.id); d != nil {
			v.running.SetList(d.Running)
		}
	default:
	}
}

// Search looks for a text in the rows of the executions.
func (v *Worker) Search(text string) int { return v.SearchIn(v.running.Table, text) }

// Key identifies an execution of the worker.
func (v *Worker) Key(row int) string { return v.running.Key(row) }

// current is the selected execution; nil while the keys scroll the history.
func (v *Worker) current() *monitor.WorkerRun {
	if v.inHistory {
		return nil
	}
	return v.running.Current()
}

// Do carries out an action.
func (v *Worker) Do(action keymap.Action) screen.Effect {
	if v.Again(v.running.Table, action) {
		return screen.Effect{Handled: true}
	}
	switch {
	case action == keymap.NextPane || action == keymap.PrevPane:
		v.turnTo(!v.inHistory)
		return screen.Effect{Handled: true}
	case action == keymap.Open:
		if r := v.current(); r != nil {
			return screen.OpenExecution(r.ID)
		}
		return screen.OpenList(keymap.InExecutions, "worker:"+v.Shown())
	case v.inHistory:
		_, _, height := v.draw(v.env.Width, v.env.Height)
		last := screen.WindowEnd(len(changes(v.env, &v.assessed)), height-1)
		return screen.Effect{Handled: v.scroll.Do(action, historyPage, last)}
	default:
		return screen.Effect{Handled: screen.MoveTable(v.running.Table, action)}
	}
}

func (v *Worker) turnTo(history bool) {
	v.inHistory = history
	v.running.Focus(!history)
}

// Acts is the menu of the selected execution, or else of the worker.
func (v *Worker) Acts() (act.Menu, bool) {
	if r := v.current(); r != nil {
		return act.ForExecution(&monitor.Execution{ID: r.ID, ActionRef: r.ActionRef, Status: r.Status}), true
	}
	d := v.env.Data
	if v.assessed.Orphan || d.Workers == nil {
		return act.Menu{}, false
	}
	return act.ForWorker(&v.assessed.Worker, d.Workers.At, d.StaleAfter()), true
}

// Relations lead from the worker and its selected execution to related items.
func (v *Worker) Relations() (title string, related []screen.Relation, ok bool) {
	related = screen.WorkerRelations(v.id)
	if r := v.running.Current(); r != nil {
		related = append(related, screen.Relation{
			Key: "e", Label: "execution", Help: strconv.FormatInt(r.ID, 10), To: screen.OpenExecution(r.ID),
		})
	}
	return "worker " + v.assessed.Title(), related, true
}

// Shows is the worker with its detail.
func (v *Worker) Shows() (screen.Thing, bool) {
	d := Detail(v.env, v.id)
	if d == nil && v.assessed.Name == "" {
		return screen.Thing{}, false
	}
	return v.assessed.Thing(struct {
		monitor.Worker

		Detail *monitor.WorkerDetail `json:"detail"`
	}{v.assessed.Worker, d}), true
}
