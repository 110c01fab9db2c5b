package workflow

import "fmt"

// skipDead skips tasks at a join for which too few predecessors can still arrive. That may exclude further tasks.
func (x *decision) skipDead() error {
	if x.waiting == 0 || !x.running() {
		return nil
	}
	alive := x.alive()
	for _, t := range x.def.All() {
		st := x.state.Tasks[t.Name]
		if st == nil || st.Status != TaskWaiting || alive[t.Name] {
			continue
		}
		why := fmt.Sprintf("join: %d of %d have arrived, and no more can", len(st.Arrived), t.Join)
		x.move(t.Name, TaskSkipped).Why = why
		x.logf("%s is skipped: %s", t.Name, why)
	}
	return nil
}

// alive are the tasks that run or can still start: enough of their predecessors have arrived or are alive. It goes
// forward from the tasks that run, so a circle does not start itself.
func (x *decision) alive() map[string]bool {
	alive, may := map[string]bool{}, map[string]int{}
	var reached []*Task
	for _, t := range x.def.All() {
		st := x.state.Tasks[t.Name]
		if st == nil {
			continue
		}
		may[t.Name] = len(st.Arrived)
		if st.Status == TaskRunning || st.Status == TaskReady {
			alive[t.Name] = true
			reached = append(reached, t)
		}
	}
	for len(reached) > 0 {
		t := reached[0]
		reached = reached[1:]
		for _, name := range t.Outbound {
			st := x.state.Tasks[name]
			if alive[name] || st != nil && st.Status.Ended() {
				continue
			}
			next := x.def.Task(name)
			may[name]++ // arrived predecessors have ended, so none counts twice
			if may[name] >= max(next.Join, 1) {
				alive[name] = true
				reached = append(reached, next)
			}
		}
	}
	return alive
}
