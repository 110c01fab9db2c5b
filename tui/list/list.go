// Package list is the generic list screen: a table of rows with a filter, sort orders, marks, a
// problems-only mode, a preview, and actions on rows. A view describes its rows in a Spec, with
// one Field per column, filter term or sort order.
//
// A list builds, filters and sorts its rows when a feed delivers data or the operator asks for
// another arrangement, never while it draws a frame: a frame asks only for the cells of visible
// rows. A list does no I/O. If the database filters, a new question drops the rows; Asked numbers
// the questions, so that late answers are recognised.
//
// A view that shows more than a table embeds a List and overrides the methods that differ.
package list

import (
	"slices"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Spec describes a list. Nil and empty fields switch the feature off.
type Spec[R any] struct {
	View screen.View
	// Title stands in the title rule. Singular and Plural name the rows in texts.
	Title            string
	Singular, Plural string
	// Feed delivers the rows. RefreshOn lists further feeds whose data changes them, MoreFeeds
	// further polled feeds, for example of the preview.
	Feed      screen.Feed
	RefreshOn []screen.Feed
	MoreFeeds func() []screen.Feed
	// Stale names a feed whose data is about another row than the selected one; it is read at once.
	Stale func() screen.Feed

	// Loaded reports whether the feed has delivered. Rows returns all rows; it is called only then.
	Loaded func() bool
	Rows   func() []R
	Fields []Field[R]
	// SearchTexts are the texts that a filter without a field matches.
	SearchTexts func(r *R) []string
	// Key identifies a row across readings. Name is its name for people; nil means the key.
	Key, Name func(r *R) string
	// FollowTop keeps the cursor on the first row until the operator moves it.
	FollowTop bool
	// GroupOrder applies before every sort order, TieBreak after it. Neither is reversed.
	GroupOrder, TieBreak func(a, b *R) int
	// IsProblem selects the rows of the problems-only mode. Idle rows are drawn dim.
	IsProblem, IsIdle func(r *R) bool
	// Collapse merges or adds rows after the filter.
	Collapse func(rows []R) []R
	// Database is set if the database filters. Reset drops the data of an earlier question;
	// RowsChanged runs after every change of the rows.
	Database           *Database
	Reset, RowsChanged func()

	// Header stands above the table, Footer below it, BelowTable in the room that the table
	// leaves. Preview is PreviewHeight lines high.
	Header        func(w int) []string
	Footer        func(w int) []string
	BelowTable    func(w, room int) []string
	Preview       func(w, h int) []string
	PreviewHeight func(w, h int) int
	// EmptyText or Empty explains a list without any row, NoProblem one without a problem. GoesOn says how far a
	// search without a match has come, if it has not reached the end.
	EmptyText []string
	Empty     func() []string
	NoProblem string
	GoesOn    func() string

	// Open opens a row. CursorMoved runs after every movement of the cursor.
	Open        func(r *R) screen.Effect
	CursorMoved func(action keymap.Action) screen.Effect
	// MarkedActions is the menu for marked rows, Actions that for the selected one.
	Actions       func(r *R) (act.Menu, bool)
	MarkedActions func(keys []string) act.Menu
	Relations     func(r *R) (title string, list []screen.Relation)
	// Export is a row for the clipboard and for files. More reports whether more rows may match than were read.
	Export func(r *R) screen.Thing
	More   func() bool
	// Others are rows that are not listed, but whose texts complete a filter.
	Others func() []R
}

// Database describes a list whose filter the database applies.
type Database struct {
	Schema filter.Schema
	// Ask stores the filter for the next reading. After an error the previous filter stays.
	Ask func(q *filter.Query) error
	// Sorts is true if the database sorts too.
	Sorts bool
}

// List is a list in the dashboard.
type List[R any] struct {
	env    *screen.Env
	spec   Spec[R]
	table  *widget.Table
	schema filter.Schema
	terms  map[string]*Field[R]
	cells  []func(*screen.Env, *R) widget.Cell
	orders []order[R]
	sorts  []string

	rows     []R
	keys     []string
	text     string
	query    *filter.Query
	order    screen.Order
	problems bool
	plain    bool // without its preview
	none     bool // there is no row, whatever the filter
	asked    int
}

// New makes a list with nothing read.
func New[R any](env *screen.Env, spec Spec[R]) *List[R] {
	l := &List[R]{env: env, spec: spec, terms: map[string]*Field[R]{}}
	var columns []widget.Column
	for i := range l.spec.Fields {
		f := &l.spec.Fields[i]
		if f.column.Width > 0 {
			columns, l.cells = append(columns, f.column), append(l.cells, f.cell)
		}
		if f.term.Name != "" {
			l.schema, l.terms[f.term.Name] = append(l.schema, f.term), f
		}
		if f.sort.name != "" {
			l.orders = append(l.orders, f.sort)
		}
	}
	if l.spec.Database != nil {
		l.schema = l.spec.Database.Schema
	}
	slices.SortFunc(l.orders, func(a, b order[R]) int { return a.key - b.key })
	for _, by := range l.orders {
		l.sorts = append(l.sorts, by.name)
	}
	l.table = widget.NewTable(columns)
	if l.spec.FollowTop {
		l.table = widget.NewFeed(columns)
	}
	return l
}

// Table is the table, with its marks and columns.
func (l *List[R]) Table() *widget.Table { return l.table }

// View is the name of the view.
func (l *List[R]) View() screen.View { return l.spec.View }

// Problems reports whether the problems-only mode is on.
func (l *List[R]) Problems() bool { return l.problems }

// PreviewShown reports whether the preview is wanted.
func (l *List[R]) PreviewShown() bool { return !l.plain }

// ShowPreview turns the preview on or off.
func (l *List[R]) ShowPreview(on bool) { l.plain = !on }

// VisibleRows are the listed rows in their order.
func (l *List[R]) VisibleRows() []R { return l.rows }

// Current is the row under the cursor, or nil.
func (l *List[R]) Current() *R {
	if at := l.table.Cursor(); at >= 0 && at < len(l.rows) {
		return &l.rows[at]
	}
	return nil
}

// Feeds lists the feeds to poll.
func (l *List[R]) Feeds() []screen.Feed {
	feeds := []screen.Feed{l.spec.Feed}
	if l.spec.MoreFeeds != nil {
		feeds = append(feeds, l.spec.MoreFeeds()...)
	}
	return feeds
}

// Behind names a feed to read at once.
func (l *List[R]) Behind() screen.Feed {
	if l.spec.Stale == nil {
		return ""
	}
	return l.spec.Stale()
}

// Changed updates the rows after a reading.
func (l *List[R]) Changed(feed screen.Feed) {
	if feed == l.spec.Feed || slices.Contains(l.spec.RefreshOn, feed) {
		l.Rebuild(false)
	}
}

// Rebuild updates the rows. Unless asked is true, rows keep their order while the operator reads.
func (l *List[R]) Rebuild(asked bool) {
	if !l.spec.Loaded() {
		return
	}
	all := l.spec.Rows()
	rows := all
	l.none = l.spec.Database == nil && len(all) == 0
	if l.spec.Database == nil {
		rows = make([]R, 0, len(all))
		for i := range all {
			if l.Passes(&all[i]) {
				rows = append(rows, all[i])
			}
		}
	}
	if l.spec.Collapse != nil {
		rows = l.spec.Collapse(rows)
	}
	l.place(rows, asked)
	l.table.SetRows(l)
	if l.spec.RowsChanged != nil {
		l.spec.RowsChanged()
	}
}

// place sorts rows.
func (l *List[R]) place(rows []R, asked bool) {
	if len(l.orders) == 0 || l.orders[l.order.Column].compare == nil && l.spec.TieBreak == nil {
		l.rows, l.keys = rows, l.keys[:0]
		for i := range rows {
			l.keys = append(l.keys, l.spec.Key(&rows[i]))
		}
		return
	}
	old := l.keys
	if asked {
		old = nil
	}
	l.rows, l.keys = screen.Arrange(l.env, rows, old, l.compare, l.spec.Key)
}

func (l *List[R]) compare(a, b *R) int {
	c := 0
	if l.spec.GroupOrder != nil {
		c = l.spec.GroupOrder(a, b)
	}
	if by := l.orders[l.order.Column]; c == 0 && by.compare != nil {
		c = l.order.Apply(by.compare(l.env, a, b))
	}
	if c == 0 && l.spec.TieBreak != nil {
		c = l.spec.TieBreak(a, b)
	}
	return c
}

// SortKeys lists the names of the sort orders.
func (l *List[R]) SortKeys() []string { return l.sorts }

// SortKey is the name of the sort order.
func (l *List[R]) SortKey() string { return l.sorts[l.order.Column] }

// Order is the sort order.
func (l *List[R]) Order() screen.Order { return l.order }

// SetOrder sorts the list. It ignores unknown orders.
func (l *List[R]) SetOrder(order screen.Order) {
	if order.Column < 0 || order.Column >= len(l.orders) {
		return
	}
	l.order = order
	if l.spec.Database != nil && l.spec.Database.Sorts {
		l.table.Top()
		l.Requery()
		return
	}
	l.Rebuild(true)
}

// Do carries out an action.
func (l *List[R]) Do(action keymap.Action) screen.Effect {
	effect := screen.Effect{Handled: true}
	switch {
	case screen.MoveTable(l.table, action):
		if l.spec.CursorMoved != nil {
			return l.spec.CursorMoved(action)
		}
	case action == keymap.Problems:
		l.problems = !l.problems
		l.Requery()
		if l.spec.Database != nil {
			effect.Refetch = l.spec.Feed
		}
	case action == keymap.Preview:
		l.plain = !l.plain
	case action == keymap.Open:
		if r := l.Current(); r != nil && l.spec.Open != nil {
			return l.spec.Open(r)
		}
	default:
		return screen.Effect{}
	}
	return effect
}

// Actable reports whether the list has acts.
func (l *List[R]) Actable() bool { return l.spec.Actions != nil }

// Acts lists the acts on the marked rows, or else on the selected one.
func (l *List[R]) Acts() (act.Menu, bool) {
	if keys := l.table.Marked(); len(keys) > 0 && l.spec.MarkedActions != nil {
		return l.spec.MarkedActions(keys), true
	}
	if r := l.Current(); r != nil && l.spec.Actions != nil {
		return l.spec.Actions(r)
	}
	return act.Menu{}, false
}

// Relations lists what the selected row is related to.
func (l *List[R]) Relations() (title string, list []screen.Relation, ok bool) {
	r := l.Current()
	if r == nil || l.spec.Relations == nil {
		return "", nil, false
	}
	title, list = l.spec.Relations(r)
	return title, list, true
}

// Len is the number of rows.
func (l *List[R]) Len() int { return len(l.rows) }

// Key identifies a row.
func (l *List[R]) Key(row int) string { return l.keys[row] }

// Name is the name of a row.
func (l *List[R]) Name(row int) string {
	if l.spec.Name == nil {
		return l.keys[row]
	}
	return l.spec.Name(&l.rows[row])
}

// Cells are the texts of a row.
func (l *List[R]) Cells(row int, into []widget.Cell) []widget.Cell {
	r := &l.rows[row]
	idle := l.spec.IsIdle != nil && l.spec.IsIdle(r)
	for _, cell := range l.cells {
		c := cell(l.env, r)
		if idle && (c.Role == theme.Plain || c.Role == theme.Trend) {
			c.Role = theme.Dim
		}
		into = append(into, c)
	}
	return into
}

// Thing is a row for copies and exports.
func (l *List[R]) Thing(row int) screen.Thing { return l.spec.Export(&l.rows[row]) }

// Beyond says which rows are missing; empty if none.
func (l *List[R]) Beyond() string {
	if l.spec.More == nil || !l.spec.More() {
		return ""
	}
	return "more " + l.spec.Plural + " may match than are read"
}

var (
	_ screen.Queryable  = (*List[struct{}])(nil)
	_ screen.Sortable   = (*List[struct{}])(nil)
	_ screen.Placed     = (*List[struct{}])(nil)
	_ screen.Taker      = (*List[struct{}])(nil)
	_ screen.Troubled   = (*List[struct{}])(nil)
	_ screen.Follower   = (*List[struct{}])(nil)
	_ screen.Listed     = (*List[struct{}])(nil)
	_ screen.Cut        = (*List[struct{}])(nil)
	_ screen.Related    = (*List[struct{}])(nil)
	_ screen.Actionable = (*List[struct{}])(nil)
)
