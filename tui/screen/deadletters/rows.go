package deadletters

import (
	"cmp"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
)

// class is what a letter counts as in groups.
type class int

const (
	other   class = iota
	requeue       // R does something useful
	stale         // best discarded
	blocked       // R cannot, or would be of no use
)

// verdict is how the list shows the verdict of the engine on a row.
type verdict struct {
	sign, text string
	role       theme.Role
	class      class
}

// row is one letter of the ledger in the list.
type row struct {
	*monitor.LedgerEntry

	at      int // its place in what was read
	problem string
	verdict verdict
}

func ledgerRow(l *monitor.LedgerEntry) row {
	return row{LedgerEntry: l, problem: problemOf(l.Detail), verdict: ledgerVerdict(l)}
}

func (r *row) key() string { return strconv.FormatInt(r.ID, 10) }

func (r *row) name() string { return "dead letter " + r.key() }

// died is when the message died, or else when it was stored.
func (r *row) died() *time.Time { return cmp.Or(r.Died, &r.At) }

// execution is what the letter is about; zero where it is about none.
func (r *row) execution() int64 {
	if r.Execution == nil {
		return 0
	}
	return *r.Execution
}

func (r *row) tries() string {
	if r.Execution == nil {
		return "-"
	}
	return monitor.Tries(r.Tries, r.MaxTries)
}

// from is the worker that the message was on its way to, or the queue it died in.
func (r *row) from() string {
	switch {
	case r.WorkerName != "":
		return r.WorkerName
	case r.WorkerID != nil:
		return "worker." + strconv.FormatInt(*r.WorkerID, 10)
	default:
		return r.Queue
	}
}

// problemOf is a detail without its numbers, so that the same problem has one text.
func problemOf(detail string) string {
	out := make([]rune, 0, len(detail))
	digits := false
	for _, r := range detail {
		if r >= '0' && r <= '9' {
			if !digits {
				out = append(out, '#')
			}
			digits = true
			continue
		}
		digits = false
		out = append(out, r)
	}
	return string(out)
}

func ledgerVerdict(l *monitor.LedgerEntry) verdict {
	var v verdict
	switch l.Verdict.Advice {
	case monitor.AdviseRequeue:
		v.sign, v.text, v.role, v.class = "✓", "requeue", theme.Good, requeue
		if l.Verdict.Requeue == monitor.RequeueSends {
			v.text = "send to " + l.Exchange
		}
	case monitor.AdviseDiscard:
		v.sign, v.text, v.class = "○", "stale, discard", stale
		if l.Verdict.Requeue == monitor.RequeueRepeats && l.StatusNow != "completed" {
			v.sign, v.text, v.role, v.class = "▲", "blocked", theme.Warn, blocked
		}
	case monitor.AdviseExport:
		v.sign, v.text, v.role, v.class = "✗", "export only", theme.Bad, blocked
	case monitor.AdviseWait:
		v.sign, v.text = "◌", "wait"
	case monitor.AdviseRetry:
		v.sign, v.text, v.class = "○", "repeated already", stale
	case monitor.AdviseNothing:
		v.sign, v.text, v.role = "·", "decided", theme.Dim
	default:
		v.sign, v.text = "·", "unknown"
	}
	return v
}
