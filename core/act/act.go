package act

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/triage"
)

// Target is a row to act on.
type Target struct {
	// Name names it in texts, such as execution 884301.
	Name string `json:"name"`
	// Ref is the bare name of a worker or queue, or the action of an execution; else empty.
	Ref string `json:"ref,omitempty"`
	ID  int64  `json:"id"`
	// Action and Group identify a queue. Action is also the action of an execution.
	Action string `json:"action,omitempty"`
	Group  string `json:"group,omitempty"`
}

// Item is one line of a menu.
type Item struct {
	Kind Kind
	// Key is the letter that chooses the line.
	Key string
	// Label is one or two words, Help a short sentence.
	Label, Help string
	// Touches names everything that the act affects, if that is more than the target.
	Touches string
	// Not says why the act does not apply now; empty if it applies.
	Not string
	// Target replaces that of the menu.
	Target Target
	// Fields are the values that the form asks for; About stands above them.
	Fields []Field
	About  string
}

// Menu lists the acts on a row or on marked rows, harmless ones first.
type Menu struct {
	Target Target
	Items  []Item
	// Targets are the marked rows.
	Targets []Target
}

// Can reports whether the menu has an act that applies.
func (m *Menu) Can(kind Kind) bool {
	return slices.ContainsFunc(m.Items, func(i Item) bool { return i.Kind == kind && i.Not == "" })
}

// Field is a value that an act takes: a field of its form, a flag or an argument of its command, and a member of the
// body or a parameter of its route.
type Field struct {
	// Name is the key in Request.Values. Label is the text in the form, which has only fields with a label.
	Name, Label string
	Type        FieldType
	// Value is the default, Hint says what is valid.
	Value, Hint string
	// Check validates a value; nil accepts every value.
	Check func(value string) error
	// Choices are the values to choose from; empty means a text. Optional also allows none of them.
	Choices  []string
	Optional bool
	// Secret hides the value while it is typed. Long allows a document.
	Secret, Long bool
	// Usage is the help of its flag; without one there is none. Named is the name of the flag, by default that of the
	// field. Argument is set for an argument.
	Usage, Named string
	Argument     bool
	// HTTP says that the route takes it. It must be given if it is Required.
	HTTP, Required bool
}

// FieldType is the type of a value, which is always written as a text.
type FieldType int

// The types of values.
const (
	Text FieldType = iota
	Number
	Decimal
	Age
	Document // in JSON
)

// Flag is the name of its flag.
func (f *Field) Flag() string { return cmp.Or(f.Named, f.Name) }

// Member is its name in JSON and in queries.
func (f *Field) Member() string { return strings.ReplaceAll(f.Name, "-", "_") }

// Request asks for an act on one row or on marked rows.
type Request struct {
	Kind   Kind
	Target Target
	// Values are the values of the fields by name.
	Values map[string]string
	// Targets are the chosen rows at the time of the request; empty means the Target alone.
	Targets []Target
	// Only are the executions to which a clearing is restricted; nil for all.
	Only []int64
	// Reason is that of the run, if it is known already.
	Reason string
	// Named is set if the operator named each of the targets, so that a row that cannot be changed is refused and not
	// left out, and no plan is needed for one that is.
	Named bool
	// Direct is set if no plan is shown before the run. The plan then reads only what the run needs.
	Direct bool
	// Anyway includes what is possible but of no use.
	Anyway bool
}

// All are the marked rows, or else the target.
func (r *Request) All() []Target {
	if len(r.Targets) > 0 {
		return r.Targets
	}
	return []Target{r.Target}
}

// IDs are the ids of All.
func (r *Request) IDs() []int64 {
	ids := make([]int64, len(r.All()))
	for i, t := range r.All() {
		ids[i] = t.ID
	}
	return ids
}

// Tone is the importance of a line.
type Tone int

// The tones of lines.
const (
	Plain  Tone = iota
	Note        // less important
	Good        // a success
	Warn        // needs attention
	Danger      // cannot be undone, or has failed
)

// TextLine is a line of a plan or of a receipt.
type TextLine struct {
	Tone Tone
	Text string
}

// TextLines are the lines of a plan or of a receipt.
type TextLines []TextLine

// Add appends a formatted line.
func (l *TextLines) Add(tone Tone, format string, args ...any) { //nolint:goprintffuncname // vet checks its calls
	*l = append(*l, TextLine{Tone: tone, Text: fmt.Sprintf(format, args...)})
}

// Plan describes the changes of a request. Making it changes nothing.
type Plan struct {
	Request Request
	// Title names the act and its target.
	Title string
	Lines TextLines
	// Word must be typed to confirm the plan; empty means a key.
	Word string
	// Confirm is what a client repeats to confirm the plan. Unlike Word it does not depend on the number of rows; empty
	// means that clients need not confirm.
	Confirm string
	// Nothing says why there is nothing to run. Such a plan cannot be confirmed. Problem is the same with its kind.
	Nothing string
	Problem *Problem
	// Wrong is why a dry run fails: it has found what should not be.
	Wrong *Problem
	// Data is the plan as it is published.
	Data any
	// DeadLetters are all dead letters of the plan, also the unchanged ones. An export contains them in full.
	DeadLetters []int64
	// Run is nil if the act is refused. With an error, the receipt, if not nil, says what was done before.
	Run Run
}

// Run runs a plan for a reason.
type Run func(ctx context.Context, reason string) (*Receipt, error)

// Receipt describes what an act has changed.
type Receipt struct {
	// Text is the result in a sentence.
	Text  string
	Lines TextLines
	// Next says what to do or expect next; may be empty.
	Next string
	// Audits are the ids in operator_audit.
	Audits []int64
	// Partly is true if less was done than planned.
	Partly bool
	// Unchanged is true if nothing had to change, so that nothing was done.
	Unchanged bool
	// Left are the ids of marked rows that were not reached.
	Left []int64
	// Undo is the request that undoes the act, or nil; Reverse is the act that undoes it later, if any.
	Undo    *Request
	Reverse Kind
	// Opens is the execution that the act has made, or 0.
	Opens int64
	// Data is the receipt as it is published; its messages are Sent.
	Data any
	Sent triage.Sent
	// Results are those of named rows.
	Results []Result
	// Problem is why less was done than asked for, if the act did not fail.
	Problem *Problem
	// Done of the Planned rows were changed; Remaining were not reached, because the run was stopped.
	Planned, Done, Remaining int
}

// Result is the receipt of one named row, or its problem.
type Result struct {
	ID      int64
	Receipt *Receipt
	Err     error
}

// AuditText lists audit rows. It writes three or more consecutive ids as a range.
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

// Progress counts the processed rows of a running act. Writer and reader may be different goroutines; the zero value
// is ready.
type Progress struct{ done, total atomic.Int64 }

// Set stores the number of processed rows and their total, 0 if unknown.
func (p *Progress) Set(done, total int64) {
	p.total.Store(total)
	p.done.Store(done)
}

// Read returns the last stored numbers.
func (p *Progress) Read() (done, total int64) { return p.done.Load(), p.total.Load() }

const (
	// PlanTimeout ends the planning of an act.
	PlanTimeout = 10 * time.Second
	// PlanTTL is how long a plan can be confirmed; later it may be outdated.
	PlanTTL = 2 * time.Minute
	// RunTimeout ends a running act.
	RunTimeout = 15 * time.Minute
)

// InvalidError maps the names of fields to what is wrong with their values. The empty name concerns the whole form.
type InvalidError struct {
	Problems map[string]string
}

// Error is the problem of the whole form, if any.
func (e *InvalidError) Error() string {
	if text := e.Problems[""]; text != "" {
		return text
	}
	return "what was written does not fit"
}
