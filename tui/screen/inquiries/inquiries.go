// Package inquiries shows the questions of workflows and actions to people: open ones first, the one
// that has waited longest on top, then the inquiries that were answered, timed out or were cancelled.
package inquiries

import (
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
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
	// open and ended are the two parts of the list, each paged; next is the cursor of the next page,
	// empty at the end.
	open, ended screen.Pages[row]
	next        string
	goOn        bool // an empty list searches its next page once
	query       monitor.InquiryFilter
	// linked is an inquiry that another view opened; it is shown until the cursor moves.
	linked int64
	// detail is true while one inquiry takes the whole view.
	detail bool
	scroll screen.Scroller
	form   *inquiry.AnswerForm // of the inquiry that was read last
}

var fields = []list.Field[row]{
	list.Text("INQUIRY", 8, key).Right(),
	list.Order(1, "waiting first", func(*screen.Env, *row, *row) int { return 0 }), // as they are read
	list.State("STATUS", 11, func(i *row) string { return i.Status }),
	list.Age("AGE", 7, func(i *row) *time.Time { return &i.Created }).Sort(3, "age"),
	list.Draw("LEFT", 7, func(e *screen.Env, i *row) widget.Cell {
		if !i.Open() || i.TimeoutAt == nil {
			return widget.Cell{Text: "-"}
		}
		return e.Worry(widget.Age(i.TimeoutAt.Sub(e.Now)), late(i, e.Now))
	}).Right().SortBy(2, "time left", list.Ascending(func(i *row) time.Duration {
		if i.Left == nil {
			return 1<<63 - 1 // never
		}
		return *i.Left
	})),
	list.Text("FOR", 10, (*row).For).Middle().Priority(1),
	list.Term("assigned", "", func(i *row) string { return i.Assignee }),
	list.Text("QUESTION", 20, func(i *row) string { return i.Prompt }).Grow(),
	list.Text("ASKED BY", 20, (*row).AskedBy).Dim().Middle().Priority(2).Sort(4, "asked by"),
	list.Terms("action", "", func(_ *screen.Env, i *row) []string { return []string{i.WorkflowRef, i.ActionRef} }),
	list.Term("task", "", func(i *row) string { return i.Task }),
}

func key(i *row) string { return strconv.FormatInt(i.ID, 10) }

// late reports whether four fifths of the time for an answer are over.
func late(i *row, now time.Time) bool {
	return i.TimeoutAt != nil && i.TimeoutAt.Sub(now) < i.TimeoutAt.Sub(i.Created)/5
}

// New makes the view.
func New(env *screen.Env) *Inquiries {
	v := &Inquiries{env: env}
	v.open = screen.NewPages(func(i *row) int64 { return -i.ID })
	v.ended = screen.NewPages(func(i *row) int64 { return i.ID })
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InInquiries, Title: "Inquiries", Singular: "inquiry", Plural: "inquiries",
		FollowTop: true, Feed: screen.FeedInquiries,
		MoreFeeds: func() []screen.Feed {
			if v.Subject() == 0 {
				return nil
			}
			return []screen.Feed{screen.FeedInquiry}
		},
		Stale: func() screen.Feed {
			if v.Subject() != 0 && v.current() == nil {
				return screen.FeedInquiry
			}
			return ""
		},
		Loaded: func() bool { return env.Data.Inquiries != nil },
		Rows:   func() []row { return slices.Concat(v.open.Rows(), v.ended.Rows()) },
		Fields: fields, Key: key, Reset: v.reset, CursorMoved: v.cursorMoved,
		Database: &list.Database{Schema: filter.Inquiries, Ask: screen.StoreFilter(&v.query, filter.ForInquiries)},
		GroupOrder: func(x, y *row) int {
			switch {
			case x.Open() == y.Open():
				return 0
			case x.Open():
				return -1
			default:
				return 1
			}
		},
		Actions: func(*row) (act.Menu, bool) { return act.Menu{}, false },
		Export:  func(i *row) screen.Thing { return export(i, *i) },
		More: func() bool {
			d := env.Data.Inquiries
			return d != nil && (d.Next != "" || d.Bounded)
		},
		GoesOn:    func() string { return list.PartSearched(v.next != "") },
		NoProblem: "No question waits for long, is due soon, or timed out.",
		EmptyText: []string{
			" No question has been asked yet.",
			" A task with the action core.ask asks a person, and its workflow goes on",
			" from the answer: docs/inquiries.md",
		},
	})
	return v
}

// Subject is the inquiry that another view opened, or else the selected one; 0 if none.
func (v *Inquiries) Subject() int64 {
	if i := v.Current(); i != nil && v.linked == 0 {
		return i.ID
	}
	return v.linked
}

// noDetail is what Shown says while the list is shown.
const noDetail = "list"

// Shown names the inquiry that takes the whole view.
func (v *Inquiries) Shown() string {
	if !v.detail {
		return noDetail
	}
	return strconv.FormatInt(v.Subject(), 10)
}

// Show opens one inquiry, or the list.
func (v *Inquiries) Show(name string) {
	id := screen.Number(name)
	v.linked, v.detail, v.scroll = id, id != 0, screen.Scroller{}
}

// current is the inquiry of Subject, nil until it was read.
func (v *Inquiries) current() *monitor.InquiryDetail {
	if d := v.env.Data.Inquiry; d != nil && d.ID == v.Subject() {
		return d
	}
	return nil
}

// Title is the text of the title rule.
func (v *Inquiries) Title() (left, right string) {
	left = "Inquiries"
	if v.detail {
		left += " › " + strconv.FormatInt(v.Subject(), 10)
	}
	right = screen.ListTitle(screen.OrderName(v), v.Problems(), v.Filter())
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
	switch d := v.current(); {
	case v.detail && action == keymap.Open && d == nil:
		return screen.Effect{Handled: true, Note: "The inquiry has not been read yet."}
	case v.detail && action == keymap.Open && d.Workflow != nil:
		return screen.OpenWorkflow(*d.Workflow)
	case v.detail && action == keymap.Open:
		return screen.OpenExecution(d.Execution)
	case v.detail:
		h := v.env.Height
		last := screen.WindowEnd(len(v.detailLines(v.env.Width-1)), h)
		return screen.Effect{Handled: v.scroll.Do(action, h, last)}
	case action == keymap.Open && v.Subject() != 0:
		v.detail, v.scroll = true, screen.Scroller{}
		return screen.Effect{Handled: true}
	}
	return v.List.Do(action)
}

// Leave closes the detail.
func (v *Inquiries) Leave() bool {
	was, linked := v.detail, v.linked != 0
	v.detail, v.linked = false, 0
	return was && !linked
}

// Acts is the menu for the marked inquiries, or else for the selected one. All marked ones are
// answered with the form of the selected one, so there is no menu until that was read.
func (v *Inquiries) Acts() (act.Menu, bool) {
	d := v.current()
	if d == nil {
		return act.Menu{}, false
	}
	menu := act.ForInquiry(d, v.form)
	if keys := v.Table().Marked(); len(keys) > 0 && !v.detail {
		menu = act.ForMarkedInquiries(screen.Targets(keys), menu)
	}
	return menu, true
}

// subjectRow is the inquiry of Subject as far as it was read, or nil.
func (v *Inquiries) subjectRow() *row {
	switch d := v.current(); {
	case d != nil:
		return &d.Inquiry
	case v.linked != 0:
		return nil
	}
	return v.Current()
}

// RelatedExecution is the execution that asks.
func (v *Inquiries) RelatedExecution() (*monitor.Execution, bool) {
	i := v.subjectRow()
	if i == nil || i.Execution == 0 {
		return nil, false
	}
	return &monitor.Execution{
		ID: i.Execution, ActionRef: i.ActionRef, Status: i.ExecutionStatus,
		Parent: i.Workflow,
	}, true
}

// Relations lists what is related to the inquiry, first the execution that asks.
func (v *Inquiries) Relations() (title string, related []screen.Relation, ok bool) {
	i := v.subjectRow()
	if i == nil {
		return "", nil, false
	}
	title = "inquiry " + key(i)
	x, ok := v.RelatedExecution()
	if !ok {
		return title, []screen.Relation{{Key: "x", Label: "execution", Not: "it was deleted"}}, true
	}
	task := screen.Relation{Key: "t", Label: "task", Not: "no workflow asks"}
	if i.Workflow != nil {
		task.Leads(i.Task+" of "+i.WorkflowRef, screen.OpenWorkflow(*i.Workflow))
	}
	related = []screen.Relation{screen.ExecutionRelation(x), task}
	return title, append(related, screen.ExecutionRelations(x, nil)...), true
}

// Shows is the inquiry that takes the whole view.
func (v *Inquiries) Shows() (screen.Thing, bool) {
	d := v.current()
	if !v.detail || d == nil {
		return screen.Thing{}, false
	}
	return export(&d.Inquiry, d), true
}

func export(i *row, value any) screen.Thing {
	t := screen.Numbered("inquiry", i.ID, "inquiry", "inquiry", value)
	t.Execution = i.Execution
	return t
}
