package workflow

import (
	"time"

	"github.com/attune-go/attune/core/lifecycle"
)

// apply applies the current happening to the state.
func (x *decision) apply() error {
	h := x.ahead[0]
	switch h.Kind {
	case Started:
		return x.begin()
	case ChildEnded:
		return x.childEnded(h)
	case Paused:
		if x.running() && !x.state.Paused {
			x.state.Paused = true
			x.logf("paused: nothing new is started")
		}
	case Resumed:
		if x.running() && x.state.Paused {
			x.state.Paused = false
			x.logf("resumed")
		}
		return x.advance()
	case Canceling:
		x.cancel()
	case Cancelled:
		if x.state.Status == lifecycle.StatusCanceling {
			x.end(lifecycle.StatusCancelled, workflowCancelled)
		}
		x.abort(lifecycle.StatusCancelled, workflowCancelled)
	case TimedOut:
		why := "the workflow has run for longer than it may"
		if x.facts.Allowed > 0 {
			why += ": " + x.facts.Allowed.Round(time.Millisecond).String()
		}
		x.abort(lifecycle.StatusTimeout, why)
	case Rechecked:
		return x.advance()
	}
	return nil
}

// begin starts the entries.
func (x *decision) begin() error {
	if !x.running() || len(x.state.Tasks) > 0 {
		return nil // it has begun before
	}
	if len(x.def.Entries()) == 0 {
		x.logf("warning: nothing is started, since every task has one that leads to it")
		x.complete(map[string]any{})
		return nil
	}
	for _, t := range x.def.Entries() {
		if err := x.start(t); err != nil {
			return err
		}
	}
	return nil
}

// advance starts ready tasks, further items, and held retries, unless the workflow is paused.
func (x *decision) advance() error {
	if !x.running() || x.state.Paused {
		return nil
	}
	for _, r := range x.state.Held {
		x.plan.Repeat = append(x.plan.Repeat, r)
		x.logf("%s is repeated in %s", x.nameOf(r.Task, r.Index), r.Delay)
	}
	x.state.Held = nil
	for _, t := range x.def.All() {
		st := x.state.Tasks[t.Name]
		if st == nil {
			continue
		}
		var err error
		switch st.Status {
		case TaskReady:
			err = x.run(t)
		case TaskRunning:
			err = x.fill(t)
		default:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// workflowCancelled is the published error of a cancelled workflow.
const workflowCancelled = "Workflow cancelled"

// cancel starts nothing more. The workflow ends with its last child.
func (x *decision) cancel() {
	if !x.running() {
		return
	}
	x.stopTasks("the workflow is cancelled")
	x.state.Status = lifecycle.StatusCanceling
	x.logf("cancelled: nothing more is started")
}

// abort ends the workflow before its tasks have ended.
func (x *decision) abort(as lifecycle.Status, why string) {
	if !x.running() {
		return
	}
	x.stopTasks(why)
	x.end(as, why)
}

// stopTasks cancels unstarted tasks; running tasks are stopped or finish, as Cancellation says.
func (x *decision) stopTasks(why string) {
	for _, r := range x.state.Held {
		if x.state.Tasks[r.Task] == nil {
			continue
		}
		st := x.own(r.Task)
		st.count(lifecycle.StatusCancelled)
		st.Open--
	}
	x.state.Held = nil
	for _, t := range x.def.All() {
		st := x.state.Tasks[t.Name]
		switch {
		case st == nil || st.Status.Ended():
		case st.Status == TaskRunning && st.Open > 0:
			if t.Kind != KindParallel {
				x.plan.Stop = append(x.plan.Stop, t.Name)
			}
		default:
			x.move(t.Name, TaskCancelled).Why = why
			x.settleParallel(t)
		}
	}
	x.plan.StopUnstarted = x.def.Cancellation != CancelRunning
}

// childEnded retries an ended child, or counts its end.
func (x *decision) childEnded(h Happening) error {
	t, st := x.def.Task(h.Task), x.state.Tasks[h.Task]
	if st == nil || st.Status != TaskRunning || st.Open == 0 {
		return nil // a duplicate
	}
	if t == nil || t.Kind == KindParallel {
		x.removedEnded(h)
		return nil
	}
	again, err := x.repeat(t, h)
	if again || err != nil {
		return err
	}
	st = x.own(t.Name)
	st.Open--
	st.count(h.Status)
	if t.WithItems != nil && h.Status != lifecycle.StatusCompleted {
		x.logf("%s of %s %s", t.part(h.Index), t.Name, endText(h.Status))
	}
	if !x.running() {
		x.lateEnd(t)
		return nil
	}
	return x.fill(t)
}

// removedEnded counts the end of a child whose task was removed from the definition meanwhile. No transition fires.
func (x *decision) removedEnded(h Happening) {
	st := x.own(h.Task)
	st.Open--
	st.count(h.Status)
	if st.Open == 0 {
		x.move(h.Task, st.outcome())
		x.logf("%s %s: the definition does not have it any more", h.Task, endText(h.Status))
	}
}

// count counts the end of one child.
func (st *TaskState) count(status lifecycle.Status) { st.counts(status, 1) }

func (st *TaskState) counts(status lifecycle.Status, by int) {
	switch status {
	case lifecycle.StatusCompleted:
		st.Succeeded += by
	case lifecycle.StatusTimeout:
		st.TimedOut += by
	case lifecycle.StatusCancelled:
		st.Cancelled += by
		st.Failed += by
	default:
		st.Failed += by
	}
}

// outcome is the status of a task by those of its ended children.
func (st *TaskState) outcome() TaskStatus {
	switch {
	case st.Failed > 0 && st.Failed == st.Cancelled, st.Next < st.Total:
		return TaskCancelled
	case st.Failed > 0:
		return TaskFailed
	case st.TimedOut > 0:
		return TaskTimeout
	default:
		return TaskCompleted
	}
}

// lateEnd records the end of a task whose workflow has ended or is being cancelled.
func (x *decision) lateEnd(t *Task) {
	if st := x.state.Tasks[t.Name]; st.Open == 0 {
		x.move(t.Name, st.outcome())
		x.logf("%s ended after the workflow was stopped: %s", t.Name, st.outcome())
		x.settleParallel(t)
	}
}

// settleParallel counts a task that ended after its workflow in the parallel task around it.
func (x *decision) settleParallel(t *Task) {
	if t.Within == nil {
		return
	}
	if st := x.state.Tasks[t.Within.Name]; st == nil || st.Status != TaskRunning {
		return
	}
	if st := x.countWithin(t); st.Open == 0 {
		x.move(t.Within.Name, st.outcome())
	}
}

// countWithin counts an ended task in the parallel task around it.
func (x *decision) countWithin(t *Task) *TaskState {
	st := x.own(t.Within.Name)
	st.Open--
	st.count(x.state.Tasks[t.Name].Status.asOfChild())
	return st
}

// asOfChild converts the status of a task within a parallel task to that of a child.
func (s TaskStatus) asOfChild() lifecycle.Status {
	switch s {
	case TaskCompleted, TaskSkipped:
		return lifecycle.StatusCompleted
	case TaskTimeout:
		return lifecycle.StatusTimeout
	case TaskCancelled:
		return lifecycle.StatusCancelled
	default:
		return lifecycle.StatusFailed
	}
}

// endText describes the end of a child.
func endText(status lifecycle.Status) string {
	if words, ok := map[lifecycle.Status]string{
		lifecycle.StatusTimeout: "timed out", lifecycle.StatusCancelled: "was cancelled",
		lifecycle.StatusAbandoned: "was abandoned",
	}[status]; ok {
		return words
	}
	return string(status)
}
