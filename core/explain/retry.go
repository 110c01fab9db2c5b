package explain

import (
	"fmt"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
)

// Standing is the result of a condition.
type Standing string

// The results of conditions.
const (
	RetryMet     Standing = "met"
	RetryMinded  Standing = "minded"  // it may be useless
	RetryRefused Standing = "refused" // it is impossible
	RetryUnknown Standing = "open"    // it is unknown
)

// RetryCheck is one condition of a retry.
type RetryCheck struct {
	Standing Standing `json:"standing"`
	Text     string   `json:"text"`
}

// RetryFacts are the facts about a retry by hand.
type RetryFacts struct {
	Execution *monitor.Execution
	// Attempts are its chain, the first one first; nil if they were not read.
	Attempts []monitor.Attempt
	// Parent is its parent; nil if there is none, or if it is unknown.
	Parent *monitor.Execution
	// Worker is the health of its worker; empty if unknown.
	Worker monitor.WorkerHealth
}

// EvaluateRetry checks the conditions of a retry by hand. It is pure; the retry itself decides again
// under locks.
func EvaluateRetry(f RetryFacts) []RetryCheck {
	list := []RetryCheck{f.ended(), f.newest(), f.waited(), f.tries()}
	if f.Execution.WorkerID != nil && f.Worker != "" {
		list = append(list, f.placed())
	}
	return append(list, RetryCheck{RetryMet, "a new request is made; none of its messages is sent again"})
}

// Refusal is the first condition that refuses; empty if none does.
func Refusal(list []RetryCheck) string {
	for _, c := range list {
		if c.Standing == RetryRefused {
			return c.Text
		}
	}
	return ""
}

func (f *RetryFacts) ended() RetryCheck {
	switch status := f.Execution.Status; {
	case !lifecycle.Status(status).Terminal():
		return RetryCheck{RetryRefused, "it has not ended: " + status}
	case status == string(lifecycle.StatusCompleted):
		return RetryCheck{RetryMinded, "it completed: what it did is done a second time"}
	default:
		return RetryCheck{RetryMet, "it ended as " + status}
	}
}

func (f *RetryFacts) newest() RetryCheck {
	if len(f.Attempts) == 0 {
		return RetryCheck{RetryUnknown, "its attempts have not been read"}
	}
	newest := f.Attempts[len(f.Attempts)-1]
	if newest.ID != f.Execution.ID {
		return RetryCheck{
			RetryRefused,
			fmt.Sprintf("it has been repeated already: the newest attempt is execution %d, %s", newest.ID,
				newest.Status),
		}
	}
	if len(f.Attempts) == 1 {
		return RetryCheck{RetryMet, "it was not repeated"}
	}
	return RetryCheck{RetryMet, fmt.Sprintf("it is the newest of %d attempts", len(f.Attempts))}
}

func (f *RetryFacts) waited() RetryCheck {
	switch {
	case f.Execution.Parent == nil:
		return RetryCheck{RetryMet, "no parent waits for it"}
	case f.Parent == nil:
		return RetryCheck{RetryUnknown, fmt.Sprintf("its parent, execution %d, has not been read", *f.Execution.Parent)}
	case lifecycle.Status(f.Parent.Status).Terminal():
		return RetryCheck{
			RetryMinded,
			fmt.Sprintf("its parent, execution %d, has ended (%s): it does not wait for a retry", f.Parent.ID,
				f.Parent.Status),
		}
	default:
		return RetryCheck{RetryMet, fmt.Sprintf("its parent, execution %d, is %s", f.Parent.ID, f.Parent.Status)}
	}
}

func (f *RetryFacts) tries() RetryCheck {
	x := f.Execution
	if x.MaxRetries == nil || *x.MaxRetries == 0 {
		return RetryCheck{RetryMet, fmt.Sprintf("retry %d, none by the engine", x.RetryCount)}
	}
	return RetryCheck{RetryMet, fmt.Sprintf("retry %d of %d, which binds the engine only", x.RetryCount, *x.MaxRetries)}
}

func (f *RetryFacts) placed() RetryCheck {
	switch f.Worker {
	case monitor.WorkerStale, monitor.WorkerInactive, monitor.WorkerSuspect:
		return RetryCheck{RetryMinded, fmt.Sprintf("its worker is %s; one is chosen anew", f.Worker)}
	default:
		return RetryCheck{RetryMet, fmt.Sprintf("its worker is %s; one is chosen anew", f.Worker)}
	}
}
