package filter

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
)

// Executions are the fields of the list of executions.
var Executions = Schema{
	{Name: "status", Kind: Word, Values: statusWords(), Help: "one of its statuses"},
	{Name: "action", Kind: Text, Help: "the action; a star stands for anything"},
	{Name: "worker", Kind: Text, Help: "its worker, by id or name"},
	{Name: "age", Kind: Age, Help: "how long ago it was requested"},
	{Name: "try", Kind: Number, Help: "how often it was repeated"},
	{Name: "parent", Kind: Text, Values: []string{"any", "none"}, Help: "the execution that has started it"},
	{Name: "reason", Kind: Within, Help: "why it ended so"},
	{Name: "id", Kind: ID, Help: "its number"},
}

func statusWords() []string {
	words := make([]string, len(attune.Statuses))
	for i, s := range attune.Statuses {
		words[i] = string(s)
	}
	return words
}

// ForExecutions turns a query into what the database filters executions by. A
// text without a field is looked for in the action, a number is an id. An error is
// an *Error: what the database cannot be asked, such as two parents at once.
func ForExecutions(q *Query) (monitor.ExecutionFilter, error) {
	if q.Empty() {
		return monitor.ExecutionFilter{}, nil
	}
	list := make([]monitor.ExecutionFilter, len(q.Any))
	for i, terms := range q.Any {
		for _, t := range terms {
			if err := addTerm(&list[i], t); err != nil {
				return monitor.ExecutionFilter{}, err
			}
		}
	}
	list[0].Or = list[1:]
	return list[0], nil
}

func addTerm(f *monitor.ExecutionFilter, t Term) error {
	switch t.Field {
	case "":
		return addText(f, t)
	case "status":
		return addStatuses(f, t)
	case "action":
		return addPattern(t, &f.Match, &f.Unmatch)
	case "reason":
		return addPattern(t, &f.Reasons, &f.NotReasons)
	case "worker":
		return addWorkers(f, t)
	case "parent":
		return addParent(f, t)
	case "id":
		return addIDs(f, t)
	case "age":
		return addAge(f, t)
	case "try":
		return addTries(f, t)
	}
	return nil
}

// addText looks for a text in the action. Digits alone are an id.
func addText(f *monitor.ExecutionFilter, t Term) error {
	if t.Regex == nil && !slices.ContainsFunc(t.Values, func(v string) bool { return v == "" || !isNumber(v) }) {
		return addIDs(f, t)
	}
	return addPattern(t, &f.Match, &f.Unmatch)
}

// addPattern adds the values as one expression.
func addPattern(t Term, match, unmatch *[]string) error {
	parts := make([]string, len(t.Values))
	for i, v := range t.Values {
		parts[i] = Pattern(v, t.Kind == Within)
		if t.Regex != nil {
			written, err := expression(v)
			if err != nil {
				return fail(t.Span, "%s", err)
			}
			parts[i] = written
		}
	}
	into := match
	if t.Not {
		into = unmatch
	}
	*into = append(*into, strings.Join(parts, "|"))
	return nil
}

// addStatuses narrows the statuses; none at all would be every one.
func addStatuses(f *monitor.ExecutionFilter, t Term) error {
	var left []attune.Status
	for _, s := range attune.Statuses {
		if slices.Contains(t.Values, string(s)) != t.Not && (len(f.Statuses) == 0 || slices.Contains(f.Statuses, s)) {
			left = append(left, s)
		}
	}
	if len(left) == 0 {
		return fail(t.Span, "no status is left")
	}
	f.Statuses = left
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

func addParent(f *monitor.ExecutionFilter, t Term) error {
	if f.Parent != 0 || f.Parented != "" {
		return fail(t.Span, "one parent: term at once")
	}
	word := t.Values[0]
	if len(t.Values) == 1 && (word == monitor.ParentedAny || word == monitor.ParentedNone) {
		f.Parented = word
		if t.Not && word == monitor.ParentedAny {
			f.Parented = monitor.ParentedNone
		} else if t.Not {
			f.Parented = monitor.ParentedAny
		}
		return nil
	}
	id, err := strconv.ParseInt(word, 10, 64)
	if err != nil || id < 1 || len(t.Values) > 1 || t.Not {
		return fail(t.Span, "parent: takes one execution, any or none")
	}
	f.Parent = id
	return nil
}

func addIDs(f *monitor.ExecutionFilter, t Term) error {
	if t.Not || len(f.IDs) > 0 {
		return fail(t.Span, "one list of ids at once, and not turned around")
	}
	for _, v := range t.Values {
		id, err := strconv.ParseInt(v, 10, 64)
		if err != nil || id < 1 {
			return fail(t.Span, "%q is no id", v)
		}
		f.IDs = append(f.IDs, id)
	}
	return nil
}

// addAge narrows the window of time. Not younger is older.
func addAge(f *monitor.ExecutionFilter, t Term) error {
	age := time.Duration(t.Number * float64(time.Second))
	if younger := t.Op == Less || t.Op == LessEqual; younger != t.Not {
		if f.MaxAge == 0 || age < f.MaxAge {
			f.MaxAge = age
		}
		return nil
	}
	f.MinAge = max(f.MinAge, age)
	return nil
}

func addTries(f *monitor.ExecutionFilter, t Term) error {
	n, op := int64(t.Number), t.Op
	if t.Not {
		turned := map[Op]Op{Less: MoreEqual, LessEqual: More, More: LessEqual, MoreEqual: Less}
		if op == Is {
			return fail(t.Span, "write try<%d | try>%d", n, n)
		}
		op = turned[op]
	}
	low, high := int64(0), monitor.NoLimit
	switch op {
	case Less:
		high = n - 1
	case LessEqual:
		high = n
	case More:
		low = n + 1
	case MoreEqual:
		low = n
	default:
		low, high = n, n
	}
	f.MinTries = max(f.MinTries, low)
	if f.MaxTries == nil || high < *f.MaxTries {
		f.MaxTries = &high
	}
	return nil
}
