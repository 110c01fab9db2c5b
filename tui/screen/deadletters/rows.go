package deadletters

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
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

// row is one letter, from whichever source.
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
	// at is its place in what its source lists.
	at       int
	from     string
	decision string
	problem  string
	verdict  verdict

	// One of these is set.
	ledger  *monitor.LedgerEntry
	letter  *redrive.Letter
	handled *monitor.HandledRow
	// undoable is how many letters of the operation behind a spooled one can be put
	// back.
	undoable int
}

func ledgerRow(l *monitor.LedgerEntry) row {
	r := row{
		key: strconv.FormatInt(l.ID, 10), name: "dead letter " + strconv.FormatInt(l.ID, 10), died: cmp.Or(l.Died, &l.At), kind: l.Type, reason: l.Reason,
		action: l.ActionRef, now: l.StatusNow, tries: "-", decision: l.Decision, problem: problemOf(l.Detail), ledger: l,
	}
	if l.Execution != nil {
		r.execution, r.tries, r.retries = *l.Execution, tries(l.Tries, l.MaxTries), l.Tries
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

func tries(n int64, of *int64) string {
	if of == nil {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10) + "/" + strconv.FormatInt(*of, 10)
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

func letterRow(l *redrive.Letter, rows *monitor.LetterRows, n int) row {
	r := row{
		key: l.Key() + "#" + strconv.Itoa(n), name: l.Name(), kind: l.Kind, reason: l.Reason, action: l.ActionRef, execution: l.Execution, tries: "-",
		from: l.From, decision: cmp.Or(l.State, "unhandled"), problem: problemOf(l.Trouble), letter: l,
	}
	if !l.Died.IsZero() {
		r.died = &l.Died
	}
	if l.Trouble != "" && l.Kind == "" {
		r.kind = fmt.Sprintf("(unreadable, %d B)", len(l.Body))
	}
	facts := redrive.Facts{Letter: l}
	if rows != nil {
		facts.Known, facts.Ours = true, rows.Ours
		if facts.Row = rows.Rows[l.Execution]; facts.Row != nil {
			r.now, r.tries, r.action = facts.Row.Status, tries(facts.Row.Tries, facts.Row.MaxTries), facts.Row.ActionRef
			r.retries = facts.Row.Tries
		}
	}
	judged := redrive.Judge(facts)
	if l.Requeues > 0 {
		judged.Why += " · " + act.Ordinal(l.Requeues+1) + " time"
	}
	if r.verdict = brokerVerdict(judged); judged.Do == redrive.Replay {
		r.verdict.text = "replay to " + cmp.Or(l.SentTo, l.SentKey)
	}
	return r
}

// handledKey identifies a row of which no letter is left.
func handledKey(execution int64) string { return "x" + strconv.FormatInt(execution, 10) }

func handledRow(h *monitor.HandledRow) row {
	r := row{
		key: handledKey(h.ID), name: "execution " + strconv.FormatInt(h.ID, 10), died: &h.Updated, kind: "ExecutionRequested", reason: "expired",
		action: h.ActionRef, execution: h.ID, now: h.Status, tries: tries(h.Tries, h.MaxTries), retries: h.Tries, decision: "failed", problem: problemOf(h.Reason),
		verdict: brokerVerdict(h.Verdict), handled: h,
	}
	switch {
	case h.WorkerName != "":
		r.from = h.WorkerName
	case h.Worker != nil:
		r.from = "worker." + strconv.FormatInt(*h.Worker, 10)
	}
	return r
}

// brokerVerdict says a verdict of the desk.
func brokerVerdict(judged redrive.Verdict) verdict {
	v := verdict{why: judged.Why, text: judged.Do}
	switch judged.Do {
	case redrive.Requeue:
		v.sign, v.role, v.class = "✓", theme.Good, requeue
	case redrive.Publish:
		v.sign, v.text, v.role, v.class = "✓", "publish only", theme.Good, requeue
	case redrive.Replay:
		v.sign, v.role, v.class = "▲", theme.Warn, requeue
	case redrive.Stale:
		v.sign, v.text, v.class = "○", "stale, discard", stale
	case redrive.Blocked:
		v.sign, v.role, v.class = "▲", theme.Warn, blocked
	case redrive.Export:
		v.sign, v.text, v.role, v.class = "✗", "export only", theme.Bad, blocked
	case redrive.Engine:
		v.sign, v.text = "◌", "an engine decides"
	default:
		v.sign = "·"
	}
	return v
}
