package screen

import (
	"cmp"
	"slices"
	"strings"
)

// Sortable is a screen with sort orders.
type Sortable interface {
	// SortKeys names the columns to sort by. The first is the initial order.
	SortKeys() []string
	// Order is the present order.
	Order() Order
	// SetOrder sorts the rows. An unknown column changes nothing.
	SetOrder(order Order)
}

// Order is the column that a list is sorted by. The zero value is the initial order.
type Order struct {
	Column  int
	Reverse bool
}

// By is the order after a column was chosen. Choosing the same column again reverses it.
func (o Order) By(column int) Order {
	return Order{Column: column, Reverse: o.Column == column && !o.Reverse}
}

// Apply negates a comparison if the order is reversed.
func (o Order) Apply(comparison int) int {
	if o.Reverse {
		return -comparison
	}
	return comparison
}

// Arrow is the sign behind the name of the sorted column.
func (o Order) Arrow(descending bool) string {
	if descending != o.Reverse {
		return "↓"
	}
	return "↑"
}

// Troubled is a screen with a problems-only mode, which the action Problems toggles.
type Troubled interface {
	Screen
	Problems() bool
}

// reversed follows the name of a column that is sorted in reverse.
const reversed = " reversed"

// OrderName names the order of a screen.
func OrderName(s Sortable) string {
	order := s.Order()
	name := s.SortKeys()[order.Column]
	if order.Reverse {
		name += reversed
	}
	return name
}

// OrderText is OrderName, but empty for the initial order.
func OrderText(s Sortable) string {
	if order := s.Order(); order == (Order{}) || order.Column >= len(s.SortKeys()) {
		return ""
	}
	return OrderName(s)
}

// ReadOrder parses the result of OrderText. It reports false if the screen has no such column.
func ReadOrder(s Sortable, text string) (Order, bool) {
	if text = strings.TrimSpace(text); text == "" {
		return Order{}, true
	}
	name, reverse := strings.CutSuffix(text, reversed)
	at := slices.IndexFunc(s.SortKeys(), func(key string) bool { return strings.EqualFold(key, name) })
	return Order{Column: max(at, 0), Reverse: reverse && at >= 0}, at >= 0
}

// Arrange sorts rows and returns them with their keys. While the operator reads, rows stay where they
// are and new ones come last: old are the present keys, nil if the operator asked for another order.
func Arrange[T any](
	e *Env, rows []T, old []string, compare func(a, b *T) int, key func(row *T) string,
) (arranged []T, keys []string) {
	places := map[string]int{}
	if e.Reading() {
		for i, key := range old {
			places[key] = i
		}
	}
	type placed struct {
		row   T
		key   string
		place int
	}
	sorted := make([]placed, len(rows))
	for i, row := range rows {
		sorted[i] = placed{row: row, key: key(&row), place: len(old)}
		if place, known := places[sorted[i].key]; known {
			sorted[i].place = place
		}
	}
	slices.SortStableFunc(sorted, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.place, b.place), compare(&a.row, &b.row))
	})
	arranged, keys = make([]T, len(rows)), make([]string, len(rows))
	for i := range sorted {
		arranged[i], keys[i] = sorted[i].row, sorted[i].key
	}
	return arranged, keys
}

// ListTitle says how a list is arranged: its order, and which rows are left out.
func ListTitle(order string, problems bool, filter string) string {
	if problems {
		order += " · problems"
	}
	if filter != "" {
		order += " · /" + filter
	}
	return order
}
