package list

import (
	"cmp"
	"time"

	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Field is a column of the table, a term of the filter, a sort order, or several of these. Columns and terms appear
// in the order of the fields.
//
// A field is made from one function, which returns a value of a row: cell, term and order follow from it. Methods
// replace what differs.
type Field[R any] struct {
	// cell makes a column if the column has a width.
	column widget.Column
	cell   func(e *screen.Env, r *R) widget.Cell
	// A term with a name is compared with texts or a number. also is compared too, but never completed.
	term   filter.Field
	texts  func(e *screen.Env, r *R) []string
	also   func(r *R) string
	number func(e *screen.Env, r *R) (float64, bool)
	// complete is true for texts that tab completes although a part of them matches.
	complete bool
	// sort has a name if it is a sort order.
	sort order[R]
}

// order is a sort order.
type order[R any] struct {
	// key is the digit that chooses it. The list begins with the order of key 1.
	key  int
	name string
	// ascending is true if the smallest row comes first; it chooses the arrow in the title.
	ascending bool
	// compare compares two rows; nil keeps the order of the feed.
	compare func(e *screen.Env, a, b *R) int
}

// Draw is a column that only draws.
func Draw[R any](title string, width int, cell func(e *screen.Env, r *R) widget.Cell) Field[R] {
	return Field[R]{column: widget.Column{Title: title, Width: width}, cell: cell}
}

// Text is a column of texts. Its order is alphabetical.
func Text[R any](title string, width int, text func(r *R) string) Field[R] {
	f := Draw(title, width, func(_ *screen.Env, r *R) widget.Cell { return widget.Cell{Text: text(r)} })
	f.texts = func(_ *screen.Env, r *R) []string { return []string{text(r)} }
	f.sort = order[R]{ascending: true, compare: Ascending(text)}
	return f
}

// State is a column of states with their signs.
func State[R any](title string, width int, state func(r *R) string) Field[R] {
	return Text(title, width, state).Drawn(func(e *screen.Env, r *R) widget.Cell { return e.StateCell(state(r)) })
}

// Sign is a column of the signs of states.
func Sign[R any](state func(r *R) string) Field[R] {
	return Draw("", 1, func(e *screen.Env, r *R) widget.Cell { return e.SignCell(state(r)) })
}

// Number is a column of numbers. The largest comes first.
func Number[R any](title string, width int, n func(r *R) int64) Field[R] {
	f := Draw(title, width, func(e *screen.Env, r *R) widget.Cell { return widget.Cell{Text: e.Num(n(r))} }).Right()
	f.number = func(_ *screen.Env, r *R) (float64, bool) { return float64(n(r)), true }
	f.sort = order[R]{compare: Descending(n)}
	return f
}

// Age is a column of the ages of times. The oldest comes first; a missing time is a dash, and matches no comparison.
func Age[R any](title string, width int, at func(r *R) *time.Time) Field[R] {
	f := Draw(title, width, func(e *screen.Env, r *R) widget.Cell { return widget.Cell{Text: e.AgeOf(at(r))} }).Right()
	f.number = func(e *screen.Env, r *R) (float64, bool) {
		if t := at(r); t != nil {
			return e.Since(*t).Seconds(), true
		}
		return 0, false
	}
	f.term.Kind, f.sort = filter.Age, order[R]{compare: OldestFirst(at)}
	return f
}

// Lasts is a column of durations. The longest comes first.
func Lasts[R any](title string, width int, of func(e *screen.Env, r *R) time.Duration) Field[R] {
	f := Draw(title, width, func(e *screen.Env, r *R) widget.Cell {
		return widget.Cell{Text: widget.Age(of(e, r))}
	}).Right()
	f.sort.compare = func(e *screen.Env, a, b *R) int { return cmp.Compare(of(e, b), of(e, a)) }
	return f
}

// Spark is a column with the trend of a series in the last quarter of an hour.
func Spark[R any](title string, width int, series func(r *R) string) Field[R] {
	return Draw(title, width, func(e *screen.Env, r *R) widget.Cell {
		return widget.Cell{Text: e.Spark(series(r), 15*time.Minute, width), Role: theme.Trend}
	})
}

// Term is a term of the filter without a column.
func Term[R any](name, help string, text func(r *R) string, values ...string) Field[R] {
	return Text("", 0, text).Term(name, help, values...)
}

// Terms is a term without a column that has several texts.
func Terms[R any](
	name, help string, texts func(e *screen.Env, r *R) []string, values ...string,
) Field[R] {
	return Field[R]{}.Texts(texts).Term(name, help, values...)
}

// Measure is a term without a column that compares a number, if that is known.
func Measure[R any](name, help string, number func(r *R) (float64, bool)) Field[R] {
	return Field[R]{}.Known(number).Term(name, help)
}

// Maybe is a number that may be unknown.
func Maybe[N float64 | int64 | time.Duration](n *N) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

// Order is a sort order without a column. Nil keeps the order of the feed.
func Order[R any](key int, name string, compare func(e *screen.Env, a, b *R) int) Field[R] {
	return Field[R]{}.SortBy(key, name, compare)
}

// Grow gives the column the remaining width.
func (f Field[R]) Grow() Field[R] { f.column.Grow = true; return f }

// Share takes so many percent of the remaining width.
func (f Field[R]) Share(percent int) Field[R] { f.column.Share = percent; return f }

// Middle cuts long cells in their middle.
func (f Field[R]) Middle() Field[R] { f.column.Middle = true; return f }

// Right aligns the cells to the right.
func (f Field[R]) Right() Field[R] { f.column.Right = true; return f }

// Watch underlines cells that the last poll has changed.
func (f Field[R]) Watch() Field[R] { f.column.Watch = true; return f }

// Priority lets a narrow table drop the column, the highest number first.
func (f Field[R]) Priority(n int) Field[R] { f.column.Priority = n; return f }

// Drawn replaces the cell.
func (f Field[R]) Drawn(cell func(e *screen.Env, r *R) widget.Cell) Field[R] { f.cell = cell; return f }

// In paints the cell in a role.
func (f Field[R]) In(role func(e *screen.Env, r *R) theme.Role) Field[R] {
	cell := f.cell
	return f.Drawn(func(e *screen.Env, r *R) widget.Cell {
		c := cell(e, r)
		c.Role = role(e, r)
		return c
	})
}

// Dim marks the column as less important than others.
func (f Field[R]) Dim() Field[R] {
	return f.In(func(*screen.Env, *R) theme.Role { return theme.Dim })
}

// Worry paints the cell as a warning where it is bad.
func (f Field[R]) Worry(bad func(e *screen.Env, r *R) bool) Field[R] {
	return f.In(func(e *screen.Env, r *R) theme.Role {
		if bad(e, r) {
			return theme.Warn
		}
		return theme.Plain
	})
}

// Term names the term of the filter, and values that are known before any row is. Tab completes texts, also those of
// the rows.
func (f Field[R]) Term(name, help string, values ...string) Field[R] {
	f.term.Name, f.term.Help, f.term.Values = name, help, values
	if f.number != nil && f.term.Kind == filter.Text {
		f.term.Kind = filter.Number
	}
	return f
}

// Kind is the kind of the term, unless it follows from the column.
func (f Field[R]) Kind(kind filter.Kind) Field[R] { f.term.Kind = kind; return f }

// Texts replaces the texts that the term is compared with.
func (f Field[R]) Texts(texts func(e *screen.Env, r *R) []string) Field[R] { f.texts = texts; return f }

// Also is compared too, but never completed.
func (f Field[R]) Also(text func(r *R) string) Field[R] { f.also = text; return f }

// Completed has tab complete the texts of a term that is not of the kind Text.
func (f Field[R]) Completed() Field[R] { f.complete = true; return f }

// Known replaces the number that the term is compared with; false if it is unknown.
func (f Field[R]) Known(number func(r *R) (float64, bool)) Field[R] {
	f.number = func(_ *screen.Env, r *R) (float64, bool) { return number(r) }
	return f
}

// Sort makes a sort order of the column, which a digit chooses.
func (f Field[R]) Sort(key int, name string) Field[R] { f.sort.key, f.sort.name = key, name; return f }

// SortBy is Sort with another order.
func (f Field[R]) SortBy(key int, name string, compare func(e *screen.Env, a, b *R) int) Field[R] {
	f.sort = order[R]{key: key, name: name, ascending: f.sort.ascending, compare: compare}
	return f
}

// Descending puts the largest first.
func Descending[R any, N cmp.Ordered](of func(r *R) N) func(*screen.Env, *R, *R) int {
	return func(_ *screen.Env, a, b *R) int { return cmp.Compare(of(b), of(a)) }
}

// Ascending puts the smallest first.
func Ascending[R any, N cmp.Ordered](of func(r *R) N) func(*screen.Env, *R, *R) int {
	return func(_ *screen.Env, a, b *R) int { return cmp.Compare(of(a), of(b)) }
}

// OldestFirst puts the earliest time first, and rows without a time last.
func OldestFirst[R any](at func(r *R) *time.Time) func(*screen.Env, *R, *R) int {
	return func(_ *screen.Env, a, b *R) int {
		switch x, y := at(a), at(b); {
		case x == nil && y == nil:
			return 0
		case x == nil:
			return 1
		case y == nil:
			return -1
		default:
			return x.Compare(*y)
		}
	}
}
