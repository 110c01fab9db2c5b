package datapath

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
)

// tally sums up the work of all replicas.
type tally struct {
	mu       sync.Mutex
	released int             // released slots; guarded by mu
	ended    int             // executions that the engine ended; guarded by mu
	enqueued int             // executions that had to wait; guarded by mu
	failed   int             // failed batches, whose messages were redelivered; guarded by mu
	batches  []time.Duration // guarded by mu
	sizes    []int           // executions of a batch; guarded by mu
	progress chan struct{}   // holds a token after every batch
}

func newTally() *tally { return &tally{progress: make(chan struct{}, 1)} }

func (t *tally) add(result scheduler.Result, size int, took time.Duration) {
	t.mu.Lock()
	t.released += result.Released
	t.ended += result.Ended
	t.enqueued += result.Enqueued
	t.batches = append(t.batches, took)
	t.sizes = append(t.sizes, size)
	t.mu.Unlock()
	select {
	case t.progress <- struct{}{}:
	default:
	}
}

// fail counts a failed batch and returns the number of them.
func (t *tally) fail() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed++
	return t.failed
}

// done returns the number of ended executions.
func (t *tally) done() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.released + t.ended
}

// reset discards the sums of the warm-up.
func (t *tally) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.released, t.ended, t.enqueued, t.failed, t.batches, t.sizes = 0, 0, 0, 0, nil, nil
}

// replica is one engine: a reader that distributes deliveries over lanes, like core/engine.
type replica struct {
	scheduler *scheduler.Scheduler
	wire      *wire
	tally     *tally
	batch     int  // requests of a batch; twice as many completions
	tolerant  bool // failed batches are part of the measurement

	lanes   []*lane
	settled chan struct{} // holds a token when the replica may receive more
	alarm   *time.Timer   // fires when a queue may continue
}

// lane runs batches over the messages of its actions: completions first, then requests.
type lane struct {
	*replica

	ended     *engine.Box[note]
	requested *engine.Box[note]
	unfilled  *engine.Box[int64]
	rings     <-chan time.Time // nil but for the first one

	inHand [2]atomic.Int64 // unsettled completions and requests

	held   [2][]note     // completions and requests postponed because another batch held the queue
	left   map[int64]int // how often each execution was postponed
	queues map[int64]int // queues to fill that another batch held, with how often
}

// insistAfter is how often an execution is postponed before a batch waits for its queue.
const insistAfter = 3

func newReplica(w *world, lanes int) *replica {
	r := &replica{
		wire: w.wire, tally: w.tally, batch: w.scenario.Batch, tolerant: w.scenario.Aborts > 0,
		settled: make(chan struct{}, 1), alarm: time.NewTimer(time.Hour),
	}
	for i := range lanes {
		s := &lane{
			replica: r, ended: engine.NewBox[note](), requested: engine.NewBox[note](),
			unfilled: engine.NewBox[int64](),
		}
		if i == 0 {
			s.rings = r.alarm.C
		}
		r.lanes = append(r.lanes, s)
	}
	return r
}

func (r *replica) run(ctx context.Context) error {
	defer r.alarm.Stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { r.receive(ctx); return nil })
	for _, s := range r.lanes {
		group.Go(func() error { return s.run(ctx) })
	}
	return group.Wait()
}

// receive distributes deliveries over the lanes, up to the engine's prefetch.
func (r *replica) receive(ctx context.Context) {
	most := (len(r.lanes) + 1) * r.batch
	for ctx.Err() == nil {
		rooms := [2]int{2*most - r.inHand(0), most - r.inHand(1)}
		var wakes [2]<-chan struct{}
		taken := 0
		for kind, from := range [2]*engine.Box[note]{r.wire.completed, r.wire.requested} {
			if rooms[kind] <= 0 {
				continue
			}
			wakes[kind] = from.Wake()
			for _, n := range from.Take(rooms[kind]) {
				s := r.lanes[engine.LaneOf(n.actionRef, len(r.lanes))]
				s.inHand[kind].Add(1)
				[2]*engine.Box[note]{s.ended, s.requested}[kind].Put(n)
				taken++
			}
		}
		if taken > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-wakes[0]:
		case <-wakes[1]:
		case <-r.settled:
		}
	}
}

func (r *replica) inHand(kind int) (n int) {
	for _, s := range r.lanes {
		n += int(s.inHand[kind].Load())
	}
	return n
}

func (l *lane) run(ctx context.Context) error {
	for {
		due := false
		if len(l.held[0])+len(l.held[1])+len(l.queues) == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-l.ended.Wake():
			case <-l.requested.Wake():
			case <-l.unfilled.Wake():
			case <-l.rings:
				due = true
			}
		}
		ended := slices.Concat(l.held[0], l.ended.Take(2*l.batch))
		requested := slices.Concat(l.held[1], l.requested.Take(l.batch))
		queues := l.unfilled.Take(math.MaxInt)
		for queue := range l.queues {
			queues = append(queues, queue)
		}
		slices.Sort(queues)
		queues = slices.Compact(queues)
		if len(ended)+len(requested)+len(queues) == 0 && !due {
			continue
		}
		if err := l.runBatch(ctx, ended, requested, queues); err != nil {
			return ignoreEnd(ctx, err)
		}
	}
}

// maxFailures bounds the failed batches when failures are not part of the measurement.
const maxFailures = 100

func (l *lane) runBatch(ctx context.Context, ended, requested []note, queues []int64) error {
	begun := time.Now()
	insists := l.insists()
	var fill scheduler.FillStep
	for _, queue := range queues {
		if l.queues[queue] >= insistAfter && len(fill.Queues) == 0 {
			fill.Queues = append(fill.Queues, queue)
		} else {
			fill.Spare = append(fill.Spare, queue)
		}
	}
	var reports []scheduler.Report // like those of workers they name the action and the end
	for _, n := range unique(ended) {
		reports = append(reports, scheduler.Report{
			Execution: n.execution, ActionRef: n.actionRef, Said: lifecycle.StatusCompleted,
		})
	}
	var ids []int64
	hints := map[int64]scheduler.Hint{}
	for _, n := range unique(requested) {
		ids = append(ids, n.execution)
		hints[n.execution] = scheduler.Hint{ActionRef: n.actionRef}
	}
	releases := scheduler.NewCompletionStep(scheduler.CompletionConfig{}, reports)
	requests := scheduler.NewRequestStep(ids).WithHints(hints)
	result, err := l.scheduler.RunSparing(ctx, insists, releases, fill, requests)
	if err == nil {
		for i, queue := range result.Unfilled {
			l.lanes[engine.LaneOf(result.UnfilledOf[i], len(l.lanes))].unfilled.Put(queue)
		}
		l.keep(result, ended, requested, len(queues))
		if result.Wake > 0 {
			l.alarm.Reset(result.Wake)
		}
		l.settle(len(ended)-len(l.held[0]), len(requested)-len(l.held[1]))
		l.tally.add(result, len(ended)+len(requested), time.Since(begun))
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	if failures := l.tally.fail(); !l.tolerant && failures > maxFailures {
		return fmt.Errorf("too many batches failed: %w", err)
	}
	// Like a broker with unacknowledged messages: any replica may receive them again.
	l.held, l.left, l.queues = [2][]note{}, nil, nil
	l.unfilled.Put(queues...)
	l.settle(len(ended), len(requested))
	l.wire.completed.Put(ended...)
	l.wire.requested.Put(requested...)
	return nil
}

// insists returns the executions of one action that were postponed too often.
func (l *lane) insists() map[int64]bool {
	action, most := "", 0
	notes := slices.Concat(l.held[0], l.held[1])
	for _, n := range notes {
		if times := l.left[n.execution]; times >= insistAfter && times > most {
			action, most = n.actionRef, times
		}
	}
	ids := make(map[int64]bool)
	for _, n := range notes {
		if n.actionRef == action && l.left[n.execution] >= insistAfter {
			ids[n.execution] = true
		}
	}
	return ids
}

// settle allows as many further deliveries.
func (l *lane) settle(ended, requested int) {
	l.inHand[0].Add(int64(-ended))
	l.inHand[1].Add(int64(-requested))
	select {
	case l.settled <- struct{}{}:
	default:
	}
}

// keep records the postponed messages. If the batch served none, the next one insists on them.
func (l *lane) keep(result scheduler.Result, ended, requested []note, queues int) {
	left := make(map[int64]int, len(result.Left))
	for _, id := range result.Left {
		left[id] = l.left[id] + 1
	}
	of := func(notes []note) []note {
		return slices.DeleteFunc(slices.Clone(notes), func(n note) bool { return left[n.execution] == 0 })
	}
	l.held = [2][]note{of(ended), of(requested)}
	waited := make(map[int64]int, len(result.Held))
	for _, queue := range result.Held {
		waited[queue] = l.queues[queue] + 1
	}
	if len(l.held[0])+len(l.held[1]) == len(ended)+len(requested) && len(waited) == queues {
		for id := range left {
			left[id] = max(left[id], insistAfter)
		}
		for queue := range waited {
			waited[queue] = max(waited[queue], insistAfter)
		}
	}
	l.left, l.queues = left, waited
}

// unique returns one note of each execution, in their order.
func unique(notes []note) []note {
	seen := make(map[int64]struct{}, len(notes))
	return slices.DeleteFunc(slices.Clone(notes), func(n note) bool {
		_, again := seen[n.execution]
		seen[n.execution] = struct{}{}
		return again
	})
}
