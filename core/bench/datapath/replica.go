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

	"github.com/attune-go/attune/core/completion"
	"github.com/attune-go/attune/core/dispatch"
	"github.com/attune-go/attune/core/handover"
	"github.com/attune-go/attune/core/spread"
	"github.com/attune-go/attune/core/store"
)

// tally is what all replicas have done together.
type tally struct {
	mu       sync.Mutex
	released int             // slots given back; guarded by mu
	ended    int             // executions that the engine ended itself; guarded by mu
	enqueued int             // executions that had to wait; guarded by mu
	failed   int             // rounds that failed and were delivered again; guarded by mu
	rounds   []time.Duration // guarded by mu
	sizes    []int           // executions a round; guarded by mu
	progress chan struct{}   // holds a token after every round
	refused  map[string]int  // failed rounds by their class; guarded by mu
	last     error           // of the last failed round; guarded by mu
}

func newTally() *tally {
	return &tally{progress: make(chan struct{}, 1), refused: make(map[string]int)}
}

func (t *tally) add(result handover.Result, size int, took time.Duration) {
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

// replica is one engine: a reader that spreads deliveries over schedulers, in the shape of
// core/engine.
type replica struct {
	rounds   *handover.HandOver
	wire     *wire
	tally    *tally
	batch    int  // requests a round; twice as many completions
	careless bool // failed rounds are part of the measurement

	schedulers []*scheduler
	settled    chan struct{} // holds a token when the replica may be given more
	alarm      *time.Timer   // rings when a queue may go on
}

// scheduler runs rounds about the messages of its actions: completions first, then requests,
// whatever has arrived, as one round.
type scheduler struct {
	*replica

	ended     *spread.Box[note]
	requested *spread.Box[note]
	unfilled  *spread.Box[int64]
	rings     <-chan time.Time // nil but for the first one

	inHand [2]atomic.Int64 // deliveries with a report of an end, with a request

	held   [2][]note     // left because another round held the queue: with a report of an end, with a request
	left   map[int64]int // how often, by execution
	queues map[int64]int // queues to fill that another round held, with how often
}

// insistAfter is how often an execution is left before its queue is waited for.
const insistAfter = 3

func newReplica(w *world, schedulers int) *replica {
	r := &replica{
		wire: w.wire, tally: w.tally, batch: w.scenario.Batch, careless: w.scenario.Aborts > 0,
		settled: make(chan struct{}, 1), alarm: time.NewTimer(time.Hour),
	}
	for i := range schedulers {
		s := &scheduler{replica: r, ended: spread.NewBox[note](), requested: spread.NewBox[note](), unfilled: spread.NewBox[int64]()}
		if i == 0 {
			s.rings = r.alarm.C
		}
		r.schedulers = append(r.schedulers, s)
	}
	return r
}

func (r *replica) run(ctx context.Context) error {
	defer r.alarm.Stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { r.receive(ctx); return nil })
	for _, s := range r.schedulers {
		group.Go(func() error { return s.run(ctx) })
	}
	return group.Wait()
}

// receive spreads deliveries over the schedulers, no more than the engine's prefetch.
func (r *replica) receive(ctx context.Context) {
	most := (len(r.schedulers) + 1) * r.batch
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
				s := r.schedulers[spread.Of(n.actionRef, len(r.schedulers))]
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
	for _, s := range r.schedulers {
		n += int(s.inHand[kind].Load())
	}
	return n
}

func (s *scheduler) run(ctx context.Context) error {
	for {
		due := false
		if len(s.held[0])+len(s.held[1])+len(s.queues) == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-s.ended.Wake():
			case <-s.requested.Wake():
			case <-s.unfilled.Wake():
			case <-s.rings:
				due = true
			}
		}
		ended := slices.Concat(s.held[0], s.ended.Take(2*s.batch))
		requested := slices.Concat(s.held[1], s.requested.Take(s.batch))
		queues := s.unfilled.Take(math.MaxInt)
		for queue := range s.queues {
			queues = append(queues, queue)
		}
		slices.Sort(queues)
		queues = slices.Compact(queues)
		if len(ended)+len(requested)+len(queues) == 0 && !due {
			continue
		}
		if err := s.round(ctx, ended, requested, queues); err != nil {
			return over(ctx, err)
		}
	}
}

// maxFailures bounds the rounds that may fail when failures are not part of
// the measurement; they are reported.
const maxFailures = 100

func (s *scheduler) round(ctx context.Context, ended, requested []note, queues []int64) error {
	begun := time.Now()
	insists := s.insists()
	var fill handover.Fill
	for _, queue := range queues {
		if s.queues[queue] >= insistAfter && len(fill.Queues) == 0 {
			fill.Queues = append(fill.Queues, queue)
		} else {
			fill.Spare = append(fill.Spare, queue)
		}
	}
	result, err := s.rounds.RunSparing(ctx, insists, completion.New(once(ended)), fill, dispatch.New(once(requested)))
	if err == nil {
		for i, queue := range result.Unfilled {
			s.schedulers[spread.Of(result.UnfilledOf[i], len(s.schedulers))].unfilled.Put(queue)
		}
		s.keep(result, ended, requested, len(queues))
		if result.Wake > 0 {
			s.alarm.Reset(result.Wake)
		}
		s.settle(len(ended)-len(s.held[0]), len(requested)-len(s.held[1]))
		s.tally.add(result, len(ended)+len(requested), time.Since(begun))
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	s.tally.fail(err)
	if !s.careless && s.tally.failures() > maxFailures {
		return fmt.Errorf("too many rounds fail: %w", err)
	}
	// As a broker does with what is not acknowledged: to whoever takes next.
	s.held, s.left, s.queues = [2][]note{}, nil, nil
	s.unfilled.Put(queues...)
	s.settle(len(ended), len(requested))
	s.wire.completed.Put(ended...)
	s.wire.requested.Put(requested...)
	return nil
}

// insists are the executions of one action that were left too often.
func (s *scheduler) insists() map[int64]bool {
	action, most := "", 0
	notes := slices.Concat(s.held[0], s.held[1])
	for _, n := range notes {
		if times := s.left[n.execution]; times >= insistAfter && times > most {
			action, most = n.actionRef, times
		}
	}
	ids := make(map[int64]bool)
	for _, n := range notes {
		if n.actionRef == action && s.left[n.execution] >= insistAfter {
			ids[n.execution] = true
		}
	}
	return ids
}

// settle lets as many further deliveries in.
func (s *scheduler) settle(ended, requested int) {
	s.inHand[0].Add(int64(-ended))
	s.inHand[1].Add(int64(-requested))
	select {
	case s.settled <- struct{}{}:
	default:
	}
}

// keep takes what was left into hand. What is left when nothing was served is insisted
// on by the next round.
func (s *scheduler) keep(result handover.Result, ended, requested []note, queues int) {
	left := make(map[int64]int, len(result.Left))
	for _, id := range result.Left {
		left[id] = s.left[id] + 1
	}
	of := func(notes []note) []note {
		return slices.DeleteFunc(slices.Clone(notes), func(n note) bool { return left[n.execution] == 0 })
	}
	s.held = [2][]note{of(ended), of(requested)}
	waited := make(map[int64]int, len(result.Held))
	for _, queue := range result.Held {
		waited[queue] = s.queues[queue] + 1
	}
	if len(s.held[0])+len(s.held[1]) == len(ended)+len(requested) && len(waited) == queues {
		for id := range left {
			left[id] = max(left[id], insistAfter)
		}
		for queue := range waited {
			waited[queue] = max(waited[queue], insistAfter)
		}
	}
	s.left, s.queues = left, waited
}

func (t *tally) failures() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
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
