package workflow

import "fmt"

// skipDead skips tasks at a join for which too few predecessors can still arrive. That may exclude further tasks.
func (x *decision) skipDead() error {
	if x.waiting == 0 || !x.running() {
		return nil
	}
	known := map[string]bool{}
	for _, t := range x.def.All() {
		st := x.state.Tasks[t.Name]
		if st == nil || st.Status != TaskWaiting || x.alive(t, known) {
			continue
		}
		why := fmt.Sprintf("join: %d of %d have arrived, and no more can", len(st.Arrived), t.Join)
		x.move(t.Name, TaskSkipped).Why = why
		x.logf("%s is skipped: %s", t.Name, why)
	}
	return nil
}

// alive reports whether a task runs or can still start: enough of its predecessors have arrived or are alive. known has
// the answers so far.
func (x *decision) alive(t *Task, known map[string]bool) bool {
	if answer, ok := known[t.Name]; ok {
		return answer
	}
	known[t.Name] = false // a circle does not start itself
	known[t.Name] = x.canRun(t, known)
	return known[t.Name]
}

func (x *decision) canRun(t *Task, known map[string]bool) bool {
	st := x.state.Tasks[t.Name]
	arrived := 0
	if st != nil {
		switch {
		case st.Status.Ended():
			return false
		case st.Status == TaskRunning || st.Status == TaskReady:
			return true
		}
		arrived = len(st.Arrived)
	}
	may, enough := arrived, max(t.Join, 1)
	for _, name := range t.Inbound {
		if may >= enough {
			break
		}
		if x.alive(x.def.Task(name), known) { // arrived predecessors have ended, so none counts twice
			may++
		}
	}
	return may >= enough
}
