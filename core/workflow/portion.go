package workflow

import (
	"cmp"
	"encoding/json"
)

// These limits bound the children of lists in one plan, since they are in memory and in one transaction. The next plan
// continues.
const (
	maxStarts = 1000
	maxBytes  = 16 << 20 // of their parameters as JSON
	// maxCost bounds the steps of expressions: about half a second, for which the other workflows of the replica wait.
	maxCost = 1_000_000
)

// room is the number of children of lists in one plan.
func (d *Definition) room() int { return cmp.Or(d.portion, maxStarts) }

// full reports whether the plan has no room for more children of lists. It always has room for the first one.
func (x *decision) full() bool {
	return len(x.plan.Start) >= x.def.room() || x.plan.Bytes >= maxBytes || x.tried && x.cost >= maxCost
}

// more reports whether children of lists could start for which the plan has no room.
func (x *decision) more() bool {
	if !x.running() || x.state.Paused {
		return false
	}
	for name, st := range x.state.Tasks {
		if st.Status != TaskRunning || st.Next >= st.Total {
			continue
		}
		if t := x.def.Task(name); t != nil && t.Kind != KindParallel && st.lacks(t) {
			return true
		}
	}
	return false
}

// lacks reports whether the task may start another child of its list.
func (st *TaskState) lacks(t *Task) bool {
	return st.Next < st.Total && st.Open < max(t.Concurrency, 1)
}

func (x *decision) put(t *Task, child Start) {
	x.plan.Start = append(x.plan.Start, child)
	if t.Input != nil {
		x.plan.Bytes += sizeOf(child.Config)
		return
	}
	if x.passedOn == 0 { // the size is the same for all of them
		x.passedOn = sizeOf(child.Config)
	}
	x.plan.Bytes += x.passedOn
}

// sizeOf estimates the size of a value as JSON.
func sizeOf(value any) int {
	const quotes, number = 2, 8
	switch v := value.(type) {
	case string:
		return len(v) + quotes
	case json.Number:
		return len(v)
	case []any:
		size := len("[]")
		for _, item := range v {
			size += sizeOf(item) + len(",")
		}
		return size
	case map[string]any:
		size := len("{}")
		for key, item := range v {
			size += len(key) + quotes + len(":,") + sizeOf(item)
		}
		return size
	default:
		return number
	}
}
