package monitor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/attune-go/attune/core/retrypolicy"
	"github.com/attune-go/attune/core/store"
)

// Deps is what a Monitor reads from. Either source may be nil, which shows as a
// source that does not answer.
type Deps struct {
	Store *store.Store
	// Broker reads the message broker's management interface.
	Broker BrokerReader
}

// Config adjusts what counts as unwell.
type Config struct {
	// StaleAfter is the heartbeat age beyond which a worker is stale; zero means
	// DefaultStaleAfter.
	StaleAfter time.Duration
	// HeartbeatEvery is how often a worker sends a heartbeat; zero means a third of
	// StaleAfter.
	HeartbeatEvery time.Duration
	// QueueTimeout is how long an execution may wait in a queue that says nothing
	// else, and MaxQueued how many may. Zero means for ever, and any number.
	QueueTimeout time.Duration
	MaxQueued    int
	// OrphanInterval is how often the engine looks for the work of workers that are
	// gone; zero means that it is not known, and less that it does not look.
	OrphanInterval time.Duration
	// ScheduledTimeout is how long a worker that lives may take to begin an
	// execution whose action says nothing else; zero means that it is not known.
	ScheduledTimeout time.Duration
	// ActionRetries says whether the engine makes the repetitions that an action
	// allows; zero means by the origin of the schema.
	ActionRetries retrypolicy.ActionRetries
	// SilentReplicas is how long a replica that fell silent is listed; zero means 15
	// minutes.
	SilentReplicas time.Duration
}

// Monitor reads. Its methods may be used by many goroutines.
type Monitor struct {
	cfg  Config
	deps Deps

	mu sync.Mutex
	// shape is what the schema offers, asked again after shapeTTL; guarded by mu.
	shape   Shape
	shapeAt time.Time
	memory  Memory
}

// Shape is what a schema offers beyond what Attune publishes. shared says that ours
// includes limits shared by queues and the table of slots, workQueues that ours includes
// the work queues of an existing installation.
type Shape struct{ Ours, Shared, history, ledger, workQueues bool }

// shapeTTL is how long the shape of the schema is believed, so that a migration
// under a running dashboard shows within a minute.
const shapeTTL = time.Minute

// New makes a Monitor. It does not touch its sources.
func New(cfg Config, deps Deps) *Monitor {
	if cfg.StaleAfter <= 0 {
		cfg.StaleAfter = DefaultStaleAfter
	}
	if cfg.HeartbeatEvery <= 0 {
		cfg.HeartbeatEvery = cfg.StaleAfter / 3
	}
	return &Monitor{cfg: cfg, deps: deps}
}

// Config is what the monitor was made with, with its defaults.
func (m *Monitor) Config() Config { return m.cfg }

// Deps is what the monitor reads from.
func (m *Monitor) Deps() Deps { return m.deps }

// Read runs fn in one read-only transaction, so that all numbers of a
// reading agree, and records when it was and how long it took.
func (m *Monitor) Read(ctx context.Context, name string, r *Reading,
	fn func(ctx context.Context, tx *store.Tx, s Shape) error) error {
	source, err := timed(SourceDatabase, func() error {
		if m.deps.Store == nil {
			return errNoSource
		}
		return m.deps.Store.ReadTx(ctx, "read "+name, func(ctx context.Context, tx *store.Tx) error {
			s, at, err := m.look(ctx, tx)
			if err != nil {
				return err
			}
			r.At = at
			return fn(ctx, tx, s)
		})
	})
	r.Sources = append(r.Sources, source)
	return err
}

// look takes the database's time and, now and then, the shape of the schema.
func (m *Monitor) look(ctx context.Context, tx *store.Tx) (Shape, time.Time, error) {
	m.mu.Lock()
	known, asked := m.shape, m.shapeAt
	m.mu.Unlock()
	if !asked.IsZero() && time.Since(asked) < shapeTTL {
		at, err := tx.MonitorNow(ctx)
		if err != nil {
			return Shape{}, time.Time{}, fmt.Errorf("read the database's time: %w", err)
		}
		return known, at, nil
	}
	row, err := tx.MonitorSchema(ctx)
	if err != nil {
		return Shape{}, time.Time{}, fmt.Errorf("read the shape of the schema: %w", err)
	}
	s := Shape{
		Ours: row.Ours, Shared: row.Ours && row.Shared, history: row.History, ledger: row.Ledger,
		workQueues: row.Ours && row.WorkQueues,
	}
	m.mu.Lock()
	m.shape, m.shapeAt = s, time.Now()
	m.mu.Unlock()
	return s, row.At, nil
}

// timed runs a read and says how the source behaved.
func timed(name string, fn func() error) (Source, error) {
	start := time.Now()
	err := fn()
	source := Source{Name: name, Latency: time.Since(start)}
	if err != nil {
		source.Error = err.Error()
	}
	return source, err
}

// text is the value behind a pointer, or empty.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// wide turns a number of the database into the one that results carry.
func wide(n *int32) *int64 {
	if n == nil {
		return nil
	}
	v := int64(*n)
	return &v
}

// Pattern turns what people type into a pattern for ILIKE: a star matches
// anything, and the database's own wildcards are taken literally.
func Pattern(s string, within bool) string {
	if s == "" {
		return ""
	}
	out := likeEscape.Replace(s)
	if within {
		return "%" + out + "%"
	}
	return out
}

// Seconds is a number of seconds of the database; a negative one is none.
func Seconds(n float64) time.Duration { return max(time.Duration(n*float64(time.Second)), 0) }

// statusChannels are those on which Attune's triggers tell of every change of an
// execution's or a workflow's status.
var statusChannels = []string{"execution_status_changed", "workflow_execution_status_changed"}

// Listen calls changed whenever the status of an execution or of a workflow changes,
// until ctx ends; what is said of it is not read. It has a connection of its own and
// makes another one when that is lost; what happens meanwhile is not heard, so that it
// may only bring forward what is read anyway.
func (m *Monitor) Listen(ctx context.Context, changed func()) {
	m.deps.Store.Listen(ctx, func(string, string) { changed() }, statusChannels...)
}

// DeadLetterQueue is the broker queue that dead letters arrive in.
const DeadLetterQueue = "attune.dlx.queue"

// The bounds of what one call reads.
const (
	// DefaultPage is the length of a page of executions.
	DefaultPage = 200
	// DefaultQueueLimit bounds the list of queues, WorkerLimit that of workers.
	DefaultQueueLimit = 500
	WorkerLimit       = 500
	// MaxDocument bounds each JSON text of one execution, in bytes.
	MaxDocument = 64 << 10
	// TopRows is how many queues and workers the overview shows.
	TopRows = 8
	// scanBound is how many rows a filtered search looks at before it stops.
	scanBound = 10_000
	// statusBound is the same for each status, whose rows an index finds.
	statusBound = scanBound / 4
	// sampleBound is how many unfinished rows are counted one by one.
	sampleBound = 5_000
	// countBound is where counting recently finished rows stops, per status.
	countBound = 10_000
)

// The windows and thresholds of the overview.
const (
	// RecentWindow is how far back recently finished executions are counted.
	RecentWindow = 15 * time.Minute
	// StuckAfter is how long an execution may be scheduled without being started.
	StuckAfter = 10 * time.Minute
	// HeadWaitLimit is how long the head of a queue may wait before lists mark it, as
	// the built-in rule queue_head_wait has it.
	HeadWaitLimit = 10 * time.Minute
	// DefaultStaleAfter is the age beyond which a heartbeat is stale: three
	// missed beats of thirty seconds.
	DefaultStaleAfter = 90 * time.Second
	// DefaultScheduledTimeout is how long an execution may be scheduled.
	DefaultScheduledTimeout = 5 * time.Minute
)

// each makes one thing of every row.
func each[R, T any](rows []R, one func(R) T) []T {
	list := make([]T, len(rows))
	for i, row := range rows {
		list[i] = one(row)
	}
	return list
}
