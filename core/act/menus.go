package act

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
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
	FieldGroup     = "group"
	FieldMessage   = "type"
	FieldExecution = "execution"
	FieldSince     = "since"
	FieldRate      = "rate"
	FieldResponse  = "response"
	// FieldAs is the login on whose behalf an answer is given.
	FieldAs = "as"
	// FieldAnswer is the prefix of the fields of an answer.
	FieldAnswer = "answer."
)

// offer is the place of an act in the menu of a kind of row. fit says why the act does not apply to the row, and adapts
// the line to it.
type offer struct {
	menu  string
	place int
	fit   func(row any, item *Item)
}

// in offers an act in a menu; fit may be nil.
func in[R any](menu string, place int, fit func(row R, item *Item)) offer {
	return offer{menu: menu, place: place, fit: func(row any, item *Item) {
		if typed, ok := row.(R); ok && fit != nil {
			fit(typed, item)
		}
	}}
}

// menuOf is the menu of a kind of row. Without a row it has the acts on marked rows.
func menuOf(menu string, target Target, row any) Menu {
	type line struct {
		Item
		place int
	}
	var lines []line
	for _, of := range All() {
		at := slices.IndexFunc(of.offers, func(o offer) bool { return o.menu == menu })
		if at < 0 || row == nil && of.Many == "" {
			continue
		}
		one := line{Item: of.Item(), place: of.offers[at].place}
		if row == nil {
			one.Help = of.Many
		} else {
			of.offers[at].fit(row, &one.Item)
		}
		lines = append(lines, one)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.place, b.place) })
	made := Menu{Target: target}
	for _, one := range lines {
		made.Items = append(made.Items, one.Item)
	}
	return made
}

// Item is the line of the act in a menu.
func (a *Act) Item() Item {
	item := Item{Kind: a.Kind, Key: a.Key, Label: a.Label, Help: a.Help}
	for _, f := range a.Fields {
		if f.Label != "" {
			item.Fields = append(item.Fields, f)
		}
	}
	return item
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

// ForExecution lists the acts on an execution.
func ForExecution(x *monitor.Execution) Menu {
	return menuOf("execution", Target{
		Name: "execution " + strconv.FormatInt(x.ID, 10) + " " + x.ActionRef, Ref: x.ActionRef,
		ID: x.ID, Action: x.ActionRef,
	}, x)
}

// ForQueue lists the acts on a queue.
func ForQueue(q *monitor.Queue) Menu {
	name := q.Name()
	return menuOf("queue",
		Target{Name: "queue " + name, Ref: name, ID: q.ID, Action: q.ActionRef, Group: q.Group}, q)
}

// ForWorker lists the acts on a worker. now is the database's time.
func ForWorker(w *monitor.Worker, now time.Time, staleAfter time.Duration) Menu {
	return menuOf("worker", Target{Name: "worker " + w.Name, Ref: w.Name, ID: w.ID},
		workerRow{w, w.Health(now, staleAfter)})
}

// ForWorkflow lists the acts on a workflow.
func ForWorkflow(w *monitor.Workflow) Menu {
	return menuOf("workflow",
		Target{Name: "workflow " + strconv.FormatInt(w.Execution, 10) + " " + w.ActionRef, ID: w.Execution}, w)
}

// ForTask lists the acts on a child of a workflow.
func ForTask(t *monitor.WorkflowTask, c *monitor.WorkflowChild) Menu {
	id := strconv.FormatInt(c.Execution, 10)
	return menuOf("task", Target{
		Name: "task " + explain.ChildName(t, c) + ", execution " + id, Ref: c.ActionRef, ID: c.Execution,
		Action: c.ActionRef,
	}, &monitor.Execution{ID: c.Execution, ActionRef: c.ActionRef, Status: c.Status})
}

// ForInquiry lists the acts on an inquiry. form describes its answer.
func ForInquiry(d *monitor.InquiryDetail, form *inquiry.AnswerForm) Menu {
	return menuOf("inquiry", Target{Name: "inquiry " + strconv.FormatInt(d.ID, 10), ID: d.ID}, asked{d, form})
}

// ForDeadLetter lists the acts on a dead letter, and on the broker's queue of dead letters with depth messages. Only
// planning finds out whether the dead letter can be requeued.
func ForDeadLetter(l *monitor.LedgerEntry, depth int64) Menu {
	menu := menuOf("dead letter", Target{Name: "dead letter " + strconv.FormatInt(l.ID, 10), ID: l.ID}, l)
	menu.Items = append(menu.Items, ForNoDeadLetter(depth).Items...)
	return menu
}

// ForNoDeadLetter lists the acts on the broker's queue of dead letters with depth messages.
func ForNoDeadLetter(depth int64) Menu {
	queue := Target{Name: monitor.DeadLetterQueue}
	menu := menuOf("broker", queue, depth)
	for i := range menu.Items {
		menu.Items[i].Target = queue
	}
	return menu
}

// MaxTargets is the largest number of rows in one plan.
const MaxTargets = 5_000

// ForMarked lists the acts on marked rows, such as queues. Only planning finds out to which rows they apply.
func ForMarked(what string, targets []Target) Menu {
	menu := menuOf(what, Target{Name: fmt.Sprintf("%d marked %s", len(targets), phrase.Nouns(len(targets), what))}, nil)
	menu.Targets = targets
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

// maxID bounds ids.
const maxID = 1 << 62

func checkGiven(value string) error {
	if strings.TrimSpace(value) == "" {
		return errors.New("it is missing")
	}
	return nil
}

// numbered checks a number from 1 to most. An empty value fits if it is optional.
func numbered(what string, most int64, optional bool) func(value string) error {
	return func(value string) error {
		value = strings.TrimSpace(value)
		n, err := strconv.ParseInt(value, 10, 64)
		if optional && value == "" || err == nil && n >= 1 && n <= most {
			return nil
		}
		return fmt.Errorf("%q is not %s: it is a number from 1 to %d", value, what, most)
	}
}

func checkAge(value string) error {
	value = strings.TrimSpace(value)
	if value == "" {
		return nil
	}
	if age, err := phrase.ParseSpan(value); err != nil || age <= 0 {
		return fmt.Errorf("%q is not an age such as 90s, 10m, 2h or 3d", value)
	}
	return nil
}

// value is the value of a field.
func (r *Request) value(name string) string { return strings.TrimSpace(r.Values[name]) }

// number is the value of a field that has been checked; empty means 0.
func (r *Request) number(name string) int64 {
	n, _ := strconv.ParseInt(r.value(name), 10, 64)
	return n
}

// age is the value of a field that has been checked; empty means 0.
func (r *Request) age(name string) time.Duration {
	age, _ := phrase.ParseSpan(r.value(name))
	return age
}
