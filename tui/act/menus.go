package act

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
)

// Names of form fields.
const (
	FieldLimit     = "limit"
	FieldOlderThan = "older-than"
	FieldReason    = "reason"
	FieldAction    = "action"
	FieldWorker    = "worker"
	FieldExchange  = "exchange"
	FieldKey       = "key"
	FieldQueue     = "queue"
	FieldFirst     = "first"
)

// ForExecution is what may be done with an execution.
func ForExecution(x *monitor.Execution) Menu {
	status := attune.Status(x.Status)
	ended := ""
	if status.Terminal() {
		ended = "it has ended: " + x.Status
	}
	running := ""
	if !status.Terminal() {
		running = "it has not ended: " + x.Status
	}
	cancel := ended
	if status == attune.StatusCanceling {
		cancel = "its worker was asked to stop it already"
	}
	return Menu{
		Target: Target{Name: "execution " + strconv.FormatInt(x.ID, 10) + " " + x.ActionRef, Ref: x.ActionRef, ID: x.ID, Action: x.ActionRef},
		Items: []Item{
			{Kind: RetryExecution, Key: "r", Label: "retry", Help: "repeat it as a new execution", Not: running},
			{Kind: CancelExecution, Key: "c", Label: "cancel", Help: "end it, or ask its worker to stop it", Not: cancel},
			// Of an execution that has ended, what it has started may still run.
			{Kind: CancelTree, Key: "t", Label: "cancel tree", Help: "and everything that it has started"},
		},
	}
}

// ForQueue is what may be done with a queue.
func ForQueue(q *monitor.Queue) Menu {
	var pause, resume, reset, empty string
	if q.Paused {
		pause = "it is paused"
	} else {
		resume = "it is not paused"
	}
	if q.LimitFrom.Kind != monitor.LimitOverride {
		reset = "its limit was not set by hand"
	}
	if q.Queued == 0 {
		empty = "nobody waits in it"
	}
	limit := ""
	if q.Limit != nil {
		limit = strconv.FormatInt(*q.Limit, 10)
	}
	name := q.ActionRef
	if q.Group != "" {
		name += " " + q.Group
	}
	return Menu{
		Target: Target{Name: "queue " + name, Ref: name, ID: q.ID, Action: q.ActionRef, Group: q.Group},
		Items: []Item{
			{Kind: PauseQueue, Key: "p", Label: "pause", Help: "admit nothing until it is resumed", Not: pause},
			{Kind: ResumeQueue, Key: "u", Label: "resume", Help: "admit again, in the same order", Not: resume},
			{Kind: LimitQueue, Key: "l", Label: "limit", Help: "another limit than the policy's", Fields: []Field{
				{Name: FieldLimit, Label: "at most at once", Value: limit, Hint: limitHint(q), Check: checkLimit, Number: true},
			}},
			{Kind: ResetQueue, Key: "o", Label: "reset limit", Help: "the policy's limit again", Not: reset},
			{
				Kind: RepairQueue, Key: "f", Label: "repair", Help: "recount slots and fix wrong counters",
				Touches: "all queues of " + q.ActionRef,
			},
			{
				Kind: ClearQueue, Key: "c", Label: "clear", Help: "cancel its waiting executions", Touches: "the waiting executions of queue " + name, Not: empty,
				Fields: []Field{{Name: FieldOlderThan, Label: "waiting longer than", Hint: "such as 10m or 2h; empty: all", Check: checkOlderThan}},
			},
		},
	}
}

// limitHint says what may be written as a limit, and what the policy says.
func limitHint(q *monitor.Queue) string {
	const hint = "a number, 1 or more"
	if q.LimitFrom.Threshold == nil {
		return hint
	}
	return hint + "; the policy " + q.LimitFrom.Policy + " says " + strconv.FormatInt(*q.LimitFrom.Threshold, 10)
}

// ForWorker is what may be done with a worker. now is the database's time.
func ForWorker(w *monitor.Worker, now time.Time, staleAfter time.Duration) Menu {
	var cordon, uncordon, drain, forget string
	health := w.Health(now, staleAfter)
	if w.Cordoned {
		cordon = "it is cordoned"
	}
	if !w.Cordoned && !w.Draining {
		uncordon = "it is given work already"
	}
	switch {
	case w.Draining:
		drain, cordon = "it drains", "it drains"
	case health == monitor.WorkerInactive:
		drain = "it is inactive: cordon keeps work from it when it comes back"
	}
	if health != monitor.WorkerInactive && health != monitor.WorkerStale {
		forget = "it is " + string(health) + ": only workers that are gone are forgotten"
	}
	return Menu{
		Target: Target{Name: "worker " + w.Name, Ref: w.Name, ID: w.ID},
		Items: []Item{
			{Kind: CordonWorker, Key: "c", Label: "cordon", Help: "give it nothing new", Not: cordon},
			{Kind: UncordonWorker, Key: "u", Label: "uncordon", Help: "give it work again", Not: uncordon},
			{Kind: DrainWorker, Key: "d", Label: "drain", Help: "give it nothing new, let it end what it runs", Not: drain},
			{Kind: ForgetWorker, Key: "f", Label: "forget", Help: "remove the row of a worker that is gone", Not: forget},
		},
	}
}

func checkLimit(value string) error {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		return errors.New("not a number")
	}
	if n < 1 {
		return errors.New("at least 1")
	}
	return nil
}

func checkOlderThan(value string) error {
	_, err := OlderThan(value)
	return err
}

// OlderThan reads the age below which waiters are spared; empty spares nobody.
func OlderThan(value string) (time.Duration, error) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, nil
	}
	age, err := time.ParseDuration(value)
	if err != nil || age < 0 {
		return 0, fmt.Errorf("%q is not an age such as 90s, 10m or 2h", value)
	}
	return age, nil
}
