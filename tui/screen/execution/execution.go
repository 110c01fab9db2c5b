// Package execution shows one execution: its state, what it waits for, its timeline, and its documents
// with secrets masked.
package execution

import (
	"encoding/json"
	"strconv"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Execution is the view of one execution.
type Execution struct {
	env     *screen.Env
	id      int64
	section int
	scroll  screen.Scroller
	// documents are the views of the sections; lists leave theirs empty.
	documents [7]*jsonview.View
	// why is true while the reasons why it waits take the whole view.
	why bool
	// turned is true after the operator chose a section: in a low window it replaces the timeline.
	turned bool
	// chosen is true once the first section was chosen by the state of the execution.
	chosen  bool
	preview bool // of FeedGlance, instead of FeedExecution
	derived
}

// derived is computed from the readings when they change, not for every frame.
type derived struct {
	health monitor.WorkerHealth // of its worker; empty if unknown
	checks []explain.RetryCheck
	// params and failure are the parameters and the error in a line, for a preview.
	params, failure string
}

// New makes the view.
func New(env *screen.Env) *Execution {
	x := &Execution{env: env, section: sectionConfig}
	for i := range x.documents {
		x.documents[i] = jsonview.New()
	}
	return x
}

// NewGlance makes the preview of the execution that FeedGlance reads.
func NewGlance(env *screen.Env) *Execution { return &Execution{env: env, preview: true} }

// View is the name of the screen.
func (x *Execution) View() screen.View { return keymap.InExecution }

// Feeds is what the view needs polled.
func (x *Execution) Feeds() []screen.Feed {
	return []screen.Feed{screen.FeedExecution, screen.FeedFamily}
}

// ID is the shown execution.
func (x *Execution) ID() int64 { return x.id }

// Shown names the shown execution.
func (x *Execution) Shown() string { return strconv.FormatInt(x.id, 10) }

// Show turns to another execution.
func (x *Execution) Show(name string) {
	if id := screen.Number(name); id != x.id {
		*x = *New(x.env)
		x.id = id
		x.env.Data.Execution, x.env.Data.Family = nil, nil
	}
}

// Title is the text of the title rule.
func (x *Execution) Title() (left, right string) {
	left = "Executions › " + strconv.FormatInt(x.id, 10)
	if d := x.current(); d != nil {
		right = "updated " + d.Updated.UTC().Format("15:04:05.000Z") + x.env.Mark(screen.FeedExecution)
	}
	return left, right
}

// current is the reading of the shown execution, or nil.
func (x *Execution) current() *monitor.ExecutionDetail {
	d := x.env.Data.Execution
	if x.preview {
		d = x.env.Data.Glanced()
	}
	if d != nil && d.ID == x.id {
		return d
	}
	return nil
}

// family is what is related to the execution, nil until it was read.
func (x *Execution) family() *monitor.Family {
	if f := x.env.Data.Family; f != nil && f.ID == x.id {
		return f
	}
	return nil
}

// Changed takes over new data.
func (x *Execution) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedGlance:
		if d := x.env.Data.Glanced(); x.preview && d != nil {
			x.id = d.ID
		}
	case screen.FeedExecution:
		if d := x.current(); d != nil {
			x.choose(d)
		}
		x.prepare()
	case screen.FeedFamily, screen.FeedOverview, screen.FeedWorkers, screen.FeedBroker:
	default:
		return
	}
	d := x.current()
	if d == nil {
		return
	}
	x.derived = derived{health: x.workerHealth(d)}
	retry := explain.RetryFacts{Execution: &d.Execution, Worker: x.health}
	if f := x.family(); f != nil {
		retry.Attempts = f.Attempts
		if p := f.Parent(); p != nil {
			retry.Parent = &p.Execution
		}
	}
	x.checks = explain.EvaluateRetry(retry)
	if x.preview {
		var result struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal([]byte(d.Result), &result) // a result that is no object has no error
		x.params, x.failure = widget.Clean(monitor.ParamsLine(d.Config)), widget.Clean(result.Error)
	}
}

// workerHealth is the health of its worker; empty if unknown.
func (x *Execution) workerHealth(d *monitor.ExecutionDetail) monitor.WorkerHealth {
	o := x.env.Data.Overview
	if o == nil || d.WorkerID == nil {
		return ""
	}
	list, at := o.WorkerList, o.At
	if all := x.env.Data.Workers; all != nil {
		list, at = all.List, all.At
	}
	for i := range list {
		if list[i].ID == *d.WorkerID {
			return x.env.Assess(&list[i], at).Health
		}
	}
	return ""
}

// Do carries out an action.
func (x *Execution) Do(action keymap.Action) screen.Effect {
	if view := x.document(); view != nil && view.Do(action) {
		return screen.Effect{Handled: true}
	}
	d := x.current()
	switch action {
	case keymap.Xray:
		return screen.OpenTree(x.id)
	case keymap.Why:
		if d != nil && len(d.Why) == 0 && !x.why {
			return screen.WaitsForNothing(d.Status)
		}
		x.why, x.scroll = !x.why, screen.Scroller{}
		x.prepare()
	case keymap.NextPane:
		x.turn(1)
	case keymap.PrevPane:
		x.turn(-1)
	default:
		lines, h := 0, 0
		if w := x.env.Width; d != nil && x.why {
			lines, h = len(x.whyLines(d, w)), x.env.Height-1
		} else if d != nil {
			_, w, h = x.above(d, w, x.env.Height)
			lines, h = len(x.listLines(d, w-2)), h-1
		}
		return screen.Effect{Handled: x.scroll.Do(action, h, lines-h)}
	}
	return screen.Effect{Handled: true}
}

// Leave closes the reasons.
func (x *Execution) Leave() bool {
	was := x.why
	x.why, x.scroll = false, screen.Scroller{}
	x.prepare()
	return was
}

// Acts is the menu for the execution.
func (x *Execution) Acts() (act.Menu, bool) {
	if d := x.current(); d != nil {
		return act.ForExecution(&d.Execution), true
	}
	return act.Menu{}, false
}

// Relations lists what is related to the execution.
func (x *Execution) Relations() (title string, list []screen.Relation, ok bool) {
	d := x.current()
	if d == nil {
		return "", nil, false
	}
	list = screen.ExecutionRelations(&d.Execution, x.family())
	for i := range list {
		if list[i].Label == "enforcement" && list[i].Not != "" && d.Enforcement != nil {
			id := screen.Reference(d.Enforcement)
			list[i].Leads(id, screen.ShownBy("enforcement", id))
		}
	}
	return "execution " + strconv.FormatInt(d.ID, 10), list, true
}

// Shows is the execution, with the place of the cursor in its document.
func (x *Execution) Shows() (screen.Thing, bool) {
	d := x.current()
	if d == nil {
		return screen.Thing{}, false
	}
	thing := screen.ExecutionThing(&d.Execution, Document(d))
	thing.Cut = d.ConfigBytes+d.EnvBytes+d.ResultBytes > 0
	if view := x.document(); view != nil {
		thing.Path, thing.Text, thing.InDocument = view.Value()
	}
	return thing, true
}
