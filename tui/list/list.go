// Package list is the one list of the dashboard: a table of rows with a filter, an order,
// marks, problems only, a preview, and what may be done with a row. A view describes its rows
// in a Spec, one Field for each thing that is known of them; what all lists do stands here.
//
// Rows are made, judged, filtered and put in order when something was read or asked for, never
// while a frame is drawn: a frame asks for the cells of the rows in sight. A list does no I/O.
// Where the database filters, the list forgets its rows when the question changes, and what was
// read for an earlier question is told by Asked.
//
// A view with more than a table embeds a List and overrides what is different there.
package list

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Spec describes a list. What is nil or empty the list has not.
type Spec[R any] struct {
	View screen.View
	// Title stands in the title rule. One and Many are what rows are called.
	Title     string
	One, Many string
	// Feed is what the list is drawn from; what is read of the feeds in On makes its rows anew
	// too. Needs adds feeds that are polled besides, such as those of the preview.
	Feed  screen.Feed
	On    []screen.Feed
	Needs func() []screen.Feed
	// Behind names a feed to read at once, since what is shown is about something else.
	Behind func() screen.Feed

	// Read reports whether anything was read. Rows are all rows that are known then.
	Read   func() bool
	Rows   func() []R
	Fields []Field[R]
	// Any are the texts in which a bare word is looked for.
	Any func(r *R) []string
	Key func(r *R) string
	// Name is what people call a row; its key where it is nil.
	Name func(r *R) string
	// Newest keeps a cursor that was not moved on the first row, whichever that is.
	Newest bool
	// First comes before every order, Tie decides between rows that an order leaves alike.
	First, Tie func(a, b *R) int
	// Trouble is what is listed while only problems are. Idle rows are dimmed, so that the eye
	// finds the others.
	Trouble, Idle func(r *R) bool
	// Fold makes the rows that are shown of those that pass.
	Fold func(rows []R) []R
	// Database is set where the database filters. Forget drops what was read for another
	// question; After is told when other rows are shown.
	Database      *Database
	Forget, After func()

	// Head stands above the table, Foot below it, Under where the table leaves room. They are
	// given the room there is. Preview is drawn below the table as PreviewHeight says.
	Head          func(w int) []string
	Foot          func(w int) []string
	Under         func(w, room int) []string
	Preview       func(w, h int) []string
	PreviewHeight func(w, h int) int
	// Empty says that there is nothing and how to make something; Nothing says why nothing is
	// listed, in place of what lists say of a filter.
	Empty   []string
	Nothing func() []string

	// Open opens a row. Moved is asked when the cursor was moved.
	Open  func(r *R) screen.Effect
	Moved func(action keymap.Action) screen.Effect
	// Acts is what may be done with the marked rows, or else with one; Targets makes what is
	// acted upon of marked keys.
	Acts      func(r *R) (act.Menu, bool)
	Marked    func(keys []string) act.Menu
	Relations func(r *R) (title string, list []screen.Relation)
	Thing     func(r *R) screen.Thing
	Beyond    func() string
	// Known completes fields in place of those that Offer.
	Known func(field string) []string
}

// Database is the part of a list that the database filters.
type Database struct {
	// Schema is what can be asked for.
	Schema filter.Schema
	// Ask takes a filter over; an error leaves the one before.
	Ask func(q *filter.Query) error
	// Sorts is true where the database sorts too.
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
	orders []By[R]
	sorts  []string

	rows     []R
	keys     []string
	text     string
	query    *filter.Query
	order    screen.Order
	problems bool
	plain    bool // without its preview
	asked    int
}

// New makes a list with nothing read.
func New[R any](env *screen.Env, spec Spec[R]) *List[R] {
	l := &List[R]{env: env, spec: spec, terms: map[string]*Field[R]{}}
	var columns []widget.Column
	for i := range l.spec.Fields {
		f := &l.spec.Fields[i]
		if f.Cell != nil {
			columns, l.cells = append(columns, f.Column), append(l.cells, f.Cell)
		}
		if f.Term.Name != "" {
			l.schema, l.terms[f.Term.Name] = append(l.schema, f.Term), f
		}
		if f.By.Name != "" {
			l.orders = append(l.orders, f.By)
		}
	}
	if l.spec.Database != nil {
		l.schema = l.spec.Database.Schema
	}
	slices.SortFunc(l.orders, func(a, b By[R]) int { return a.Digit - b.Digit })
	for _, by := range l.orders {
		l.sorts = append(l.sorts, by.Name)
	}
	l.table = widget.NewTable(columns)
	if l.spec.Newest {
		l.table = widget.NewFeed(columns)
	}
	return l
}

// Table is the table, with its marks and columns.
func (l *List[R]) Table() *widget.Table { return l.table }

// View is the name of the view.
func (l *List[R]) View() screen.View { return l.spec.View }

// Problems reports whether only what means trouble is listed.
func (l *List[R]) Problems() bool { return l.problems }

// Previewed reports whether the preview is wanted.
func (l *List[R]) Previewed() bool { return !l.plain }

// SetPreviewed turns the preview on or off.
func (l *List[R]) SetPreviewed(on bool) { l.plain = !on }

// Listed are the rows that are shown, in their order.
func (l *List[R]) Listed() []R { return l.rows }

// Current is the row under the cursor, or nil.
func (l *List[R]) Current() *R {
	if at := l.table.Cursor(); at >= 0 && at < len(l.rows) {
		return &l.rows[at]
	}
	return nil
}

// Feeds is what the view needs polled.
func (l *List[R]) Feeds() []screen.Feed {
	feeds := []screen.Feed{l.spec.Feed}
	if l.spec.Needs != nil {
		feeds = append(feeds, l.spec.Needs()...)
	}
	return feeds
}

// Behind names what is to be read at once.
func (l *List[R]) Behind() screen.Feed {
	if l.spec.Behind == nil {
		return ""
	}
	return l.spec.Behind()
}

// Changed takes over what was read.
func (l *List[R]) Changed(feed screen.Feed) {
	if feed == l.spec.Feed || slices.Contains(l.spec.On, feed) {
		l.Rebuild(false)
	}
}

// Rebuild makes the rows anew. Unless the operator asked for it, they keep their order while
// somebody reads.
func (l *List[R]) Rebuild(asked bool) {
	if !l.spec.Read() {
		return
	}
	all := l.spec.Rows()
	rows := all
	if l.spec.Database == nil {
		rows = make([]R, 0, len(all))
		for i := range all {
			if l.Wants(&all[i]) {
				rows = append(rows, all[i])
			}
		}
	}
	if l.spec.Fold != nil {
		rows = l.spec.Fold(rows)
	}
	l.place(rows, asked)
	l.table.SetRows(l)
	if l.spec.After != nil {
		l.spec.After()
	}
}

// place puts rows in order.
func (l *List[R]) place(rows []R, asked bool) {
	if len(l.orders) == 0 || l.orders[l.order.Column].Compare == nil && l.spec.Tie == nil {
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
	if l.spec.First != nil {
		c = l.spec.First(a, b)
	}
	if by := l.orders[l.order.Column]; c == 0 && by.Compare != nil {
		c = l.order.Apply(by.Compare(l.env, a, b))
	}
	if c == 0 && l.spec.Tie != nil {
		c = l.spec.Tie(a, b)
	}
	return c
}

// Wants reports whether a row passes the filter, and is trouble while only that is listed.
func (l *List[R]) Wants(r *R) bool {
	return (!l.problems || l.spec.Trouble == nil || l.spec.Trouble(r)) && l.Matches(r)
}

// Matches reports whether a row passes the filter.
func (l *List[R]) Matches(r *R) bool { return l.query.Matches(seen[R]{l, r}) }

// Frozen is what Matches says now, for use beside the list while that goes on.
func (l *List[R]) Frozen() func(r *R) bool {
	env := *l.env
	frozen := &List[R]{env: &env, spec: l.spec, terms: l.terms, query: l.query}
	return frozen.Matches
}

// seen is a row as filters see it.
type seen[R any] struct {
	l *List[R]
	r *R
}

// Texts are the texts of a field, or all of them.
func (s seen[R]) Texts(field string) []string {
	if field == "" {
		return s.l.spec.Any(s.r)
	}
	f := s.l.terms[field]
	if f == nil || f.Texts == nil {
		return nil
	}
	texts := f.Texts(s.l.env, s.r)
	if f.Beside != nil {
		texts = append(texts, f.Beside(s.r))
	}
	return texts
}

// Number is the number of a field.
func (s seen[R]) Number(field string) (float64, bool) {
	if f := s.l.terms[field]; f != nil && f.Number != nil {
		return f.Number(s.l.env, s.r)
	}
	return 0, false
}

// Schema is what the rows can be filtered by.
func (l *List[R]) Schema() filter.Schema { return l.schema }

// Live reports whether a filter can be tried while it is typed: nothing is read for it.
func (l *List[R]) Live() bool { return l.spec.Database == nil }

// Known lists values of a field, to complete with.
func (l *List[R]) Known(field string) []string {
	if l.spec.Known != nil {
		return l.spec.Known(field)
	}
	f := l.terms[field]
	if f == nil || !f.Offer {
		return nil
	}
	if !l.spec.Read() {
		return nil
	}
	rows := l.spec.Rows()
	var known screen.Distinct
	for i := range rows {
		known.Add(f.Texts(l.env, &rows[i])...)
	}
	return known.List()
}

// Filter is the text in place.
func (l *List[R]) Filter() string { return l.text }

// Query is the filter as it was understood; nil lets every row pass.
func (l *List[R]) Query() *filter.Query { return l.query }

// SetFilter keeps the rows that pass. One that cannot be understood is an error, often a
// *filter.Error, and leaves the one before.
func (l *List[R]) SetFilter(text string) error {
	query, err := filter.Parse(l.schema, text)
	if err != nil {
		return err
	}
	if l.spec.Database != nil {
		if err := l.spec.Database.Ask(query); err != nil {
			return err
		}
	}
	l.text, l.query = strings.TrimSpace(text), query
	l.Again()
	return nil
}

// Again lists what is asked for now: at once what is held, and nothing until it was read where
// the database filters.
func (l *List[R]) Again() {
	l.asked++
	if l.spec.Forget != nil {
		l.spec.Forget()
	}
	if l.spec.Database == nil {
		l.Rebuild(true)
		return
	}
	l.rows, l.keys = nil, nil
	l.table.SetRows(l)
}

// Asked numbers the question that the rows answer.
func (l *List[R]) Asked() int { return l.asked }

// SortKeys lists the orders to choose from.
func (l *List[R]) SortKeys() []string { return l.sorts }

// SortKey is the order in place.
func (l *List[R]) SortKey() string { return l.sorts[l.order.Column] }

// Order is the order in place.
func (l *List[R]) Order() screen.Order { return l.order }

// SetOrder orders the list. One that there is not changes nothing.
func (l *List[R]) SetOrder(order screen.Order) {
	if order.Column < 0 || order.Column >= len(l.orders) {
		return
	}
	l.order = order
	if l.spec.Database != nil && l.spec.Database.Sorts {
		l.table.Top()
		l.Again()
		return
	}
	l.Rebuild(true)
}

// Select puts the cursor on a line of the body.
func (l *List[R]) Select(line int) bool {
	if l.spec.Head != nil {
		line -= len(l.spec.Head(l.env.Width))
	}
	return l.table.Select(line - 1)
}

// Do carries out an action.
func (l *List[R]) Do(action keymap.Action) screen.Effect {
	effect := screen.Effect{Handled: true}
	switch {
	case screen.MoveTable(l.table, action):
		if l.spec.Moved != nil {
			return l.spec.Moved(action)
		}
	case action == keymap.Problems:
		l.problems = !l.problems
		l.Again()
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

// Actable reports whether rows of the list can be acted upon at all.
func (l *List[R]) Actable() bool { return l.spec.Acts != nil }

// Acts is what may be done with the marked rows, or else with the one under the cursor.
func (l *List[R]) Acts() (act.Menu, bool) {
	if keys := l.table.Marked(); len(keys) > 0 && l.spec.Marked != nil {
		return l.spec.Marked(keys), true
	}
	if r := l.Current(); r != nil && l.spec.Acts != nil {
		return l.spec.Acts(r)
	}
	return act.Menu{}, false
}

// Relations is what the row under the cursor has to do with.
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

// Name is what people call a row.
func (l *List[R]) Name(row int) string {
	if l.spec.Name == nil {
		return l.keys[row]
	}
	return l.spec.Name(&l.rows[row])
}

// Cells are the texts of a row.
func (l *List[R]) Cells(row int, into []widget.Cell) []widget.Cell {
	r := &l.rows[row]
	idle := l.spec.Idle != nil && l.spec.Idle(r)
	for _, cell := range l.cells {
		c := cell(l.env, r)
		if idle && (c.Role == theme.Plain || c.Role == theme.Trend) {
			c.Role = theme.Dim
		}
		into = append(into, c)
	}
	return into
}

// Thing is what a row is outside the dashboard.
func (l *List[R]) Thing(row int) screen.Thing { return l.spec.Thing(&l.rows[row]) }

// Beyond says what is not in the list; empty where all is.
func (l *List[R]) Beyond() string {
	if l.spec.Beyond == nil {
		return ""
	}
	return l.spec.Beyond()
}

// Title is the text of the title rule.
func (l *List[R]) Title() (left, right string) {
	right = l.Arranged()
	if l.spec.Read() {
		right += " · " + strconv.Itoa(len(l.rows)) + l.env.Mark(l.spec.Feed)
	}
	return l.spec.Title, right
}

// Arranged says how the list is arranged: its order, and what is left out of it.
func (l *List[R]) Arranged() string {
	order := "sort " + l.SortKey() + l.order.Arrow(!l.orders[l.order.Column].Up)
	return screen.ListTitle(order, l.problems, l.text)
}

// Previews is how many lines the preview takes.
func (l *List[R]) Previews(w, h int) int {
	if l.spec.Preview == nil {
		return 0
	}
	if l.spec.PreviewHeight != nil {
		return l.spec.PreviewHeight(w, h)
	}
	return screen.PreviewHeight(w, h, !l.plain)
}

// Render draws the view.
func (l *List[R]) Render(w, h int) []string {
	if !l.spec.Read() {
		return l.env.Missing(l.spec.Feed, "the "+l.spec.Many, w)
	}
	var lines, foot []string
	if l.spec.Head != nil {
		lines = l.spec.Head(w)
	} else if len(l.rows) == 0 {
		return l.nothing()
	}
	if l.spec.Foot != nil {
		foot = l.spec.Foot(w)
	}
	ph := l.Previews(w, h)
	room := max(2, h-len(lines)-ph-len(foot))
	table := l.nothing
	if len(l.rows) > 0 {
		table = func() []string { return l.table.Lines(w, room, l.env.Theme) }
	}
	body := table()
	if l.spec.Under != nil {
		body = append(body, l.spec.Under(w, room-len(body))...)
	}
	lines = append(lines, widget.Fit(body, w, room)...)
	if ph > 0 {
		lines = append(lines, widget.Fit(l.spec.Preview(w, ph), w, ph)...)
	}
	return append(lines, foot...)
}

// nothing says why no row is listed.
func (l *List[R]) nothing() []string {
	switch {
	case l.spec.Nothing != nil:
		return l.spec.Nothing()
	case l.text != "":
		return []string{"", " No " + l.spec.One + " matches /" + widget.Clean(l.text) + ".  esc clears the filter"}
	case l.problems:
		return []string{"", " " + l.env.Paint(theme.Good, "✓") + " No " + l.spec.One + " has a problem.  z shows all"}
	default:
		return append([]string{""}, l.spec.Empty...)
	}
}

// Gone says that the row under the cursor has left the data.
func (l *List[R]) Gone() string {
	return l.env.GoneNote(l.table, "the "+l.spec.One+" under the cursor")
}

var (
	_ screen.Queryable  = (*List[struct{}])(nil)
	_ screen.Sortable   = (*List[struct{}])(nil)
	_ screen.Selectable = (*List[struct{}])(nil)
	_ screen.Taker      = (*List[struct{}])(nil)
	_ screen.Troubled   = (*List[struct{}])(nil)
	_ screen.Follower   = (*List[struct{}])(nil)
	_ screen.Listed     = (*List[struct{}])(nil)
	_ screen.Cut        = (*List[struct{}])(nil)
	_ screen.Related    = (*List[struct{}])(nil)
	_ screen.Actionable = (*List[struct{}])(nil)
)
