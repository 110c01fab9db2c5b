package monitor

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// Deps are the sources of a Monitor. A nil source counts as one that does not answer.
type Deps struct {
	Store *store.Store
	// Broker reads the message broker's management interface.
	Broker BrokerReader
}

// Config adjusts which states count as trouble.
type Config struct {
	// StaleAfter is the heartbeat age beyond which a worker is stale; 0 means DefaultStaleAfter.
	StaleAfter time.Duration
	// HeartbeatEvery is how often a worker sends a heartbeat; 0 means a third of StaleAfter.
	HeartbeatEvery time.Duration
	// QueueTimeout and MaxQueued are the defaults of queues without their own; 0 means no bound.
	QueueTimeout time.Duration
	MaxQueued    int
	// OrphanInterval is how often the engine looks for work of lost workers: 0 is unknown, negative
	// is never.
	OrphanInterval time.Duration
	// ScheduledTimeout is how long a live worker may take to start an execution, unless its action
	// says otherwise; 0 is unknown.
	ScheduledTimeout time.Duration
	// ActionRetries says whether the engine honours the retries of actions; 0 decides by the origin
	// of the schema.
	ActionRetries lifecycle.ActionRetries
	// SilentReplicas is how long a silent replica is listed; 0 means 15 minutes.
	SilentReplicas time.Duration
}

// Monitor reads the state of an installation. It is safe for concurrent use.
type Monitor struct {
	cfg  Config
	deps Deps

	mu sync.Mutex
	// shape is read again after shapeTTL. mu guards it.
	shape   Shape
	shapeAt time.Time
	memory  Memory

	wiringMu sync.Mutex
	wiring   lastWiring // wiringMu guards it, and is held while it is read
}

// Configured is the configuration of a Monitor of the configured installation.
func Configured(cfg *config.Config) Config {
	return Config{
		HeartbeatEvery: cfg.Executor.HeartbeatInterval, StaleAfter: cfg.Executor.StaleAfter(),
		QueueTimeout: cfg.Executor.Queue.Timeout, MaxQueued: cfg.Executor.Queue.MaxQueueLength,
		OrphanInterval: cfg.Executor.OrphanInterval(), ScheduledTimeout: cfg.Executor.ScheduledTimeout,
		SilentReplicas: cfg.Retention.SilentReplicas,
		ActionRetries:  cfg.Executor.Retry.Policy().ActionRetries,
	}
}

// Shape says what the schema offers beyond Attune's published tables. Ours is every table of the engine, workQueues the
// work queues of an adopted installation.
type Shape struct{ Ours, history, workQueues bool }

// query chooses the query for a schema with the tables of the engine, or the one for the published schema.
func (s Shape) query(ours, published string) string {
	if s.Ours {
		return ours
	}
	return published
}

// shapeTTL bounds how late a running dashboard notices a migration.
const shapeTTL = time.Minute

// New returns a Monitor. It does not contact its sources.
func New(cfg Config, deps Deps) *Monitor {
	if cfg.StaleAfter <= 0 {
		cfg.StaleAfter = DefaultStaleAfter
	}
	if cfg.HeartbeatEvery <= 0 {
		cfg.HeartbeatEvery = cfg.StaleAfter / 3
	}
	return &Monitor{cfg: cfg, deps: deps}
}

// Config is the configuration with its defaults.
func (m *Monitor) Config() Config { return m.cfg }

// Deps are the dependencies that New was given.
func (m *Monitor) Deps() Deps { return m.deps }

// Read runs fn in one read-only transaction, so that all numbers of a reading agree. It records the
// time and the latency.
func (m *Monitor) Read(ctx context.Context, name string, r *Reading,
	fn func(ctx context.Context, tx *store.Tx, s Shape) error,
) error {
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

// look reads the database's time and, every shapeTTL, the shape of the schema.
func (m *Monitor) look(ctx context.Context, tx *store.Tx) (Shape, time.Time, error) {
	m.mu.Lock()
	known, asked := m.shape, m.shapeAt
	m.mu.Unlock()
	if !asked.IsZero() && time.Since(asked) < shapeTTL {
		at, err := tx.Now(ctx)
		if err != nil {
			return Shape{}, time.Time{}, fmt.Errorf("read the database's time: %w", err)
		}
		return known, at, nil
	}
	row, err := tx.MonitorSchema(ctx)
	if err != nil {
		return Shape{}, time.Time{}, fmt.Errorf("read the shape of the schema: %w", err)
	}
	s := Shape{Ours: row.Ours, history: row.History, workQueues: row.Ours && row.WorkQueues}
	m.mu.Lock()
	m.shape, m.shapeAt = s, time.Now()
	m.mu.Unlock()
	return s, row.At, nil
}

// timed runs a read and records how its source behaved.
func timed(name string, fn func() error) (Source, error) {
	start := time.Now()
	err := fn()
	source := Source{Name: name, Latency: time.Since(start)}
	if err != nil {
		source.Error, source.Err = err.Error(), err
	}
	return source, err
}

// cutText marks a text that the database has cut to so many characters.
func cutText(text string, most int) string {
	if utf8.RuneCountInString(text) < most {
		return text
	}
	return text + "…"
}

// Pattern makes a pattern for ILIKE: a star matches anything, the database's wildcards match
// themselves.
func Pattern(s string, within bool) string {
	if s == "" {
		return ""
	}
	if s = likeEscape.Replace(s); within {
		return "%" + s + "%"
	}
	return s
}

// Seconds converts seconds of the database; a negative number becomes 0.
func Seconds(n float64) time.Duration { return max(time.Duration(n*float64(time.Second)), 0) }

// statusChannels carry every status change of executions and workflows.
var statusChannels = []string{"execution_status_changed", "workflow_execution_status_changed"}

// Listen calls changed after every status change of an execution or a workflow, until ctx ends. It
// reconnects by itself and misses changes meanwhile, so it may only bring a poll forward.
func (m *Monitor) Listen(ctx context.Context, changed func()) {
	m.deps.Store.Listen(ctx, func(string, string) { changed() }, statusChannels...)
}

// The broker's queue and exchange of dead letters.
const (
	DeadLetterQueue    = message.QueueDeadLetter
	DeadLetterExchange = message.ExchangeDeadLetter
)

// The bounds of one read.
const (
	// DefaultPage is the length of a page of executions.
	DefaultPage       = 200
	DefaultQueueLimit = 500
	WorkerLimit       = 500
	// MaxDocument bounds each JSON text of one execution on a screen, in characters. WholeDocument does not.
	MaxDocument   = 64 << 10
	WholeDocument = math.MaxInt32
	// TopRows is how many queues and workers the overview shows.
	TopRows = 8
	// scanBound is how many rows a filtered search reads.
	scanBound = 10_000
	// statusBound is the same for one status, whose rows an index finds.
	statusBound = scanBound / 4
	// sampleBound is how many unfinished rows are counted one by one.
	sampleBound = 5_000
	// countBound is where counting recent ends stops, per status.
	countBound = 10_000
)

// The windows and thresholds of the overview.
const (
	// RecentWindow is how far back ended executions are counted.
	RecentWindow = 15 * time.Minute
	// StuckAfter is how long an execution may be scheduled without being started.
	StuckAfter = 10 * time.Minute
	// HeadWaitLimit is the wait of a head from which lists mark it, as in the rule queue_head_wait.
	HeadWaitLimit = 10 * time.Minute
	// DefaultStaleAfter is three heartbeats of thirty seconds.
	DefaultStaleAfter = 90 * time.Second
	// DefaultScheduledTimeout is how long an execution may be scheduled.
	DefaultScheduledTimeout = 5 * time.Minute
)

// each converts every row.
func each[R, T any](rows []R, one func(R) T) []T {
	list := make([]T, len(rows))
	for i, row := range rows {
		list[i] = one(row)
	}
	return list
}
