package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Found is the result of one sweep.
type Found struct {
	Requested []int64                // executions whose request was lost
	Ended     []int64                // executions to release, or to remove from their queue
	Queues    []int64                // queues to fill
	Expired   []int64                // executions that waited longer than their queue allows
	Misplaced []int64                // executions that wait in a queue that is no longer theirs
	Lost      []scheduler.LostHolder // what deleted executions held
	Unstarted []scheduler.Unstarted
}

// Empty reports whether the sweep found nothing.
func (f *Found) Empty() bool {
	return len(f.Requested)+len(f.Ended)+len(f.Queues)+len(f.Expired)+len(f.Misplaced)+len(f.Lost)+len(f.Unstarted) == 0
}

// routine reports whether the sweep found only blocked queues, which every thorough pass tries even
// if nothing was lost.
func (f *Found) routine() bool {
	others := *f
	others.Queues = nil
	return others.Empty()
}

// Submit passes findings to the batches.
type Submit func(context.Context, Found) error

// submit submits all findings, at most page of each kind at a time.
func (f *Found) submit(ctx context.Context, page int, submit Submit) error {
	for !f.Empty() {
		if err := submit(ctx, f.take(page)); err != nil {
			return err
		}
	}
	return nil
}

// take removes and returns at most n findings of each kind, as many as one batch may have.
func (f *Found) take(n int) Found {
	return Found{
		Requested: takeFirst(&f.Requested, n), Ended: takeFirst(&f.Ended, n), Queues: takeFirst(&f.Queues, n),
		Expired: takeFirst(&f.Expired, n), Misplaced: takeFirst(&f.Misplaced, n), Lost: takeFirst(&f.Lost, n),
		Unstarted: takeFirst(&f.Unstarted, n),
	}
}

func takeFirst[T any](list *[]T, n int) []T {
	n = min(n, len(*list))
	taken := (*list)[:n:n]
	*list = (*list)[n:]
	return taken
}

// Config configures the sweep.
type Config struct {
	// Interval between sweeps. Default 5 s.
	Interval time.Duration
	// RequestAge is how long a requested execution may exist without a queue position before its
	// message counts as lost. Default 30 s.
	RequestAge time.Duration
	// ClaimAge is how long a claim may stay unfinished before it is put back. Default 30 s.
	ClaimAge time.Duration
	// HolderAge is how long an ended execution may hold its slot before its report counts as lost.
	// Default 5 s.
	HolderAge time.Duration
	// QueueTimeout is the timeout of queues whose policies set none; 0 means none.
	QueueTimeout time.Duration
	// Undisturbed is how long queues have been served without a fault of the installation. The
	// waiting time of an execution that waits longer starts there. Nil means for ever.
	Undisturbed func() time.Duration
	// WithoutStats leaves queue_stats unchanged.
	WithoutStats bool
	// Page bounds each kind of finding in one submit. Default 100.
	Page int
}

func (c Config) withDefaults() Config {
	c.Interval = supervise.OrDefault(c.Interval, 5*time.Second)
	c.RequestAge = supervise.OrDefault(c.RequestAge, 30*time.Second)
	c.HolderAge = supervise.OrDefault(c.HolderAge, 5*time.Second)
	c.ClaimAge = supervise.OrDefault(c.ClaimAge, 30*time.Second)
	c.Page = supervise.OrDefault(c.Page, pageDefault)
	if c.Undisturbed == nil {
		c.Undisturbed = func() time.Duration { return math.MaxInt64 }
	}
	return c
}

// pageDefault bounds each kind of finding in one batch.
const pageDefault = 100

// rowsPerSweep bounds the live rows, holders, entries and queues that one sweep reads.
const rowsPerSweep = 20_000

// maxPerQueue bounds the waiting executions of one queue that one sweep reads.
const maxPerQueue = 200

// Sweep finds work whose messages were lost and submits it.
type Sweep struct {
	*supervise.Loop

	cfg    Config
	store  *store.Store
	submit Submit
	logger *slog.Logger

	adopted     bool // no finished_status column: read status instead
	shapeKnown  bool
	afterLost   int64 // page keys; a sweep continues where the last one stopped
	afterEnded  int64
	afterQueue  int64
	afterQueued int64
	afterNote   int64
	afterHolder int64
	afterLeft   int64
	passes      int   // over the queues
	epoch       int64 // of the rules when the pass over the queues began
	thorough    bool  // the pass reads all of them
	sweeps      int
	hurryUntil  atomic.Int64 // unix nanoseconds until which requests of hurryAge count as lost
}

// After messages were lost, requests of this age count as lost, for this long.
const (
	hurryAge = 2 * time.Second
	hurryFor = 15 * time.Second
)

// MessagesLost says that the queue of requests lost its messages: sweeps find their executions
// within seconds, not after RequestAge.
func (s *Sweep) MessagesLost() {
	s.hurryUntil.Store(time.Now().Add(hurryFor).UnixNano())
	s.Wake()
}

// New makes the sweep. It calls submit with the findings, a page at a time. An error of submit
// fails the tick, and the next sweep finds the rest again.
func New(
	cfg Config, st *store.Store, submit Submit, logger *slog.Logger,
	metrics *supervise.Metrics,
) *Sweep {
	s := &Sweep{cfg: cfg.withDefaults(), store: st, submit: submit, logger: logger}
	s.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "recovery", Interval: s.cfg.Interval, Timeout: 30 * time.Second, Jitter: 0.2,
		Tick: s.tick, Logger: logger, Metrics: metrics,
	})
	return s
}

func (s *Sweep) tick(ctx context.Context) error {
	var found Found
	won, err := s.store.Alone(ctx, "recovery", "recovery", func(ctx context.Context, tx *store.Tx) (err error) {
		// A plan cached while the queues were empty would read the whole queue for every row.
		if _, err = tx.Exec(ctx, "SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
			return fmt.Errorf("force custom plans: %w", err)
		}
		found, err = s.find(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("find lost requests and ends: %w", err)
	}
	if !won {
		return nil
	}
	if err := s.repairStats(ctx); err != nil {
		return err
	}
	if found.Empty() {
		return nil
	}
	level := slog.LevelInfo
	if found.routine() {
		level = slog.LevelDebug
	}
	s.logger.Log(ctx, level, "Stranded work found",
		"requested", len(found.Requested), "ended", len(found.Ended), "queues", len(found.Queues),
		"expired", len(found.Expired), "misplaced", len(found.Misplaced), "lost", len(found.Lost), "unstarted",
		len(found.Unstarted))
	return found.submit(ctx, s.cfg.Page, s.submit)
}

func (s *Sweep) find(ctx context.Context, tx *store.Tx) (found Found, err error) {
	if !s.shapeKnown {
		if s.adopted, err = tx.IsAdopted(ctx); err != nil {
			return found, fmt.Errorf("find out whether the database is adopted: %w", err)
		}
		s.shapeKnown = true
	}
	if found.Requested, err = s.lostRequests(ctx, tx); err != nil {
		return found, err
	}
	if found.Ended, err = s.endedHolders(ctx, tx); err != nil {
		return found, err
	}
	if found.Unstarted, err = s.undelivered(ctx, tx); err != nil {
		return found, err
	}
	left, err := s.leaving(ctx, tx)
	if err != nil {
		return found, err
	}
	found.Unstarted = append(found.Unstarted, left...)
	queued, err := tx.FindEndedQueued(ctx, s.afterEnded, rowsPerSweep)
	if err != nil {
		return found, fmt.Errorf("find ended executions in queues: %w", err)
	}
	s.afterEnded = next(queued.Last, queued.Scanned, rowsPerSweep)
	found.Ended = append(found.Ended, queued.Ids...)
	if found.Queues, err = s.unfilled(ctx, tx); err != nil {
		return found, err
	}
	return found, s.misqueued(ctx, tx, &found)
}

// thoroughEvery is how many passes over the queues make one thorough pass.
const thoroughEvery = 12

// unfilled reads one window of queues. After a change of rules, and on thorough passes, it reads
// all blocked queues, because their obstacle may be gone.
func (s *Sweep) unfilled(ctx context.Context, tx *store.Tx) ([]int64, error) {
	if s.afterQueue == 0 {
		epoch, err := tx.ReadAdmissionEpoch(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the version of the rules: %w", err)
		}
		s.thorough, s.epoch = epoch != s.epoch || s.passes%thoroughEvery == 0, epoch
		s.passes++
	}
	queues, err := tx.FindUnfilledQueues(ctx, s.thorough, s.afterQueue, rowsPerSweep)
	if err != nil {
		return nil, fmt.Errorf("find unfilled queues: %w", err)
	}
	s.afterQueue = next(queues.Last, queues.Scanned, rowsPerSweep)
	return queues.Ids, nil
}

// misqueued finds executions that wait too long or in the wrong queue, notes of deleted executions,
// and statistics that batches maintain only in part.
func (s *Sweep) misqueued(ctx context.Context, tx *store.Tx, found *Found) error {
	expired, err := tx.FindExpiredExecutions(ctx, store.FindExpiredExecutionsParams{
		DefaultSeconds: int32(s.cfg.QueueTimeout / time.Second), After: s.afterQueued,
		WindowSize: rowsPerSweep, PerLane: maxPerQueue, UndisturbedSeconds: s.cfg.Undisturbed().Seconds(),
	})
	if err != nil {
		return fmt.Errorf("find executions that waited too long: %w", err)
	}
	misplaced, err := tx.FindMisplacedExecutions(ctx, maxPerQueue, s.afterQueued, rowsPerSweep)
	if err != nil {
		return fmt.Errorf("find executions in the wrong queue: %w", err)
	}
	s.afterQueued = next(expired.Last, expired.Scanned, rowsPerSweep)
	found.Expired, found.Misplaced = expired.Ids, misplaced.Ids
	lost, err := tx.FindLostHolders(ctx, maxPerQueue)
	if err != nil {
		return fmt.Errorf("find the holders of deleted executions: %w", err)
	}
	for _, row := range lost {
		found.Lost = append(found.Lost, scheduler.LostHolder{
			Note: row.ID, Queue: row.StateID, WaitedIn: row.WaitedIn, Worker: row.Worker, Scopes: row.Scopes,
		})
	}
	if s.cfg.WithoutStats {
		return nil
	}
	if err := tx.RefreshOldestQueued(ctx); err != nil {
		return fmt.Errorf("refresh the oldest waiting executions of actions with groups: %w", err)
	}
	return nil
}

// statsEvery is how many sweeps pass between two checks of all queue_stats.
const statsEvery = 12

// repairStats recounts wrong statistics of actions.
func (s *Sweep) repairStats(ctx context.Context) error {
	if s.sweeps++; s.cfg.WithoutStats || s.sweeps%statsEvery != 1 {
		return nil
	}
	actions, err := s.store.FindWrongQueueStats(ctx, maxPerQueue)
	if err != nil {
		return fmt.Errorf("find wrong statistics: %w", err)
	}
	for _, action := range actions {
		err := s.store.Tx(ctx, "statistics", func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.LockActionQueues(ctx, action); err != nil {
				return err
			}
			return tx.SumQueueStats(ctx, action)
		})
		if err != nil {
			return fmt.Errorf("recompute the statistics of action %d: %w", action, err)
		}
		s.logger.WarnContext(ctx, "Statistics of an action recomputed", "action_id", action)
	}
	return nil
}

// next is the start of the next window: after a full one, else the beginning.
func next(last int64, scanned, window int32) int64 {
	if scanned < window {
		return 0
	}
	return last
}

// endedHolders reads one window of slot holders: as many rows as executions run. Holders without an
// execution are released like those of deleted executions.
func (s *Sweep) endedHolders(ctx context.Context, tx *store.Tx) ([]int64, error) {
	holders, err := tx.FindEndedHolders(ctx, s.cfg.HolderAge.Seconds(), s.afterHolder, rowsPerSweep)
	if err != nil {
		return nil, fmt.Errorf("find ended holders: %w", err)
	}
	s.afterHolder = next(holders.Last, holders.Scanned, rowsPerSweep)
	if len(holders.Missing) > 0 {
		if err := tx.NoteMissingHolders(ctx, holders.Missing); err != nil {
			return nil, fmt.Errorf("note %d holders without an execution: %w", len(holders.Missing), err)
		}
	}
	return holders.Ids, nil
}
