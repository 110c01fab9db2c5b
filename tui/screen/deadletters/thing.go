package deadletters

import (
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

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
		Name: r.name(), Died: r.died(), Type: r.Type, Reason: r.Reason, Action: r.ActionRef, Execution: r.execution(),
		Now:  r.StatusNow,
		From: r.from(), Decision: r.Decision, Verdict: r.verdict.text, Why: r.Verdict.Why, Letter: letter,
	}
}

func (r *row) thing() screen.Thing {
	thing := screen.LetterThing(r.ID, r.taken(*r.LedgerEntry))
	thing.Execution = r.execution()
	return thing
}

// Shows is the letter in sight, with the place in the document that the cursor is at.
func (m *Message) Shows() (screen.Thing, bool) {
	r := m.current()
	if r == nil {
		return screen.Thing{}, false
	}
	m.prepare()
	thing := r.thing()
	if d := m.detail(m.ID()); d != nil {
		thing.Value = r.taken(legible(d))
	}
	thing.Path, thing.Text, thing.InDocument = m.doc.Value()
	return thing, true
}

// legible is a letter without a body in which nobody can look for secrets.
func legible(d *monitor.LedgerDetail) *monitor.LedgerDetail {
	if d.Body.Base64 == nil {
		return d
	}
	without := *d
	without.Body.Base64, without.Body.Text = nil,
		"not taken out: nobody can look for secrets in it; attune-executor dlq show has it"
	return &without
}

// All is what is asked for to read all letters of the ledger that the list would show;
// false where it lists something else.
func (v *DeadLetters) All() (screen.AllLetters, bool) {
	if v.recent() == nil {
		return screen.AllLetters{}, false
	}
	matches, problems := v.Matcher(), v.Problems()
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
