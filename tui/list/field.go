package list

import (
	"cmp"
	"time"

	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Field is a column of the table, a term of the filter, a sort order, or several of these.
// Columns and terms appear in the order of the fields.
type Field[R any] struct {
	// Column and Cell make a column.
	Column widget.Column
	Cell   func(e *screen.Env, r *R) widget.Cell

	// A Term with a name is a term of the filter, compared with Texts or Number. Tab completes
	// the texts of the list if Complete is set. AlsoMatches is compared too, but never completed.
	Term        filter.Field
	Texts       func(e *screen.Env, r *R) []string
	AlsoMatches func(r *R) string
	Number      func(e *screen.Env, r *R) (float64, bool)
	Complete    bool

	// A Sort with a name is a sort order.
	Sort Order[R]
}

// Order is a sort order.
type Order[R any] struct {
	// Key is the digit that chooses it. The list begins with the order of key 1.
	Key  int
	Name string
	// Ascending is true if the smallest row comes first; it chooses the arrow in the title.
	Ascending bool
	// Compare compares two rows; nil keeps the order of the feed.
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

// TextOf is the one text of a term.
func TextOf[R any](text func(r *R) string) func(*screen.Env, *R) []string {
	return func(_ *screen.Env, r *R) []string { return []string{text(r)} }
}

// NumberOf is the number of a term, which is always known.
func NumberOf[R any](n func(r *R) int64) func(*screen.Env, *R) (float64, bool) {
	return func(_ *screen.Env, r *R) (float64, bool) { return float64(n(r)), true }
}

// AgeOf is the age of a term; a missing time matches no comparison.
func AgeOf[R any](at func(r *R) *time.Time) func(*screen.Env, *R) (float64, bool) {
	return func(e *screen.Env, r *R) (float64, bool) {
		if t := at(r); t != nil {
			return e.Since(*t).Seconds(), true
		}
		return 0, false
	}
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
