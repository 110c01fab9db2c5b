package monitor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// Workers reads the registered workers, active ones first. Sensors are left out, because they run no
// executions.
func (m *Monitor) Workers(ctx context.Context) (*Workers, error) {
	w := &Workers{StaleAfter: m.cfg.StaleAfter, HeartbeatEvery: m.cfg.HeartbeatEvery}
	err := m.Read(ctx, "workers", &w.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		var err error
		w.List, w.More, err = ReadWorkers(ctx, tx, s)
		return err
	})
	w.Totals = SumWorkers(w.List, m.JudgeAt(w.At))
	return w, err
}

// ReadWorkers reads workers, and whether there are more than WorkerLimit.
func ReadWorkers(ctx context.Context, tx *store.Tx, s Shape) ([]Worker, bool, error) {
	list, err := store.Rows[Worker](ctx, tx, store.MonitorWorkers, WorkerLimit+1)
	if err != nil {
		return nil, false, fmt.Errorf("list workers: %w", err)
	}
	more := len(list) > WorkerLimit
	list = list[:min(len(list), WorkerLimit)]
	if !s.Ours {
		return list, more, nil
	}
	probes, err := ReadProbes(ctx, tx, each(list, func(w Worker) int64 { return w.ID }))
	if err != nil {
		return nil, false, fmt.Errorf("list workers: %w", err)
	}
	loads, err := tx.MonitorWorkerLoads(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read the load of workers: %w", err)
	}
	restarts, err := tx.ViewWorkerRestarts(ctx, RestartSpan.Seconds())
	if err != nil {
		return nil, false, fmt.Errorf("count restarts of workers: %w", err)
	}
	at := make(map[int64]*Worker, len(list))
	for i := range list {
		w := &list[i]
		at[w.ID], w.Probe = w, probes[w.ID]
	}
	for _, l := range loads {
		if w := at[l.Worker]; w != nil {
			w.Assigned = &l.Assigned
		}
	}
	for _, r := range restarts {
		if w := at[r.ID]; w != nil {
			w.Restarts, w.Abandoned = r.Restarts, r.Abandoned
		}
	}
	return list, more, nil
}

// JudgeAt evaluates workers by the database alone.
func (m *Monitor) JudgeAt(at time.Time) func(*Worker) WorkerHealth {
	return func(w *Worker) WorkerHealth { return w.Health(at, m.cfg.StaleAfter) }
}

// SumWorkers counts workers by health.
func SumWorkers(list []Worker, assess func(*Worker) WorkerHealth) WorkerTotals {
	var t WorkerTotals
	counts := map[WorkerHealth]*int64{
		WorkerStale: &t.Stale, WorkerDeaf: &t.Deaf, WorkerSuspect: &t.Suspect, WorkerUnhealthy: &t.Unhealthy,
		WorkerInactive: &t.Inactive, WorkerDraining: &t.Cordoned, WorkerCordoned: &t.Cordoned, WorkerBusy: &t.Busy,
		WorkerDegraded: &t.Degraded, WorkerActive: &t.Active,
	}
	for i := range list {
		w := &list[i]
		t.Total++
		health := assess(w)
		if n := counts[health]; n != nil {
			*n++
		}
		if health != WorkerBusy && health != WorkerDegraded && health != WorkerActive {
			continue
		}
		if w.Assigned != nil {
			t.Assigned += *w.Assigned
		}
		if w.Capacity != nil {
			t.Capacity += *w.Capacity
		}
	}
	return t
}

var healthOrder = []WorkerHealth{
	WorkerStale, WorkerDeaf, WorkerSuspect, WorkerUnhealthy, WorkerDegraded, WorkerDraining, WorkerCordoned, WorkerBusy,
	WorkerActive, WorkerInactive,
}

// UnwellFirst selects the workers of the overview.
func UnwellFirst(list []Worker, assess func(*Worker) WorkerHealth) []Worker {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b Worker) int {
		return slices.Index(healthOrder, assess(&a)) - slices.Index(healthOrder, assess(&b))
	})
	return sorted[:min(len(sorted), TopRows)]
}

// WorkerProbe is the engine's last observation of a worker.
type WorkerProbe struct {
	At time.Time `json:"at"`
	// Verdict is fresh, suspect, dead, cordoned or draining, since Since.
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since"`
	// Health is healthy, degraded, unhealthy or unknown.
	Health       string `json:"health"`
	HealthReason string `json:"health_reason,omitempty"`
	// RTT is how long the broker took to answer.
	RTT *time.Duration `json:"rtt_ns"`
	// QueueExists, Consumers and Ready are of the worker's queue; nil if the broker did not answer.
	QueueExists *bool  `json:"queue_exists"`
	Consumers   *int64 `json:"consumers"`
	Ready       *int64 `json:"ready"`
	// Oldest is since when the oldest dispatched execution has not started.
	Oldest *time.Time `json:"oldest"`
	// Failures counts the probes in a row that found no queue or no consumer.
	Failures int64 `json:"failures"`
	// Skew is how far the worker's clock is ahead of the database's; nil if unknown.
	Skew *time.Duration `json:"skew_ns"`
	// EndpointRTT and EndpointError are of the worker's health endpoint, if it has one.
	EndpointRTT   *time.Duration `json:"endpoint_rtt_ns"`
	EndpointError string         `json:"endpoint_error,omitempty"`
	// Valid is false when the probe is too old for its health to count.
	Valid bool `json:"valid"`
}

// HealthInForce is the health that placement uses; empty if unknown.
func (w Worker) HealthInForce() (health, reason string) {
	if w.Probe == nil || !w.Probe.Valid {
		return "", ""
	}
	return w.Probe.Health, w.Probe.HealthReason
}

// Unable says why a worker is out of service by its own report; empty if it is not.
func (w Worker) Unable() string {
	if w.Status != "error" {
		return ""
	}
	_, reason := w.HealthInForce()
	return reason
}

// ReadProbes reads the probes of workers.
func ReadProbes(ctx context.Context, tx *store.Tx, workers []int64) (map[int64]*WorkerProbe, error) {
	type row struct {
		Worker int64
		WorkerProbe
	}
	rows, err := store.Rows[row](ctx, tx, store.MonitorProbes, workers)
	if err != nil {
		return nil, fmt.Errorf("read what was seen of %d workers: %w", len(workers), err)
	}
	seen := make(map[int64]*WorkerProbe, len(rows))
	for i := range rows {
		seen[rows[i].Worker] = &rows[i].WorkerProbe
	}
	return seen, nil
}

// Assessment is the strictest of what heartbeats, queue consumers and row of a worker say.
type Assessment struct {
	Health WorkerHealth `json:"health"`
	// By is what decided: heartbeat, broker or status; empty for a working one.
	By string `json:"by,omitempty"`
	// Why says more than Health; empty if there is nothing more.
	Why string `json:"why,omitempty"`
	// Overruled is the status of the row if something stricter decided.
	Overruled string `json:"overruled,omitempty"`
}

// What decides the health of a worker.
const (
	ByHeartbeat = "heartbeat"
	ByBroker    = "broker"
	ByStatus    = "status"
)

// Gone reports that the worker is silent or does not consume its queue.
func (v Assessment) Gone() bool { return v.Health == WorkerStale || v.Health == WorkerDeaf }

// Assess evaluates a worker at the database time of its reading: later it would seem silent only
// because it was not read. q is its queue on the broker; without it the engine's last probe counts.
func (w Worker) Assess(at time.Time, staleAfter time.Duration, q *BrokerQueue) Assessment {
	v := w.assess(at, staleAfter, q)
	if v.By != ByStatus && v.Gone() {
		v.Overruled = w.Status
	}
	return v
}

func (w Worker) assess(at time.Time, staleAfter time.Duration, q *BrokerQueue) Assessment {
	health, reason := w.HealthInForce()
	switch {
	case w.Draining && !w.silent(at, staleAfter):
		// Draining by itself or by an operator; in the first case the status is inactive as well.
		return Assessment{Health: WorkerDraining, By: ByStatus}
	case w.Status == "inactive" || w.Status == "error":
		return Assessment{Health: WorkerInactive, By: ByStatus, Why: cmp.Or(w.Unable(), "status "+w.Status)}
	case w.silent(at, staleAfter):
		return Assessment{Health: WorkerStale, By: ByHeartbeat, Why: w.silence(at, staleAfter)}
	case w.SuspectSince != nil: // the engine knows more about the queue
		return Assessment{
			Health: WorkerSuspect, By: ByBroker,
			Why: "no new work: " + cmp.Or(w.SuspectReason, "its queue took nothing"),
		}
	}
	if why := w.deaf(at, q); why != "" {
		return Assessment{Health: WorkerDeaf, By: ByBroker, Why: why}
	}
	switch {
	case w.Cordoned:
		return Assessment{Health: WorkerCordoned, By: ByStatus, Why: w.CordonReason}
	case health == "unhealthy":
		return Assessment{Health: WorkerUnhealthy, Why: reason}
	case w.Assigned != nil && w.Capacity != nil && *w.Assigned >= *w.Capacity:
		return Assessment{Health: WorkerBusy}
	case health == "degraded":
		return Assessment{Health: WorkerDegraded, Why: reason}
	default:
		return Assessment{Health: WorkerActive}
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

// startGrace is how much older than a start observations may be: the broker counts consumers every 5
// seconds.
const startGrace = 15 * time.Second

// Outdated reports whether an observation may be older than the worker's consumer.
func (w Worker) Outdated(observed time.Time) bool {
	return !w.Registered.IsZero() && observed.Sub(w.Registered) < startGrace
}

// beat says when the last heartbeat came: the process may have ended since.
func (w Worker) beat(at time.Time) string {
	if w.Heartbeat == nil {
		return "no heartbeat yet"
	}
	return "last heartbeat " + phrase.Since(*w.Heartbeat, at) + " ago"
}

// deaf says why no dispatch reaches a worker with heartbeats; empty if it consumes or if that is
// unknown.
func (w Worker) deaf(at time.Time, q *BrokerQueue) string {
	switch p := w.Probe; {
	case q != nil && !q.Uncounted && q.Consumers == 0:
		if w.Outdated(at) {
			return ""
		}
		return w.beat(at) + ", but queue " + q.Name + " has no consumer"
	case q != nil && !q.Uncounted, p == nil || !p.Valid || w.Outdated(p.At):
		return ""
	case p.QueueExists != nil && !*p.QueueExists:
		return w.beat(at) + ", but it has no queue " + WorkerQueue(w.ID)
	case p.Consumers != nil && *p.Consumers == 0:
		return w.beat(at) + ", but queue " + WorkerQueue(w.ID) + " has no consumer"
	default:
		return ""
	}
}

// Missed counts the heartbeats missed since the last; 0 if none ever came.
func (w Worker) Missed(at time.Time, every time.Duration) int64 {
	if w.Heartbeat == nil || every <= 0 {
		return 0
	}
	return max(0, int64(at.Sub(*w.Heartbeat)/every))
}

// WorkerQueues are the queues of workers by worker.
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

// WorkerQueue is the queue of a worker; nil if the broker does not have it or did not answer.
func (b *Broker) WorkerQueue(worker int64) *BrokerQueue {
	if q, ok := b.Queue(WorkerQueue(worker)); ok {
		return &q
	}
	return nil
}
