package deadletter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// Entry is one dead letter of the ledger.
type Entry struct {
	ID int64 `json:"id"`
	// At is when it was stored, Died when the message died, as far as it says so.
	At   time.Time  `json:"stored"`
	Died *time.Time `json:"died"`
	// What is the kind of message in one word, as monitor.LetterKind says it.
	What       string `json:"what"`
	Type       string `json:"type"`
	MessageID  string `json:"message_id,omitempty"`
	Exchange   string `json:"exchange,omitempty"`
	RoutingKey string `json:"routing_key,omitempty"`
	Queue      string `json:"queue,omitempty"`
	Reason     string `json:"reason"`
	// Detail says in a sentence why it was decided as it was, or was not; lists cut
	// it short.
	Detail     string `json:"detail,omitempty"`
	ActionRef  string `json:"action_ref,omitempty"`
	Execution  *int64 `json:"execution"`
	Attempt    *int64 `json:"attempt"`
	WorkerID   *int64 `json:"worker_id"`
	WorkerName string `json:"worker_name,omitempty"`
	// StatusThen is the execution's status when the letter was decided, StatusNow
	// what it is now; empty without an execution.
	StatusThen string `json:"status_then,omitempty"`
	StatusNow  string `json:"status_now,omitempty"`
	// Decision is Waiting while the letter waits for a person.
	Decision  string     `json:"decision"`
	DecidedAt *time.Time `json:"decided_at"`
	DecidedBy string     `json:"decided_by,omitempty"`
	// Size is the length of the body that is kept, in bytes.
	Size int64 `json:"size"`
	// TakenFrom is the queue that an operator took it from; empty if an engine did.
	TakenFrom string `json:"taken_from,omitempty"`
	// Tries and MaxTries are those of the execution now.
	Tries         int64  `json:"tries"`
	MaxTries      *int64 `json:"max_tries"`
	CorrelationID string `json:"correlation_id,omitempty"`
	// Verdict is what a requeue would do, and what is best done.
	Verdict Verdict `json:"verdict"`
}

// Open reports whether the dead letter is undecided.
func (e *Entry) Open() bool { return e.Decision == Waiting }

// IsDiscarded reports whether an operator discarded it, alone or with others.
func (e *Entry) IsDiscarded() bool { return e.Decision == Discarded || e.Decision == Purged }

// Execution is the execution of a letter as it is now.
type Execution struct {
	ID         int64      `json:"id"`
	Status     string     `json:"status"`
	ActionRef  string     `json:"action_ref"`
	Attempt    int64      `json:"attempt"`
	WorkerID   *int64     `json:"worker_id"`
	Updated    time.Time  `json:"updated"`
	FinishedAt *time.Time `json:"finished_at"`
	Reason     string     `json:"reason,omitempty"`
	// RepeatedBy is the newest execution that repeats it; zero if none does.
	RepeatedBy int64 `json:"repeated_by,omitempty"`
	// ActionGone says that its action was deleted.
	ActionGone   bool   `json:"action_gone,omitempty"`
	Parent       *int64 `json:"parent"`
	ParentStatus string `json:"parent_status,omitempty"`
}

// ReadExecution reads the execution of a letter as it is now; nil where there is none.
func ReadExecution(ctx context.Context, tx *store.Tx, id int64) (*Execution, error) {
	r, err := tx.ViewLetterExecution(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read execution %d: %w", id, err)
	}
	x := &Execution{
		ID: r.ID, Status: r.Status, ActionRef: r.ActionRef, Attempt: int64(r.Attempt), WorkerID: r.Worker,
		Updated:    r.Updated,
		FinishedAt: r.FinishedAt, Reason: r.Reason, ActionGone: r.ActionGone, Parent: r.Parent,
		ParentStatus: r.ParentStatus,
	}
	attempt, err := tx.FindNewestAttempt(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the attempts of execution %d: %w", id, err)
	}
	if attempt.Newest != id {
		x.RepeatedBy = attempt.Newest
	}
	return x, nil
}

// What a requeue of a letter does.
const (
	RequeueRepeats = "repeat"  // the execution is repeated as a new attempt
	RequeueSends   = "send"    // the original message is sent again
	RequeueRefused = "refused" // nothing: it cannot be done, or not any more
)

// What a person had best do with a letter.
const (
	AdviseRequeue = "requeue"
	AdviseDiscard = "discard" // what it asked for is over
	AdviseExport  = "export"  // it cannot be read: keep a copy, then discard
	AdviseWait    = "wait"    // the engine is about to decide
	AdviseRetry   = "retry"   // repeat a later attempt instead
	AdviseNothing = "nothing" // it is decided
)

// Verdict says what requeueing a letter would do, what is best done, and
// why.
type Verdict struct {
	Requeue string `json:"requeue"`
	Advice  string `json:"advice"`
	Why     string `json:"why"`
}

// Facts is what the verdict on a letter depends on.
type Facts struct {
	Entry *Entry
	// Unreadable says why the body is no message; empty when it is one.
	Unreadable string
	// Cut says that the ledger does not have the whole body.
	Cut bool
	// Execution is the execution as it is now; nil when there is none.
	Execution *Execution
}

// Judge judges a dead letter by its facts and the present state of its execution. It does no I/O.
// A requeue checks the verdict again, under locks.
func Judge(f Facts) Verdict {
	e := f.Entry
	dispatch := isDispatch(e.RoutingKey)
	if !e.Open() && (!dispatch || e.Decision != Failed && e.Decision != Stale) {
		return Verdict{RequeueRefused, AdviseNothing, decidedText(e)}
	}
	if dispatch {
		return dispatchVerdict(e, f.Execution)
	}
	switch {
	case f.Cut:
		return Verdict{RequeueRefused, AdviseExport,
			"only the beginning of its body was kept, so it cannot be sent again"}
	case e.Exchange == "" || e.RoutingKey == "":
		return Verdict{RequeueRefused, AdviseExport, "it does not say where it was sent to"}
	case f.Unreadable != "":
		return Verdict{RequeueSends, AdviseExport, "nobody can read it (" + f.Unreadable +
			"): sent again it dies again"}
	}
	if over := overVerdict(e, f.Execution); over != "" {
		return Verdict{RequeueSends, AdviseDiscard, over + ": sent again it changes nothing"}
	}
	return Verdict{RequeueSends, AdviseRequeue,
		fmt.Sprintf("it is sent again to %s with the key %s", e.Exchange, e.RoutingKey)}
}

func decidedText(e *Entry) string {
	text := "it is decided: " + e.Decision
	if e.DecidedBy != "" {
		text += " by " + e.DecidedBy
	}
	return text
}

// dispatchVerdict is about a hand-over. That is never sent again, since it could
// start the execution twice; the execution is repeated instead once it has ended.
func dispatchVerdict(e *Entry, x *Execution) Verdict {
	switch {
	case e.Execution == nil:
		return Verdict{RequeueRefused, AdviseExport, "it is a hand-over that names no execution"}
	case x == nil:
		return Verdict{RequeueRefused, AdviseDiscard, fmt.Sprintf("execution %d does not exist any more", *e.Execution)}
	case x.RepeatedBy != 0:
		return Verdict{RequeueRefused, AdviseRetry,
			fmt.Sprintf("execution %d has been repeated already, by execution %d", x.ID, x.RepeatedBy)}
	case x.Status == string(attune.StatusScheduled) && e.Attempt != nil && *e.Attempt == x.Attempt:
		return Verdict{RequeueRefused, AdviseWait, fmt.Sprintf(
			"execution %d is still scheduled with this hand-over: it is moved or ended when scheduled_timeout has passed", x.ID)}
	case !attune.Status(x.Status).Terminal():
		return Verdict{RequeueRefused, AdviseDiscard,
			fmt.Sprintf("execution %d has moved on since, it is %s", x.ID, x.Status)}
	}
	if why := x.Useless(); why != "" {
		return Verdict{RequeueRepeats, AdviseDiscard, why}
	}
	return Verdict{RequeueRepeats, AdviseRequeue,
		fmt.Sprintf("execution %d ended as %s: it is repeated as a new execution", x.ID, x.Status)}
}

// Useless says why a repetition of an execution that has ended would be of no use; empty where it would be.
func (x *Execution) Useless() string {
	switch {
	case x.Status == string(attune.StatusCompleted):
		return fmt.Sprintf("execution %d completed: a requeue would run it once more", x.ID)
	case x.ActionGone:
		return fmt.Sprintf("the action %s was deleted: a repetition cannot run", x.ActionRef)
	case x.ParentStatus != "" && attune.Status(x.ParentStatus).Terminal():
		return fmt.Sprintf("its parent, execution %d, has ended (%s): nobody waits for a repetition", *x.Parent,
			x.ParentStatus)
	}
	return ""
}

// overVerdict says that what a message asked for is over, or nothing.
func overVerdict(e *Entry, x *Execution) string {
	if e.Execution == nil {
		return ""
	}
	ended := x != nil && attune.Status(x.Status).Terminal()
	switch e.Type {
	case message.TypeExecutionRequested:
		if x != nil && x.Status != string(attune.StatusRequested) {
			return fmt.Sprintf("execution %d has moved on since, it is %s", x.ID, x.Status)
		}
	case message.TypeExecutionCancelRequested:
		if ended {
			return fmt.Sprintf("execution %d has ended (%s)", x.ID, x.Status)
		}
	case message.TypeExecutionStatusChanged, message.TypeExecutionCompleted:
	default:
		return ""
	}
	if x == nil {
		return fmt.Sprintf("execution %d does not exist", *e.Execution)
	}
	return ""
}
