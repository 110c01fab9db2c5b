package datapath

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/message"
)

// job is one dispatch at a worker.
type job struct {
	execution int64
	attempt   int32
	actionRef string
}

// note is a request or a completion.
type note struct {
	execution int64
	actionRef string
}

// wire carries messages between the relays, the replicas and the workers.
type wire struct {
	requested *engine.Box[note]
	completed *engine.Box[note]
	workers   map[int64]*engine.Box[job]

	duplicates float64 // share of requests and completions to deliver twice

	mu         sync.Mutex
	dispatched map[int64]struct{}  // dispatched executions; guarded by mu
	twice      []int64             // executions dispatched again; guarded by mu
	asked      map[int64]time.Time // when a request became visible; nil unless paced; guarded by mu
	waits      []time.Duration     // request visible → dispatch received; guarded by mu
}

func newWire(workers []int64, duplicates float64) *wire {
	w := &wire{
		requested: engine.NewBox[note](), completed: engine.NewBox[note](),
		workers:    make(map[int64]*engine.Box[job], len(workers)),
		duplicates: duplicates, dispatched: make(map[int64]struct{}),
	}
	for _, id := range workers {
		w.workers[id] = engine.NewBox[job]()
	}
	return w
}

// Publish implements outbox.Publisher: every message is confirmed at once.
func (w *wire) Publish(_ context.Context, messages []broker.Message) []broker.Outcome {
	outcomes := make([]broker.Outcome, len(messages))
	var requested []note
	jobs := make(map[int64][]job, len(w.workers))
	for i, m := range messages {
		outcomes[i].Status = broker.Confirmed
		worker, dispatch := message.WorkerOfKey(m.RoutingKey)
		switch {
		case dispatch:
			sent, err := message.Decode[message.Dispatch](m.Body)
			if err != nil {
				outcomes[i] = broker.Outcome{Status: broker.NotSent, Err: fmt.Errorf("read a dispatch: %w", err)}
				continue
			}
			jobs[worker] = append(jobs[worker], job{
				execution: sent.Payload.ExecutionID, attempt: sent.Payload.Attempt,
				actionRef: sent.Payload.ActionRef,
			})
		case m.RoutingKey == message.KeyExecutionRequested:
			sent, err := message.Decode[message.ExecutionRequested](m.Body)
			if err != nil {
				outcomes[i] = broker.Outcome{Status: broker.NotSent, Err: fmt.Errorf("read a request: %w", err)}
				continue
			}
			requested = append(requested, note{execution: sent.Payload.ExecutionID, actionRef: sent.Payload.ActionRef})
		}
	}
	w.record(requested, jobs)
	w.requested.Put(w.repeated(requested)...)
	for worker, list := range jobs {
		if l, ok := w.workers[worker]; ok {
			l.Put(list...)
		}
	}
	return outcomes
}

// record records repeated dispatches and the waits of requests.
func (w *wire) record(requested []note, jobs map[int64][]job) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked != nil {
		for _, n := range requested {
			w.asked[n.execution] = now
		}
	}
	for _, list := range jobs {
		for _, j := range list {
			if _, again := w.dispatched[j.execution]; again {
				w.twice = append(w.twice, j.execution)
			}
			w.dispatched[j.execution] = struct{}{}
			if at, ok := w.asked[j.execution]; ok {
				w.waits = append(w.waits, now.Sub(at))
			}
		}
	}
}

// ended delivers the completions of a worker.
func (w *wire) ended(notes []note) { w.completed.Put(w.repeated(notes)...) }

// repeated appends copies of a share of the messages.
func (w *wire) repeated(notes []note) []note {
	if w.duplicates == 0 {
		return notes
	}
	out := slices.Clone(notes)
	for _, n := range notes {
		if rand.Float64() < w.duplicates { //nolint:gosec // no secret
			out = append(out, n)
		}
	}
	return out
}
