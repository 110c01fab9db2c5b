package engine

import "github.com/attune-go/attune/core/handover"

// insistAfter is how often an item is left because another round holds its queue. Then
// its queue is waited for, so that one that is always held does not starve.
const insistAfter = 3

// insists are the executions of items that are not left again.
func insists(items []item) map[int64]bool {
	var ids map[int64]bool
	for _, it := range items {
		if it.left >= insistAfter {
			if ids == nil {
				ids = make(map[int64]bool)
			}
			ids[it.execution] = true
		}
	}
	return ids
}

// keep takes the items that a round has left into hand, in their order, and returns the
// others. Their deliveries are settled one by one from here on. A round that left
// everything has nothing else to do than to wait: its items are not left again.
func (h *hot) keep(items []item, result handover.Result) (others []item) {
	if len(result.Left) == 0 {
		return items
	}
	left := make(map[int64]bool, len(result.Left))
	for _, id := range result.Left {
		left[id] = true
	}
	var kept []item
	for _, it := range items {
		if it.letter != nil || !left[it.execution] {
			others = append(others, it)
			continue
		}
		if it.left++; it.delivery != nil && !it.alone {
			it.delivery, it.alone = it.delivery.Detach(), true
		}
		kept = append(kept, it)
	}
	if len(others) == 0 {
		for i := range kept {
			kept[i].left = insistAfter
		}
	}
	h.held = append(h.held, kept...)
	return others
}

// takeHeld returns the items in hand. A delivery whose connection has gone is dropped:
// its message comes again.
func (h *hot) takeHeld() []item {
	var items []item
	for _, it := range h.held {
		if it.delivery == nil || !it.delivery.Stale() {
			items = append(items, it)
		}
	}
	h.held = nil
	return items
}
