package screen

import (
	"strconv"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
)

// Lasted is how long an execution took, or has been in its present state.
func (e *Env) Lasted(r *monitor.Execution) time.Duration {
	from := r.Created
	if r.StartedAt != nil && r.Status != string(lifecycle.StatusRequested) {
		from = *r.StartedAt
	}
	switch {
	case r.FinishedAt != nil:
		return r.FinishedAt.Sub(from)
	case lifecycle.Status(r.Status).Terminal():
		return r.Updated.Sub(from)
	case r.Status == string(lifecycle.StatusScheduled):
		return e.Since(r.Updated)
	default:
		return e.Since(from)
	}
}

// Reference is an id, or a dash for nil.
func Reference(id *int64) string {
	if id == nil {
		return "-"
	}
	return strconv.FormatInt(*id, 10)
}

// Glance is the selected execution of a view that previews it.
type Glance struct {
	*monitor.ExecutionDetail
}

// Glanced is the last reading of FeedGlance, or nil.
func (d *Data) Glanced() *monitor.ExecutionDetail {
	if d.Glance == nil {
		return nil
	}
	return d.Glance.ExecutionDetail
}

// Assess evaluates a worker that was read at a time, with its broker queue if the broker answers. Every
// view uses it, so all agree.
func (e *Env) Assess(w *monitor.Worker, at time.Time) monitor.Assessment {
	return w.Assess(at, e.Data.StaleAfter(), e.Heard().WorkerQueue(w.ID))
}

// Heard is the present state of the broker, nil while it does not answer: old consumers prove nothing.
func (e *Env) Heard() *monitor.Broker {
	if e.Data.Condition(FeedBroker, e.Clock) == Unreachable {
		return nil
	}
	return e.Data.Broker
}
