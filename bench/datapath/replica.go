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

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/spread"
	"github.com/attune-go/attune/core/store"
)

// tally is what all replicas have done together.
type tally struct {
	mu       sync.Mutex
	released int             // slots given back; guarded by mu
	ended    int             // executions that the engine ended itself; guarded by mu
	enqueued int             // executions that had to wait; guarded by mu
	failed   int             // batches that failed and were delivered again; guarded by mu
	rounds   []time.Duration // guarded by mu
	sizes    []int           // executions a batch; guarded by mu
	progress chan struct{}   // holds a token after every batch
	refused  map[string]int  // failed batches by their class; guarded by mu
	last     error           // of the last failed batch; guarded by mu
}

func newTally() *tally {
	return &tally{progress: make(chan struct{}, 1), refused: make(map[string]int)}
}

func (t *tally) add(result scheduler.Result, size int, took time.Duration) {
	t.mu.Lock()
	t.released += result.Released
	t.ended += result.Ended
	t.enqueued += result.Enqueued
	t.rounds = append(t.rounds, took)
	t.sizes = append(t.sizes, size)
	t.mu.Unlock()
	t.signal()
}

func (t *tally) addReleased(n int) {
	t.mu.Lock()
	t.released += n
	t.mu.Unlock()
	t.signal()
}

func (t *tally) took(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rounds = append(t.rounds, d)
	t.sizes = append(t.sizes, 1)
}

func (t *tally) signal() {
	select {
	case t.progress <- struct{}{}:
	default:
	}
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed++
	t.refused[store.ClassOf(err).String()]++
	t.last = err
}

// done is how many executions have come to their end.
func (t *tally) done() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.released + t.ended
}

// forget drops what was tallied before the measurement.
func (t *tally) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.released, t.ended, t.enqueued, t.failed = 0, 0, 0, 0
	t.rounds, t.sizes = nil, nil
	clear(t.refused)
}

// replica is one engine: a reader that spreads deliveries over lanes, in the shape of
// core/engine.
type replica struct {
	rounds   *scheduler.Scheduler
	wire     *wire
	tally    *tally
	batch    int  // requests a batch; twice as many completions
	careless bool // failed batches are part of the measurement

	lanes   []*lane
	settled chan struct{} // holds a token when the replica may be given more
	alarm   *time.Timer   // rings when a queue may go on
}

// lane runs batches about the messages of its actions: completions first, then requests,
// whatever has arrived, as one batch.
type lane struct {
	*replica

	ended     *spread.Box[note]
	requested *spread.Box[note]
	unfilled  *spread.Box[int64]
	rings     <-chan time.Time // nil but for the first one

	inHand [2]atomic.Int64 // deliveries with a report of an end, with a request

	held   [2][]note     // left because another batch held the queue: with a report of an end, with a request
	left   map[int64]int // how often, by execution
	queues map[int64]int // queues to fill that another batch held, with how often
}

// insistAfter is how often an execution is left before its queue is waited for.
const insistAfter = 3

func newReplica(w *world, lanes int) *replica {
	r := &replica{
		wire: w.wire, tally: w.tally, batch: w.scenario.Batch, careless: w.scenario.Aborts > 0,
		settled: make(chan struct{}, 1), alarm: time.NewTimer(time.Hour),
	}
	for i := range lanes {
		s := &lane{replica: r, ended: spread.NewBox[note](), requested: spread.NewBox[note](),
			unfilled: spread.NewBox[int64]()}
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

// receive spreads deliveries over the lanes, no more than the engine's prefetch.
func (r *replica) receive(ctx context.Context) {
	most := (len(r.lanes) + 1) * r.batch
	for ctx.Err() == nil {
		rooms := [2]int{2*most - r.inHand(0), most - r.inHand(1)}
		var wakes [2]<-chan struct{}
		taken := 0
		for kind, from := range [2]*spread.Box[note]{r.wire.completed, r.wire.requested} {
			if rooms[kind] <= 0 {
				continue
			}
			wakes[kind] = from.Wake()
			for _, n := range from.Take(rooms[kind]) {
				s := r.lanes[spread.Of(n.actionRef, len(r.lanes))]
				s.inHand[kind].Add(1)
				[2]*spread.Box[note]{s.ended, s.requested}[kind].Put(n)
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
		if err := l.round(ctx, ended, requested, queues); err != nil {
			return over(ctx, err)
		}
	}
}

// maxFailures bounds the batches that may fail when failures are not part of
// the measurement; they are reported.
const maxFailures = 100

func (l *lane) round(ctx context.Context, ended, requested []note, queues []int64) error {
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
	releases := scheduler.NewCompletionStep(scheduler.CompletionConfig{}, reports(ended))
	requests := scheduler.NewRequestStep(once(requested)).WithHints(hints(requested))
	result, err := l.rounds.RunSparing(ctx, insists, releases, fill, requests)
	if err == nil {
		for i, queue := range result.Unfilled {
			l.lanes[spread.Of(result.UnfilledOf[i], len(l.lanes))].unfilled.Put(queue)
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
	l.tally.fail(err)
	if !l.careless && l.tally.failures() > maxFailures {
		return fmt.Errorf("too many rounds fail: %w", err)
	}
	// As a broker does with what is not acknowledged: to whoever takes next.
	l.held, l.left, l.queues = [2][]note{}, nil, nil
	l.unfilled.Put(queues...)
	l.settle(len(ended), len(requested))
	l.wire.completed.Put(ended...)
	l.wire.requested.Put(requested...)
	return nil
}

// insists are the executions of one action that were left too often.
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

// settle lets as many further deliveries in.
func (l *lane) settle(ended, requested int) {
	l.inHand[0].Add(int64(-ended))
	l.inHand[1].Add(int64(-requested))
	select {
	case l.settled <- struct{}{}:
	default:
	}
}

// keep takes what was left into hand. What is left when nothing was served is insisted
// on by the next batch.
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

func (t *tally) failures() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// reports are notes of ends, each execution once. They name the action, as reports of workers do.
func reports(notes []note) []scheduler.Report {
	list := make([]scheduler.Report, 0, len(notes))
	seen := make(map[int64]struct{}, len(notes))
	for _, n := range notes {
		if _, again := seen[n.execution]; !again {
			seen[n.execution] = struct{}{}
			list = append(list, scheduler.Report{Execution: n.execution, ActionRef: n.actionRef})
		}
	}
	return list
}

// hints are what requests say of their executions.
func hints(notes []note) map[int64]scheduler.Hint {
	said := make(map[int64]scheduler.Hint, len(notes))
	for _, n := range notes {
		said[n.execution] = scheduler.Hint{ActionRef: n.actionRef}
	}
	return said
}

// once are the executions of notes, each once and in their order.
func once(notes []note) []int64 {
	ids := make([]int64, 0, len(notes))
	seen := make(map[int64]struct{}, len(notes))
	for _, n := range notes {
		if _, again := seen[n.execution]; !again {
			seen[n.execution] = struct{}{}
			ids = append(ids, n.execution)
		}
	}
	return ids
}
