package worker

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/placement"
)

// Limits of a worker's report about its health.
const (
	vitalsWindow = 10 * time.Minute // older ends are dropped, so that a burst of failures fades
	vitalsMost   = 200              // remembered ends
	vitalsPause  = time.Minute      // between reports while the status is the same: each is a row of the history
	depthTimeout = time.Second
	depthPause   = vitalsPause / 2
)

// vitals remembers the latest ends of executions, except cancelled ones and ones that the worker's
// stop interrupted.
type vitals struct {
	now   func() time.Time
	depth func(ctx context.Context) (int, bool) // length of its queue, if known
	// trouble is why the worker cannot start actions, empty if it can.
	trouble func() string

	mu       sync.Mutex
	endings  []vital   // oldest first; guarded by mu
	ended    int       // since the start; guarded by mu
	waiting  int       // as last read; guarded by mu
	readAt   time.Time // when waiting was read; guarded by mu
	reported placement.Report
	at       time.Time // of the last report
}

type vital struct {
	at     time.Time
	took   time.Duration
	action string
	failed bool
}

// end records the end of an execution that this worker ran.
func (v *vitals) end(status lifecycle.Status, action string, took time.Duration) {
	if v == nil {
		return
	}
	failed := status == lifecycle.StatusFailed || status == lifecycle.StatusTimeout
	if !failed && status != lifecycle.StatusCompleted {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended++
	v.endings = append(v.endings, vital{at: v.now(), took: took, action: action, failed: failed})
	v.forget()
}

// forget drops ends that are too old or too many.
func (v *vitals) forget() {
	drop := max(len(v.endings)-vitalsMost, 0)
	oldest := v.now().Add(-vitalsWindow)
	for drop < len(v.endings) && v.endings[drop].at.Before(oldest) {
		drop++
	}
	v.endings = append(v.endings[:0], v.endings[drop:]...)
}

// report summarizes the remembered ends.
func (v *vitals) report() placement.Report {
	trouble := ""
	if v.trouble != nil {
		trouble = v.trouble()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget()
	now := v.now()
	r := placement.Report{
		Trouble: trouble, Total: len(v.endings), Ended: v.ended, QueueDepth: v.waiting,
		LastCheck: now.UTC().Format(time.RFC3339),
	}
	actions := map[string]bool{}
	var took, idle time.Duration
	for _, e := range v.endings {
		took += e.took
		idle = now.Sub(e.at)
		if !e.failed {
			r.InARow = 0
			continue
		}
		r.Failed++
		r.InARow++
		actions[e.action], r.Action = true, e.action
	}
	if r.Actions = len(actions); r.Actions > 1 {
		r.Action = ""
	}
	if r.Total > 0 {
		r.AverageMS = float64((took / time.Duration(r.Total)).Microseconds()) / 1e3
	}
	r.Status, _ = placement.DocumentedLimits().Evaluate(placement.Signs{
		Report: r, Numbers: true, Ready: -1,
		Unchanged: idle,
	})
	return r
}

// due is the next report as JSON, or nil if nothing changed.
func (v *vitals) due(ctx context.Context) ([]byte, error) {
	v.readDepth(ctx)
	r := v.report()
	v.mu.Lock()
	defer v.mu.Unlock()
	since := v.now().Sub(v.at)
	last := v.reported
	last.LastCheck = r.LastCheck
	if r == last || r.Status == last.Status && since < vitalsPause || r.Ended == 0 && r.Status == placement.Healthy &&
		last.Status == "" {
		return nil, nil
	}
	v.reported, v.at = r, v.now()
	return json.Marshal(r)
}

// unreported makes the next report due, because the last could not be written.
func (v *vitals) unreported() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reported, v.at = placement.Report{}, time.Time{}
}

func (v *vitals) readDepth(ctx context.Context) {
	v.mu.Lock()
	due := v.depth != nil && v.now().Sub(v.readAt) >= depthPause
	if due {
		v.readAt = v.now()
	}
	v.mu.Unlock()
	if !due {
		return
	}
	if n, ok := v.depth(ctx); ok {
		v.mu.Lock()
		v.waiting = n
		v.mu.Unlock()
	}
}

// queueDepth reads the length of a queue. It does not wait for an unreachable broker.
func queueDepth(b *broker.Broker, queue func() string) func(ctx context.Context) (int, bool) {
	return func(ctx context.Context) (int, bool) {
		if b.State() != broker.StateConnected {
			return 0, false
		}
		ctx, cancel := context.WithTimeout(ctx, depthTimeout)
		defer cancel()
		state, err := b.QueueState(ctx, queue())
		return state.Ready, err == nil && state.Exists
	}
}
