package list

import (
	"cmp"
	"time"

	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Field is one thing that is known of a row: a column of the table, a term of the filter, an
// order, or several of these. Columns and terms stand in the order of the fields.
type Field[R any] struct {
	// Column is the column, where there is a Cell.
	Column widget.Column
	Cell   func(e *screen.Env, r *R) widget.Cell

	// Term is the term of the filter, where it has a name. Texts and Number are what it is
	// compared with; Offer says that tab completes with the texts that are in the list. Beside
	// is compared too, and never offered.
	Term   filter.Field
	Texts  func(e *screen.Env, r *R) []string
	Beside func(r *R) string
	Number func(e *screen.Env, r *R) (float64, bool)
	Offer  bool

	// By is the order, where it has a name.
	By By[R]
}

// By is an order of a list.
type By[R any] struct {
	// Digit chooses it; that of the order that a list begins with is 1.
	Digit int
	Name  string
	// Up is true where the least comes first.
	Up bool
	// Compare puts two rows in this order; nil where they come in it.
	Compare func(e *screen.Env, a, b *R) int
}

// Plain is a cell of one text.
func Plain[R any](text func(r *R) string) func(*screen.Env, *R) widget.Cell {
	return func(_ *screen.Env, r *R) widget.Cell { return widget.Cell{Text: text(r)} }
}

// Dim is a cell of one text that is less important than the others.
func Dim[R any](text func(r *R) string) func(*screen.Env, *R) widget.Cell {
	return func(_ *screen.Env, r *R) widget.Cell { return widget.Cell{Text: text(r), Role: theme.Dim} }
}

// Number is a cell with a number.
func Number[R any](n func(r *R) int64) func(*screen.Env, *R) widget.Cell {
	return func(e *screen.Env, r *R) widget.Cell { return widget.Cell{Text: e.Num(n(r))} }
}

// Age is a cell with the age of a time, or a dash where there is none.
func Age[R any](at func(r *R) *time.Time) func(*screen.Env, *R) widget.Cell {
	return func(e *screen.Env, r *R) widget.Cell { return widget.Cell{Text: e.AgeOf(at(r))} }
}

// Text is the one text of a term.
func Text[R any](text func(r *R) string) func(*screen.Env, *R) []string {
	return func(_ *screen.Env, r *R) []string { return []string{text(r)} }
}

// Value is the number of a term, which is always known.
func Value[R any](n func(r *R) int64) func(*screen.Env, *R) (float64, bool) {
	return func(_ *screen.Env, r *R) (float64, bool) { return float64(n(r)), true }
}

// Since is the age of a term, unknown while there is no time.
func Since[R any](at func(r *R) *time.Time) func(*screen.Env, *R) (float64, bool) {
	return func(e *screen.Env, r *R) (float64, bool) {
		if t := at(r); t != nil {
			return e.Since(*t).Seconds(), true
		}
		return 0, false
	}
}

// Most puts the largest first, Least the smallest.
func Most[R any, N cmp.Ordered](of func(r *R) N) func(*screen.Env, *R, *R) int {
	return func(_ *screen.Env, a, b *R) int { return cmp.Compare(of(b), of(a)) }
}

// Least puts the smallest first.
func Least[R any, N cmp.Ordered](of func(r *R) N) func(*screen.Env, *R, *R) int {
	return func(_ *screen.Env, a, b *R) int { return cmp.Compare(of(a), of(b)) }
}

// Oldest puts the earliest time first, and rows without one last.
func Oldest[R any](at func(r *R) *time.Time) func(*screen.Env, *R, *R) int {
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
