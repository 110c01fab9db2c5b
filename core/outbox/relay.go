package outbox

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/gate"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/trace"
)

// Publisher sends messages with confirms; *broker.Publisher is one.
type Publisher interface {
	Publish(ctx context.Context, messages []broker.Message) []broker.Outcome
}

// Config configures a relay.
type Config struct {
	// SweepInterval is the pause between sweeps. Default 2 s.
	SweepInterval time.Duration
	// SweepAge is how long a row may stay unpublished before a sweep claims it. Default 5 s.
	SweepAge time.Duration
	// Lease is how long this relay owns its rows after the last renewal. Default 5 s.
	Lease time.Duration
	// MaxPending bounds the messages in memory. Default 20,000.
	MaxPending int
	// MaxBatch bounds one publish. Default 500.
	MaxBatch int
	// Listen makes the relay claim rows of writers without a relay on notification, on a connection
	// of its own, and not only by a sweep.
	Listen bool
	// FlushTimeout bounds the final publishing in Stop. Default 5 s.
	FlushTimeout time.Duration
	// Gate holds the deletes of published rows, and the consumers of the replica, during a fault of
	// the installation. Nil holds the deletes alone.
	Gate *gate.Gate
	// Traces takes the spans of published messages; nil without tracing.
	Traces trace.Sink
	// Undeliverable decides about messages that reached no queue, in the transaction that settles
	// their row. The messages in taken, by id, leave the outbox with that transaction; the relay
	// retries the others. May be nil.
	Undeliverable func(ctx context.Context, tx *store.Tx, returned []Message) (taken map[string]bool, err error)
}

func (c Config) withDefaults() Config {
	c.SweepInterval = supervise.OrDefault(c.SweepInterval, 2*time.Second)
	c.SweepAge = supervise.OrDefault(c.SweepAge, 5*time.Second)
	c.Lease = supervise.OrDefault(c.Lease, 5*time.Second)
	c.MaxPending = supervise.OrDefault(c.MaxPending, 20_000)
	c.MaxBatch = supervise.OrDefault(c.MaxBatch, 500)
	c.FlushTimeout = supervise.OrDefault(c.FlushTimeout, 5*time.Second)
	return c
}

// Relay publishes outbox rows. If its store names a relay, it owns the rows committed through
// stores with that name: no other relay publishes them while its lease is renewed.
type Relay struct {
	supervise.Base

	cfg       Config
	store     *store.Store
	publisher Publisher
	logger    *slog.Logger
	metrics   *Metrics
	sweep     *supervise.Loop
	owner     uuid.UUID // zero if it owns no rows

	mu      sync.Mutex
	pending []row
	size    int            // messages in pending and in the current batch
	held    map[int64]bool // rows in memory, which this replica's sweep skips
	done    []int64        // confirmed rows to delete
	taken   time.Time      // when a transaction last deleted confirmed rows
	wake    chan struct{}  // something is pending
	delete  chan struct{}  // something is done
	well    atomic.Bool    // the last batch was confirmed
	away    atomic.Bool    // the broker did not answer for the last batch
	lease   lease
}

type row struct {
	id       int64
	messages []Message
	since    time.Time // when this replica received it
	attempts int32
}

// New makes a relay.
func New(cfg Config, st *store.Store, publisher Publisher, logger *slog.Logger, metrics *Metrics) *Relay {
	r := &Relay{
		cfg: cfg.withDefaults(), store: st, publisher: publisher, logger: logger, metrics: metrics,
		held: make(map[int64]bool), wake: make(chan struct{}, 1), delete: make(chan struct{}, 1),
	}
	if st != nil {
		r.owner = st.Relay()
	}
	r.sweep = supervise.NewLoop(supervise.LoopConfig{
		Name: "outbox", Interval: r.cfg.SweepInterval, Timeout: 20 * time.Second, Jitter: 0.2, Tick: r.sweepOnce,
		Logger: logger,
	})
	return r
}

// Published hands over a committed row. It never blocks; when the memory bound is reached because
// the broker is away for long, the row is left to the sweep.
func (r *Relay) Published(id int64, messages []Message) {
	if !r.hold(row{id: id, messages: messages, since: time.Now()}) {
		r.metrics.leftToSweep(len(messages))
	}
}

func (r *Relay) hold(rows ...row) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, added := range rows {
		// A single row above the bound is accepted while nothing else is pending.
		if r.size > 0 && r.size+len(added.messages) > r.cfg.MaxPending {
			return false
		}
		r.pending = append(r.pending, added)
		r.size += len(added.messages)
		r.held[added.id] = true
	}
	signal(r.wake)
	return true
}

// Pending is the number of unconfirmed messages that this replica holds in memory.
func (r *Relay) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Start implements supervise.Service.
func (r *Relay) Start(ctx context.Context) error {
	return r.Launch(ctx, r.sweep.Start, r.run)
}

// Sweep is the relay's loop over rows that no relay owns.
func (r *Relay) Sweep() *supervise.Loop { return r.sweep }

func (r *Relay) run(ctx context.Context) {
	var background, renewing sync.WaitGroup
	leasing, endLeasing := context.WithCancel(context.WithoutCancel(ctx))
	defer endLeasing()
	renewing.Go(func() { r.runLease(leasing) })
	background.Go(func() { r.runDeletes(ctx) })
	if r.cfg.Listen {
		background.Go(func() { r.runListen(ctx) })
	}
	r.runPublishes(ctx)
	r.sweep.Stop()
	background.Wait()
	r.flush(context.WithoutCancel(ctx))
	endLeasing()
	renewing.Wait()
	r.endLease(context.WithoutCancel(ctx))
}

// runPublishes publishes everything pending in one batch, one batch after the other.
//
// Messages in flight when the relay stops still get their confirms, within the flush timeout:
// otherwise they would be published twice.
func (r *Relay) runPublishes(ctx context.Context) {
	publishing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(r.cfg.FlushTimeout, end) })()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		for ctx.Err() == nil {
			if !r.entitled(ctx) {
				if !supervise.Sleep(ctx, retryPause) {
					return
				}
				continue
			}
			rows := r.take()
			if len(rows) == 0 {
				break
			}
			answered := r.publish(publishing, rows)
			r.well.Store(answered)
			r.away.Store(!answered)
			if !answered && !supervise.Sleep(ctx, retryPause) {
				return
			}
		}
	}
}

// retryPause is the wait after a batch without an answer of the broker.
const retryPause = 200 * time.Millisecond

// flush publishes and deletes the rest when the relay stops.
func (r *Relay) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.FlushTimeout)
	defer cancel()
	for r.entitled(ctx) && ctx.Err() == nil {
		rows := r.take()
		if len(rows) == 0 || !r.publish(ctx, rows) {
			break // another replica sweeps the rows from the database
		}
	}
	_ = r.deleteDone(ctx) // a sweep publishes rows again that could not be deleted
}

// take moves rows from pending to the caller, up to the size of one batch.
func (r *Relay) take() []row {
	r.mu.Lock()
	defer r.mu.Unlock()
	count, n := 0, 0
	for n < len(r.pending) && (n == 0 || count+len(r.pending[n].messages) <= r.cfg.MaxBatch) {
		count += len(r.pending[n].messages)
		n++
	}
	rows := append([]row(nil), r.pending[:n]...)
	r.pending = append(r.pending[:0], r.pending[n:]...)
	return rows
}
