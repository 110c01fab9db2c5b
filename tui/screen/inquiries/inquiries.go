// Package inquiries shows the questions that workflows and actions have put to
// people: those that wait for an answer first, the one that has waited longest on
// top, then those that were answered or are over.
package inquiries

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

type row = monitor.Inquiry

// Inquiries is the view.
type Inquiries struct {
	*list.List[row]

	env *screen.Env
	// open are those that wait and over, below them, those that are over, each read page by
	// page. Next is where the list goes on, empty at its end.
	open, over screen.Pages[row]
	next       string
	query      monitor.InquiryFilter
	// wanted is an inquiry that another view sent to; it is shown until the cursor moves.
	wanted int64
	// detail is true while all that is known of one takes the whole view.
	detail bool
	scroll screen.Scroller
	// form is what the response of formOf must look like.
	form   *inquiry.AnswerForm
	formOf *monitor.InquiryDetail
}

// The orders to choose from. Within each, those that wait come first.
var fields = []list.Field[row]{
	{
		Column: widget.Column{Title: "INQUIRY", Width: 8, Right: true}, Cell: list.Plain(key),
		Sort: list.Order[row]{
			Key: 1, Name: "waiting first", Compare: func(*screen.Env, *row, *row) int { return 0 }, // as they are read
		},
	},
	{
		Column: widget.Column{Title: "STATUS", Width: 11},
		Cell:   func(e *screen.Env, i *row) widget.Cell { return e.StateCell(i.Status) },
	},
	{
		Column: widget.Column{Title: "AGE", Width: 7, Right: true},
		Cell:   func(e *screen.Env, i *row) widget.Cell { return widget.Cell{Text: widget.Age(e.Since(i.Created))} },
		Sort: list.Order[row]{Key: 3, Name: "age", Compare: func(_ *screen.Env, x, y *row) int {
			return x.Created.Compare(y.Created)
		}},
	},
	{
		Column: widget.Column{Title: "LEFT", Width: 7, Right: true},
		Cell: func(e *screen.Env, i *row) widget.Cell {
			if !i.Open() || i.TimeoutAt == nil {
				return widget.Cell{Text: "-"}
			}
			return e.Worry(widget.Age(i.TimeoutAt.Sub(e.Now)), late(i, e.Now))
		},
		Sort: list.Order[row]{Key: 2, Name: "time left", Compare: list.Ascending(func(i *row) time.Duration {
			if i.Left == nil {
				return 1<<63 - 1 // never
			}
			return *i.Left
		})},
	},
	{Column: widget.Column{Title: "FOR", Width: 10, Middle: true, Priority: 1}, Cell: list.Plain(whom)},
	{
		Column: widget.Column{Title: "QUESTION", Width: 20, Grow: true},
		Cell:   list.Plain(func(i *row) string { return i.Prompt }),
	},
	{
		Column: widget.Column{Title: "ASKED BY", Width: 20, Middle: true, Priority: 2}, Cell: list.Dim(asker),
		Sort: list.Order[row]{Key: 4, Name: "asked by", Compare: list.Ascending(asker)},
	},
}

func key(i *row) string { return strconv.FormatInt(i.ID, 10) }

// late reports whether a question has used up most of its time.
func late(i *row, now time.Time) bool {
	return i.TimeoutAt != nil && i.TimeoutAt.Sub(now) < i.TimeoutAt.Sub(i.Created)/5
}

// whom names who is to answer.
func whom(i *row) string {
	switch {
	case i.Assignee != "":
		return i.Assignee
	case i.AssignedTo != nil:
		return "identity " + strconv.FormatInt(*i.AssignedTo, 10)
	default:
		return "anybody"
	}
}

// asker names what asks: the task of a workflow, or an action.
func asker(i *row) string {
	if i.Workflow != nil {
		text := i.WorkflowRef
		if i.Task != "" {
			text += " · " + i.Task
		}
		return text
	}
	return i.ActionRef
}

func ended(i *row) int {
	if i.Open() {
		return 0
	}
	return 1
}

// New makes the view.
func New(env *screen.Env) *Inquiries {
	v := &Inquiries{env: env}
	v.open = screen.NewPages(func(i *row) int64 { return -i.ID })
	v.over = screen.NewPages(func(i *row) int64 { return i.ID })
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InInquiries, Title: "Inquiries", Singular: "inquiry", Plural: "inquiries",
		Feed: screen.FeedInquiries, MoreFeeds: v.needs, Stale: v.behind,
		Loaded: func() bool { return env.Data.Inquiries != nil },
		Rows:   func() []row { return slices.Concat(v.open.Rows(), v.over.Rows()) },
		Fields: fields, Key: key, Completions: v.known, Database: v.database(), Reset: v.forget,
		GroupOrder:  func(x, y *row) int { return cmp.Compare(ended(x), ended(y)) },
		CursorMoved: v.moved,
		Actions:     func(*row) (act.Menu, bool) { return act.Menu{}, false },
		Export:      func(i *row) screen.Thing { return thing(i, *i) },
		Truncated: func() string {
			if d := env.Data.Inquiries; d != nil && (d.Next != "" || d.Bounded) {
				return "more questions may match than are read"
			}
			return ""
		},
	})
	return v
}

// needs has one inquiry polled only while there is one to show.
func (v *Inquiries) needs() []screen.Feed {
	if v.Subject() == 0 {
		return nil
	}
	return []screen.Feed{screen.FeedInquiry}
}

// behind asks for another inquiry than the one that was read last.
func (v *Inquiries) behind() screen.Feed {
	if v.Subject() != 0 && v.current() == nil {
		return screen.FeedInquiry
	}
	return ""
}

// known lists the values of a field that were read lately.
func (v *Inquiries) known(field string) []string {
	var known screen.Distinct
	for i := range v.VisibleRows() {
		r := &v.VisibleRows()[i]
		switch field {
		case "action":
			known.Add(r.WorkflowRef, r.ActionRef)
		case "task":
			known.Add(r.Task)
		case "assigned":
			known.Add(r.Assignee)
		}
	}
	return known.List()
}

// Subject is the inquiry under the cursor; 0 while there is none.
func (v *Inquiries) Subject() int64 {
	if v.wanted != 0 {
		return v.wanted
	}
	if i := v.Current(); i != nil {
		return i.ID
	}
	return 0
}

// inLists is what Shown says while no inquiry takes the whole view.
const inLists = "list"

// Shown names the inquiry that takes the whole view.
func (v *Inquiries) Shown() string {
	if !v.detail {
		return inLists
	}
	return strconv.FormatInt(v.Subject(), 10)
}

// Show opens one inquiry, or the list.
func (v *Inquiries) Show(name string) {
	id := screen.Number(name)
	v.wanted, v.detail, v.scroll = id, id != 0, screen.Scroller{}
}

// current is all that is known of the inquiry under the cursor, or nil.
func (v *Inquiries) current() *monitor.InquiryDetail {
	if d := v.env.Data.Inquiry; d != nil && d.ID == v.Subject() {
		return d
	}
	return nil
}

// asks is what a person is asked for. It is made once for what was read.
func (v *Inquiries) asks(d *monitor.InquiryDetail) *inquiry.AnswerForm {
	if v.formOf != d {
		v.form, v.formOf = d.Form(), d
	}
	return v.form
}

// Title is the text of the title rule.
func (v *Inquiries) Title() (left, right string) {
	left, right = "Inquiries", v.SortKey()
	if v.detail {
		left += " › " + strconv.FormatInt(v.Subject(), 10)
	}
	if v.Order().Reverse {
		right += " reversed"
	}
	right = screen.ListTitle(right, v.Problems(), v.Filter())
	if p := v.env.Data.Inquiries; p != nil {
		right += " · " + v.env.Count(p.Open) + " waiting"
		if v.next != "" && v.Order() != (screen.Order{}) {
			right += " · " + strconv.Itoa(v.Len()) + " read, ordered among themselves"
		}
	}
	return left, right + v.env.Mark(screen.FeedInquiries)
}

// Do carries out an action.
func (v *Inquiries) Do(action keymap.Action) screen.Effect {
	switch {
	case v.detail && action == keymap.Open:
		return v.asking()
	case v.detail:
		h := v.env.Height
		last := screen.WindowEnd(len(v.about(v.env.Width-1)), h)
		return screen.Effect{Handled: v.scroll.Do(action, h, last)}
	case action == keymap.Open && v.Subject() != 0:
		v.detail, v.scroll = true, screen.Scroller{}
		return screen.Effect{Handled: true}
	}
	return v.List.Do(action)
}

// asking opens the workflow whose task asks, or the execution.
func (v *Inquiries) asking() screen.Effect {
	d := v.current()
	switch {
	case d == nil:
		return screen.Effect{Handled: true, Note: "The inquiry is being read."}
	case d.Workflow != nil:
		return screen.OpenWorkflow(*d.Workflow)
	default:
		return screen.OpenExecution(d.Execution)
	}
}

// Leave closes the detail.
func (v *Inquiries) Leave() bool {
	was, sent := v.detail, v.wanted != 0
	v.detail, v.wanted = false, 0
	return was && !sent
}

// Select puts the cursor on a line of the body.
func (v *Inquiries) Select(line int) bool {
	if v.detail {
		return false
	}
	v.wanted = 0
	return v.List.Select(line)
}

// Acts is what may be done with the inquiries that are marked, else with the one under
// the cursor, whose form the answer of all of them has. Until that is read it is not
// known.
func (v *Inquiries) Acts() (act.Menu, bool) {
	d := v.current()
	if d == nil {
		return act.Menu{}, false
	}
	menu := act.ForInquiry(d, v.asks(d))
	if keys := v.Table().Marked(); len(keys) > 0 && !v.detail {
		menu = act.ForMarkedInquiries(screen.Targets(keys), menu)
	}
	return menu, true
}

// asked is the inquiry under the cursor, as far as it is known; nil without one.
func (v *Inquiries) asked() *row {
	switch d := v.current(); {
	case d != nil:
		return &d.Inquiry
	case v.wanted != 0:
		return nil
	}
	return v.Current()
}

// RelatedExecution is the execution that asks.
func (v *Inquiries) RelatedExecution() (*monitor.Execution, bool) {
	i := v.asked()
	if i == nil || i.Execution == 0 {
		return nil, false
	}
	return &monitor.Execution{ID: i.Execution, ActionRef: i.ActionRef, Status: i.ExecutionStatus,
		Parent: i.Workflow}, true
}

// Relations is what the inquiry under the cursor has to do with, first who asks.
func (v *Inquiries) Relations() (title string, related []screen.Relation, ok bool) {
	i := v.asked()
	if i == nil {
		return "", nil, false
	}
	title = "inquiry " + key(i)
	x, ok := v.RelatedExecution()
	if !ok {
		return title, []screen.Relation{{Key: "x", Label: "execution", Not: "none asks any more"}}, true
	}
	task := screen.Relation{Key: "t", Label: "task", Not: "no workflow asks"}
	if i.Workflow != nil {
		task.Not, task.Help = "", i.Task+" of "+i.WorkflowRef
		task.To = screen.OpenWorkflow(*i.Workflow)
	}
	related = []screen.Relation{
		{
			Key: "x", Label: "execution", Help: strconv.FormatInt(x.ID, 10) + "  " + x.ActionRef,
			To: screen.OpenExecution(x.ID),
		},
		task,
	}
	return title, append(related, screen.ExecutionRelations(x, nil)...), true
}

// Shows is the question that takes the whole view.
func (v *Inquiries) Shows() (screen.Thing, bool) {
	d := v.current()
	if !v.detail || d == nil {
		return screen.Thing{}, false
	}
	return thing(&d.Inquiry, d), true
}

func thing(i *row, value any) screen.Thing {
	t := screen.Numbered("inquiry", i.ID, "inquiry", "inquiry", value)
	t.Execution = i.Execution
	return t
}
