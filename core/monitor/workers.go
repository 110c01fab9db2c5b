package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Workers reads the registered workers, the active ones before the inactive.
// Sensors are left out: they take no executions.
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

func ReadWorkers(ctx context.Context, tx *store.Tx, s Shape) ([]Worker, bool, error) {
	read := readOwnWorkers
	if !s.Ours {
		read = readPublishedWorkers
	}
	list, err := read(ctx, tx)
	if err != nil {
		return nil, false, fmt.Errorf("list workers: %w", err)
	}
	return list[:min(len(list), WorkerLimit)], len(list) > WorkerLimit, nil
}

func readOwnWorkers(ctx context.Context, tx *store.Tx) ([]Worker, error) {
	rows, err := tx.MonitorWorkers(ctx, WorkerLimit+1)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	probes, err := ReadProbes(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	list := make([]Worker, len(rows))
	for i, r := range rows {
		list[i] = Worker{
			ID: r.ID, Name: r.Name, Role: r.Role, Host: text(r.Host), Status: r.Status, Heartbeat: r.LastHeartbeat,
			Cordoned: r.Cordoned, CordonReason: text(r.CordonReason), Draining: r.Draining, Assigned: wide(r.Assigned),
			Capacity: capacity(r.Capacity), Runtimes: runtimes(r.Runtimes), Version: r.Version, Created: r.Created,
			SuspectSince: moment(r.SuspectSince), SuspectReason: r.SuspectReason, Probe: probes[r.ID],
			Registered: registered(r.Created, r.Registered),
		}
	}
	return list, nil
}

func readPublishedWorkers(ctx context.Context, tx *store.Tx) ([]Worker, error) {
	rows, err := tx.MonitorPublishedWorkers(ctx, WorkerLimit+1)
	if err != nil {
		return nil, err
	}
	list := make([]Worker, len(rows))
	for i, r := range rows {
		list[i] = Worker{
			ID: r.ID, Name: r.Name, Role: r.Role, Host: text(r.Host), Status: r.Status, Heartbeat: r.LastHeartbeat,
			Cordoned: r.Cordoned, CordonReason: text(r.CordonReason), Capacity: capacity(r.Capacity),
			Runtimes: runtimes(r.Runtimes), Version: r.Version, Created: r.Created, Registered: r.Created,
		}
	}
	return list, nil
}

// moment is a time of the database, or nil for the epoch, which stands for none.
func moment(t time.Time) *time.Time {
	if t.Unix() == 0 {
		return nil
	}
	return &t
}

// registered is when a worker registered last: by its announcement in seconds since
// 1970, and without one when its row was made.
func registered(created time.Time, announced float64) time.Time {
	at := time.UnixMilli(int64(min(max(announced, 0), 1e11) * 1000))
	if at.Before(created) {
		return created
	}
	return at
}

// capacity is what a worker announces, or nil when it announces no number.
func capacity(announced float64) *int64 {
	if announced < 0 {
		return nil
	}
	n := int64(announced)
	return &n
}

// runtimes reads the announced runtimes; anything but a list of names is none.
func runtimes(document string) []string {
	var names []string
	if err := json.Unmarshal([]byte(document), &names); err != nil {
		return nil
	}
	return names
}

// JudgeAt judges by what the database alone says.
func (m *Monitor) JudgeAt(at time.Time) func(*Worker) WorkerHealth {
	return func(w *Worker) WorkerHealth { return w.Health(at, m.cfg.StaleAfter) }
}

func SumWorkers(list []Worker, judge func(*Worker) WorkerHealth) WorkerTotals {
	var t WorkerTotals
	for i := range list {
		w := &list[i]
		t.Total++
		switch judge(w) {
		case WorkerStale:
			t.Stale++
		case WorkerDeaf:
			t.Deaf++
		case WorkerSuspect:
			t.Suspect++
		case WorkerUnhealthy:
			t.Unhealthy++
		case WorkerInactive:
			t.Inactive++
		case WorkerDraining, WorkerCordoned:
			t.Cordoned++
		case WorkerBusy:
			t.Busy++
			t.slots(w)
		case WorkerDegraded:
			t.Degraded++
			t.slots(w)
		case WorkerActive:
			t.Active++
			t.slots(w)
		}
	}
	return t
}

// slots counts the slots of a worker that is given work.
func (t *WorkerTotals) slots(w *Worker) {
	if w.Assigned != nil {
		t.Assigned += *w.Assigned
	}
	if w.Capacity != nil {
		t.Capacity += *w.Capacity
	}
}

var healthOrder = []WorkerHealth{
	WorkerStale, WorkerDeaf, WorkerSuspect, WorkerUnhealthy, WorkerDegraded, WorkerDraining, WorkerCordoned, WorkerBusy, WorkerActive, WorkerInactive,
}

// UnwellFirst picks the workers that the overview shows.
func UnwellFirst(list []Worker, judge func(*Worker) WorkerHealth) []Worker {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b Worker) int {
		return slices.Index(healthOrder, judge(&a)) - slices.Index(healthOrder, judge(&b))
	})
	return sorted[:min(len(sorted), TopRows)]
}

// WorkerProbe is what the engine saw of a worker when it last looked.
type WorkerProbe struct {
	At time.Time `json:"at"`
	// Verdict is fresh, suspect, dead, cordoned or draining, since Since; Reason
	// says why and may be empty.
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since"`
	// Health is healthy, degraded, unhealthy or unknown.
	Health       string `json:"health"`
	HealthReason string `json:"health_reason,omitempty"`
	// RTT is how long the broker took to tell of the worker's queue.
	RTT *time.Duration `json:"rtt_ns"`
	// QueueExists, Consumers and Ready are of the worker's queue; nil when the
	// broker could not be asked.
	QueueExists *bool  `json:"queue_exists"`
	Consumers   *int64 `json:"consumers"`
	Ready       *int64 `json:"ready"`
	// Oldest is since when the oldest execution lies at the worker unstarted.
	Oldest *time.Time `json:"oldest"`
	// Failures counts the looks in a row that found the queue missing or not
	// consumed.
	Failures int64 `json:"failures"`
	// Skew is by how much the worker's clock is ahead of the database's; nil when
	// that is not known.
	Skew *time.Duration `json:"skew_ns"`
	// EndpointRTT is how long the worker's health endpoint took to answer, and
	// EndpointError what is wrong with it; nil and empty where it offers none.
	EndpointRTT   *time.Duration `json:"endpoint_rtt_ns"`
	EndpointError string         `json:"endpoint_error,omitempty"`
	// Valid is false when nobody has looked for too long: then the health counts
	// for nothing.
	Valid bool `json:"valid"`
}

// HealthInForce is the health that placement goes by; empty if nothing is known.
func (w Worker) HealthInForce() (health, reason string) {
	if w.Probe == nil || !w.Probe.Valid {
		return "", ""
	}
	return w.Probe.Health, w.Probe.HealthReason
}

// ReadProbes reads what was seen of workers; none where the schema has no place
// for it.
func ReadProbes(ctx context.Context, tx *store.Tx, workers []int64) (map[int64]*WorkerProbe, error) {
	recorded, err := tx.MonitorProbeTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for what was seen of workers: %w", err)
	}
	if !recorded || len(workers) == 0 {
		return nil, nil
	}
	rows, err := tx.MonitorProbes(ctx, workers)
	if err != nil {
		return nil, fmt.Errorf("read what was seen of %d workers: %w", len(workers), err)
	}
	seen := make(map[int64]*WorkerProbe, len(rows))
	for _, r := range rows {
		p := &WorkerProbe{
			At: r.At, Verdict: r.Verdict, Reason: r.Reason, Since: r.Since, Health: r.Health, HealthReason: r.HealthReason,
			RTT: span64(r.RttMs, time.Millisecond), QueueExists: r.QueueExists, Consumers: wide(r.Consumers), Ready: wide(r.Ready),
			Oldest: r.Oldest, Failures: int64(r.Failures), Skew: span64(r.SkewSeconds, time.Second),
			EndpointError: r.EndpointError, Valid: r.Valid,
		}
		if r.EndpointMs >= 0 {
			p.EndpointRTT = span64(&r.EndpointMs, time.Millisecond)
		}
		seen[r.Worker] = p
	}
	return seen, nil
}

// span64 is a number of units as a duration, or nil.
func span64(n *float64, unit time.Duration) *time.Duration {
	if n == nil {
		return nil
	}
	d := time.Duration(*n * float64(unit))
	return &d
}
