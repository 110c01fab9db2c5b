package redrive

import (
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
)

// What a requeue would do with a letter.
const (
	Requeue = "requeue" // the row is reset and requested again
	Publish = "publish" // the row is requested already: only its request is sent
	Replay  = "replay"  // the message goes to where it had been sent
	Stale   = "stale"   // what it asked for is over: discard it
	Blocked = "blocked" // it could be requeued, and would be of no use
	Export  = "export"  // nobody can read it: keep a copy, then discard
	Engine  = "engine"  // an engine of ours stores and decides it
	Unknown = "unknown" // the database was not asked, or did not answer
)

// Verdict is what a requeue would do, and why.
type Verdict struct {
	Do  string `json:"do"`
	Why string `json:"why"`
}

// Row is the execution of a letter as it is.
type Row struct {
	ID           int64     `json:"id"`
	Status       string    `json:"status"`
	ActionRef    string    `json:"action_ref"`
	ActionGone   bool      `json:"action_gone,omitempty"`
	Worker       *int64    `json:"worker"`
	WorkerName   string    `json:"worker_name,omitempty"`
	Parent       *int64    `json:"parent"`
	ParentStatus string    `json:"parent_status,omitempty"`
	Tries        int64     `json:"tries"`
	MaxTries     *int64    `json:"max_tries"`
	RetryReason  string    `json:"retry_reason,omitempty"`
	Created      time.Time `json:"created"`
	Updated      time.Time `json:"updated"`
	// Lease is an item of work of it that another holds; nil if none is.
	Lease *Lease `json:"lease,omitempty"`
	// Expired says that a handler of dead letters has failed it.
	Expired bool   `json:"expired,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Facts are what the verdict on a letter depends on.
type Facts struct {
	// Letter is nil for a row whose letter a handler took.
	Letter *Letter
	// Row is the execution; nil if there is none.
	Row *Row
	// Known says that the database was asked for the row.
	Known bool
	// Ours says that the tables of our engine are here.
	Ours bool
}

// requested is the reason that a reset row names.
const requested = "manual_retry"

// Judge is the verdict. It is pure: the list, the plan and the run ask it, the run
// once more in the transaction that resets a row.
func Judge(f Facts) Verdict {
	l := f.Letter
	switch {
	case l != nil && l.Trouble != "":
		return Verdict{Export, "nobody can read it: " + l.Trouble}
	case f.Ours && (l == nil || l.Execution != 0):
		return Verdict{Engine, "an engine with dead_letter.enabled stores it in the ledger; there it can be requeued"}
	case l != nil && l.Execution == 0:
		return replay(l, "it is about no execution")
	case !f.Known:
		return Verdict{Unknown, "the database has not said what became of the execution"}
	case f.Row == nil:
		return Verdict{Stale, fmt.Sprintf("execution %d does not exist", l.Execution)}
	case l != nil && l.Kind != message.TypeExecutionRequested:
		return report(l, f.Row)
	case l != nil && !l.Dispatch:
		return request(l, f.Row)
	}
	return handOver(l, f.Row)
}

func replay(l *Letter, why string) Verdict {
	if l.SentTo == "" && l.SentKey == "" {
		return Verdict{Export, "it does not say where it was sent to"}
	}
	return Verdict{Replay, fmt.Sprintf("%s: it goes to %s with the key %s again", why, l.SentTo, l.SentKey)}
}

// report is about what tells of an execution.
func report(l *Letter, row *Row) Verdict {
	if attune.Status(row.Status).Terminal() {
		return Verdict{Stale, fmt.Sprintf("execution %d has ended: %s", row.ID, row.Status)}
	}
	return replay(l, fmt.Sprintf("execution %d is %s", row.ID, row.Status))
}

// request is about a request that no scheduler took.
func request(l *Letter, row *Row) Verdict {
	if row.Status != string(attune.StatusRequested) {
		return Verdict{Stale, fmt.Sprintf("execution %d has moved on: %s", row.ID, row.Status)}
	}
	return replay(l, fmt.Sprintf("execution %d is still requested", row.ID))
}

// handOver is about what a worker never took; without a letter, about a row that the
// handler of one has failed.
func handOver(l *Letter, row *Row) Verdict {
	waits := l != nil && row.Status == string(attune.StatusScheduled) && row.Updated.Equal(l.AttemptAt.Truncate(time.Microsecond))
	switch {
	case row.Status == string(attune.StatusRequested) && row.RetryReason == requested:
		return Verdict{Publish, fmt.Sprintf("execution %d was reset and is requested; whether its request was sent is unknown, sending it again is safe", row.ID)}
	case !row.Expired && !waits:
		return Verdict{Stale, fmt.Sprintf("execution %d is not where the letter left it: %s", row.ID, row.Status)}
	case row.ActionGone:
		return Verdict{Blocked, fmt.Sprintf("the action %s was deleted", row.ActionRef)}
	case row.Parent != nil && slices.Contains(attune.TerminalStatuses, attune.Status(row.ParentStatus)):
		return Verdict{Blocked, fmt.Sprintf("its parent, execution %d, has ended: %s", *row.Parent, row.ParentStatus)}
	case row.MaxTries != nil && *row.MaxTries > 0 && row.Tries >= *row.MaxTries:
		return Verdict{Blocked, fmt.Sprintf("its tries are used up: %d of %d", row.Tries, *row.MaxTries)}
	case row.Lease != nil:
		return Verdict{Blocked, row.Lease.text()}
	case waits:
		return Verdict{Requeue, fmt.Sprintf("execution %d is still scheduled with this hand-over", row.ID)}
	}
	return Verdict{Requeue, fmt.Sprintf("execution %d failed because its hand-over expired", row.ID)}
}
