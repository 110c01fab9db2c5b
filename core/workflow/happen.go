package workflow

import (
	"fmt"
	"time"

	"github.com/attune-go/attune/core/attune"
)

// take writes down what has happened.
func (x *decision) take() error {
	h := x.ahead[0]
	switch h.Kind {
	case Started:
		return x.begin()
	case ChildEnded:
		return x.childEnded(h)
	case Paused:
		x.pause()
	case Resumed:
		x.resume()
		return x.goOn()
	case Canceling:
		x.cancel()
	case Cancelled:
		if x.state.Status == attune.StatusCanceling {
			x.end(attune.StatusCancelled, workflowCancelled)
		}
		x.breakOff(attune.StatusCancelled, workflowCancelled)
	case TimedOut:
		x.breakOff(attune.StatusTimeout, x.overdue())
	case Looked:
		return x.goOn()
	}
	return nil
}

// overdue says that the time of the workflow is over, and how long that was.
func (x *decision) overdue() string {
	const text = "the workflow has run for longer than it may"
	if x.facts.Allowed <= 0 {
		return text
	}
	return fmt.Sprintf("%s: %s", text, x.facts.Allowed.Round(time.Millisecond))
}

// begin starts the tasks that nothing leads to.
func (x *decision) begin() error {
	if !x.running() || len(x.state.Tasks) > 0 {
		return nil // it was begun before
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

func (x *decision) pause() {
	if x.running() && !x.state.Paused {
		x.state.Paused = true
		x.logf("paused: nothing new is started")
	}
}

func (x *decision) resume() {
	if x.running() && x.state.Paused {
		x.state.Paused = false
		x.logf("resumed")
	}
}

// goOn does what was left while the workflow was paused: it starts what is ready,
// more items, and repetitions that were held.
func (x *decision) goOn() error {
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

// cancel has nothing more started. The workflow ends with the last of its children.
func (x *decision) cancel() {
	if !x.running() {
		return
	}
	x.stopTasks("the workflow is cancelled")
	x.state.Status = attune.StatusCanceling
	x.logf("cancelled: nothing more is started")
}

// breakOff ends the workflow before its tasks have ended.
func (x *decision) breakOff(as attune.Status, why string) {
	if !x.running() {
		return
	}
	x.stopTasks(why)
	x.end(as, why)
}

// stopTasks ends tasks before their time: those that were not started never are; those
// that run are stopped, or finish, as the definition says.
func (x *decision) stopTasks(why string) {
	for _, r := range x.state.Held {
		if x.state.Tasks[r.Task] == nil {
			continue
		}
		st := x.own(r.Task)
		st.count(attune.StatusCancelled)
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

// childEnded is the end of a child: it is repeated, or its task has one less open.
func (x *decision) childEnded(h Happening) error {
	t, st := x.def.Task(h.Task), x.state.Tasks[h.Task]
	if st == nil || st.Status != TaskRunning || st.Open == 0 {
		return nil // it was heard before
	}
	if t == nil || t.Kind == KindParallel {
		x.strangerEnded(h)
		return nil
	}
	again, err := x.repeat(t, h)
	if again || err != nil {
		return err
	}
	st = x.own(t.Name)
	st.Open--
	st.count(h.Status)
	if t.WithItems != nil && h.Status != attune.StatusCompleted {
		x.logf("%s of %s %s", t.part(h.Index), t.Name, said(h.Status))
	}
	if !x.running() {
		x.lateEnd(t)
		return nil
	}
	return x.fill(t)
}

// strangerEnded is the end of a child whose task was taken out of the definition
// while it ran: it is counted, and leads nowhere.
func (x *decision) strangerEnded(h Happening) {
	st := x.own(h.Task)
	st.Open--
	st.count(h.Status)
	if st.Open == 0 {
		x.move(h.Task, st.outcome())
		x.logf("%s %s: the definition does not have it any more", h.Task, said(h.Status))
	}
}

// count adds the end of one child.
func (st *TaskState) count(status attune.Status) {
	switch status {
	case attune.StatusCompleted:
		st.Succeeded++
	case attune.StatusTimeout:
		st.TimedOut++
	case attune.StatusCancelled:
		st.Cancelled++
		st.Failed++
	default:
		st.Failed++
	}
}

// outcome is how a task has ended whose children have.
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

// lateEnd notes the end of a task whose workflow has ended, or is cancelled.
func (x *decision) lateEnd(t *Task) {
	if st := x.state.Tasks[t.Name]; st.Open == 0 {
		x.move(t.Name, st.outcome())
		x.logf("%s ended after the workflow was stopped: %s", t.Name, st.outcome())
		x.settleParallel(t)
	}
}

// settleParallel counts a task that has ended after its workflow in the parallel one
// that it belongs to.
func (x *decision) settleParallel(t *Task) {
	if t.Within == nil {
		return
	}
	if st := x.state.Tasks[t.Within.Name]; st == nil || st.Status != TaskRunning {
		return
	}
	st := x.own(t.Within.Name)
	st.Open--
	st.count(x.state.Tasks[t.Name].Status.asOfChild())
	if st.Open == 0 {
		x.move(t.Within.Name, st.outcome())
	}
}

// asOfChild is the status of a task within a parallel one, as that of a child.
func (s TaskStatus) asOfChild() attune.Status {
	switch s {
	case TaskCompleted, TaskSkipped:
		return attune.StatusCompleted
	case TaskTimeout:
		return attune.StatusTimeout
	case TaskCancelled:
		return attune.StatusCancelled
	default:
		return attune.StatusFailed
	}
}

// said is how a child has ended, in words.
func said(status attune.Status) string {
	if words, ok := map[attune.Status]string{
		attune.StatusTimeout: "timed out", attune.StatusCancelled: "was cancelled",
		attune.StatusAbandoned: "was abandoned",
	}[status]; ok {
		return words
	}
	return string(status)
}
