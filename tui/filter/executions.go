package filter

import (
	"strings"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
)

// Executions are the fields for executions.
var Executions = Schema{
	{Name: "status", Kind: Word, Values: statusWords(), Help: "one of its statuses"},
	{Name: "action", Kind: Text, Help: "the action; a star stands for anything"},
	{Name: "worker", Kind: Text, Help: "its worker, by id or name"},
	{Name: "age", Kind: Age, Help: "how long ago it was requested"},
	{Name: "try", Kind: Number, Help: "how often it was repeated"},
	{Name: "parent", Kind: Text, Values: []string{"any", "none"}, Help: "the execution that has started it"},
	{Name: "reason", Kind: Within, Help: "why it ended so"},
	{Name: "param", Kind: Param, Help: "a parameter: param.tenant:t7, param.order.country:de"},
	{Name: "id", Kind: ID, Help: "its number, or a range such as 10..20"},
}

func statusWords() []string {
	words := make([]string, len(lifecycle.Statuses))
	for i, s := range lifecycle.Statuses {
		words[i] = string(s)
	}
	return words
}

// ForExecutions turns a query into a filter of the database. A text without a field matches the action, a number the
// id. An error is an *Error: the database cannot filter by two parents, for example.
func ForExecutions(q *Query) (monitor.ExecutionFilter, error) {
	return alternatives(q, addTerm, func(f *monitor.ExecutionFilter) *[]monitor.ExecutionFilter { return &f.Or })
}

func addTerm(f *monitor.ExecutionFilter, t Term) (err error) {
	switch t.Field {
	case "":
		return addText(t, &f.IDs, &f.Match, &f.Unmatch)
	case "status":
		f.Statuses, err = narrowed(t, lifecycle.Statuses, f.Statuses)
		return err
	case "action":
		return addPattern(t, &f.Match, &f.Unmatch)
	case "reason":
		return addPattern(t, &f.Reasons, &f.NotReasons)
	case "worker":
		return addWorkers(f, t)
	case "parent":
		return addParent(t, &f.Parent, &f.Parented)
	case "id":
		return addRange(f, t)
	case "param":
		match := monitor.ParamMatch{Path: t.Path, Values: t.Values, Not: t.Not}
		if match.NamesSecret() {
			return fail(t.Span, "%s may hold a secret, which is not searched", t.name())
		}
		f.Params = append(f.Params, match)
	case "age":
		addAge(t, &f.MinAge, &f.MaxAge)
	case "try":
		return addCount(t, &f.MinTries, &f.MaxTries)
	}
	return nil
}

// addRange adds ids or one range of ids.
func addRange(f *monitor.ExecutionFilter, t Term) error {
	from, to, _ := idRange(t.Values[0])
	if len(t.Values) > 1 || t.Not || from == to {
		return addIDs(t, &f.IDs)
	}
	if f.MinID != 0 {
		return fail(t.Span, "one range of ids at once")
	}
	f.MinID, f.MaxID = from, to
	return nil
}

func addWorkers(f *monitor.ExecutionFilter, t Term) error {
	for _, v := range t.Values {
		if strings.Contains(v, "*") {
			return fail(t.Span, "a worker is named whole here")
		}
	}
	switch {
	case t.Not:
		f.NotWorkers = append(f.NotWorkers, t.Values...)
	case len(f.Workers) > 0 || f.Worker != "":
		return fail(t.Span, "one worker: term at once; a comma joins workers")
	case len(t.Values) == 1:
		f.Worker = t.Values[0]
	default:
		f.Workers = t.Values
	}
	return nil
}
