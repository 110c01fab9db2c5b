package deadletter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// Entry is one dead letter of the ledger.
type Entry struct {
	ID int64 `json:"id"`
	// At is when it was stored, Died when the message died, nil if unknown.
	At   time.Time  `json:"stored"`
	Died *time.Time `json:"died"`
	// What is the kind of the message, as of monitor.DeadLetterKind.
	What       string `json:"what"`
	Type       string `json:"type"`
	MessageID  string `json:"message_id,omitempty"`
	Exchange   string `json:"exchange,omitempty"`
	RoutingKey string `json:"routing_key,omitempty"`
	Queue      string `json:"queue,omitempty"`
	Reason     string `json:"reason"`
	// Detail is the reason of the decision, or of its absence; lists cut it.
	Detail     string `json:"detail,omitempty"`
	ActionRef  string `json:"action_ref,omitempty"`
	Execution  *int64 `json:"execution"`
	Attempt    *int64 `json:"attempt"`
	WorkerID   *int64 `json:"worker_id"`
	WorkerName string `json:"worker_name,omitempty"`
	// StatusThen is the execution's status at the decision, StatusNow the present one; empty without
	// an execution.
	StatusThen string `json:"status_then,omitempty"`
	StatusNow  string `json:"status_now,omitempty"`
	// Decision is Waiting while the dead letter waits for an operator.
	Decision  string     `json:"decision"`
	DecidedAt *time.Time `json:"decided_at"`
	DecidedBy string     `json:"decided_by,omitempty"`
	// Size is the length of the stored body in bytes.
	Size int64 `json:"size"`
	// TakenFrom is the queue from which an operator took it; empty if the engine did.
	TakenFrom string `json:"taken_from,omitempty"`
	// Tries and MaxTries are those of the execution now.
	Tries         int64  `json:"tries"`
	MaxTries      *int64 `json:"max_tries"`
	CorrelationID string `json:"correlation_id,omitempty"`
	// Deaths counts how often the message, or the work of a dispatch, has died, also before an operator sent it again.
	Deaths int64 `json:"deaths"`
	// NotKept are the properties and headers that the message loses when it is sent again, with the
	// reasons.
	NotKept []string `json:"not_kept,omitempty"`
	// Verdict is the effect of a requeue, with advice.
	Verdict Verdict `json:"verdict"`
}

// Open reports whether the dead letter is undecided.
func (e *Entry) Open() bool { return e.Decision == Waiting }

// IsDiscarded reports whether an operator discarded it, alone or with others.
func (e *Entry) IsDiscarded() bool { return e.Decision == Discarded || e.Decision == Purged }

// Execution is the present state of a dead letter's execution.
type Execution struct {
	ID         int64      `json:"id"`
	Status     string     `json:"status"`
	ActionRef  string     `json:"action_ref"`
	Attempt    int64      `json:"attempt"`
	WorkerID   *int64     `json:"worker_id"`
	Updated    time.Time  `json:"updated"`
	FinishedAt *time.Time `json:"finished_at"`
	Reason     string     `json:"reason,omitempty"`
	// RepeatedBy is the newest retry; 0 without one.
	RepeatedBy int64 `json:"repeated_by,omitempty"`
	// ActionGone reports that its action was deleted.
	ActionGone   bool   `json:"action_gone,omitempty"`
	Parent       *int64 `json:"parent"`
	ParentStatus string `json:"parent_status,omitempty"`
}

// ReadExecution reads the present state of an execution; nil if it does not exist.
func ReadExecution(ctx context.Context, tx *store.Tx, id int64) (*Execution, error) {
	r, err := tx.ViewDeadLetterExecution(ctx, id)
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

// The effects of a requeue.
const (
	RequeueRepeats = "repeat"  // repeats the execution as a new attempt
	RequeueSends   = "send"    // sends the original message again
	RequeueRefused = "refused" // impossible
)

// The advice about a dead letter.
const (
	AdviseRequeue = "requeue"
	AdviseDiscard = "discard" // a requeue would be useless
	AdviseExport  = "export"  // it is unreadable: keep a copy, then discard it
	AdviseWait    = "wait"    // the engine decides soon
	AdviseRetry   = "retry"   // repeat a later attempt instead
	AdviseSend    = "send"    // its destination accepts nothing: send it elsewhere
	AdviseFix     = "fix"     // it would end here again: mend the cause first
	AdviseNothing = "nothing" // it is decided
)

// Verdict is the effect of a requeue of a dead letter, with advice and reason.
type Verdict struct {
	Requeue string `json:"requeue"`
	Advice  string `json:"advice"`
	Why     string `json:"why"`
	// Problem says in a few words why a possible requeue would not help; empty if it may.
	Problem string `json:"problem,omitempty"`
	// Unknown is the reason why it is not known whether the broker accepts the message; empty if that does not matter.
	Unknown string `json:"unknown,omitempty"`
}

// LoopDeaths is the number of deaths from which on another requeue is advised against.
const LoopDeaths = 3

// Possible reports whether a requeue would repeat the execution or reach a destination, even if in vain.
func (v *Verdict) Possible() bool {
	return v.Requeue != RequeueRefused && (v.Advice == AdviseRequeue || v.Advice == AdviseFix)
}

// LoopText returns the reason against another requeue after so many deaths; empty if there were few.
func LoopText(deaths int64) string {
	if deaths < LoopDeaths {
		return ""
	}
	return fmt.Sprintf("it has died %d times: find out why, or it dies again", deaths)
}

// Facts are the facts for a verdict.
type Facts struct {
	Entry *Entry
	// Unreadable is the reason why the body is not a message; empty if it is.
	Unreadable string
	// Cut reports that the ledger does not have the whole body.
	Cut bool
	// Execution is the present state of the execution; nil without one.
	Execution *Execution
}

// Evaluate returns the verdict on a dead letter from its facts and the present state of its execution. It does no I/O:
// whether the broker accepts the message is added later. A requeue checks the verdict again, under locks.
func Evaluate(f Facts) Verdict {
	v := evaluate(f)
	if again := LoopText(f.Entry.Deaths); again != "" && v.Advice == AdviseRequeue {
		v.Advice, v.Problem = AdviseFix, fmt.Sprintf("died %d times", f.Entry.Deaths)
		v.Why += "; " + again
	}
	return v
}

func newVerdict(requeue, advice, why string) Verdict {
	return Verdict{Requeue: requeue, Advice: advice, Why: why}
}

func evaluate(f Facts) Verdict {
	e := f.Entry
	dispatch := isDispatch(e.RoutingKey)
	if !e.Open() && (!dispatch || e.Decision != Failed && e.Decision != Stale) {
		return newVerdict(RequeueRefused, AdviseNothing, decidedText(e))
	}
	if dispatch {
		return dispatchVerdict(e, f.Execution)
	}
	switch {
	case f.Cut:
		return newVerdict(RequeueRefused, AdviseExport,
			"only the beginning of its body was kept, so it cannot be sent again")
	case whereTo(e.Exchange, e.Queue, e.RoutingKey) != "":
		return newVerdict(RequeueRefused, AdviseExport, whereTo(e.Exchange, e.Queue, e.RoutingKey))
	case f.Unreadable != "":
		return newVerdict(RequeueSends, AdviseExport,
			"it is unreadable ("+f.Unreadable+"): sent again it dies again")
	}
	if over := overVerdict(e, f.Execution); over != "" {
		return newVerdict(RequeueSends, AdviseDiscard, over+": sent again it changes nothing")
	}
	return newVerdict(RequeueSends, AdviseRequeue,
		"it is sent again to "+phrase.Destination(e.Exchange, e.RoutingKey))
}

// whereTo returns the reason why the ledger does not know the destination of a message; empty if it does. Without an
// exchange it knows only a message that was sent to its queue through the default exchange.
func whereTo(exchange, queue, key string) string {
	switch {
	case key == "" || exchange == "" && key != queue:
		return "it does not say where it was sent to"
	case strings.ContainsRune(exchange+key, utf8.RuneError):
		return "the name of where it was sent to is not text"
	}
	return ""
}

func decidedText(e *Entry) string {
	text := "it is decided: " + e.Decision
	if e.DecidedBy != "" {
		text += " by " + e.DecidedBy
	}
	return text
}

// dispatchVerdict returns the verdict on a dispatch. It is never sent again, because it could start the
// execution twice; the execution is repeated after it has ended.
func dispatchVerdict(e *Entry, x *Execution) Verdict {
	switch {
	case e.Execution == nil:
		return newVerdict(RequeueRefused, AdviseExport, "it is a dispatch that names no execution")
	case x == nil:
		return newVerdict(RequeueRefused, AdviseDiscard,
			fmt.Sprintf("execution %d does not exist any more", *e.Execution))
	case x.RepeatedBy != 0:
		return newVerdict(RequeueRefused, AdviseRetry,
			fmt.Sprintf("execution %d has been repeated already, by execution %d", x.ID, x.RepeatedBy))
	case x.Status == string(lifecycle.StatusScheduled) && e.Attempt != nil && *e.Attempt == x.Attempt:
		return newVerdict(RequeueRefused, AdviseWait, fmt.Sprintf("execution %d is still scheduled "+
			"with this dispatch: it is moved or ended when scheduled_timeout has passed", x.ID))
	case !lifecycle.Status(x.Status).Terminal():
		return newVerdict(RequeueRefused, AdviseDiscard,
			fmt.Sprintf("execution %d has moved on since, it is %s", x.ID, x.Status))
	}
	if why := x.Useless(); why != "" {
		return newVerdict(RequeueRepeats, AdviseDiscard, why)
	}
	return newVerdict(RequeueRepeats, AdviseRequeue,
		fmt.Sprintf("execution %d ended as %s: it is repeated as a new execution", x.ID, x.Status))
}

// Useless returns the reason why a retry of an ended execution is useless; empty if it is not.
func (x *Execution) Useless() string {
	switch {
	case x.Status == string(lifecycle.StatusCompleted):
		return fmt.Sprintf("execution %d completed: a requeue would run it once more", x.ID)
	case x.ActionGone:
		return fmt.Sprintf("the action %s was deleted: a retry cannot run", x.ActionRef)
	case x.ParentStatus != "" && lifecycle.Status(x.ParentStatus).Terminal():
		return fmt.Sprintf("its parent, execution %d, has ended (%s): nothing waits for a retry", *x.Parent,
			x.ParentStatus)
	}
	return ""
}

// overVerdict returns the reason why a message asks for something that is over; empty if it does not.
func overVerdict(e *Entry, x *Execution) string {
	if e.Execution == nil {
		return ""
	}
	ended := x != nil && lifecycle.Status(x.Status).Terminal()
	switch e.Type {
	case message.TypeExecutionRequested:
		if x != nil && x.Status != string(lifecycle.StatusRequested) {
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
