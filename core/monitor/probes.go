package monitor

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/store"
)

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
