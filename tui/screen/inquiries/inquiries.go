// Package inquiries shows the questions that workflows and actions have put to
// people: those that wait for an answer first, the one that has waited longest on
// top, then those that were answered or are over.
package inquiries

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Inquiries is the view.
type Inquiries struct {
	env   *screen.Env
	table *widget.Table
	// rows are those that wait and below them those that are over, each read page by
	// page.
	rows       []monitor.Inquiry
	keys       []string
	open, over screen.Pages[monitor.Inquiry]
	// next is where the list goes on, empty at its end.
	next string
	screen.Sorted

	text  string
	query monitor.InquiryFilter
	// asked counts the questions that the rows have answered.
	question int
	problems bool
	preview  bool
	// wanted is an inquiry that another view sent to; it is shown until the cursor moves.
	wanted int64
	// detail is true while all that is known of one takes the whole view.
	detail          bool
	scroll, visible int
	// form is what the response of formOf must look like.
	form   *inquiry.AnswerForm
	formOf *monitor.InquiryDetail
}

var columns = []widget.Column{
	{Title: "INQUIRY", Width: 8, Right: true},
	{Title: "STATUS", Width: 11},
	{Title: "AGE", Width: 7, Right: true},
	{Title: "LEFT", Width: 7, Right: true},
	{Title: "FOR", Width: 10, Middle: true, Priority: 1},
	{Title: "QUESTION", Width: 20, Grow: true},
	{Title: "ASKED BY", Width: 20, Middle: true, Priority: 2},
}

// sorts are the orders to choose from. Within each, those that wait come first.
var sorts = []string{"waiting first", "time left", "age", "asked by"}

// New makes the view.
func New(env *screen.Env) *Inquiries {
	v := &Inquiries{env: env, table: widget.NewTable(columns), preview: true, Sorted: screen.NewSorted(sorts...)}
	v.open = screen.NewPages(func(i *monitor.Inquiry) int64 { return -i.ID })
	v.over = screen.NewPages(func(i *monitor.Inquiry) int64 { return i.ID })
	return v
}

// Problems reports whether only what means trouble is listed.
func (v *Inquiries) Problems() bool { return v.problems }

// View is the name of the screen.
func (v *Inquiries) View() screen.View { return keymap.InInquiries }

// Feeds is what the view needs polled: one alone only while there is one to show.
func (v *Inquiries) Feeds() []screen.Feed {
	if v.Subject() == 0 {
		return []screen.Feed{screen.FeedInquiries}
	}
	return []screen.Feed{screen.FeedInquiries, screen.FeedInquiry}
}

// Table is the list.
func (v *Inquiries) Table() *widget.Table { return v.table }

// Subject is the inquiry under the cursor; 0 while there is none.
func (v *Inquiries) Subject() int64 {
	if v.wanted != 0 {
		return v.wanted
	}
	if at := v.table.Cursor(); at >= 0 && at < len(v.rows) {
		return v.rows[at].ID
	}
	return 0
}

// Behind asks for another inquiry than the one that was read last.
func (v *Inquiries) Behind() screen.Feed {
	if v.Subject() != 0 && v.current() == nil {
		return screen.FeedInquiry
	}
	return ""
}

// Show opens one inquiry.
func (v *Inquiries) Show(id int64) { v.wanted, v.detail, v.scroll = id, true, 0 }

// inLists is what Shown says while no inquiry takes the whole view.
const inLists = "list"

// Shown names the inquiry that takes the whole view.
func (v *Inquiries) Shown() string {
	if !v.detail {
		return inLists
	}
	return strconv.FormatInt(v.Subject(), 10)
}

// ShowAgain turns back to it.
func (v *Inquiries) ShowAgain(name string) {
	id, err := strconv.ParseInt(name, 10, 64)
	switch {
	case name == v.Shown():
	case err != nil:
		v.detail, v.wanted = false, 0
	default:
		v.Show(id)
	}
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
	right = screen.ListTitle(right, v.problems, v.text)
	if p := v.env.Data.Inquiries; p != nil {
		right += " · " + v.env.Count(p.Open) + " waiting"
		if order := v.Order(); v.next != "" && (order.Reverse || v.SortKey() != sorts[0]) {
			right += " · " + strconv.Itoa(len(v.rows)) + " read, ordered among themselves"
		}
	}
	return left, right + v.env.Mark(screen.FeedInquiries)
}

// SetOrder puts the list in order.
func (v *Inquiries) SetOrder(order screen.Order) {
	if v.Sort(order) {
		v.env.LastKey = time.Time{} // sorting is asked for: it is not put off
		v.rebuild()
	}
}

// Changed takes over new data.
func (v *Inquiries) Changed(feed screen.Feed) {
	if feed == screen.FeedInquiries {
		v.merge()
		v.rebuild()
	}
}

func (v *Inquiries) rebuild() {
	if v.env.Data.Inquiries == nil {
		return
	}
	v.rows, v.keys = screen.Arrange(v.env, slices.Concat(v.open.Rows(), v.over.Rows()), v.keys, func(x, y *monitor.Inquiry) int {
		return cmp.Or(cmp.Compare(ended(x), ended(y)), v.Order().Apply(v.compare(x, y)))
	}, key)
	v.table.SetRows(v)
}

func key(i *monitor.Inquiry) string { return strconv.FormatInt(i.ID, 10) }

func ended(i *monitor.Inquiry) int {
	if i.Open() {
		return 0
	}
	return 1
}

// compare puts two inquiries in the chosen order; equal ones stay as they were read.
func (v *Inquiries) compare(x, y *monitor.Inquiry) int {
	const never = time.Duration(1<<63 - 1)
	left := func(i *monitor.Inquiry) time.Duration {
		if i.Left == nil {
			return never
		}
		return *i.Left
	}
	switch v.SortKey() {
	case "time left":
		return cmp.Compare(left(x), left(y))
	case "age":
		return x.Created.Compare(y.Created)
	case "asked by":
		return strings.Compare(asker(x), asker(y))
	default:
		return 0
	}
}

// Do carries out an action.
func (v *Inquiries) Do(action keymap.Action) screen.Effect {
	if v.detail {
		return v.inDetail(action)
	}
	if screen.MoveTable(v.table, action) {
		v.wanted = 0
		return v.moved(action)
	}
	switch action {
	case keymap.Problems:
		v.problems = !v.problems
		v.restart()
		return screen.Effect{Handled: true, Refetch: screen.FeedInquiries}
	case keymap.Preview:
		v.preview = !v.preview
	case keymap.Open:
		if v.Subject() != 0 {
			v.detail, v.scroll = true, 0
		}
	default:
		return screen.Effect{}
	}
	return screen.Effect{Handled: true}
}

// inDetail scrolls one inquiry, and leads to what asks it.
func (v *Inquiries) inDetail(action keymap.Action) screen.Effect {
	if action == keymap.Open {
		return v.asking()
	}
	return screen.Effect{Handled: screen.Scroll(&v.scroll, action, v.visible)}
}

// asking opens the workflow whose task asks, or the execution.
func (v *Inquiries) asking() screen.Effect {
	d := v.current()
	switch {
	case d == nil:
		return screen.Effect{Handled: true, Note: "The inquiry is being read."}
	case d.Workflow != nil:
		return screen.Effect{Handled: true, Open: keymap.InWorkflows, Workflow: *d.Workflow}
	default:
		return screen.Effect{Handled: true, Open: keymap.InExecution, Execution: d.Execution}
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
	return v.table.Select(line - 1)
}

// Len is the number of rows.
func (v *Inquiries) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *Inquiries) Key(row int) string { return v.keys[row] }

// Cells are the texts of a row.
func (v *Inquiries) Cells(row int, into []widget.Cell) []widget.Cell {
	e, i := v.env, &v.rows[row]
	left := widget.Cell{Text: "-"}
	if i.Open() && i.TimeoutAt != nil {
		left = e.Worry(widget.Age(i.TimeoutAt.Sub(e.Now)), late(i, e.Now))
	}
	return append(into,
		widget.Cell{Text: key(i)},
		e.StateCell(i.Status),
		widget.Cell{Text: widget.Age(e.Since(i.Created))},
		left,
		widget.Cell{Text: whom(i)},
		widget.Cell{Text: i.Prompt},
		widget.Cell{Text: asker(i), Role: theme.Dim},
	)
}

// late reports whether a question has used up most of its time.
func late(i *monitor.Inquiry, now time.Time) bool {
	return i.TimeoutAt != nil && i.TimeoutAt.Sub(now) < i.TimeoutAt.Sub(i.Created)/5
}

// whom names who is to answer.
func whom(i *monitor.Inquiry) string {
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
func asker(i *monitor.Inquiry) string {
	if i.Workflow != nil {
		text := i.WorkflowRef
		if i.Task != "" {
			text += " · " + i.Task
		}
		return text
	}
	return i.ActionRef
}
