package engine

import "github.com/attune-go/attune/core/scheduler"

// insistAfter is how often an item is left because another batch holds its queue. Then the batch
// waits for the queue, so that a busy queue does not starve it.
const insistAfter = 3

// insists are the executions that the batch does not leave again: those of one action, the one that
// was left most often. A batch that waited for more queues would block other batches from those it
// already holds.
func insists(items []item) map[int64]bool {
	var first item
	for _, it := range items {
		if it.left >= insistAfter && it.left > first.left {
			first = it
		}
	}
	ids := make(map[int64]bool)
	for _, it := range items {
		if it.left >= insistAfter && (it.execution == first.execution || it.action != "" && it.action == first.action) {
			ids[it.execution] = true
		}
	}
	return ids
}

// fill is the step that fills queues. It waits for a queue that was left too often.
func (e chores) fill() scheduler.FillStep {
	var step scheduler.FillStep
	for _, queue := range e.queues {
		if e.waited[queue] >= insistAfter && len(step.Queues) == 0 {
			step.Queues = append(step.Queues, queue)
		} else {
			step.Spare = append(step.Spare, queue)
		}
	}
	return step
}

// keep holds the items that a batch left, in order, and returns the others. A batch that left
// everything has only waiting to do: its items are not left again.
func (l *lane) keep(items []item, result scheduler.Result) (others []item) {
	if len(result.Left) == 0 {
		return items
	}
	left := setOf(result.Left)
	var kept []item
	for _, it := range items {
		if it.deadLetter != nil || !left[it.execution] {
			others = append(others, it)
			continue
		}
		it.left++
		kept = append(kept, it)
	}
	if len(others) == 0 {
		for i := range kept {
			kept[i].left = max(kept[i].left, insistAfter)
		}
	}
	l.held = append(l.held, kept...)
	return others
}

// keepQueues does the same for queues to fill.
func (l *lane) keepQueues(todo work, result scheduler.Result) {
	alone := len(todo.ended)+len(todo.requested)+len(todo.deadLetters) == 0 && len(result.Held) == todo.size()
	for _, queue := range result.Held {
		l.heldQueues[queue] = todo.waited[queue] + 1
		if alone {
			l.heldQueues[queue] = max(l.heldQueues[queue], insistAfter)
		}
	}
}

// behindHeld keeps requests of actions with earlier held requests: after a bisection none may
// overtake another.
func (l *lane) behindHeld(items []item) (others []item) {
	if len(l.held) == 0 {
		return items
	}
	held := make(map[string]bool, len(l.held))
	for _, it := range l.held {
		held[it.action] = held[it.action] || !it.ended
	}
	for _, it := range items {
		if it.deadLetter == nil && !it.ended && it.action != "" && held[it.action] {
			l.held = append(l.held, it)
		} else {
			others = append(others, it)
		}
	}
	return others
}
