package workflow

import (
	"fmt"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/phrase"
)

// MaxItems bounds the list of a task. A longer list fails its task, since each item is a row and all results are read
// together at the end.
const MaxItems = 10_000

// place is the place of a child in the list of its task.
type place struct {
	index int
	item  any // the list of items for a batch
	batch []any
}

// part describes a child of a task over a list.
func (t *Task) part(index int) string {
	if t.BatchSize > 0 {
		return fmt.Sprintf("batch %d", index)
	}
	return fmt.Sprintf("item %d", index)
}

// width is the number of items of a child.
func (t *Task) width() int { return max(t.BatchSize, 1) }

// runList evaluates the list of a task and starts the first children.
func (x *decision) runList(t *Task) error {
	value, err := x.value(t.WithItems, x.scopeOf(t))
	if err != nil {
		return fmt.Errorf("with_items: %w", err)
	}
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	if len(items) > MaxItems {
		return fmt.Errorf("with_items: the list has %d items, and %d is the most; divide it among several workflows",
			len(items), MaxItems)
	}
	st := x.move(t.Name, TaskRunning)
	st.Items = len(items)
	st.Total = (len(items) + t.width() - 1) / t.width()
	x.logf("%s runs over %s, %d at a time%s", t.Name, phrase.Plural(len(items), "item", "items"),
		max(t.Concurrency, 1), x.after(t))
	x.lists[t.Name] = items
	if err := x.fill(t); err != nil {
		return err
	}
	if st = x.state.Tasks[t.Name]; st.Next < st.Total {
		x.plan.Keep = append(x.plan.Keep, Kept{Task: t.Name, Items: items})
	}
	return nil
}

// fill starts further children of a task up to its concurrency and the room of the plan, and ends the task when all
// have ended. A child fails if its parameters cannot be rendered.
func (x *decision) fill(t *Task) error {
	st := x.state.Tasks[t.Name]
	if t.Kind == KindParallel {
		return nil
	}
	for !x.state.Paused && st.lacks(t) && !x.full() {
		if index := st.Next; index < st.Made {
			st = x.own(t.Name)
			st.Next++
			st.Open++
			x.plan.Start = append(x.plan.Start, Start{Task: t.Name, Index: &index, Made: true})
			continue
		}
		at, err := x.place(t, st.Next)
		if err != nil {
			return err
		}
		child, err := x.child(t, at)
		if needs(err) != nil {
			return err
		}
		x.tried = true
		st = x.own(t.Name)
		st.Next++
		if err != nil {
			st.count(lifecycle.StatusFailed)
			x.unstarted(t, at, err)
			continue
		}
		st.Open++
		x.put(t, child)
	}
	if st.Open == 0 && st.Next == st.Total {
		x.finish(t.Name, st.outcome(), "")
		x.logf("%s %s", t.Name, x.state.Tasks[t.Name].summary(t))
	}
	return nil
}

// unstarted records the error of the first child that could not be rendered.
func (x *decision) unstarted(t *Task, at *place, err error) {
	st := x.own(t.Name)
	if st.Why == "" {
		st.Why = fmt.Sprintf("%s: %v", t.part(at.index), err)
		x.logf("%s of %s failed before it was started: %v", t.part(at.index), t.Name, err)
	}
}

// place finds the items of a child, in the evaluated list or in the facts.
func (x *decision) place(t *Task, index int) (*place, error) {
	st := x.state.Tasks[t.Name]
	from, to := index*t.width(), min((index+1)*t.width(), max(st.Items, st.Total))
	items, at := x.lists[t.Name], 0
	if items == nil {
		kept := x.facts.Items[t.Name]
		items, at = kept.Items, kept.From
	}
	if from < at || to > at+len(items) {
		return nil, x.needItems(t)
	}
	part := items[from-at : to-at]
	if t.BatchSize == 0 {
		return &place{index: index, item: part[0]}, nil
	}
	batch := append([]any(nil), part...)
	return &place{index: index, item: batch, batch: batch}, nil
}

// needItems asks for the items that this call may need: of one child for each ended and each free one, up to the room
// of the plan. If the given items were too few, it asks for twice as many.
func (x *decision) needItems(t *Task) error {
	given := x.given.Tasks[t.Name]
	if given == nil {
		given = x.state.Tasks[t.Name]
	}
	children := max(t.Concurrency, 1) - given.Open
	for _, h := range x.ahead {
		if h.Kind == ChildEnded && h.Task == t.Name {
			children++
		}
	}
	children = max(min(children, x.def.room()), x.state.Tasks[t.Name].Next-given.Next+1)
	from := given.Next * t.width()
	count := max(children*t.width(), 2*len(x.facts.Items[t.Name].Items))
	count = min(count, max(given.Items, given.Total)-from)
	return &NeedError{Items: map[string]Range{t.Name: {From: from, Count: count}}}
}

// summary describes the end of a task.
func (st *TaskState) summary(t *Task) string {
	if t.WithItems == nil {
		return endText(lifecycle.Status(st.Status))
	}
	if st.Total == 0 {
		return "completed: its list is empty"
	}
	if st.Status == TaskCompleted {
		return fmt.Sprintf("completed: all %d", st.Total)
	}
	text := fmt.Sprintf("ended: %d of %d succeeded", st.Succeeded, st.Total)
	if st.Failed > 0 {
		text += fmt.Sprintf(", %d failed", st.Failed)
	}
	if st.TimedOut > 0 {
		text += fmt.Sprintf(", %d timed out", st.TimedOut)
	}
	return text
}
