package workflow

import (
	"slices"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
)

// Inherited is what another engine has stored about a running workflow.
type Inherited struct {
	Variables map[string]any
	// Lists are the names of tasks in its columns. The transitions of completed and failed tasks have fired.
	Lists Lists
	// Paused says that current tasks without a child are ready. Canceling says that nothing more starts.
	Paused, Canceling bool
	// Children are the last retries of all children, in order of task and index.
	Children []InheritedChild
}

// InheritedChild is a child that another engine has created.
type InheritedChild struct {
	Child
	Status  lifecycle.Status
	At      time.Time // of its last change
	Retries int
	// Ended says that its end can be processed, Waits that it is requested and in no queue.
	Ended, Waits bool
	// TriggeredBy is its predecessor; empty for an entry.
	TriggeredBy string
}

// Inheritance is the state of a workflow that another engine has started.
type Inheritance struct {
	State *State
	// Settled are the ended children that the state counts. The ends of the others are still to be processed.
	Settled map[Child]bool
	// Due are the children to request.
	Due []Child
	// Keep are lists of which the other engine has not created all children.
	Keep []Kept
}

// Inherit derives the state of a workflow from the rows of another engine, whose columns and children count: it repeats
// no decision. Retention may have deleted ended children. The error is a *NeedError.
//
// That engine also lists tasks whose end it has seen without processing it. Such a task is unprocessed if no child
// follows from it, and a retry is left or a transition leads to a task without any trace.
func (d *Definition) Inherit(from Inherited, facts Facts) (*Inheritance, error) {
	state := d.Begin()
	if from.Variables != nil {
		state.Variables = from.Variables
	}
	h := &heir{
		def: d, from: from, children: map[string][]InheritedChild{}, followed: map[string]bool{},
		Inheritance: &Inheritance{State: state, Settled: map[Child]bool{}},
	}
	for _, child := range from.Children {
		h.children[child.Task] = append(h.children[child.Task], child)
		h.followed[child.TriggeredBy] = true
	}
	for _, t := range d.All() {
		h.inherit(t)
	}
	for name, children := range h.children {
		if d.Task(name) == nil {
			h.run(&Task{Name: name}, children)
		}
	}
	x, err := d.decisionOn(state, nil, facts)
	if err != nil {
		return nil, err
	}
	for _, t := range d.All() {
		if err := h.rest(x, t); err != nil {
			return nil, err
		}
	}
	if err := h.reopen(x); err != nil {
		return nil, err
	}
	for _, t := range d.All() {
		switch arrived := h.arrived(t); {
		case state.Tasks[t.Name] != nil:
		case t.Kind == KindParallel:
			h.gather(t)
		case t.Join > 1 && len(arrived) > 0:
			state.Tasks[t.Name] = &TaskState{Status: TaskWaiting, Arrived: arrived}
		}
	}
	return h.Inheritance, nil
}

// heir is one call of Inherit.
type heir struct {
	*Inheritance

	def      *Definition
	from     Inherited
	children map[string][]InheritedChild
	followed map[string]bool // tasks with children that follow from them
}

// inherit derives the state of one task, if it has left a trace.
func (h *heir) inherit(t *Task) {
	lists, children := h.from.Lists, h.children[t.Name]
	switch {
	case h.processed(t):
		h.end(t, children)
	case len(children) > 0:
		h.run(t, children)
	case slices.Contains(lists.Skipped, t.Name):
		h.State.Tasks[t.Name] = &TaskState{Status: TaskSkipped}
	case t.Kind == KindParallel && t.Within == nil && slices.ContainsFunc(t.Tasks, h.traced): // see gather
	case slices.Contains(lists.Current, t.Name) && !h.from.Paused && t.Action != "":
		// Its child was deleted, which is found when the workflow is rechecked.
		h.State.Tasks[t.Name] = &TaskState{Status: TaskRunning, Total: 1, Next: 1, Open: 1}
	case slices.Contains(lists.Current, t.Name),
		h.beginning(t): // the other engine stopped between two entries
		h.State.Tasks[t.Name] = &TaskState{Status: TaskReady}
	}
}

// beginning reports whether the other engine may have stopped before it had started all of an entry: it has processed
// no end.
func (h *heir) beginning(t *Task) bool {
	lists := h.from.Lists
	return t.Within == nil && len(t.Inbound) == 0 && len(lists.Completed)+len(lists.Failed)+len(lists.Skipped) == 0
}

func (h *heir) listed(t *Task) bool {
	return slices.Contains(h.from.Lists.Completed, t.Name) || slices.Contains(h.from.Lists.Failed, t.Name)
}

// traced reports whether the other engine has started or skipped a task.
func (h *heir) traced(t *Task) bool {
	return h.listed(t) || len(h.children[t.Name]) > 0 || slices.Contains(h.from.Lists.Skipped, t.Name) ||
		slices.Contains(h.from.Lists.Current, t.Name)
}

// processed reports whether the transitions of a task have fired.
func (h *heir) processed(t *Task) bool {
	return h.listed(t) && !slices.ContainsFunc(h.children[t.Name], func(child InheritedChild) bool {
		return !child.Ended || !h.followed[t.Name] && t.Retry != nil && t.Retry.OnError == nil && !h.final(t, child)
	})
}

// final reports whether a child has ended without a retry.
func (h *heir) final(t *Task, child InheritedChild) bool {
	return child.Ended && !t.repeatable(Happening{Kind: ChildEnded, Status: child.Status, Retries: child.Retries})
}

// end counts a processed task. Its deleted children ended as the task did.
func (h *heir) end(t *Task, children []InheritedChild) {
	completed := slices.Contains(h.from.Lists.Completed, t.Name)
	n := 1
	if len(children) > 0 {
		n = max(children[len(children)-1].Index+1, 1)
	}
	st := &TaskState{Total: n, Next: n}
	for _, child := range children {
		st.count(child.Status)
		h.Settled[child.Child] = true
	}
	switch gone := n - len(children); {
	case completed:
		st.Succeeded += gone
	default:
		st.Failed += gone
	}
	if st.Status = st.outcome(); st.Status.bad() {
		st.Handled = completed
	} else if !completed {
		st.Status = TaskFailed
	}
	if t.WithItems != nil {
		st.Items = n
	}
	h.State.Tasks[t.Name] = st
}

// run counts a task with unprocessed children. The other engine has created all children of a list, and starts them in
// order: those before the first waiting one beyond the concurrency have started, and missing ones were deleted after
// their end.
func (h *heir) run(t *Task, children []InheritedChild) {
	st := &TaskState{Status: TaskRunning}
	h.State.Tasks[t.Name] = st
	st.Total = children[len(children)-1].Index + 1
	if t.WithItems != nil {
		st.Items, st.Made, st.Found = st.Total, st.Total, true
	}
	for ; st.Next < st.Total; st.Next++ {
		waits := len(children) > 0 && children[0].Index == st.Next && children[0].Waits
		if waits && children[0].Retries == 0 && st.Made > 0 && st.Open >= max(t.Concurrency, 1) {
			return
		}
		switch {
		case len(children) == 0 || children[0].Index > st.Next:
			st.Succeeded++
			continue
		case t.WithItems != nil && h.final(t, children[0]):
			st.count(children[0].Status)
			h.Settled[children[0].Child] = true
		default:
			st.Open++
		}
		if waits {
			h.Due = append(h.Due, children[0].Child)
		}
		children = children[1:]
	}
}

// rest adds the items of an entry whose children the other engine did not create. An item whose child was deleted is
// not one of them: it had started when all but fewer than concurrency items before it had ended, and retention deletes
// the earliest ends first.
func (h *heir) rest(x *decision, t *Task) error {
	st, children := h.State.Tasks[t.Name], h.children[t.Name]
	if t.WithItems == nil || !h.beginning(t) || h.from.Canceling || len(children) == 0 || len(children) < st.Made {
		return nil
	}
	if last := children[len(children)-1]; len(children) < t.Concurrency && (!last.Waits || last.Retries > 0) {
		return nil
	}
	value, err := x.value(t.WithItems, x.scopeOf(t))
	if items, ok := value.([]any); ok && err == nil && len(items) > st.Made && len(items) <= MaxItems &&
		t.BatchSize == 0 {
		st.Items, st.Total = len(items), len(items)
		h.Keep = append(h.Keep, Kept{Task: t.Name, Items: items})
	}
	if need := needs(err); need != nil {
		return need
	}
	return nil
}

// arrived are the predecessors of a task that count for its join: the other engine counts completed ones.
func (h *heir) arrived(t *Task) []string {
	var names []string
	for _, name := range t.Inbound {
		if st := h.State.Tasks[name]; st != nil && st.Status.Ended() &&
			slices.Contains(h.from.Lists.Completed, name) {
			names = append(names, name)
		}
	}
	return names
}

// reopen finds listed tasks that were not processed, the latest first. Their ends are processed again. Tasks that lead
// to a join come last: one of them starts it.
func (h *heir) reopen(x *decision) error {
	var ended []*Task
	for _, t := range h.def.Tasks {
		st := h.State.Tasks[t.Name]
		if st != nil && st.Status.Ended() && len(h.children[t.Name]) > 0 && !h.followed[t.Name] && len(t.Next) > 0 {
			ended = append(ended, t)
		}
	}
	slices.SortStableFunc(ended, func(a, b *Task) int { return h.last(b).At.Compare(h.last(a).At) })
	for _, joins := range []bool{false, true} {
		for _, t := range ended {
			if missed, err := h.missed(x, t, joins); err != nil {
				return err
			} else if missed {
				st := h.State.Tasks[t.Name]
				delete(h.Settled, h.last(t).Child)
				st.Status, st.Handled, st.Open = TaskRunning, false, 1
				st.counts(h.last(t).Status, -1)
			}
		}
	}
	return nil
}

func (h *heir) last(t *Task) InheritedChild { return h.children[t.Name][len(h.children[t.Name])-1] }

// missed reports whether a transition of an ended task leads to a task that has left no trace.
func (h *heir) missed(x *decision, t *Task, joins bool) (bool, error) {
	for i, transition := range t.Next {
		if !h.State.Tasks[t.Name].Status.Ended() || !slices.ContainsFunc(transition.Do, func(name string) bool {
			to := h.def.Task(name)
			return to != nil && to.Action != "" && !h.traced(to) && joins == (to.Join > 1) &&
				(!joins || len(h.arrived(to)) >= to.Join)
		}) {
			continue
		}
		if transition.When == nil {
			return true, nil
		}
		if fires, err := x.matches(t, i, x.scopeAfter(t)); fires || needs(err) != nil {
			return fires, err
		}
	}
	return false, nil
}

// gather counts the tasks within a started parallel task.
func (h *heir) gather(t *Task) {
	st := &TaskState{Status: TaskRunning, Total: len(t.Tasks), Next: len(t.Tasks)}
	for _, sub := range t.Tasks {
		switch of := h.State.Tasks[sub.Name]; {
		case of == nil:
			return // it was not started
		case of.Status.Ended():
			st.count(of.Status.asOfChild())
		default:
			st.Open++
		}
	}
	if st.Open == 0 {
		st.Status = st.outcome()
	}
	h.State.Tasks[t.Name] = st
}
