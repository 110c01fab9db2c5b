package workflow

import (
	"cmp"
	"encoding/json"
)

// A plan makes children of lists until it has so many, or their parameters take so
// much as JSON: what is to be made is in the memory of the engine and in one
// transaction. The next plan goes on.
const (
	maxStarts = 1000
	maxBytes  = 16 << 20
	// maxCost is how many steps of expressions a plan takes: about half a second, for which
	// the other workflows of the replica wait.
	maxCost = 1_000_000
)

// room is how many children a plan may make of lists.
func (d *Definition) room() int { return cmp.Or(d.portion, maxStarts) }

// full reports whether the plan makes no more children of lists. One that has tried none
// yet has room for one, however large or costly it is.
func (x *decision) full() bool {
	return len(x.plan.Start) >= x.def.room() || x.plan.Bytes >= maxBytes || x.tried && x.cost >= maxCost
}

// lacks reports whether lists could go on which the plan had no room for.
func (x *decision) lacks() bool {
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

// lacks reports whether fewer children of a task run than may.
func (st *TaskState) lacks(t *Task) bool {
	return st.Next < st.Total && st.Open < max(t.Concurrency, 1)
}

// put has the plan make a child.
func (x *decision) put(t *Task, child Start) {
	x.plan.Start = append(x.plan.Start, child)
	if t.Input != nil {
		x.plan.Bytes += sizeOf(child.Config)
		return
	}
	if x.passedOn == 0 { // the same for all of them
		x.passedOn = sizeOf(child.Config)
	}
	x.plan.Bytes += x.passedOn
}

// sizeOf is about how long a value is as JSON.
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
