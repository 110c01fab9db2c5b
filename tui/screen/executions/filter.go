package executions

import (
	"strings"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

// Schema is what executions can be filtered by.
func (*Executions) Schema() filter.Schema { return filter.Executions }

// Live is false: the database filters.
func (*Executions) Live() bool { return false }

// Known lists the values of a field that were read lately.
func (x *Executions) Known(field string) []string {
	var known screen.Distinct
	d := x.env.Data
	switch field {
	case "action":
		if d.Queues != nil {
			for i := range d.Queues.List {
				known.Add(d.Queues.List[i].ActionRef)
			}
		}
		for i := range x.rows {
			known.Add(x.rows[i].ActionRef)
		}
	case "worker":
		if d.Workers != nil {
			for i := range d.Workers.List {
				known.Add(d.Workers.List[i].Name)
			}
		}
		for i := range x.rows {
			known.Add(x.rows[i].WorkerName)
		}
	}
	return known.List()
}

// Filter is the text in place.
func (x *Executions) Filter() string { return x.text }

// SetFilter reads a filter; the database applies it.
func (x *Executions) SetFilter(text string) error {
	query, err := filter.Parse(filter.Executions, text)
	if err != nil {
		return err
	}
	asked, err := filter.ForExecutions(query)
	if err != nil {
		return err
	}
	x.text, x.query = strings.TrimSpace(text), asked
	x.restart()
	return nil
}

// troubled are the statuses that mean trouble.
var troubled = []attune.Status{attune.StatusFailed, attune.StatusTimeout, attune.StatusAbandoned, attune.StatusCanceling}

// Query is the filter that the database applies.
func (x *Executions) Query() monitor.ExecutionFilter {
	q := x.query
	q.Oldest, q.WithParams = x.oldest(), x.table.Shows(inParams)
	if !x.problems {
		return q
	}
	q.Or = append([]monitor.ExecutionFilter(nil), q.Or...)
	for i := range q.Or {
		trouble(&q.Or[i])
	}
	trouble(&q)
	return q
}

// trouble keeps of an alternative what means trouble, unless it names statuses
// itself.
func trouble(f *monitor.ExecutionFilter) {
	if len(f.Statuses) == 0 {
		f.Statuses = troubled
	}
}
