package operations

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

var fields = filter.Schema{
	{Name: "act", Kind: filter.Text, Help: "what was done, such as queue.pause; a star stands for anything"},
	{Name: "target", Kind: filter.Text, Help: "what it was done to"},
	{Name: "who", Kind: filter.Text, Help: "who did it; session for this one"},
	{Name: "outcome", Kind: filter.Text, Values: []string{"done", "partly", "failed", "interrupted", "running", "not run"}, Help: "how it ended"},
	{Name: "reason", Kind: filter.Within, Help: "why, as was written"},
	{Name: "error", Kind: filter.Within, Help: "what went wrong"},
	{Name: "audit", Kind: filter.ID, Help: "its number in the record"},
	{Name: "age", Kind: filter.Age, Help: "how long ago it began"},
}

// SetFilter shows only what matches.
func (v *Operations) SetFilter(text string) error {
	if err := v.SetQuery(text); err != nil {
		return err
	}
	v.rebuild()
	return nil
}

// Known lists the values of a field that are in the log.
func (v *Operations) Known(field string) []string {
	var known screen.Distinct
	switch field {
	case "act", "target", "who", "outcome":
		for i := range v.all {
			known.Add(asked{v, &v.all[i]}.Texts(field)...)
		}
	}
	return known.List()
}

// asked is a row of the log as filters see it.
type asked struct {
	v *Operations
	r *row
}

// Texts are the texts of a field.
func (a asked) Texts(field string) []string {
	t := a.r.texts()
	switch field {
	case "act":
		return []string{t.kind, said(t.kind)}
	case "target":
		return []string{t.target}
	case "who":
		if a.r.op != nil {
			return []string{"session", t.who}
		}
		return []string{t.who}
	case "outcome":
		return []string{a.r.state()}
	case "reason":
		return []string{t.reason}
	case "error":
		return []string{t.problem}
	case "audit":
		return []string{t.audit}
	default:
		return []string{t.kind, said(t.kind), t.target, t.who, t.reason, t.problem, a.r.state(), t.audit}
	}
}

// Number is the number of a field.
func (a asked) Number(field string) (float64, bool) {
	if field == "age" {
		return a.v.env.Since(a.r.at).Seconds(), true
	}
	return 0, false
}

// said is an act in words: pause queue for queue.pause.
func said(kind string) string {
	object, verb, ok := strings.Cut(kind, ".")
	if !ok {
		return kind
	}
	return strings.NewReplacer("_", " ", "-", " ").Replace(verb + " " + object)
}

// texts are what a row says in words.
type texts struct{ kind, target, who, audit, reason, problem string }

func (r *row) texts() texts {
	t := texts{audit: "-"}
	if a := r.audit; a != nil {
		t = texts{kind: a.Action, target: a.Target, who: a.Actor, audit: strconv.FormatInt(a.ID, 10), reason: a.Reason, problem: a.Error}
	}
	op := r.op
	if op == nil {
		return t
	}
	t.kind, t.target, t.who = string(op.Order.Kind), op.Order.Target.Name, "this session"
	if op.Reason != "" {
		t.reason = op.Reason
	}
	if op.Err != "" {
		t.problem = op.Err
	}
	if op.Receipt != nil && len(op.Receipt.Audits) > 0 {
		t.audit = strconv.FormatInt(op.Receipt.Audits[0], 10)
	}
	return t
}

// Row is what makes rows of acts that were not read, and whether the filter lets them
// through. It touches nothing of the view.
func (v *Operations) Row() func(a *monitor.AuditEntry) (id int64, value any, wanted bool) {
	frozen := &Operations{env: &screen.Env{Now: v.env.Now}, Filtered: v.Filtered}
	return func(a *monitor.AuditEntry) (int64, any, bool) {
		return a.ID, recorded(a), frozen.Matches(asked{frozen, &row{at: a.At, audit: a}})
	}
}
