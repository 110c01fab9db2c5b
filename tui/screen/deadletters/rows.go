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

// verdict is what R would do with a row, for people.
type verdict struct {
	sign, text, why string
	role            theme.Role
	class           class
}

// row is one letter of the ledger.
type row struct {
	key, name string
	died      *time.Time
	kind      string
	reason    string
	action    string
	execution int64
	now       string
	tries     string
	retries   int64
	// at is its place in what was read.
	at       int
	from     string
	decision string
	problem  string
	verdict  verdict
	ledger   *monitor.LedgerEntry
}

func ledgerRow(l *monitor.LedgerEntry) row {
	r := row{
		key: strconv.FormatInt(l.ID, 10), name: "dead letter " + strconv.FormatInt(l.ID, 10), died: cmp.Or(l.Died, &l.At), kind: l.Type, reason: l.Reason,
		action: l.ActionRef, now: l.StatusNow, tries: "-", decision: l.Decision, problem: problemOf(l.Detail), ledger: l,
	}
	if l.Execution != nil {
		r.execution, r.tries, r.retries = *l.Execution, monitor.Tries(l.Tries, l.MaxTries), l.Tries
	}
	switch {
	case l.WorkerName != "":
		r.from = l.WorkerName
	case l.WorkerID != nil:
		r.from = "worker." + strconv.FormatInt(*l.WorkerID, 10)
	default:
		r.from = l.Queue
	}
	r.verdict = ledgerVerdict(l)
	return r
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

// ledgerVerdict says the verdict of the monitor.
func ledgerVerdict(l *monitor.LedgerEntry) verdict {
	v := verdict{why: l.Verdict.Why}
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
