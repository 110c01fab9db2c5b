package outbox

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/tracing"
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
	// MaxPending bounds the messages in memory, of the engine's programs and of operators each. Default 20,000.
	MaxPending int
	// MaxBatch bounds one publish. Default 500.
	MaxBatch int
	// Listen makes the relay claim rows of writers without a relay on notification, on a connection
	// of its own, and not only by a sweep.
	Listen bool
	// FlushTimeout bounds the final publishing in Stop. Default 5 s.
	FlushTimeout time.Duration
	// Gate holds the deletes of published rows, and the consumers of the replica, during a fault of
	// the installation. Nil holds nothing.
	Gate *batch.Gate
	// Traces takes the spans of published messages; nil without tracing.
	Traces tracing.Sink
	// Undeliverable decides about messages that reached no queue, in the transaction that settles
	// their row. The messages in taken, by id, leave the outbox with that transaction; the relay
	// retries the others. May be nil.
	Undeliverable func(ctx context.Context, tx *store.Tx, returned []Message) (taken map[string]bool, err error)
	// Refused decides about refused messages of operators. May be nil.
	Refused Refused
}

// Refused decides about a message that an operator sends again and that the broker did not accept, in
// the transaction that settles its row. tries counts the attempts to publish it. If taken, the message leaves the
// outbox with that transaction; otherwise the relay retries it.
type Refused func(ctx context.Context, tx *store.Tx, m Message, tries int, reason string) (taken bool, err error)

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

	mu     sync.Mutex
	own    lane           // rows that the engine's programs made
	resent lane           // rows of operators; no destination of theirs delays the others
	held   map[int64]bool // rows in memory, which this replica's sweep skips
	done   []int64        // confirmed rows to delete
	taken  time.Time      // when a transaction last deleted confirmed rows
	delete chan struct{}  // something is done
	well   atomic.Bool    // the last batch was confirmed
	away   atomic.Bool    // the broker did not answer for the last batch
	lease  lease
}

// lane is a queue of rows that are published in order. The relay's mutex guards it.
type lane struct {
	pending []row
	size    int           // messages pending and in the current batch
	wake    chan struct{} // something is pending
}

type row struct {
	id       int64
	messages []Message
	since    time.Time // when this replica received it
	attempts int32     // claims of it
}

func (r *row) resent() bool {
	return slices.ContainsFunc(r.messages, func(m Message) bool { return m.resent() })
}

// lane is the lane of a row.
func (r *Relay) lane(of *row) *lane {
	if of.resent() {
		return &r.resent
	}
	return &r.own
}

// New makes a relay.
func New(cfg Config, st *store.Store, publisher Publisher, logger *slog.Logger, metrics *Metrics) *Relay {
	r := &Relay{
		cfg: cfg.withDefaults(), store: st, publisher: publisher, logger: logger,
		metrics: cmp.Or(metrics, NewMetrics(nil)),
		held:    make(map[int64]bool), delete: make(chan struct{}, 1),
		own: lane{wake: make(chan struct{}, 1)}, resent: lane{wake: make(chan struct{}, 1)},
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
		r.metrics.left.Add(float64(len(messages)))
	}
}

func (r *Relay) hold(rows ...row) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, added := range rows {
		// A single row above the bound is accepted while nothing else is pending.
		l := r.lane(&added)
		if l.size > 0 && l.size+len(added.messages) > r.cfg.MaxPending {
			return false
		}
		l.pending = append(l.pending, added)
		l.size += len(added.messages)
		r.held[added.id] = true
		signal(l.wake)
	}
	return true
}

// Pending is the number of unconfirmed messages that this replica holds in memory.
func (r *Relay) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.own.size + r.resent.size
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
	background.Go(func() { r.runPublishes(ctx, &r.resent) })
	r.runPublishes(ctx, &r.own)
	r.sweep.Stop()
	background.Wait()
	r.flush(context.WithoutCancel(ctx))
	endLeasing()
	renewing.Wait()
	r.endLease(context.WithoutCancel(ctx))
}

// runPublishes publishes everything pending in a lane in one batch, one batch after the other.
//
// Messages in flight when the relay stops still get their confirms, within the flush timeout:
// otherwise they would be published twice.
func (r *Relay) runPublishes(ctx context.Context, l *lane) {
	publishing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(r.cfg.FlushTimeout, end) })()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for ctx.Err() == nil {
			if !r.entitled(ctx) {
				if !supervise.Sleep(ctx, retryPause) {
					return
				}
				continue
			}
			rows := r.take(l)
			if len(rows) == 0 {
				break
			}
			answered := r.publish(publishing, l, rows)
			if l == &r.own {
				r.well.Store(answered)
				r.away.Store(!answered)
			}
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
	for _, l := range []*lane{&r.own, &r.resent} {
		for r.entitled(ctx) && ctx.Err() == nil {
			rows := r.take(l)
			if len(rows) == 0 || !r.publish(ctx, l, rows) {
				break // another replica sweeps the rows from the database
			}
		}
	}
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = r.deleteDone(ctx) // a sweep publishes rows again that could not be deleted
}

// take moves rows from a lane to the caller, up to the size of one batch, or one row of an operator.
func (r *Relay) take(l *lane) []row {
	r.mu.Lock()
	defer r.mu.Unlock()
	count, n, most := 0, 0, r.cfg.MaxBatch
	if l == &r.resent {
		most = 1
	}
	for n < len(l.pending) && (n == 0 || count+len(l.pending[n].messages) <= most) {
		count += len(l.pending[n].messages)
		n++
	}
	rows := append([]row(nil), l.pending[:n]...)
	l.pending = append(l.pending[:0], l.pending[n:]...)
	return rows
}
