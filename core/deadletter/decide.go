package deadletter

import (
	"fmt"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// execution is the known state of a dead letter's execution at the time of the decision.
type execution struct {
	ID         int64            `json:"id"`
	Status     lifecycle.Status `json:"status"`
	Attempt    int32            `json:"attempt"`
	Worker     int64            `json:"worker,omitempty"`
	ActionRef  string           `json:"action_ref"`
	Created    time.Time        `json:"created"`
	Updated    time.Time        `json:"updated"`
	StartedAt  *time.Time       `json:"started_at,omitempty"`
	FinishedAt *time.Time       `json:"finished_at,omitempty"`
	RetryCount int32            `json:"retry_count"`
	Holds      bool             `json:"holds_slot"`
}

// seen is the known state of a dead letter's execution and worker.
type seen struct {
	execution *execution // nil without one
	worker    *store.ReadDeadLetterWorkersRow
}

// verdict is the decision about a dead letter.
type verdict struct {
	// needsBatch says that a batch of the scheduler must decide, under its locks.
	needsBatch bool
	// released says that the batches must release the ended execution.
	released bool
	decision string // empty: it waits for an operator
	detail   string
}

func stale(format string, args ...any) verdict {
	return verdict{decision: Stale, detail: fmt.Sprintf(format, args...)}
}

func waiting(format string, args ...any) verdict {
	return verdict{detail: fmt.Sprintf(format, args...)}
}

// decide decides about a dead letter from reads without locks. A stale verdict stays valid: a
// finished attempt never returns.
func (l *Message) decide() verdict {
	if l.failure != "" {
		if v := l.decideDispatch(l.seen.execution); !v.needsBatch {
			return v // the message became stale without a decision
		}
		return waiting("the engine could not decide it: %s", l.failure)
	}
	switch l.kind {
	case kindDispatch:
		return l.decideDispatch(l.seen.execution)
	case kindCancel:
		if l.seen.execution == nil {
			return stale("no such execution")
		}
		return stale("execution %d is %s; a loop of the engine repeats cancel requests", l.Execution,
			l.seen.execution.Status)
	case kindStatus:
		if l.seen.execution == nil {
			return stale("no such execution")
		}
		return stale("news only: execution %d is %s", l.Execution, l.seen.execution.Status)
	case kindRequested:
		return l.decideRequest()
	case kindCompleted:
		return l.decideReport()
	case kindOther:
		return waiting("%sno part of this engine decides about %s", l.because(), l.typed())
	default:
		return waiting("%s%s", l.because(), l.trouble)
	}
}

// because is the engine's reason for giving up on a message, as a prefix.
func (l *Message) because() string {
	if l.said == "" {
		return ""
	}
	return "given up: " + l.said + "; "
}

// decideDispatch is called twice: with the rows read without locks, and with the rows that a batch
// read under its locks.
func (l *Message) decideDispatch(e *execution) verdict {
	switch {
	case e == nil:
		return stale("no such execution")
	case e.Status.Terminal():
		return stale("execution %d has ended: %s", e.ID, e.Status)
	case e.Status != lifecycle.StatusScheduled:
		return stale("execution %d has moved on: %s", e.ID, e.Status)
	case e.Worker != l.worker:
		return stale("execution %d was handed to worker %d since", e.ID, e.Worker)
	case l.attempt != 0 && e.Attempt != l.attempt:
		return stale("execution %d is at attempt %d, the dead letter at %d", e.ID, e.Attempt, l.attempt)
	case l.unreadable && l.attempt == 0 && e.Attempt > 1:
		return waiting("it does not say which of the %d attempts of execution %d it is about", e.Attempt, e.ID)
	case l.attempt == 0 && !l.unreadable && l.handed.IsZero() && e.Attempt > 0:
		return stale("execution %d is at attempt %d, the dead letter names none", e.ID, e.Attempt)
	case l.attempt == 0 && !l.handed.IsZero() && !sameMoment(e.Updated, l.handed):
		return stale("execution %d was dispatched again at %s", e.ID, moment(e.Updated))
	}
	return verdict{needsBatch: true}
}

// sameMoment compares times in the database's resolution, microseconds.
func sameMoment(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

func (l *Message) decideRequest() verdict {
	switch e := l.seen.execution; {
	case e == nil:
		return waiting("%sno such execution", l.because())
	case e.Status != lifecycle.StatusRequested:
		return stale("execution %d has moved on: %s", e.ID, e.Status)
	default:
		return waiting("%sexecution %d is still requested", l.because(), e.ID)
	}
}

func (l *Message) decideReport() verdict {
	switch e := l.seen.execution; {
	case e == nil:
		return waiting("%sno such execution", l.because())
	case e.Status.Terminal():
		return verdict{
			released: true, decision: Released,
			detail: fmt.Sprintf("execution %d has ended: %s", e.ID, e.Status),
		}
	default:
		return waiting("%sa report of its end came, but execution %d is %s", l.because(), e.ID, e.Status)
	}
}
