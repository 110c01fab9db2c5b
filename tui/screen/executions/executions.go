// Package executions is the list of executions, the newest or the oldest first.
//
// The list is paged by key: while the cursor is on the first row it follows
// what is new; once the operator moves down, the polls read the page that is on
// the screen, so that nothing moves under the cursor and the rows in sight are
// still fresh.
package executions

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/execution"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Executions is the view.
type Executions struct {
	env     *screen.Env
	table   *widget.Table
	pages   screen.Pages[monitor.Execution]
	rows    []monitor.Execution
	text    string
	query   monitor.ExecutionFilter
	preview bool
	// problems adds the statuses that mean trouble to the filter.
	problems bool
	screen.Sorted

	// asked counts the questions that the rows have answered.
	asked int
}

// sorts are the orders that an index serves, however many executions there are.
var sorts = []string{"newest", "oldest"}

var columns = []widget.Column{
	{Title: "EXEC", Width: 9, Right: true},
	{Title: "STATUS", Width: 12},
	{Title: "ACTION", Width: 21, Grow: true, Middle: true},
	{Title: "WORKER", Width: 17, Middle: true, Priority: 2},
	{Title: "FOR", Width: 7, Right: true},
	{Title: "TRY", Width: 4, Right: true, Priority: 1},
	{Title: "CREATED", Width: 8, Priority: 3},
	{Title: "REASON", Width: 34, Priority: 4},
	{Title: inParams, Width: 30, Share: 40, Priority: 6},
	{Title: "PARENT", Width: 9, Right: true, Priority: 5},
}

// inParams is the column that is read only where it is drawn.
const inParams = "PARAMETERS"

// New makes the view.
func New(env *screen.Env) *Executions {
	x := &Executions{env: env, table: widget.NewFeed(columns), preview: true, Sorted: screen.NewSorted(sorts...)}
	x.pages = screen.NewPages(func(r *monitor.Execution) int64 { return x.turn(r.ID) })
	return x
}

// oldest reports whether the oldest come first.
func (x *Executions) oldest() bool { return (x.SortKey() == "oldest") != x.Order().Reverse }

// end names the end of the executions that the list begins with.
func (x *Executions) end() string {
	if x.oldest() {
		return "oldest"
	}
	return "newest"
}

// turn makes a place in the list of an id, and an id of a place.
func (x *Executions) turn(id int64) int64 {
	if x.oldest() {
		return -id
	}
	return id
}

// Table is the list, with its marks and columns.
func (x *Executions) Table() *widget.Table { return x.table }

// Problems reports whether only what means trouble is listed.
func (x *Executions) Problems() bool { return x.problems }

// View is the name of the screen.
func (x *Executions) View() screen.View { return keymap.InExecutions }

// Feeds is what the view needs polled.
func (x *Executions) Feeds() []screen.Feed {
	feeds := []screen.Feed{screen.FeedExecutions}
	if x.Subject() != 0 {
		feeds = append(feeds, screen.FeedGlance, screen.FeedFamily)
	}
	if x.pages.Next() != 0 { // while there are more than were read
		feeds = append(feeds, screen.FeedMatches)
	}
	return feeds
}

// matches is how many match what is listed now, or nil.
func (x *Executions) matches() *screen.Matches {
	if n := x.env.Data.Matches; n != nil && n.Asked == x.asked {
		return n
	}
	return nil
}

// Subject is the execution that is told of below the list; zero where there is none.
func (x *Executions) Subject() int64 {
	at := x.table.Cursor()
	if at < 0 || at >= len(x.rows) || screen.PreviewHeight(x.env.Width, x.env.Height, x.preview) == 0 {
		return 0
	}
	return x.rows[at].ID
}

// Behind names what is to be read when another execution is told of than was read last,
// or when it was not counted how many match.
func (x *Executions) Behind() screen.Feed {
	if id := x.Subject(); id != 0 {
		if unread := execution.Unread(x.env, id); unread != "" {
			return unread
		}
	}
	if x.pages.Next() != 0 && x.matches() == nil && x.env.Data.Fresh(screen.FeedMatches).Err == nil {
		return screen.FeedMatches
	}
	return ""
}

// Cursor is where the next poll starts: zero for the first rows, otherwise the key
// just above the first row on the screen, or below the last loaded row when the
// operator has come near it.
func (x *Executions) Cursor() int64 {
	at := x.table.Cursor()
	if at <= 0 || len(x.rows) == 0 {
		return 0
	}
	if next := x.pages.Next(); next != 0 && len(x.rows)-at < monitor.DefaultPage/4 {
		return x.turn(next)
	}
	return x.turn(x.turn(x.rows[min(x.table.Offset(), len(x.rows)-1)].ID) + 1)
}

// Title is the text of the title rule.
func (x *Executions) Title() (left, right string) {
	return "Executions", screen.ListTitle(x.end()+" first", x.problems, x.text) + x.env.Mark(screen.FeedExecutions)
}

// restart forgets the rows, since they answer another question.
func (x *Executions) restart() {
	x.pages.Forget()
	x.rows = nil
	x.asked++
	x.env.Data.Executions = nil
	x.table.SetRows(x)
}

// SetOrder reads the list in another order.
func (x *Executions) SetOrder(order screen.Order) {
	if x.Sort(order) {
		x.table.Top()
		x.restart()
	}
}

// Asked numbers the question that the rows answer.
func (x *Executions) Asked() int { return x.asked }

// Select puts the cursor on a line of the body.
func (x *Executions) Select(line int) bool { return x.table.Select(line - 1) }

// Changed takes over a page.
func (x *Executions) Changed(feed screen.Feed) {
	if d := x.env.Data.Executions; feed == screen.FeedExecutions && d != nil {
		x.merge(d)
		x.table.SetRows(x)
	}
}

// merge puts a page into the list. While the cursor is on the first row, a first page
// is the list; one from further down replaces the rows of its range.
func (x *Executions) merge(page *monitor.Executions) {
	switch {
	case page.From == 0 && x.table.Cursor() <= 0:
		x.pages.Reload(page.List, x.turn(page.Next))
	case page.From == 0 && !x.oldest(): // nothing moves under the cursor
	default:
		x.pages.Merge(page.List, x.turn(page.From), x.turn(page.Next))
	}
	x.rows = x.pages.Rows()
}

// Do carries out an action.
func (x *Executions) Do(action keymap.Action) screen.Effect {
	if screen.MoveTable(x.table, action) {
		effect := x.moved()
		effect.Take = action == keymap.MarkAll && x.pages.Next() != 0
		return effect
	}
	switch action {
	case keymap.Problems:
		x.problems = !x.problems
		x.restart()
		return screen.Effect{Handled: true, Refetch: screen.FeedExecutions}
	case keymap.Preview:
		x.preview = !x.preview
	case keymap.Xray:
		if at := x.table.Cursor(); at >= 0 {
			return screen.Effect{Handled: true, Open: keymap.InXray, Execution: x.rows[at].ID}
		}
	case keymap.Open:
		if at := x.table.Cursor(); at >= 0 {
			return screen.Effect{Handled: true, Open: keymap.InExecution, Execution: x.rows[at].ID}
		}
	default:
		return screen.Effect{}
	}
	return screen.Effect{Handled: true}
}

// moved asks for the next page when the end of what is loaded comes near.
func (x *Executions) moved() screen.Effect {
	effect := screen.Effect{Handled: true}
	if x.pages.Next() != 0 && len(x.rows)-x.table.Cursor() < monitor.DefaultPage/4 {
		effect.Refetch = screen.FeedExecutions
	}
	return effect
}

// Len is the number of rows.
func (x *Executions) Len() int { return len(x.rows) }

// Key identifies a row.
func (x *Executions) Key(row int) string { return strconv.FormatInt(x.rows[row].ID, 10) }

// Cells are the texts of a row.
func (x *Executions) Cells(row int, into []widget.Cell) []widget.Cell {
	e, r := x.env, &x.rows[row]
	parent := "-"
	if r.Parent != nil {
		parent = strconv.FormatInt(*r.Parent, 10)
	}
	return append(into,
		widget.Cell{Text: strconv.FormatInt(r.ID, 10)},
		e.StateCell(r.Status),
		widget.Cell{Text: r.ActionRef},
		widget.Cell{Text: screen.WorkerName(r.WorkerID, r.WorkerName)},
		widget.Cell{Text: widget.Age(e.Lasted(r))},
		widget.Cell{Text: monitor.Tries(r.RetryCount, r.MaxRetries)},
		widget.Cell{Text: r.Created.UTC().Format("15:04:05"), Role: theme.Dim},
		widget.Cell{Text: r.Reason, Role: theme.Dim},
		widget.Cell{Text: r.Params, Role: theme.Dim},
		widget.Cell{Text: parent, Role: theme.Dim},
	)
}

// Render draws the view.
func (x *Executions) Render(w, h int) []string {
	e := x.env
	if e.Data.Executions == nil {
		return e.Missing(screen.FeedExecutions, "the executions", w)
	}
	if len(x.rows) == 0 {
		return x.empty()
	}
	foot := []string{x.summary()}
	ph := screen.PreviewHeight(w, h, x.preview) * 2 / 3
	lines := widget.Fit(x.table.Lines(w, h-ph-1, e.Theme), w, h-ph-1)
	if ph > 0 {
		lines = append(lines, widget.Fit(x.previewLines(w), w, ph)...)
	}
	return append(lines, foot...)
}

func (x *Executions) empty() []string {
	if x.text == "" && !x.problems {
		return []string{"", " No execution exists yet. Request one:", "   attune-executor run core.echo -p message=hello"}
	}
	asked := "/" + x.text
	if x.problems {
		asked = strings.TrimPrefix(asked+", problems only", "/, ")
	}
	lines := []string{
		"", " No execution matches " + widget.Clean(asked) + ".",
		" esc clears the filter; terms: " + strings.Join(filter.Executions.Examples(), "  "),
	}
	switch d := x.env.Data.Executions; {
	case d.Bounded && d.Looked > 0:
		lines = append(lines, " Only the "+x.end()+" "+x.env.Num(d.Looked)+" were looked at; narrow the search with status:, age<, age> or id:a..b.")
	case d.Bounded:
		lines = append(lines, " The search stopped at its bound; older matches may exist.")
	}
	return lines
}

func (x *Executions) summary() string {
	e := x.env
	n, more := x.matches(), x.pages.Next() != 0
	if n != nil && !n.Count.AtLeast && n.Count.Value <= int64(len(x.rows)) {
		more = false // the page is full, and nothing follows
	}
	text := " " + e.Num(int64(len(x.rows))) + " loaded"
	if n != nil && more {
		text = " " + e.Num(int64(len(x.rows))) + " of " + e.Count(n.Count) + e.Mark(screen.FeedMatches) + " loaded"
	}
	if more {
		text += ", more below: G loads them"
	}
	switch d := e.Data.Executions; {
	case d.Bounded && d.Looked > 0 && d.From == 0:
		text += " · the " + x.end() + " " + e.Num(d.Looked) + " were looked at, the others are not in this list"
	case d.Bounded:
		text += " · search stopped at its bound"
	}
	if x.table.Cursor() > 0 {
		text += " · not following, gg returns to the " + x.end()
	}
	return e.Paint(theme.Dim, text) + e.GoneNote(x.table, "the execution under the cursor")
}

func (x *Executions) previewLines(w int) []string {
	at := x.table.Cursor()
	if at < 0 {
		return nil
	}
	r := &x.rows[at]
	return append([]string{x.env.Rule("preview "+strconv.FormatInt(r.ID, 10), "enter = full screen", w)}, execution.Preview(x.env, r, w)...)
}
