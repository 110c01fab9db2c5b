// Package act is the vocabulary of acting: what may be done with a row, what an
// operator asks for, what that would change, and what it has changed.
//
// Nothing here acts. Each kind of act is declared once: its key, its texts and its
// command. A screen says with a Menu what may be done with the row under its cursor and
// why the rest may not; tui/operator turns an Order into a Plan, which changes nothing,
// and a confirmed Plan is run into a Receipt. All texts are plain: they are cleaned and
// wrapped where they are drawn.
package act

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Target is what an act is about.
type Target struct {
	// Name is what people call it: execution 884301, core.http_request.
	Name string `json:"name"`
	// Ref is its name alone: of a worker, of a queue, of the action of an execution;
	// empty for what has none.
	Ref string `json:"ref,omitempty"`
	ID  int64  `json:"id"`
	// Action and Group name a queue, as its row does, and Action what is executed.
	Action string `json:"action,omitempty"`
	Group  string `json:"group,omitempty"`
}

// Item is one line of a menu.
type Item struct {
	Kind Kind
	// Key is the letter that chooses the line.
	Key string
	// Label is the act in a word or two, Help what it does in a short sentence.
	Label, Help string
	// Touches names all that the act touches, where that is more than the target.
	Touches string
	// Not says why the act does not apply now. It is empty for those that do.
	Not string
	// Target is what this act is about, if not the menu's.
	Target Target
	// Fields are asked for before the act is planned, About stands above them.
	Fields []Field
	About  string
}

// Menu is what may be done with a row, or with those that are marked, the harmless
// first.
type Menu struct {
	Target Target
	Items  []Item
	// Targets are as in Order.
	Targets []Target
}

// Field is one value that an act needs.
type Field struct {
	// Name is the key of the value in an order, Label how people call it.
	Name, Label string
	// Value is what stands there at first, Hint what may be written.
	Value, Hint string
	// Check refuses a value in a few words; nil takes every value.
	Check func(value string) error
	// Choices are the values to choose from; none asks for a text. Optional allows to
	// choose none of them.
	Choices  []string
	Optional bool
	// Secret is not shown while it is written, Long may be as long as a document.
	Secret, Long bool
	// Number is true of a number: typing replaces the one that stands there.
	Number bool
}

// Order is what an operator asks for.
type Order struct {
	Kind   Kind
	Target Target
	// Values are the fields of its form.
	Values map[string]string
	// Targets are the rows that were marked, frozen; empty means the Target alone.
	Targets []Target
}

// All are the rows that were marked, or else the target alone.
func (o *Order) All() []Target {
	if len(o.Targets) > 0 {
		return o.Targets
	}
	return []Target{o.Target}
}

// IDs are those of All.
func (o *Order) IDs() []int64 {
	ids := make([]int64, len(o.All()))
	for i, t := range o.All() {
		ids[i] = t.ID
	}
	return ids
}

// Tone is how a line is meant.
type Tone int

// The tones.
const (
	Plain  Tone = iota
	Note        // of less weight
	Good        // it went well
	Warn        // to be minded
	Danger      // it cannot be taken back, or it has failed
)

// Line is a line of a plan or of a receipt.
type Line struct {
	Tone Tone
	Text string
}

// Lines are the lines of a plan or of a receipt.
type Lines []Line

// Say adds a line.
func (l *Lines) Say(tone Tone, format string, args ...any) {
	*l = append(*l, Line{Tone: tone, Text: fmt.Sprintf(format, args...)})
}

// Plan says what an order would change. It has changed nothing.
type Plan struct {
	Order Order
	// Title names the act and its target in a line.
	Title string
	// Lines say what would change, how much, and what cannot be taken back.
	Lines Lines
	// Word has to be typed before the plan can be run; empty asks for a key only.
	Word string
	// Nothing says why there is nothing to run. Such a plan cannot be confirmed.
	Nothing string
	// Letters are the dead letters that the plan is about, also those it leaves as they are.
	// An export of the plan has each of them in full.
	Letters []int64
	// Run carries the plan out; nil where there is nothing to run. With an error the receipt, if there is one,
	// says what had been done by then.
	Run Run
}

// Run carries out a plan for a reason.
type Run func(ctx context.Context, reason string) (*Receipt, error)

// Receipt says what an act has changed.
type Receipt struct {
	// Text is what happened, in a sentence.
	Text string
	// Lines are the details.
	Lines Lines
	// Next is what to do or to expect now; empty when there is nothing.
	Next string
	// Audits are the rows of operator_audit that record it.
	Audits []int64
	// Partly is true when less was done than was planned.
	Partly bool
	// Unchanged is true when it was so already.
	Unchanged bool
	// Left are the rows of many that were not reached.
	Left []int64
	// Undo is the order that takes it back; nil where nothing does.
	Undo *Order
}

// AuditText names the rows that record an act, three or more in a row by the first and
// the last.
func AuditText(audits []int64) string {
	var ids []string
	for at := 0; at < len(audits); {
		end := at + 1
		for end < len(audits) && audits[end] == audits[end-1]+1 {
			end++
		}
		first := strconv.FormatInt(audits[at], 10)
		if end-at > 2 {
			first += "–" + strconv.FormatInt(audits[end-1], 10)
		} else {
			end = at + 1
		}
		ids = append(ids, first)
		at = end
	}
	if len(audits) > 1 {
		return "audits " + strings.Join(ids, ", ")
	}
	return "audit " + strings.Join(ids, "")
}

// Progress counts what an act under way has done. The side that acts writes it
// while the other reads; its zero value is ready.
type Progress struct{ done, total atomic.Int64 }

// Set says how much is done, of how much; a total of zero is unknown.
func (p *Progress) Set(done, total int64) {
	p.total.Store(total)
	p.done.Store(done)
}

// Read is what was set last.
func (p *Progress) Read() (done, total int64) { return p.done.Load(), p.total.Load() }

// The patience of acting.
const (
	// PlanTimeout ends a plan that does not come.
	PlanTimeout = 10 * time.Second
	// PlanTTL is how long a plan can be confirmed. What it says may be wrong then.
	PlanTTL = 2 * time.Minute
	// RunTimeout ends an act that does not end by itself.
	RunTimeout = 15 * time.Minute
)

// InvalidError says what is wrong with what was written into a form. What concerns no
// field has no name.
type InvalidError struct {
	Problems map[string]string
}

// Error says that something is wrong.
func (e *InvalidError) Error() string {
	if text := e.Problems[""]; text != "" {
		return text
	}
	return "what was written does not fit"
}
