package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// The bounds of the sentences about a workflow.
const (
	// whyChildren bounds the running children whose workers are read.
	whyChildren = 8
	// whyNamed bounds the named children of a kind and task.
	whyNamed = 2
)

// workflowWhy collects the facts of the sentences.
type workflowWhy struct {
	*monitor.WorkflowDetail
	staleAfter time.Duration
	lines      []string
	// holders are running children with their workers, by execution.
	holders map[int64]*monitor.Holder
	// waits is the Why of the first child in a queue.
	waits *Why
	// engine says that no replica is alive; empty if one is.
	engine []string
}

// whyWorkflow says what a workflow waits for. It also reads the workers of a few children and the
// queue of one.
func (m *Reader) whyWorkflow(ctx context.Context, tx *store.Tx, s monitor.Shape, d *monitor.WorkflowDetail) error {
	w := &workflowWhy{WorkflowDetail: d, holders: map[int64]*monitor.Holder{}, staleAfter: m.Config().StaleAfter}
	if !lifecycle.Status(d.Status).Terminal() && s.Ours {
		if err := w.look(ctx, tx, s, m); err != nil {
			return err
		}
	}
	w.tell()
	d.Why = w.lines
	return nil
}

// look reads the running children and the first waiting one.
func (w *workflowWhy) look(ctx context.Context, tx *store.Tx, s monitor.Shape, m *Reader) error {
	var running []store.ViewQueueHoldersRow
	var waiting int64
	for i := range w.List {
		for _, c := range w.List[i].Children {
			switch status := lifecycle.Status(c.Status); {
			case status.Terminal() || c.Nested:
			case c.WorkerID != nil && len(running) < whyChildren:
				running = append(running, store.ViewQueueHoldersRow{ID: c.Execution, Since: c.Created})
			case status == lifecycle.StatusRequested && c.Due == nil && waiting == 0:
				waiting = c.Execution
			}
		}
	}
	h, err := m.Holders(ctx, tx, int64(len(running)), running, w.At)
	if err != nil {
		return err
	}
	for i := range h.List {
		w.holders[h.List[i].ID] = &h.List[i]
	}
	look := &Why{Reading: monitor.Reading{At: w.At}}
	if waiting != 0 {
		if err := m.why(ctx, tx, s, waiting, look); err != nil {
			return err
		}
		w.waits = look
	} else if err := look.readReplicas(ctx, tx); err != nil {
		return err
	}
	w.engine = look.engineLines()
	return nil
}

// tell writes the sentences: about the workflow, then about its tasks in order.
func (w *workflowWhy) tell() {
	if lifecycle.Status(w.Status).Terminal() {
		w.ended()
		return
	}
	w.lines = append(w.lines, w.engine...)
	if w.Paused {
		w.sayf("%s. Running children continue; nothing more starts until it is resumed.",
			phrase.Say("The workflow is paused").With(": ", w.PauseReason))
	}
	if w.PausedAbove != 0 {
		w.sayf("Workflow %d above it is paused, which pauses this one: nothing more starts until that is resumed.",
			w.PausedAbove)
	}
	if w.Status == string(lifecycle.StatusCanceling) {
		w.sayf("The workflow is being cancelled; it ends when its running children have ended.")
	}
	for i := range w.List {
		switch t := &w.List[i]; workflow.TaskStatus(t.Status) {
		case workflow.TaskRunning:
			if t.Type != string(workflow.KindParallel) {
				w.running(t)
			}
		case workflow.TaskWaiting:
			w.sayf("%s waits at its join: it %s.", t.Name, t.Why)
		case workflow.TaskReady:
			w.sayf("%s is ready and starts when the workflow is resumed.", t.Name)
		default:
			w.failure(t)
		}
	}
	if len(w.lines) == 0 {
		w.sayf("Nothing blocks it: the engine processes the latest ends next.")
	}
	if w.Deadline != nil {
		w.sayf("If it has not ended %s, it is ended as timeout.", phrase.Clock(*w.Deadline, w.At))
	}
}

func (w *workflowWhy) sayf(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// ended says how it ended and which tasks caused that.
func (w *workflowWhy) ended() {
	text := phrase.Say("It ended as %s", w.Status)
	if w.FinishedAt != nil {
		text.With(" ", phrase.Clock(*w.FinishedAt, w.At))
	}
	w.lines = append(w.lines, text.With(": ", w.Error).Sentence())
	for i := range w.List {
		if t := &w.List[i]; t.Status == string(workflow.TaskRunning) {
			w.sayf("%s runs on: %s.", t.Name, t.Says)
		} else {
			w.failure(t)
		}
	}
}

// failure names a failed task without a handler, and the tasks that it makes unreachable.
func (w *workflowWhy) failure(t *monitor.WorkflowTask) {
	verb := map[workflow.TaskStatus]string{
		workflow.TaskFailed: " failed", workflow.TaskTimeout: " took too long",
	}[workflow.TaskStatus(t.Status)]
	if verb == "" || t.Handled {
		return
	}
	text := phrase.Say("%s%s", t.Name, verb).With(": ", strings.TrimSuffix(t.Why, "."))
	for i := range w.List {
		after := &w.List[i]
		if after.Join > 1 && int(after.Join) == len(after.Before) && slices.Contains(after.Before, t.Name) &&
			after.Status != string(workflow.TaskCompleted) {
			text.Add("; %s needs all %d before it", after.Name, after.Join)
		}
	}
	w.sayf("%s.", text)
}

// running describes the unfinished children of a task. Of equal ones only the first are named.
func (w *workflowWhy) running(t *monitor.WorkflowTask) {
	counts := map[string]int{}
	before, more := len(w.lines), 0
	for i := range t.Children {
		c := &t.Children[i]
		if lifecycle.Status(c.Status).Terminal() {
			continue
		}
		kind, text := w.child(t, c)
		if counts[kind]++; counts[kind] <= whyNamed {
			w.lines = append(w.lines, text)
		} else {
			more++
		}
	}
	if more > 0 {
		w.sayf("  and %d more of %s", more, t.Name)
	}
	if items := t.Items; items != nil && items.Made < items.Total && t.Concurrency > 0 {
		w.sayf("%s has %d of %d items begun: %d may run at once.", t.Name, items.Made, items.Total, t.Concurrency)
	}
	if len(w.lines) == before {
		w.sayf("%s has ended; the engine processes that next.", t.Name)
	}
}

// child says what one child waits for, and the kind of that.
func (w *workflowWhy) child(t *monitor.WorkflowTask, c *monitor.WorkflowChild) (kind, text string) {
	name := ChildName(t, c)
	begun := c.Created
	if c.StartedAt != nil {
		begun = *c.StartedAt
	}
	lasts := phrase.Since(begun, w.At)
	switch {
	case c.Inquiry != 0:
		return "asks", fmt.Sprintf("%s waits for the answer to inquiry %d.", name, c.Inquiry)
	case c.Nested:
		return "nested", fmt.Sprintf("%s is a workflow itself, %d, which is %s.", name, c.Execution, c.Status)
	case c.Due != nil:
		return "due", fmt.Sprintf("%s is repeated %s, attempt %d.", name, phrase.In(c.Due.Sub(w.At)), c.Attempt)
	case c.Status == string(lifecycle.StatusRequested):
		return "waits", w.queued(name, c)
	}
	h := w.holders[c.Execution]
	if h == nil {
		return c.Status, fmt.Sprintf("%s is %s for %s.", name, c.Status, lasts)
	}
	verb := map[string]string{
		string(lifecycle.StatusRunning): "runs on", string(lifecycle.StatusCanceling): "is being cancelled on",
	}[c.Status]
	unwell := (&Why{worker: h}).unwell(w.staleAfter)
	kind = c.Status
	if unwell != "" {
		kind += " unwell"
	}
	return kind, fmt.Sprintf("%s %s %s, for %s.%s", name, cmp.Or(verb, "was handed to"),
		cmp.Or(h.WorkerName, "a worker"), lasts, unwell)
}

// queued describes a requested child: the first in full, the others briefly.
func (w *workflowWhy) queued(name string, c *monitor.WorkflowChild) string {
	if w.waits == nil || w.waits.ID != c.Execution {
		return fmt.Sprintf("%s waits to be admitted, for %s.", name, phrase.Since(c.Created, w.At))
	}
	_, rest, _ := strings.Cut(w.waits.Summary, strconv.FormatInt(c.Execution, 10)+" ")
	text := name + " " + cmp.Or(strings.TrimPrefix(rest, "of "+w.waits.ActionRef+" "), "waits.")
	if w.waits.Queue != nil && w.waits.Waiting != nil {
		text += " " + strings.Join(w.waits.cause(), " ")
	}
	return text + w.held()
}

// held names the children of the workflow that hold the slots which its first queued child needs.
func (w *workflowWhy) held() string {
	if w.waits.Holders == nil {
		return ""
	}
	own := map[int64]string{}
	for i := range w.List {
		for j := range w.List[i].Children {
			own[w.List[i].Children[j].Execution] = ChildName(&w.List[i], &w.List[i].Children[j])
		}
	}
	var names []string
	for _, h := range w.waits.Holders.List {
		if name := own[h.ID]; name != "" && len(names) < whyNamed {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return " " + names[0] + " of this workflow holds a slot of it."
	default:
		return " " + strings.Join(names, " and ") + " of this workflow hold a slot of it."
	}
}

// ChildName is the task with the index of the item.
func ChildName(t *monitor.WorkflowTask, c *monitor.WorkflowChild) string {
	if c.Index == nil {
		return t.Name
	}
	return t.Name + "[" + strconv.FormatInt(*c.Index, 10) + "]"
}
