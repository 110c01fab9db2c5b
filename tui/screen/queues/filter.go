package queues

import (
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

var fields = filter.Schema{
	{Name: "action", Kind: filter.Text, Help: "its action; a star stands for anything"},
	{Name: "group", Kind: filter.Text, Help: "a value of its group, such as tenant=acme"},
	{Name: "state", Kind: filter.Word, Values: []string{"active", "idle", "warning", "paused"}, Help: "its state"},
	{Name: "queued", Kind: filter.Number, Help: "how many wait"},
	{Name: "running", Kind: filter.Number, Help: "how many hold a slot"},
	{Name: "limit", Kind: filter.Number, Help: "how many may at once"},
	{Name: "head", Kind: filter.Age, Help: "how long its oldest waits"},
	{Name: "note", Kind: filter.Within, Help: "what is said of it"},
}

// Known lists the values of a field that are in the list.
func (q *Queues) Known(field string) []string {
	var known screen.Distinct
	if d := q.env.Data.Queues; d != nil {
		for i := range d.List {
			if field == "action" || field == "group" {
				known.Add(asked{q, &d.List[i]}.Texts(field)...)
			}
		}
	}
	return known.List()
}

// asked is a queue as filters see it.
type asked struct {
	q   *Queues
	row *monitor.Queue
}

// Texts are the texts of a field.
func (a asked) Texts(field string) []string {
	switch field {
	case "":
		return []string{a.row.Name(), screen.QueueName(a.row)}
	case "action":
		return []string{a.row.ActionRef}
	case "group":
		_, group, _ := strings.Cut(screen.QueueName(a.row), " ")
		return append(strings.Split(group, ", "), a.row.Group)
	case "state":
		state, _ := a.q.verdict(*a.row)
		return []string{state}
	case "note":
		_, note := a.q.verdict(*a.row)
		return []string{note, sourceNote(*a.row)}
	default:
		return nil
	}
}

// Number is the number of a field.
func (a asked) Number(field string) (float64, bool) {
	switch field {
	case "queued":
		return float64(a.row.Queued), true
	case "running":
		return float64(a.row.Active), true
	case "limit":
		if a.row.Limit == nil {
			return 0, false
		}
		return float64(*a.row.Limit), true
	case "head":
		if a.row.Oldest == nil {
			return 0, false
		}
		return a.q.env.Since(*a.row.Oldest).Seconds(), true
	default:
		return 0, false
	}
}

// narrowed is a text that every queue which passes has in its name, for the
// database to look for among more queues than are read.
func narrowed(query *filter.Query) string {
	if query.Empty() || len(query.Any) > 1 {
		return ""
	}
	for _, t := range query.Any[0] {
		plain := !t.Not && t.Regex == nil && len(t.Values) == 1 && !strings.ContainsAny(t.Values[0], "* ")
		if plain && (t.Field == "" || t.Field == "action") {
			return t.Values[0]
		}
	}
	return ""
}
