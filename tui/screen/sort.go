package screen

import (
	"slices"
	"strings"
)

// Sortable is a screen whose rows can be put in another order.
type Sortable interface {
	// SortKeys lists the columns to choose from. The first is the order that a view
	// begins with.
	SortKeys() []string
	// Order is the order in place.
	Order() Order
	// SetOrder puts the rows in another order. One by a column that is not listed
	// changes nothing.
	SetOrder(order Order)
}

// Order is the column a list is sorted by. Choosing the same column again
// reverses it. The zero value is the order that a view begins with.
type Order struct {
	Column  int
	Reverse bool
}

// By is the order after a column was chosen.
func (o Order) By(column int) Order {
	return Order{Column: column, Reverse: o.Column == column && !o.Reverse}
}

// Apply turns the result of a comparison around if the order is reversed.
func (o Order) Apply(cmp int) int {
	if o.Reverse {
		return -cmp
	}
	return cmp
}

// Arrow is the sign behind the name of the sorted column.
func (o Order) Arrow(descending bool) string {
	if descending != o.Reverse {
		return "↓"
	}
	return "↑"
}

// Troubled is a screen that can leave out what means no trouble, which the action
// Problems turns on and off.
type Troubled interface {
	Screen
	Problems() bool
}

// reversed stands behind the name of a column whose order is turned around.
const reversed = " reversed"

// OrderText is OrderName, but empty for the initial order.
func OrderText(s Sortable) string {
	if order := s.Order(); order == (Order{}) || order.Column >= len(s.SortKeys()) {
		return ""
	}
	return OrderName(s)
}

// OrderName names the order of a screen.
func OrderName(s Sortable) string {
	order := s.Order()
	name := s.SortKeys()[order.Column]
	if order.Reverse {
		name += reversed
	}
	return name
}

// ReadOrder finds the order that OrderText has written for such a screen; of an
// empty text the one it begins with. It reports false for a column the screen has
// not.
func ReadOrder(s Sortable, text string) (Order, bool) {
	if text = strings.TrimSpace(text); text == "" {
		return Order{}, true
	}
	name, turned := strings.CutSuffix(text, reversed)
	for i, key := range s.SortKeys() {
		if strings.EqualFold(key, name) {
			return Order{Column: i, Reverse: turned}, true
		}
	}
	return Order{}, false
}

// Arrange puts rows in order for a list and returns them with their keys. While the
// operator reads, rows stay where they are: old are the keys as they stand now; nil
// means that another order was asked for.
func Arrange[T any](
	e *Env, rows []T, old []string, compare func(a, b *T) int, key func(row *T) string,
) (arranged []T, keys []string) {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b T) int { return compare(&a, &b) })
	fresh := make([]string, len(sorted))
	for i := range sorted {
		fresh[i] = key(&sorted[i])
	}
	arranged, keys = make([]T, 0, len(sorted)), make([]string, 0, len(sorted))
	for _, i := range e.Settle(old, fresh) {
		arranged, keys = append(arranged, sorted[i]), append(keys, fresh[i])
	}
	return arranged, keys
}

// ListTitle says how a list is arranged: its order, and what is left out of it.
func ListTitle(order string, problems bool, filter string) string {
	if problems {
		order += " · problems"
	}
	if filter != "" {
		order += " · /" + filter
	}
	return order
}
