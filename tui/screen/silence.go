package screen

import (
	"time"

	"github.com/attune-go/attune/core/monitor"
)

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
