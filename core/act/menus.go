package act

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// Names of form fields.
const (
	FieldLimit     = "limit"
	FieldLane      = "lane"
	FieldOlderThan = "older-than"
	FieldReason    = "reason"
	FieldAction    = "action"
	FieldWorker    = "worker"
	FieldExchange  = "exchange"
	FieldKey       = "key"
	FieldQueue     = "queue"
	FieldFirst     = "first"
	// FieldAs is the login on whose behalf an answer is given.
	FieldAs = "as"
	// FieldAnswer is the prefix of the fields of an answer.
	FieldAnswer = "answer."
)

// item is a line of a menu; not says why the act does not apply now.
func item(kind Kind, not string, fields ...Field) Item {
	of := acts[kind]
	return Item{Kind: kind, Key: of.key, Label: of.label, Help: of.help, Not: not, Fields: fields}
}

// touching sets Touches.
func (i Item) touching(what string) Item {
	i.Touches = what
	return i
}

// Not says why an act does not apply now; empty if it applies.
func (m *Menu) Not(kind Kind) string {
	for _, item := range m.Items {
		if item.Kind == kind {
			return item.Not
		}
	}
	return "it is not in the menu"
}

// endings says why an act does not apply to an ended execution, and why not to one that has not ended.
func endings(status string) (ended, running string) {
	if lifecycle.Status(status).Terminal() {
		return "it has ended: " + status, ""
	}
	return "", "it has not ended: " + status
}

// ForExecution lists the acts on an execution.
func ForExecution(x *monitor.Execution) Menu {
	cancel, retry := endings(x.Status)
	move := cancel
	if move == "" && lifecycle.Status(x.Status) != lifecycle.StatusRequested {
		move = "it does not wait: " + x.Status
	}
	if lifecycle.Status(x.Status) == lifecycle.StatusCanceling {
		cancel = "its worker was asked to stop it already"
	}
	return Menu{
		Target: Target{
			Name: "execution " + strconv.FormatInt(x.ID, 10) + " " + x.ActionRef, Ref: x.ActionRef,
			ID: x.ID, Action: x.ActionRef,
		},
		// The tree of an ended execution may still run.
		Items: []Item{
			item(RetryExecution, retry), item(FrontExecution, move), item(LaneExecution, move, laneField()),
			item(CancelExecution, cancel), item(CancelTree, ""),
		},
	}
}

func laneField() Field {
	return Field{Name: FieldLane, Label: "lane", Value: "high", Choices: []string{"high", "normal", "low"}}
}

// ForQueue lists the acts on a queue.
func ForQueue(q *monitor.Queue) Menu {
	var pause, resume, reset, empty, limit string
	if q.Paused {
		pause = "it is paused"
	} else {
		resume = "it is not paused"
	}
	if q.LimitFrom.Kind != monitor.LimitOverride {
		reset = "its limit was not set by hand"
	}
	if q.Queued == 0 {
		empty = "no execution waits in it"
	}
	if q.Limit != nil {
		limit = strconv.FormatInt(*q.Limit, 10)
	}
	hint := "a number, 1 or more"
	if from := q.LimitFrom; from.Threshold != nil {
		hint += "; the policy " + from.Policy + " says " + strconv.FormatInt(*from.Threshold, 10)
	}
	name := q.Name()
	return Menu{
		Target: Target{Name: "queue " + name, Ref: name, ID: q.ID, Action: q.ActionRef, Group: q.Group},
		Items: []Item{
			item(PauseQueue, pause), item(ResumeQueue, resume),
			item(LimitQueue, "", Field{
				Name: FieldLimit, Label: "at most at once", Value: limit, Hint: hint, Check: checkLimit, Number: true,
			}),
			item(ResetQueue, reset),
			item(RepairQueue, "").touching("all queues of " + q.ActionRef),
			item(ClearQueue, empty, Field{
				Name: FieldOlderThan, Label: "waiting longer than", Hint: "such as 10m or 2h; empty: all",
				Check: checkOlderThan,
			}).touching("the waiting executions of queue " + name),
		},
	}
}

// ForWorker lists the acts on a worker. now is the database's time.
func ForWorker(w *monitor.Worker, now time.Time, staleAfter time.Duration) Menu {
	var cordon, uncordon, drain, forget string
	health := w.Health(now, staleAfter)
	if w.Cordoned {
		cordon = "it is cordoned"
	}
	if !w.Cordoned && !w.Draining {
		uncordon = "it is not cordoned"
	}
	switch {
	case w.Draining:
		drain, cordon = "it drains", "it drains"
	case health == monitor.WorkerInactive:
		drain = "it is inactive: cordon keeps work from it when it comes back"
	}
	if health != monitor.WorkerInactive && health != monitor.WorkerStale {
		forget = "it is " + string(health) + ": only stale and inactive workers can be forgotten"
	}
	return Menu{
		Target: Target{Name: "worker " + w.Name, Ref: w.Name, ID: w.ID},
		Items: []Item{
			item(CordonWorker, cordon), item(UncordonWorker, uncordon), item(DrainWorker, drain),
			item(ForgetWorker, forget),
		},
	}
}

// ForWorkflow lists the acts on a workflow.
func ForWorkflow(w *monitor.Workflow) Menu {
	over, running := endings(w.Status)
	pause, resume := over, over
	switch {
	case over != "":
	case w.Paused:
		pause = "it is paused already"
	case w.PausedAbove != 0:
		resume = "it is paused with workflow " + strconv.FormatInt(w.PausedAbove, 10) +
			" above it, and goes on with that"
	default:
		resume = "it is not paused"
	}
	return Menu{
		Target: Target{Name: "workflow " + strconv.FormatInt(w.Execution, 10) + " " + w.ActionRef, ID: w.Execution},
		Items: []Item{
			item(PauseWorkflow, pause), item(ResumeWorkflow, resume), item(RetryWorkflow, running),
			item(CancelWorkflow, over),
			item(CancelTree, ""),
		},
	}
}

// ForTask lists the acts on a child of a workflow.
func ForTask(t *monitor.WorkflowTask, c *monitor.WorkflowChild) Menu {
	menu := ForExecution(&monitor.Execution{ID: c.Execution, ActionRef: c.ActionRef, Status: c.Status})
	menu.Target.Name = "task " + explain.ChildName(t, c) + ", execution " + strconv.FormatInt(c.Execution, 10)
	menu.Items[0].Kind = RetryTask
	return menu
}

// ForInquiry lists the acts on an inquiry. form describes its answer.
func ForInquiry(d *monitor.InquiryDetail, form *inquiry.AnswerForm) Menu {
	answer := item(AnswerInquiry, "")
	answer.About = d.Prompt
	switch d.Status {
	case monitor.InquiryPending:
	case monitor.InquiryResponded:
		answer.Not = "it was answered already"
		if d.Responder != "" {
			answer.Not += " by " + d.Responder
		}
	default:
		answer.Not = "it is over: " + d.Status
	}
	for _, f := range form.Fields {
		hint := f.Words
		if f.Required {
			hint += "; required"
		}
		if f.About != "" {
			hint += ": " + f.About
		}
		answer.Fields = append(answer.Fields, Field{
			Name: FieldAnswer + f.Name, Label: f.Name, Value: f.Default, Hint: hint, Check: f.Check, Secret: f.Secret,
			Choices: f.Choices, Optional: !f.Required, Long: true,
		})
	}
	if d.AssignedTo != nil {
		answer.Fields = append(answer.Fields, Field{
			Name: FieldAs, Label: "in the name of", Value: d.Assignee, Hint: "the login of the one it is assigned to",
		})
	}
	return Menu{Target: Target{Name: "inquiry " + strconv.FormatInt(d.ID, 10), ID: d.ID}, Items: []Item{answer}}
}

// ForDeadLetter lists the acts on a dead letter. Only planning finds out whether it can be requeued. depth is the
// number
// of messages in the broker's queue of dead letters.
func ForDeadLetter(l *monitor.LedgerEntry, depth int64) Menu {
	var decided, open, taken string
	if l.TakenFrom == "" {
		taken = "no operator took it from a queue"
	}
	if !l.Open() {
		decided = "it is decided: " + l.Decision
		taken = decided
	}
	if !l.IsDiscarded() {
		open = "it was not discarded"
	}
	menu := ForNoDeadLetter(depth)
	menu.Target = Target{Name: "dead letter " + strconv.FormatInt(l.ID, 10), ID: l.ID}
	menu.Items = append([]Item{
		item(RequeueDeadLetter, ""), item(DiscardDeadLetter, decided), item(SendDeadLetters, decided, sendFields()...),
		item(UndoDeadLetters, open),
		item(ReturnDeadLetters, taken),
		item(DiscardAllDeadLetters, "",
			Field{Name: FieldReason, Label: "died because", Value: l.Reason, Hint: "expired, rejected …; empty: any"},
			Field{Name: FieldAction, Label: "action", Hint: "a star stands for anything; empty: any"},
			Field{Name: FieldWorker, Label: "worker", Hint: "its id or name; empty: any"},
			Field{
				Name: FieldOlderThan, Label: "older than", Hint: "such as 10m or 2h; empty: any",
				Check: checkOlderThan,
			},
		).touching("waiting dead letters that match"),
	}, menu.Items...)
	return menu
}

// ForNoDeadLetter lists the acts on the broker's queue of dead letters with depth messages.
func ForNoDeadLetter(depth int64) Menu {
	few, queue := "", Target{Name: monitor.DeadLetterQueue}
	if depth <= triage.PurgeOffered {
		few = fmt.Sprintf("only above %d messages; S takes them", triage.PurgeOffered)
	}
	take := item(TakeDeadLetters, "",
		Field{
			Name: FieldQueue, Label: "from the queue", Value: monitor.DeadLetterQueue,
			Hint:  "or another, such as worker.7.executions",
			Check: checkGiven,
		},
		Field{Name: FieldFirst, Label: "the first", Hint: "how many; empty: all that lie there now", Check: checkFirst})
	purge := item(PurgeBroker, few).touching("all messages of " + queue.Name)
	take.Target, purge.Target = queue, queue
	return Menu{Target: queue, Items: []Item{take, purge}}
}

func sendFields() []Field {
	return []Field{
		{Name: FieldExchange, Label: "exchange", Hint: "empty: straight to a queue"},
		{Name: FieldKey, Label: "key or queue", Hint: "the routing key, or the queue's name", Check: checkGiven},
	}
}

// MaxTargets is the largest number of rows in one plan.
const MaxTargets = 5_000

// together lists the acts on marked rows in the order of their menu.
var together = map[string][]Kind{
	"execution":   {RetryExecution, FrontExecution, LaneExecution, CancelExecution},
	"queue":       {PauseQueue, ResumeQueue},
	"worker":      {CordonWorker, UncordonWorker, DrainWorker},
	"workflow":    {PauseWorkflow, ResumeWorkflow, RetryWorkflow, CancelWorkflow},
	"inquiry":     {AnswerInquiry},
	"dead letter": {RequeueDeadLetter, DiscardDeadLetter, SendDeadLetters, UndoDeadLetters, ReturnDeadLetters},
}

// ForMarked lists the acts on marked rows, such as queues. Only planning finds out to which rows they apply.
func ForMarked(what string, targets []Target) Menu {
	menu := Menu{
		Target:  Target{Name: fmt.Sprintf("%d marked %s", len(targets), phrase.Nouns(len(targets), what))},
		Targets: targets,
	}
	for _, kind := range together[what] {
		one := item(kind, "")
		one.Help = acts[kind].many
		switch kind {
		case SendDeadLetters:
			one.Fields = sendFields()
		case LaneExecution:
			one.Fields = []Field{laneField()}
		default:
		}
		menu.Items = append(menu.Items, one)
	}
	return menu
}

// ForMarkedInquiries lists the acts on marked inquiries: one answer for all of them, in the form of one inquiry, whose
// menu is one. That inquiry need not be marked, and may have been answered.
func ForMarkedInquiries(targets []Target, one Menu) Menu {
	menu := ForMarked("inquiry", targets)
	answer := one.Items[0]
	answer.Label, answer.Help, answer.Not = "answer all alike", menu.Items[0].Help, ""
	answer.About = "All marked questions get this answer. The form is that of " + one.Target.Name + ":\n" + answer.About
	menu.Items[0] = answer
	return menu
}

func checkGiven(value string) error {
	if strings.TrimSpace(value) == "" {
		return errors.New("it is missing")
	}
	return nil
}

func checkFirst(value string) error {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	return checkLimit(value)
}

func checkLimit(value string) error {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	switch {
	case err != nil:
		return errors.New("not a number")
	case n < 1:
		return errors.New("at least 1")
	case n >= math.MaxInt32: // the database stores 32 bits, and the largest value means no limit
		return fmt.Errorf("at most %d", math.MaxInt32-1)
	}
	return nil
}

func checkOlderThan(value string) error {
	_, err := OlderThan(value)
	return err
}

// OlderThan reads a minimal age; empty means 0.
func OlderThan(value string) (time.Duration, error) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, nil
	}
	age, err := phrase.ParseSpan(value)
	if err != nil || age < 0 {
		return 0, fmt.Errorf("%q is not an age such as 90s, 10m, 2h or 3d", value)
	}
	return age, nil
}
