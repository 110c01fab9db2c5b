// Package executions is the list of executions, the newest or the oldest first.
//
// The list is paged by key: while the cursor is on the first row it follows
// what is new; once the operator moves down, the polls read the page that is on
// the screen, so that nothing moves under the cursor and the rows in sight are
// still fresh.
package executions

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/execution"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

type row = monitor.Execution

// Executions is the view.
type Executions struct {
	*list.List[row]

	env    *screen.Env
	pages  screen.Pages[row]
	query  monitor.ExecutionFilter
	glance *execution.Execution
}

// inParams is the column that is read only where it is drawn.
const inParams = "PARAMETERS"

var fields = []list.Field[row]{
	{Column: widget.Column{Title: "EXEC", Width: 9, Right: true}, Cell: list.Plain(key)},
	{
		Column: widget.Column{Title: "STATUS", Width: 12},
		Cell:   func(e *screen.Env, r *row) widget.Cell { return e.StateCell(r.Status) },
	},
	{
		Column: widget.Column{Title: "ACTION", Width: 21, Grow: true, Middle: true},
		Cell:   list.Plain(func(r *row) string { return r.ActionRef }),
	},
	{
		Column: widget.Column{Title: "WORKER", Width: 17, Middle: true, Priority: 2},
		Cell:   list.Plain(func(r *row) string { return screen.WorkerName(r.WorkerID, r.WorkerName) }),
	},
	{
		Column: widget.Column{Title: "FOR", Width: 7, Right: true},
		Cell:   func(e *screen.Env, r *row) widget.Cell { return widget.Cell{Text: widget.Age(e.Lasted(r))} },
	},
	{
		Column: widget.Column{Title: "TRY", Width: 4, Right: true, Priority: 1},
		Cell:   list.Plain(func(r *row) string { return monitor.Tries(r.RetryCount, r.MaxRetries) }),
	},
	{
		Column: widget.Column{Title: "CREATED", Width: 8, Priority: 3},
		Cell:   list.Dim(func(r *row) string { return r.Created.UTC().Format("15:04:05") }),
		Sort:   list.Order[row]{Key: 1, Name: "newest"},
	},
	{
		Column: widget.Column{Title: "REASON", Width: 34, Priority: 4},
		Cell:   list.Dim(func(r *row) string { return r.Reason }),
	},
	{
		Column: widget.Column{Title: inParams, Width: 30, Share: 40, Priority: 6},
		Cell:   list.Dim(func(r *row) string { return r.Params }),
	},
	{
		Column: widget.Column{Title: "PARENT", Width: 9, Right: true, Priority: 5},
		Cell: list.Dim(func(r *row) string {
			if r.Parent == nil {
				return "-"
			}
			return strconv.FormatInt(*r.Parent, 10)
		}),
	},
	{Sort: list.Order[row]{Key: 2, Name: "oldest"}}, // an index serves both, however many executions there are
}

func key(r *row) string { return strconv.FormatInt(r.ID, 10) }

// New makes the view.
func New(env *screen.Env) *Executions {
	v := &Executions{env: env, glance: execution.NewGlance(env)}
	v.pages = screen.NewPages(func(r *row) int64 { return v.turn(r.ID) })
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InExecutions, Singular: "execution", Plural: "executions", FollowTop: true,
		Feed: screen.FeedExecutions, MoreFeeds: v.needs, Stale: v.behind,
		Loaded: func() bool { return env.Data.Executions != nil }, Rows: func() []row { return v.pages.Rows() },
		Fields: fields, Key: key, Completions: v.known,
		Database: &list.Database{
			Schema: filter.Executions, Sorts: true,
			Ask: func(q *filter.Query) (err error) {
				asked, err := filter.ForExecutions(q)
				if err == nil {
					v.query = asked
				}
				return err
			},
		},
		Reset:  func() { v.pages.Forget(); env.Data.Executions = nil },
		Footer: v.summary, Preview: v.preview, NoRows: v.nothing,
		PreviewHeight: func(w, h int) int { return screen.PreviewHeight(w, h, v.PreviewShown()) * 2 / 3 },
		Open:          func(r *row) screen.Effect { return screen.OpenExecution(r.ID) },
		CursorMoved:   v.moved,
		Actions:       func(r *row) (act.Menu, bool) { return act.ForExecution(r), true },
		MarkedActions: func(keys []string) act.Menu { return act.ForMarkedExecutions(screen.Targets(keys)) },
		Relations: func(r *row) (string, []screen.Relation) {
			return "execution " + key(r), screen.ExecutionRelations(r, nil)
		},
		Export: func(r *row) screen.Thing { return screen.ExecutionThing(r, *r) },
	})
	return v
}

// oldest reports whether the oldest come first.
func (v *Executions) oldest() bool { return (v.SortKey() == "oldest") != v.Order().Reverse }

// end names the end of the executions that the list begins with.
func (v *Executions) end() string {
	if v.oldest() {
		return "oldest"
	}
	return "newest"
}

// turn makes a place in the list of an id, and an id of a place.
func (v *Executions) turn(id int64) int64 {
	if v.oldest() {
		return -id
	}
	return id
}

func (v *Executions) needs() []screen.Feed {
	var feeds []screen.Feed
	if v.Subject() != 0 {
		feeds = append(feeds, screen.FeedGlance, screen.FeedFamily)
	}
	if v.pages.Next() != 0 { // while there are more than were read
		feeds = append(feeds, screen.FeedMatches)
	}
	return feeds
}

// matches is how many match what is listed now, or nil.
func (v *Executions) matches() *screen.Matches {
	if n := v.env.Data.Matches; n != nil && n.Asked == v.Asked() {
		return n
	}
	return nil
}

// Subject is the execution that is told of below the list; zero where there is none.
func (v *Executions) Subject() int64 {
	r := v.Current()
	if r == nil || screen.PreviewHeight(v.env.Width, v.env.Height, v.PreviewShown()) == 0 {
		return 0
	}
	return r.ID
}

// behind names what is to be read when another execution is told of than was read last,
// or when it was not counted how many match.
func (v *Executions) behind() screen.Feed {
	if id := v.Subject(); id != 0 {
		if unread := execution.Unread(v.env, id); unread != "" {
			return unread
		}
	}
	if v.pages.Next() != 0 && v.matches() == nil && v.env.Data.Fresh(screen.FeedMatches).Err == nil {
		return screen.FeedMatches
	}
	return ""
}

// troubled are the statuses that mean trouble.
var troubled = []attune.Status{attune.StatusFailed, attune.StatusTimeout, attune.StatusAbandoned,
	attune.StatusCanceling}

// Query is the filter that the database applies.
func (v *Executions) Query() monitor.ExecutionFilter {
	q := v.query
	q.Oldest, q.WithParams = v.oldest(), v.Table().Shows(inParams)
	if !v.Problems() {
		return q
	}
	q.Or = slices.Clone(q.Or)
	for i := range q.Or {
		trouble(&q.Or[i])
	}
	trouble(&q)
	return q
}

// trouble keeps of an alternative what means trouble, unless it names statuses
// itself.
func trouble(f *monitor.ExecutionFilter) {
	if len(f.Statuses) == 0 {
		f.Statuses = troubled
	}
}

// Cursor is where the next poll starts: zero for the first rows, otherwise the key
// just above the first row on the screen, or below the last loaded row when the
// operator has come near it.
func (v *Executions) Cursor() int64 {
	at, rows := v.Table().Cursor(), v.VisibleRows()
	if at <= 0 || len(rows) == 0 {
		return 0
	}
	if next := v.pages.Next(); next != 0 && len(rows)-at < monitor.DefaultPage/4 {
		return v.turn(next)
	}
	return v.turn(v.turn(rows[min(v.Table().Offset(), len(rows)-1)].ID) + 1)
}

// Changed takes over a page. While the cursor is on the first row, a first page is the list;
// one from further down replaces the rows of its range.
func (v *Executions) Changed(feed screen.Feed) {
	v.glance.Changed(feed)
	page := v.env.Data.Executions
	if feed != screen.FeedExecutions || page == nil {
		return
	}
	switch {
	case page.From == 0 && v.Table().Cursor() <= 0:
		v.pages.Reload(page.List, v.turn(page.Next))
	case page.From == 0 && !v.oldest(): // nothing moves under the cursor
	default:
		v.pages.Merge(page.List, v.turn(page.From), v.turn(page.Next))
	}
	v.Rebuild(false)
}

// Do carries out an action.
func (v *Executions) Do(action keymap.Action) screen.Effect {
	if r := v.Current(); action == keymap.Xray && r != nil {
		return screen.OpenTree(r.ID)
	}
	return v.List.Do(action)
}

// moved asks for the next page when the end of what is loaded comes near.
func (v *Executions) moved(action keymap.Action) screen.Effect {
	effect := screen.Effect{Handled: true}
	if v.pages.Next() != 0 {
		effect.Take = action == keymap.MarkAll
		if v.Len()-v.Table().Cursor() < monitor.DefaultPage/4 {
			effect.Refetch = screen.FeedExecutions
		}
	}
	return effect
}

// known lists the values of a field that were read lately.
func (v *Executions) known(field string) []string {
	var known screen.Distinct
	d := v.env.Data
	switch field {
	case "action":
		if d.Queues != nil {
			for i := range d.Queues.List {
				known.Add(d.Queues.List[i].ActionRef)
			}
		}
		for i := range v.VisibleRows() {
			known.Add(v.VisibleRows()[i].ActionRef)
		}
	case "worker":
		if d.Workers != nil {
			for i := range d.Workers.List {
				known.Add(d.Workers.List[i].Name)
			}
		}
		for i := range v.VisibleRows() {
			known.Add(v.VisibleRows()[i].WorkerName)
		}
	}
	return known.List()
}

// RelatedExecution is the execution under the cursor.
func (v *Executions) RelatedExecution() (*monitor.Execution, bool) {
	r := v.Current()
	return r, r != nil
}

// Title is the text of the title rule.
func (v *Executions) Title() (left, right string) {
	right = screen.ListTitle(v.end()+" first", v.Problems(), v.Filter())
	return "Executions", right + v.env.Mark(screen.FeedExecutions)
}

func (v *Executions) nothing() []string {
	if v.Filter() == "" && !v.Problems() {
		return []string{"", " No execution exists yet. Request one:",
			"   attune-executor run core.echo -p message=hello"}
	}
	asked := "/" + v.Filter()
	if v.Problems() {
		asked = strings.TrimPrefix(asked+", problems only", "/, ")
	}
	lines := []string{
		"", " No execution matches " + widget.Clean(asked) + ".",
		" esc clears the filter; terms: " + strings.Join(filter.Executions.Examples(), "  "),
	}
	switch d := v.env.Data.Executions; {
	case d.Bounded && d.Looked > 0:
		lines = append(lines, " Only the "+v.end()+" "+v.env.Num(d.Looked)+
			" were looked at; narrow the search with status:, age<, age> or id:a..b.")
	case d.Bounded:
		lines = append(lines, " The search stopped at its bound; older matches may exist.")
	}
	return lines
}

func (v *Executions) summary(int) []string {
	e, loaded := v.env, int64(v.Len())
	n, more := v.matches(), v.pages.Next() != 0
	if n != nil && !n.Count.AtLeast && n.Count.Value <= loaded {
		more = false // the page is full, and nothing follows
	}
	text := " " + e.Num(loaded) + " loaded"
	if n != nil && more {
		text = " " + e.Num(loaded) + " of " + e.Count(n.Count) + e.Mark(screen.FeedMatches) + " loaded"
	}
	if more {
		text += ", more below: G loads them"
	}
	switch d := e.Data.Executions; {
	case d.Bounded && d.Looked > 0 && d.From == 0:
		text += " · the " + v.end() + " " + e.Num(d.Looked) + " were looked at, the others are not in this list"
	case d.Bounded:
		text += " · search stopped at its bound"
	}
	if v.Table().Cursor() > 0 {
		text += " · not following, gg returns to the " + v.end()
	}
	return []string{e.Paint(theme.Dim, text) + v.Gone()}
}

func (v *Executions) preview(w, _ int) []string {
	r := v.Current()
	if r == nil {
		return nil
	}
	rule := v.env.Rule("preview "+key(r), "enter = full screen", w)
	return append([]string{rule}, v.glance.Preview(r, w)...)
}
