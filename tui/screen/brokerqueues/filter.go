package brokerqueues

import (
	"slices"

	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

// The words that filters call the states of queues.
var stateWords = map[string]string{
	"failed": "problem", "warning": "warning", "scheduled": "uncounted", "active": "active", "idle": "idle",
}

var fields = filter.Schema{
	{Name: "queue", Kind: filter.Text, Help: "its name; a star stands for anything"},
	{Name: "state", Kind: filter.Word, Values: []string{"problem", "warning", "uncounted", "active", "idle"}, Help: "how it is judged"},
	{Name: "worker", Kind: filter.Text, Values: []string{"none", "orphan"}, Help: "whose it is"},
	{Name: "ready", Kind: filter.Number, Help: "messages that wait"},
	{Name: "unacked", Kind: filter.Number, Help: "messages that were given and not acknowledged"},
	{Name: "consumers", Kind: filter.Number, Help: "how many take from it"},
	{Name: "in", Kind: filter.Number, Help: "messages that come, a second"},
	{Name: "out", Kind: filter.Number, Help: "messages that go, a second"},
	{Name: "type", Kind: filter.Text, Help: "classic, quorum or stream"},
	{Name: "ttl", Kind: filter.Age, Help: "after how long its messages expire"},
	{Name: "dlx", Kind: filter.Text, Values: []string{"none"}, Help: "where its dead letters go"},
	{Name: "max", Kind: filter.Number, Help: "how many messages it holds at most"},
	{Name: "policy", Kind: filter.Text, Values: []string{"none"}, Help: "the policy that is in force"},
	{Name: "note", Kind: filter.Within, Help: "what is said of it"},
}

// Known lists the values of a field that are in the list.
func (v *Broker) Known(field string) []string {
	var known screen.Distinct
	b := v.env.Data.Broker
	if b == nil || !slices.Contains([]string{"queue", "worker", "type", "dlx", "policy"}, field) {
		return nil
	}
	workers, all := v.workers()
	for i := range b.Queues {
		r := judge(&b.Queues[i], workers, all, nil)
		known.Add(asked{&r}.Texts(field)...)
	}
	return known.List()
}

// asked is a queue as filters see it.
type asked struct{ row *row }

// Texts are the texts of a field.
func (a asked) Texts(field string) []string {
	r := a.row
	switch field {
	case "":
		return []string{r.BrokerQueue.Name, r.Type, r.Policy, r.OperatorPolicy, r.worker, r.note}
	case "queue":
		return []string{r.BrokerQueue.Name}
	case "state":
		return []string{stateWords[r.state]}
	case "worker":
		switch {
		case r.orphan:
			return []string{"orphan"}
		case r.worker == "":
			return []string{"none"}
		}
		return []string{r.worker}
	case "type":
		return []string{r.Type}
	case "dlx":
		if r.DeadLetterExchange == nil {
			return []string{"none"}
		}
		return []string{exchange(r.DeadLetterExchange)}
	case "policy":
		if r.Policy == "" && r.OperatorPolicy == "" {
			return []string{"none"}
		}
		return slices.DeleteFunc([]string{r.Policy, r.OperatorPolicy}, func(name string) bool { return name == "" })
	case "note":
		return []string{r.note}
	default:
		return nil
	}
}

// Number is the number of a field. What was not counted is unknown.
func (a asked) Number(field string) (float64, bool) {
	r := a.row
	counted := func(n int64) (float64, bool) { return float64(n), !r.Uncounted }
	perSecond := func(rate *float64) (float64, bool) {
		if rate == nil {
			return 0, false
		}
		return *rate, true
	}
	switch field {
	case "ready":
		return counted(r.Ready)
	case "unacked":
		return counted(r.Unacked)
	case "consumers":
		return counted(r.Consumers)
	case "in":
		return perSecond(r.Published)
	case "out":
		return perSecond(r.Delivered)
	case "ttl":
		if r.TTL != nil {
			return r.TTL.Seconds(), true
		}
	case "max":
		if r.MaxLength != nil {
			return float64(*r.MaxLength), true
		}
	}
	return 0, false
}
