package deadletters

import (
	"cmp"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// RelatedExecution is the execution that the letter under the cursor is about.
func (v *DeadLetters) RelatedExecution() (*monitor.Execution, bool) {
	return v.related(v.Current())
}

// Relations is what the letter under the cursor has to do with.
func (v *DeadLetters) Relations() (title string, list []screen.Relation, ok bool) {
	return v.relations(v.Current())
}

// RelatedExecution is the execution that the letter in sight is about.
func (m *Message) RelatedExecution() (*monitor.Execution, bool) { return m.list.related(m.current()) }

// Relations is what the letter in sight has to do with.
func (m *Message) Relations() (title string, list []screen.Relation, ok bool) {
	return m.list.relations(m.current())
}

// related is the execution of a row, as far as the row says; false where there is
// none, or none any more.
func (v *DeadLetters) related(r *row) (*monitor.Execution, bool) {
	if r == nil || r.Execution == nil || r.StatusNow == "" {
		return nil, false
	}
	return &monitor.Execution{
		ID: *r.Execution, ActionRef: r.ActionRef, Status: r.StatusNow, WorkerID: r.WorkerID, WorkerName: r.WorkerName,
	}, true
}

func (v *DeadLetters) relations(r *row) (title string, list []screen.Relation, ok bool) {
	if r == nil {
		return "", nil, false
	}
	queue := screen.Relation{Key: "m", Label: "broker queue", Not: "nobody wrote down where it died"}
	if name := r.Queue; name != "" {
		queue = screen.Relation{Key: "m", Label: "broker queue", Help: "it died in " + name,
			To: screen.OpenList(keymap.InBroker, "queue:"+filter.Quote(name))}
	}
	list = []screen.Relation{
		{Key: "x", Label: "execution", Not: "it is about none"},
		queue,
		{Key: "s", Label: "same problem", Help: "all that died like it",
			To: screen.OpenList(keymap.InDeadLetters, r.alike())},
	}
	x, ok := v.related(r)
	switch {
	case ok:
		list[0] = screen.Relation{Key: "x", Label: "execution", To: screen.OpenExecution(x.ID), Help: x.Status}
		list = append(list, screen.ExecutionRelations(x, nil)...)
	case r.Execution != nil:
		list[0].Not = "it does not exist any more"
	}
	return r.name(), list, true
}

// alike is the filter for all that died for the same reason, of the same action, on
// the way to the same place.
func (r *row) alike() string {
	var terms []string
	for _, one := range []struct{ field, value string }{{"reason", r.Reason}, {"action", r.ActionRef},
		{"from", r.from()}} {
		if cmp.Or(one.value, "-") != "-" {
			terms = append(terms, one.field+":"+filter.Quote(one.value))
		}
	}
	return strings.Join(terms, " ")
}
