// Package executions is the list of executions, the newest or the oldest first.
//
// The list is paged by key. While the cursor is on the first row, polls read the first page and new
// executions appear. Once the operator moves down, polls read the page on the screen: its rows stay
// fresh, and none moves under the cursor.
package executions

import (
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
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
	search search
	glance *execution.Execution
}

// search is how far the database has looked for matches that no index finds.
type search struct {
	// bounded is true if it stopped before the end, on while it goes on page by page.
	bounded, on bool
	// looked counts the executions until there, left says about how many are below.
	looked, left int64
}

// text says how far the search has come, and which key goes on or stops.
func (s *search) text(e *screen.Env, end string) string {
	of := " of about " + e.Num(s.looked+s.left)
	if s.on {
		return "searched " + e.Num(s.looked) + of + " · esc stops"
	}
	return "searched the " + end + " " + e.Num(s.looked) + of + ": G goes on"
}

// paramsColumn is read from the database only while it is drawn.
const paramsColumn = "PARAMETERS"

var fields = []list.Field[row]{
	list.Text("EXEC", 9, key).Right(),
	list.Draw("STATUS", 12, func(e *screen.Env, r *row) widget.Cell {
		if r.RepeatedBy != 0 { // another execution is of interest now
			return widget.Cell{Text: e.Theme.Glyphs.Again + " " + r.Status, Role: theme.Dim}
		}
		return e.StateCell(r.Status)
	}),
	list.Text("ACTION", 21, func(r *row) string { return r.ActionRef }).Grow().Middle().Term("action", ""),
	list.Term("worker", "", func(r *row) string { return r.WorkerName }),
	list.Text("WORKER", 17, func(r *row) string { return monitor.WorkerName(r.WorkerID, r.WorkerName) }).Middle().
		Priority(2),
	list.Lasts("FOR", 7, (*screen.Env).Lasted),
	list.Text("TRY", 4, (*row).Try).Right().Priority(1),
	list.Text("CREATED", 8, func(r *row) string { return screen.TimeOfDay(r.Created) }).Dim().Priority(3),
	list.Text("REASON", 34, (*row).Why).Dim().Priority(4),
	list.Text(paramsColumn, 30, func(r *row) string { return r.Params }).Dim().Share(40).Priority(6),
	list.Text("PARENT", 9, func(r *row) string { return screen.Reference(r.Parent) }).Dim().Right().Priority(5),
	list.Order[row](1, "newest", nil), list.Order[row](2, "oldest", nil), // an index serves both
}

func key(r *row) string { return strconv.FormatInt(r.ID, 10) }

// New makes the view.
func New(env *screen.Env) *Executions {
	v := &Executions{env: env, glance: execution.NewGlance(env)}
	v.pages = screen.NewPages(func(r *row) int64 { return v.place(r.ID) })
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InExecutions, Singular: "execution", Plural: "executions", FollowTop: true,
		Feed: screen.FeedExecutions, Stale: v.stale,
		MoreFeeds: func() (feeds []screen.Feed) {
			if v.Subject() != 0 {
				feeds = append(feeds, screen.FeedGlance, screen.FeedFamily)
			}
			if v.pages.Next() != 0 { // the list does not hold all matches
				feeds = append(feeds, screen.FeedMatches)
			}
			return feeds
		},
		Loaded: func() bool { return env.Data.Executions != nil }, Rows: func() []row { return v.pages.Rows() },
		Fields: fields, Key: key,
		Database: &list.Database{
			Schema: filter.Executions, Sorts: true, Ask: screen.StoreFilter(&v.query, filter.ForExecutions),
		},
		Reset:  func() { v.pages.Forget(); v.search, env.Data.Executions = search{}, nil },
		Footer: v.summary,
		EmptyText: []string{
			" No execution exists yet. Request one:", "   attune-executor run core.echo -p message=hello",
		},
		GoesOn: func() string {
			if v.search.bounded {
				return "No match yet: " + v.search.text(env, v.firstEnd())
			}
			return ""
		},
		Preview: func(w, _ int) []string {
			r := v.Current()
			if r == nil {
				return nil
			}
			return append([]string{env.Rule("preview "+key(r), "enter = full screen", w)}, v.glance.Preview(r, w)...)
		},
		PreviewHeight: func(w, h int) int { return screen.PreviewHeight(w, h, v.PreviewShown()) * 2 / 3 },
		Open:          func(r *row) screen.Effect { return screen.OpenExecution(r.ID) },
		CursorMoved: func(action keymap.Action) screen.Effect {
			effect, more := screen.Effect{Handled: true}, v.pages.Next() != 0
			effect.Take = more && action == keymap.MarkAll
			if v.search.bounded {
				v.search.on = v.search.on || action == keymap.Bottom
			} else if more && v.Len()-v.Table().Cursor() < monitor.DefaultPage/4 {
				effect.Refetch = screen.FeedExecutions
			}
			return effect
		},
		Actions:       func(r *row) (act.Menu, bool) { return act.ForExecution(r), true },
		MarkedActions: func(keys []string) act.Menu { return act.ForMarked("execution", screen.Targets(keys)) },
		Relations: func(r *row) (string, []screen.Relation) {
			return "execution " + key(r), screen.ExecutionRelations(r, nil)
		},
		Export: func(r *row) screen.Thing { return screen.ExecutionThing(r, *r) },
	})
	return v
}

// oldest reports whether the oldest come first.
func (v *Executions) oldest() bool { return (v.SortKey() == "oldest") != v.Order().Reverse }

// firstEnd is the end of the history that the list begins with.
func (v *Executions) firstEnd() string {
	if v.oldest() {
		return "oldest"
	}
	return "newest"
}

// place converts an id to its place in the list, and back.
func (v *Executions) place(id int64) int64 {
	if v.oldest() {
		return -id
	}
	return id
}

// matches is the count for the present filter, or nil.
func (v *Executions) matches() *screen.Matches {
	if n := v.env.Data.Matches; n != nil && n.Asked == v.Asked() {
		return n
	}
	return nil
}

// Subject is the execution in the preview; 0 if none.
func (v *Executions) Subject() int64 {
	r := v.Current()
	if r == nil || screen.PreviewHeight(v.env.Width, v.env.Height, v.PreviewShown()) == 0 {
		return 0
	}
	return r.ID
}

// stale names a feed that the preview lacks, the next page of a search, or the missing count of the matches.
func (v *Executions) stale() screen.Feed {
	if v.search.on {
		return screen.FeedExecutions
	}
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

var problemStatuses = []lifecycle.Status{
	lifecycle.StatusFailed, lifecycle.StatusTimeout, lifecycle.StatusAbandoned,
	lifecycle.StatusCanceling,
}

// Query is the filter that the database applies.
func (v *Executions) Query() monitor.ExecutionFilter {
	q := v.query
	q.Oldest, q.WithParams, q.Or = v.oldest(), v.Table().Shows(paramsColumn), slices.Clone(q.Or)
	onlyProblems := func(f *monitor.ExecutionFilter) {
		if v.Problems() && len(f.Statuses) == 0 {
			f.Statuses = problemStatuses
		}
	}
	onlyProblems(&q)
	for i := range q.Or {
		onlyProblems(&q.Or[i])
	}
	return q
}

// Cursor is where the next poll starts: zero reads the first page. Otherwise it is above the first
// row on the screen, or below the last loaded row if the cursor is near it.
func (v *Executions) Cursor() int64 {
	at, rows, next := v.Table().Cursor(), v.VisibleRows(), v.pages.Next()
	if v.search.on {
		return v.place(next)
	}
	if at <= 0 || len(rows) == 0 {
		return 0
	}
	if next != 0 && len(rows)-at < monitor.DefaultPage/4 && !v.search.bounded {
		return v.place(next)
	}
	return v.place(v.place(rows[min(v.Table().Offset(), len(rows)-1)].ID) + 1)
}

// Changed takes over a page. A first page replaces the list while the cursor is on the first row; any
// other page replaces the rows of its range.
func (v *Executions) Changed(feed screen.Feed) {
	v.glance.Changed(feed)
	page := v.env.Data.Executions
	if feed != screen.FeedExecutions || page == nil {
		return
	}
	v.search.took(page, v.place(page.From) == v.pages.Next(), &v.pages)
	switch {
	case page.From == 0 && v.Table().Cursor() <= 0:
		v.pages.Reload(page.List, v.place(page.Next))
	case page.From == 0 && !v.oldest(): // new rows would move the row under the cursor
	default:
		v.pages.Merge(page.List, v.place(page.From), v.place(page.Next))
	}
	v.Rebuild(false)
}

// took takes over how far a page has searched. One that continues the search ends it if it found something.
func (s *search) took(page *monitor.Executions, continues bool, pages *screen.Pages[row]) {
	switch {
	case continues && page.From != 0:
		if s.bounded {
			pages.Deepen()
		}
		s.looked += page.Looked
		s.on = s.on && page.Bounded && len(page.List) == 0
	case page.From == 0 && !pages.Deep():
		s.looked = page.Looked
	default:
		return
	}
	s.left, s.bounded = page.Left, page.Bounded
}

// Leave stops a search.
func (v *Executions) Leave() bool {
	was := v.search.on
	v.search.on = false
	return was
}

// Do carries out an action.
func (v *Executions) Do(action keymap.Action) screen.Effect {
	if r := v.Current(); r != nil {
		switch action {
		case keymap.Xray:
			return screen.OpenTree(r.ID)
		case keymap.Why:
			return screen.OpenWhy(r.ID, r.Status)
		}
	}
	return v.List.Do(action)
}

// RelatedExecution is the execution under the cursor.
func (v *Executions) RelatedExecution() (*monitor.Execution, bool) {
	r := v.Current()
	return r, r != nil
}

// Title is the text of the title rule.
func (v *Executions) Title() (left, right string) {
	right = screen.ListTitle(v.firstEnd()+" first", v.Problems(), v.Filter())
	return "Executions", right + v.env.Mark(screen.FeedExecutions)
}

func (v *Executions) summary(int) []string {
	e, loaded := v.env, int64(v.Len())
	n, more := v.matches(), v.pages.Next() != 0
	if n != nil && !n.Count.AtLeast && n.Count.Value <= loaded {
		more = false // the last page was exactly full
	}
	text := " " + e.Num(loaded) + " loaded"
	if n != nil && more {
		text = " " + e.Num(loaded) + " of " + e.Count(n.Count) + e.Mark(screen.FeedMatches) + " loaded"
	}
	if more && !v.search.bounded {
		text += ", more below: G loads them"
	}
	if v.search.bounded {
		text += " · " + v.search.text(e, v.firstEnd())
	}
	if v.Table().Cursor() > 0 {
		text += " · not following, gg returns to the " + v.firstEnd()
	}
	return []string{e.Paint(theme.Dim, text) + v.Gone()}
}
