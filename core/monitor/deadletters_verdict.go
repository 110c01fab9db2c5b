package monitor

import (
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
)

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
	AdviseExport  = "export"  // nobody can read it: keep a copy, then discard
	AdviseWait    = "wait"    // the engine is about to decide
	AdviseRetry   = "retry"   // repeat a later attempt instead
	AdviseNothing = "nothing" // it is decided
)

// LetterVerdict says what requeueing a letter would do, what is best done, and
// why.
type LetterVerdict struct {
	Requeue string `json:"requeue"`
	Advice  string `json:"advice"`
	Why     string `json:"why"`
}

// LetterFacts is what the verdict on a letter depends on.
type LetterFacts struct {
	Entry *LedgerEntry
	// Unreadable says why the body is no message; empty when it is one.
	Unreadable string
	// Cut says that the ledger does not have the whole body.
	Cut bool
	// Execution is the execution as it is now; nil when there is none.
	Execution *LetterExecution
}

// Verdict judges a letter by what is known of it and of its execution now. It is
// pure; what it allows is checked again, under locks, by whoever requeues.
func Verdict(f LetterFacts) LetterVerdict {
	e := f.Entry
	dispatch := isDispatchKey(e.RoutingKey)
	if !e.Open() && (!dispatch || e.Decision != "failed" && e.Decision != "stale") {
		return LetterVerdict{RequeueRefused, AdviseNothing, decidedText(e)}
	}
	if dispatch {
		return dispatchVerdict(e, f.Execution)
	}
	switch {
	case f.Cut:
		return LetterVerdict{RequeueRefused, AdviseExport, "only the beginning of its body was kept, so it cannot be sent again"}
	case e.Exchange == "" || e.RoutingKey == "":
		return LetterVerdict{RequeueRefused, AdviseExport, "it does not say where it was sent to"}
	case f.Unreadable != "":
		return LetterVerdict{RequeueSends, AdviseExport, "nobody can read it (" + f.Unreadable + "): sent again it dies again"}
	}
	if over := overVerdict(e, f.Execution); over != "" {
		return LetterVerdict{RequeueSends, AdviseDiscard, over + ": sent again it changes nothing"}
	}
	return LetterVerdict{RequeueSends, AdviseRequeue, fmt.Sprintf("it is sent again to %s with the key %s", e.Exchange, e.RoutingKey)}
}

func isDispatchKey(key string) bool {
	worker, ok := message.WorkerOfKey(key)
	return ok && key == message.DispatchKey(worker)
}

func decidedText(e *LedgerEntry) string {
	text := "it is decided: " + e.Decision
	if e.DecidedBy != "" {
		text += " by " + e.DecidedBy
	}
	return text
}

// dispatchVerdict is about a hand-over. That is never sent again, since it could
// start the execution twice; the execution is repeated instead once it has ended.
func dispatchVerdict(e *LedgerEntry, x *LetterExecution) LetterVerdict {
	switch {
	case e.Execution == nil:
		return LetterVerdict{RequeueRefused, AdviseExport, "it is a hand-over that names no execution"}
	case x == nil:
		return LetterVerdict{RequeueRefused, AdviseDiscard, fmt.Sprintf("execution %d does not exist any more", *e.Execution)}
	case x.RepeatedBy != 0:
		return LetterVerdict{RequeueRefused, AdviseRetry, fmt.Sprintf("execution %d has been repeated already, by execution %d", x.ID, x.RepeatedBy)}
	case x.Status == string(attune.StatusScheduled) && e.Attempt != nil && *e.Attempt == x.Attempt:
		return LetterVerdict{RequeueRefused, AdviseWait, fmt.Sprintf(
			"execution %d is still scheduled with this hand-over: it is moved or ended when scheduled_timeout has passed", x.ID)}
	case !slices.Contains(attune.TerminalStatuses, attune.Status(x.Status)):
		return LetterVerdict{RequeueRefused, AdviseDiscard, fmt.Sprintf("execution %d has moved on since, it is %s", x.ID, x.Status)}
	case x.Status == string(attune.StatusCompleted):
		return LetterVerdict{RequeueRepeats, AdviseDiscard, fmt.Sprintf("execution %d completed: a requeue would run it once more", x.ID)}
	case x.ActionGone:
		return LetterVerdict{RequeueRepeats, AdviseDiscard, fmt.Sprintf("the action %s was deleted: a repetition cannot run", x.ActionRef)}
	case slices.Contains(attune.TerminalStatuses, attune.Status(x.ParentStatus)):
		return LetterVerdict{RequeueRepeats, AdviseDiscard, fmt.Sprintf(
			"its parent, execution %d, has ended (%s): nobody waits for a repetition", *x.Parent, x.ParentStatus)}
	}
	return LetterVerdict{RequeueRepeats, AdviseRequeue, fmt.Sprintf("execution %d ended as %s: it is repeated as a new execution", x.ID, x.Status)}
}

// overVerdict says that what a message asked for is over, or nothing.
func overVerdict(e *LedgerEntry, x *LetterExecution) string {
	if e.Execution == nil {
		return ""
	}
	ended := x != nil && slices.Contains(attune.TerminalStatuses, attune.Status(x.Status))
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
