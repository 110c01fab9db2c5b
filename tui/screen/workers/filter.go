package workers

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

var fields = filter.Schema{
	{Name: "worker", Kind: filter.Text, Help: "its name or id; a star stands for anything"},
	{Name: "status", Kind: filter.Word, Values: healthWords(), Help: "how it is judged"},
	{Name: "role", Kind: filter.Text, Help: "its role"},
	{Name: "host", Kind: filter.Text, Help: "its host"},
	{Name: "runtime", Kind: filter.Text, Help: "what it runs"},
	{Name: "version", Kind: filter.Text, Help: "its version"},
	{Name: "slots", Kind: filter.Number, Help: "how many are taken"},
	{Name: "ready", Kind: filter.Number, Help: "messages that wait for it"},
	{Name: "hb", Kind: filter.Age, Help: "how old its heartbeat is"},
	{Name: "note", Kind: filter.Within, Help: "what is said of it"},
}

func healthWords() []string {
	var words []string
	for _, h := range []monitor.WorkerHealth{
		monitor.WorkerActive, monitor.WorkerBusy, monitor.WorkerStale, monitor.WorkerDeaf, monitor.WorkerSuspect, monitor.WorkerUnhealthy, monitor.WorkerDegraded,
		monitor.WorkerDraining, monitor.WorkerCordoned, monitor.WorkerInactive,
	} {
		words = append(words, string(h))
	}
	return words
}

// Known lists the values of a field that are in the list.
func (v *Workers) Known(field string) []string {
	var known screen.Distinct
	if d := v.env.Data.Workers; d != nil {
		for _, r := range v.join(d) {
			switch field {
			case "worker":
				known.Add(r.Name)
			case "role", "host", "runtime", "version":
				known.Add(asked{v, r}.Texts(field)...)
			}
		}
	}
	return known.List()
}

// asked is a worker as filters see it.
type asked struct {
	v   *Workers
	row row
}

// Texts are the texts of a field.
func (a asked) Texts(field string) []string {
	switch field {
	case "":
		return append([]string{a.row.Name, a.row.Host, a.row.Role}, a.row.Runtimes...)
	case "worker":
		return []string{a.row.Name, strconv.FormatInt(a.row.ID, 10)}
	case "status":
		if a.row.orphan {
			return nil
		}
		return []string{string(a.row.seen.Health)}
	case "role":
		return []string{a.row.Role}
	case "host":
		return []string{a.row.Host}
	case "runtime":
		return a.row.Runtimes
	case "version":
		return []string{a.row.Version}
	case "note":
		return []string{a.v.note(a.row)}
	default:
		return nil
	}
}

// Number is the number of a field.
func (a asked) Number(field string) (float64, bool) {
	switch {
	case field == "slots" && a.row.Assigned != nil:
		return float64(*a.row.Assigned), true
	case field == "ready" && a.row.queue != nil && !a.row.queue.Uncounted:
		return float64(a.row.queue.Ready), true
	case field == "hb" && a.row.Heartbeat != nil:
		return a.v.env.Since(*a.row.Heartbeat).Seconds(), true
	default:
		return 0, false
	}
}
