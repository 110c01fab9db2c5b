package monitor

import (
	"cmp"
	"time"

	"github.com/attune-go/attune/core/phrase"
)

// Judgement is the one judgement of a worker: its heartbeats, the consumers of its
// queue and the status of its row, and of these the strictest.
type Judgement struct {
	Health WorkerHealth `json:"health"`
	// By is what decided: heartbeat, broker or status; empty for a worker that is there.
	By string `json:"by,omitempty"`
	// Why says it in words; empty where Health says all.
	Why string `json:"why,omitempty"`
	// Overruled is what the row says where something stricter decided, else empty.
	Overruled string `json:"overruled,omitempty"`
}

// What decides about a worker.
const (
	ByHeartbeat = "heartbeat"
	ByBroker    = "broker"
	ByStatus    = "status"
)

// Gone reports that nothing is to be expected of the worker: it is silent or nobody
// consumes what it is given.
func (v Judgement) Gone() bool { return v.Health == WorkerStale || v.Health == WorkerDeaf }

// Judge judges a worker at the database time of what was read of it, never at a later
// one: who cannot be read does not fall silent by that. q is its queue as the broker
// told of it; nil where it did not, and what the engine saw last counts.
func (w Worker) Judge(at time.Time, staleAfter time.Duration, q *BrokerQueue) Judgement {
	v := w.judge(at, staleAfter, q)
	if v.By != ByStatus && v.Gone() {
		v.Overruled = w.Status
	}
	return v
}

func (w Worker) judge(at time.Time, staleAfter time.Duration, q *BrokerQueue) Judgement {
	health, reason := w.HealthInForce()
	switch {
	case w.Draining && !w.silent(at, staleAfter):
		return Judgement{Health: WorkerDraining, By: ByStatus} // of its own accord or an operator's; the former is inactive too
	case w.Status == "inactive" || w.Status == "error":
		return Judgement{Health: WorkerInactive, By: ByStatus, Why: "status " + w.Status}
	case w.silent(at, staleAfter):
		return Judgement{Health: WorkerStale, By: ByHeartbeat, Why: w.silence(at, staleAfter)}
	case w.SuspectSince != nil: // the engine's word on the queue, and it knows more of it
		return Judgement{Health: WorkerSuspect, By: ByBroker, Why: "no new work: " + cmp.Or(w.SuspectReason, "its queue took nothing")}
	}
	if why := w.deaf(at, q); why != "" {
		return Judgement{Health: WorkerDeaf, By: ByBroker, Why: why}
	}
	switch {
	case w.Cordoned:
		return Judgement{Health: WorkerCordoned, By: ByStatus, Why: w.CordonReason}
	case health == "unhealthy":
		return Judgement{Health: WorkerUnhealthy, Why: reason}
	case w.Assigned != nil && w.Capacity != nil && *w.Assigned >= *w.Capacity:
		return Judgement{Health: WorkerBusy}
	case health == "degraded":
		return Judgement{Health: WorkerDegraded, Why: reason}
	default:
		return Judgement{Health: WorkerActive}
	}
}

func (w Worker) silent(at time.Time, staleAfter time.Duration) bool {
	return w.Heartbeat == nil || at.Sub(*w.Heartbeat) > staleAfter
}

func (w Worker) silence(at time.Time, staleAfter time.Duration) string {
	if w.Heartbeat == nil {
		return "never sent a heartbeat"
	}
	return "silent for " + phrase.Since(*w.Heartbeat, at) + ", limit " + phrase.Span(staleAfter)
}

// startGrace is how long observations may be older than the start of a worker or of a
// replica: the broker counts consumers every 5 seconds.
const startGrace = 15 * time.Second

// Outdated reports whether an observation may be of the time before the worker consumed.
func (w Worker) Outdated(observed time.Time) bool {
	return !w.Registered.IsZero() && observed.Sub(w.Registered) < startGrace
}

// deaf says why nothing reaches a worker that sends heartbeats; empty if it consumes,
// or if that is unknown.
func (w Worker) deaf(at time.Time, q *BrokerQueue) string {
	switch p := w.Probe; {
	case q != nil && !q.Uncounted && q.Consumers == 0:
		if w.Outdated(at) {
			return ""
		}
		return "sends heartbeats, but nobody consumes " + q.Name
	case q != nil && !q.Uncounted, p == nil || !p.Valid || w.Outdated(p.At):
		return ""
	case p.QueueExists != nil && !*p.QueueExists:
		return "sends heartbeats, but has no queue " + WorkerQueue(w.ID)
	case p.Consumers != nil && *p.Consumers == 0:
		return "sends heartbeats, but nobody consumes " + WorkerQueue(w.ID)
	default:
		return ""
	}
}

// Missed is how many heartbeats a worker should have sent since the last; zero where it
// has never sent one.
func (w Worker) Missed(at time.Time, every time.Duration) int64 {
	if w.Heartbeat == nil || every <= 0 {
		return 0
	}
	return max(0, int64(at.Sub(*w.Heartbeat)/every))
}

// WorkerQueues are the queues of workers, by the worker.
func (b *Broker) WorkerQueues() map[int64]*BrokerQueue {
	if b == nil {
		return nil
	}
	queues := map[int64]*BrokerQueue{}
	for i := range b.Queues {
		if id, ok := WorkerOfQueue(b.Queues[i].Name); ok {
			queues[id] = &b.Queues[i]
		}
	}
	return queues
}

// WorkerQueue is the queue of a worker; nil where the broker does not know it, or was
// not asked.
func (b *Broker) WorkerQueue(worker int64) *BrokerQueue {
	if q, ok := b.Queue(WorkerQueue(worker)); ok {
		return &q
	}
	return nil
}
