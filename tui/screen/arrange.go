package screen

import "slices"

// Arrange puts rows in order for a list and returns them with their keys. While the
// operator reads, rows stay where they are: old are the keys as they stand now; nil
// means that another order was asked for.
func Arrange[T any](e *Env, rows []T, old []string, compare func(a, b *T) int, key func(row *T) string) (arranged []T, keys []string) {
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
