package deadletters

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// class sorts verdicts, the most urgent first.
type class int

const (
	requeue class = iota // R does something useful
	again                // after R it would end here again: R needs a word
	blocked              // R cannot help
	stale                // best discarded
	other
	classes
)

// verdict is the verdict of the engine as the list shows it.
type verdict struct {
	sign, text string
	role       theme.Role
	class      class
}

// row is a dead letter of the ledger.
type row struct {
	*monitor.LedgerEntry

	at      int // in the order of the readings
	problem string
	verdict verdict
}

var digits = regexp.MustCompile(`[0-9]+`)

// newRow replaces the numbers in a detail, so that the same problem has the same text.
func newRow(l *monitor.LedgerEntry) row {
	return row{LedgerEntry: l, problem: digits.ReplaceAllString(l.Detail, "#"), verdict: newVerdict(l)}
}

func newVerdict(l *monitor.LedgerEntry) verdict {
	switch repeats := l.Verdict.Requeue == monitor.RequeueRepeats; l.Verdict.Advice {
	case monitor.AdviseRequeue:
		v := verdict{sign: "✓", text: "requeue", role: theme.Good, class: requeue}
		if !repeats {
			v.text = "send to " + l.Exchange
		}
		if l.Verdict.Unknown != "" {
			v.sign, v.role = "?", theme.Plain
		}
		return v
	case monitor.AdviseFix:
		return verdict{sign: "▲", text: l.Verdict.Problem, role: theme.Warn, class: again}
	case monitor.AdviseSend:
		return verdict{sign: "▲", text: l.Verdict.Problem, role: theme.Warn, class: blocked}
	case monitor.AdviseDiscard:
		if repeats && l.StatusNow != "completed" {
			return verdict{sign: "▲", text: "blocked", role: theme.Warn, class: blocked}
		}
		return verdict{sign: "○", text: "stale, discard", class: stale}
	case monitor.AdviseExport:
		return verdict{sign: "✗", text: "export only", role: theme.Bad, class: blocked}
	case monitor.AdviseWait:
		return verdict{sign: "◌", text: "wait", class: other}
	case monitor.AdviseRetry:
		return verdict{sign: "○", text: "repeated already", class: stale}
	case monitor.AdviseNothing:
		return verdict{sign: "·", text: "decided", role: theme.Dim, class: other}
	default:
		return verdict{sign: "·", text: "unknown", class: other}
	}
}

func (r *row) key() string { return strconv.FormatInt(r.ID, 10) }

func (r *row) name() string { return "dead letter " + r.key() }

// died is when the message died, or else when it was stored.
func (r *row) died() *time.Time { return cmp.Or(r.Died, &r.At) }

// execution is the execution that the message is about; zero for none.
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

// from is the worker that the message was sent to, or the queue it died in.
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

func byReason(r *row) string { return r.Reason }
func byAction(r *row) string { return r.ActionRef }
func byType(r *row) string   { return r.Type }
func byError(r *row) string  { return r.problem }

func dash(text string) string { return cmp.Or(text, "-") }

var fields = []list.Field[row]{
	list.Order(1, "as listed", list.Ascending(func(r *row) int { return r.at })),
	list.Age("DIED", 7, (*row).died).SortBy(2, "died", func(_ *screen.Env, a, b *row) int {
		return b.died().Compare(*a.died())
	}),
	list.Text("TYPE", 18, byType).Middle().Priority(3),
	list.Text("REASON", 8, byReason).Sort(3, "reason").
		Term("reason", "why it died", "expired", "rejected", "maxlen", "delivery_limit"),
	list.Text("ACTION", 16, byAction).Grow().Middle().Sort(4, "action").
		Drawn(func(_ *screen.Env, r *row) widget.Cell { return widget.Cell{Text: dash(r.ActionRef)} }).
		Term("action", "the action it is about; a star stands for anything"),
	list.Term("type", "its type", byType),
	list.Term("from", "the worker it was sent to, or the queue it died in", (*row).from),
	list.Term("worker", "the same, as the commands call it", (*row).from),
	list.Term("queue", "the queue it died in", func(r *row) string { return r.Queue }),
	list.Term("verdict", "what R would do", func(r *row) string { return r.verdict.text }, "requeue", "send", "died",
		"gone", "no consumer", "stale", "blocked", "export", "wait", "repeated", "decided").Kind(filter.Within),
	list.Term("status", "the status of its execution now", func(r *row) string { return r.StatusNow }),
	list.Term("decision", "what was decided", func(r *row) string { return r.Decision },
		monitor.DeadLetterDecisions...),
	list.Term("by", "the operator or replica that decided", func(r *row) string { return r.DecidedBy }),
	list.Term("error", "the error in its detail", byError).Kind(filter.Within),
	list.Text("EXECUTION", 9, func(r *row) string { return screen.Reference(r.Execution) }).Right().Priority(1).
		Term("execution", "the execution it is about").Kind(filter.ID),
	list.Draw("NOW", 12, func(e *screen.Env, r *row) widget.Cell {
		if r.StatusNow == "" {
			return widget.Cell{Text: "-"}
		}
		return e.StateCell(r.StatusNow)
	}).Priority(2),
	list.Term("id", "its number in the ledger", (*row).key).Kind(filter.ID),
	list.Text("TRY", 4, (*row).tries).Right().Priority(6).
		Known(func(r *row) (float64, bool) { return float64(r.Tries), r.Execution != nil }).
		Term("try", "how often its execution was repeated"),
	list.Number("", 0, func(r *row) int64 { return r.Tries }).Sort(7, "tries"),
	list.Text("FROM", 14, func(r *row) string { return dash(r.from()) }).Dim().Middle().Priority(5).Sort(5, "from"),
	list.Text("DECISION", 9, func(r *row) string { return r.Decision }).Priority(4).
		Worry(func(_ *screen.Env, r *row) bool { return r.Open() }),
	list.Text("VERDICT", 26, func(r *row) string { return r.verdict.sign + " " + r.verdict.text }).
		In(func(_ *screen.Env, r *row) theme.Role { return r.verdict.role }).
		SortBy(6, "verdict", func(_ *screen.Env, a, b *row) int {
			return cmp.Or(cmp.Compare(a.verdict.class, b.verdict.class), cmp.Compare(a.verdict.text, b.verdict.text))
		}),
	list.Age("", 0, (*row).died).Term("age", "how long ago it died"),
}

// related is the execution of a dead letter; false if it has none or the execution was deleted.
func (r *row) related() (*monitor.Execution, bool) {
	if r == nil || r.Execution == nil || r.StatusNow == "" {
		return nil, false
	}
	return &monitor.Execution{
		ID: *r.Execution, ActionRef: r.ActionRef, Status: r.StatusNow, WorkerID: r.WorkerID, WorkerName: r.WorkerName,
	}, true
}

func (r *row) relations() (title string, list []screen.Relation, ok bool) {
	if r == nil {
		return "", nil, false
	}
	execution := screen.Relation{Key: "x", Label: "execution", Not: "it has none"}
	queue := screen.Relation{Key: "m", Label: "broker queue", Not: "the broker did not record it"}
	if r.Queue != "" {
		queue.Leads("it died in "+r.Queue, screen.OpenList(keymap.InBroker, "queue:"+filter.Quote(r.Queue)))
	}
	var terms []string
	for _, t := range []struct{ field, value string }{
		{"reason", r.Reason}, {"action", r.ActionRef}, {"from", r.from()},
	} {
		if dash(t.value) != "-" {
			terms = append(terms, t.field+":"+filter.Quote(t.value))
		}
	}
	same := screen.Relation{
		Key: "s", Label: "same problem", Help: "dead letters like it",
		To: screen.OpenList(keymap.InDeadLetters, strings.Join(terms, " ")),
	}
	x, ok := r.related()
	if !ok {
		if r.Execution != nil {
			execution.Not = "it was deleted"
		}
		return r.name(), []screen.Relation{execution, queue, same}, true
	}
	execution.Leads(x.Status, screen.OpenExecution(x.ID))
	return r.name(), slices.Concat([]screen.Relation{execution, queue, same}, screen.ExecutionRelations(x, nil)), true
}

// exported is a dead letter as it is exported: what the list shows, and the whole reading.
type exported struct {
	Name       string     `json:"name"`
	Died       *time.Time `json:"died"`
	Type       string     `json:"type"`
	Reason     string     `json:"reason"`
	Action     string     `json:"action"`
	Execution  int64      `json:"execution"`
	Now        string     `json:"now"`
	From       string     `json:"from"`
	Decision   string     `json:"decision"`
	Verdict    string     `json:"verdict"`
	Why        string     `json:"why"`
	DeadLetter any        `json:"letter"`
}

func (r *row) document(reading any) exported {
	return exported{
		Name: r.name(), Died: r.died(), Type: r.Type, Reason: r.Reason, Action: r.ActionRef, Execution: r.execution(),
		Now: r.StatusNow, From: r.from(), Decision: r.Decision, Verdict: r.verdict.text, Why: r.Verdict.Why,
		DeadLetter: reading,
	}
}

func (r *row) export(reading any) screen.Thing {
	thing := screen.DeadLetterThing(r.ID, r.document(reading))
	thing.Execution = r.execution()
	return thing
}
