package deadletters

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
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
		key: strconv.FormatInt(l.ID, 10), name: "dead letter " + strconv.FormatInt(l.ID, 10),
		died: cmp.Or(l.Died, &l.At), kind: l.Type, reason: l.Reason, action: l.ActionRef, now: l.StatusNow,
		tries: "-", decision: l.Decision, problem: problemOf(l.Detail), ledger: l,
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

// taken is a letter as it leaves the dashboard: what the list says of it, and all
// that was read.
type taken struct {
	Name      string     `json:"name"`
	Died      *time.Time `json:"died"`
	Type      string     `json:"type"`
	Reason    string     `json:"reason"`
	Action    string     `json:"action"`
	Execution int64      `json:"execution"`
	Now       string     `json:"now"`
	From      string     `json:"from"`
	Decision  string     `json:"decision"`
	Verdict   string     `json:"verdict"`
	Why       string     `json:"why"`
	Letter    any        `json:"letter"`
}

func (r *row) taken(letter any) taken {
	return taken{
		Name: r.name, Died: r.died, Type: r.kind, Reason: r.reason, Action: r.action, Execution: r.execution,
		Now: r.now, From: r.from, Decision: r.decision, Verdict: r.verdict.text, Why: r.verdict.why, Letter: letter,
	}
}

func (r *row) thing() screen.Thing {
	thing := screen.LetterThing(r.ledger.ID, r.taken(*r.ledger))
	thing.Execution = r.execution
	return thing
}

// legible is a letter without a body in which nobody can look for secrets.
func legible(d *monitor.LedgerDetail) *monitor.LedgerDetail {
	if d.Body.Base64 == nil {
		return d
	}
	without := *d
	without.Body.Base64 = nil
	without.Body.Text = "not taken out: nobody can look for secrets in it; attune-executor dlq show has it"
	return &without
}

// All is what is asked for to read all letters of the ledger that the list would show;
// false where it lists something else.
func (v *DeadLetters) All() (screen.AllLetters, bool) {
	if v.recent() == nil {
		return screen.AllLetters{}, false
	}
	matches, problems := v.Frozen(), v.Problems()
	ask := screen.AllLetters{Filter: v.asked()}
	ask.Waiting, ask.Decided = v.kinds()
	ask.Row = func(l *monitor.LedgerEntry) (int64, any, bool) {
		r := ledgerRow(l)
		return l.ID, r.taken(*l), (!problems || r.troubles()) && matches(&r)
	}
	ask.Any = func(l *monitor.LedgerEntry) (int64, any, bool) {
		r := ledgerRow(l)
		return l.ID, r.taken(*l), true
	}
	return ask, true
}

// RelatedExecution is the execution that the letter under the cursor is about.
func (v *DeadLetters) RelatedExecution() (*monitor.Execution, bool) { return v.Current().about() }

// Relations is what the letter under the cursor has to do with.
func (v *DeadLetters) Relations() (title string, list []screen.Relation, ok bool) {
	return v.Current().relations()
}

// about is the execution of a row, as far as the row says; false where there is
// none, or none any more.
func (r *row) about() (*monitor.Execution, bool) {
	if r == nil || r.execution == 0 || r.now == "" {
		return nil, false
	}
	return &monitor.Execution{
		ID: r.execution, ActionRef: r.action, Status: r.now,
		WorkerID: r.ledger.WorkerID, WorkerName: r.ledger.WorkerName,
	}, true
}

func (r *row) relations() (title string, list []screen.Relation, ok bool) {
	if r == nil {
		return "", nil, false
	}
	queue := screen.Relation{Key: "m", Label: "broker queue", Not: "nobody wrote down where it died"}
	if name := r.queue(); name != "" {
		queue.Leads("it died in "+name, screen.OpenList(keymap.InBroker, "queue:"+filter.Quote(name)))
	}
	list = []screen.Relation{
		{Key: "x", Label: "execution", Not: "it is about none"},
		queue,
		{
			Key: "s", Label: "same problem", Help: "all that died like it",
			To: screen.OpenList(keymap.InDeadLetters, r.alike()),
		},
	}
	x, ok := r.about()
	switch {
	case ok:
		list[0].Leads(x.Status, screen.OpenExecution(x.ID))
		list = append(list, screen.ExecutionRelations(x, nil)...)
	case r.execution != 0:
		list[0].Not = "it does not exist any more"
	}
	return r.name, list, true
}

// queue is where a letter died; empty if that is unknown.
func (r *row) queue() string { return r.ledger.Queue }

// alike is the filter for all that died for the same reason, of the same action, on
// the way to the same place.
func (r *row) alike() string {
	var terms []string
	for _, one := range [][2]string{{"reason", r.reason}, {"action", r.action}, {"from", r.from}} {
		if cmp.Or(one[1], "-") != "-" {
			terms = append(terms, one[0]+":"+filter.Quote(one[1]))
		}
	}
	return strings.Join(terms, " ")
}
