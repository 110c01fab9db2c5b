package screen

import (
	"strconv"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
)

// Lasted is how long an execution took, or has been in its present state.
func (e *Env) Lasted(r *monitor.Execution) time.Duration {
	from := r.Created
	if r.StartedAt != nil && r.Status != string(attune.StatusRequested) {
		from = *r.StartedAt
	}
	switch {
	case r.FinishedAt != nil:
		return r.FinishedAt.Sub(from)
	case attune.Status(r.Status).Terminal():
		return r.Updated.Sub(from)
	case r.Status == string(attune.StatusScheduled):
		return e.Since(r.Updated)
	default:
		return e.Since(from)
	}
}

// WorkerName is the name of a worker, or its id while the name is unknown.
func WorkerName(id *int64, name string) string {
	switch {
	case id == nil:
		return "-"
	case name == "":
		return "worker " + strconv.FormatInt(*id, 10)
	default:
		return name
	}
}

// Reference is the id of something that there may be none of.
func Reference(id *int64) string {
	if id == nil {
		return "-"
	}
	return strconv.FormatInt(*id, 10)
}

// Glanced is the execution that was read last as Glance, or nil.
func (d *Data) Glanced() *monitor.ExecutionDetail {
	if d.Glance == nil {
		return nil
	}
	return d.Glance.ExecutionDetail
}

// Glance is the execution under the cursor of a view that shows it beside its rows.
type Glance struct {
	*monitor.ExecutionDetail
}

// Judge judges a worker that was read at a time, with what the broker says of its
// queue while that is known: every view says the same of it.
func (e *Env) Judge(w *monitor.Worker, at time.Time) monitor.Judgement {
	return w.Judge(at, e.Data.StaleAfter(), e.Heard().WorkerQueue(w.ID))
}

// Heard is what the broker says now; nil while it says nothing, since what it said
// once of consumers proves nothing later.
func (e *Env) Heard() *monitor.Broker {
	if e.Data.Condition(FeedBroker, e.Clock) == Unreachable {
		return nil
	}
	return e.Data.Broker
}
