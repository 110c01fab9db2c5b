package redrive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// Config is what a Desk depends on.
type Config struct {
	// Actor is who acts, Source the program through which they do.
	Actor, Source string
	// Context names the installation in the spool.
	Context string
	// Broker is how connections are made, one for each errand.
	Broker broker.Config
	// Management tells what AMQP does not; nil leaves that unknown.
	Management *broker.Management
	// Spool is the folder of copies. Empty refuses all that removes messages, unless
	// SpoolOff says that no copies are wanted. SpoolKey is the file of the key by which
	// copies are sealed; empty leaves them plain.
	Spool    string
	SpoolKey string
	SpoolOff bool
	// Queue is the dead-letter queue. Default is message.QueueDeadLetter.
	Queue string
	// Rate is how many letters are requeued in a second. Default 20.
	Rate float64
	// Direct allows to reset rows of an installation without our tables.
	Direct bool
}

// Desk looks into one dead-letter queue and acts on it. It is safe for concurrent
// use: one look is taken at a time.
type Desk struct {
	cfg   Config
	store *store.Store

	looking sync.Mutex
	mu      sync.Mutex
	highest int64 // the highest count of deliveries that was seen; guarded by mu
	off     bool  // no copies are written; guarded by mu
}

// New makes a Desk. It does not connect.
func New(cfg Config, st *store.Store) *Desk {
	if cfg.Queue == "" {
		cfg.Queue = message.QueueDeadLetter
	}
	if cfg.Rate <= 0 {
		cfg.Rate = 20
	}
	if cfg.Broker.ConnectionName == "" {
		cfg.Broker.ConnectionName = cfg.Source + "/" + cfg.Actor // so that others see who holds messages
	}
	if cfg.Broker.ConfirmTimeout <= 0 {
		cfg.Broker.ConfirmTimeout = 5 * time.Second
	}
	if cfg.Broker.CallTimeout <= 0 {
		cfg.Broker.CallTimeout = 15 * time.Second // somebody looks at the screen
	}
	return &Desk{cfg: cfg, store: st, off: cfg.SpoolOff}
}

// Queue is the name of the dead-letter queue.
func (d *Desk) Queue() string { return d.cfg.Queue }

// newOp names an operation; names sort by time.
func newOp() string {
	if id, err := uuid.NewV7(); err == nil {
		return id.String()
	}
	return uuid.NewString()
}

// Look asks how the queue is.
func (d *Desk) Look(ctx context.Context) (*Queue, error) {
	errand, err := broker.OpenErrand(ctx, d.cfg.Broker)
	if err != nil {
		return nil, err
	}
	defer errand.Close()
	return d.look(ctx, errand)
}

func (d *Desk) look(ctx context.Context, errand *broker.Errand) (*Queue, error) {
	q := &Queue{Name: d.cfg.Queue, Version: errand.Version()}
	var err error
	if q.Ready, q.Consumers, err = errand.Queue(ctx, d.cfg.Queue); err != nil {
		return nil, err
	}
	if d.cfg.Management == nil {
		return q, nil
	}
	info, err := d.cfg.Management.Queue(ctx, d.cfg.Queue)
	if err != nil {
		return q, nil //nolint:nilerr // what is not known is left empty, and the strictest is assumed
	}
	var policies []broker.Policy
	for _, list := range []func(context.Context) ([]broker.Policy, error){d.cfg.Management.Policies, d.cfg.Management.OperatorPolicies} {
		if some, err := list(ctx); err == nil {
			policies = append(policies, some...)
		}
	}
	q.describe(info, policies)
	if alarms, err := d.cfg.Management.Alarms(ctx); err == nil {
		for _, a := range alarms {
			q.Alarms = append(q.Alarms, a.Resource+" on "+a.Node)
		}
	}
	return q, nil
}

// The bounds of a look.
const (
	maxLook      = 500
	lookDeadline = 5 * time.Second
)

// Snapshot is what lay at the head of the queue. It never changes.
type Snapshot struct {
	ID      string        `json:"id"`
	At      time.Time     `json:"at"`
	Took    time.Duration `json:"took_ns"`
	Queue   Queue         `json:"queue"`
	Cost    string        `json:"cost"`
	Letters []Letter      `json:"letters"`
	// Cut says why less was read than lies there; empty if nothing was left out.
	Cut string `json:"cut,omitempty"`
}

// Errors of looking.
var (
	// ErrConsumers says that somebody handles what lies there: what is looked at
	// reaches them late and out of order.
	ErrConsumers = errors.New("the queue has a handler")
	// ErrBusy says that a look is being taken.
	ErrBusy = errors.New("a snapshot is being taken")
)

// Snapshot reads the head of the queue and returns it. Beside a handler it refuses,
// with ErrConsumers, unless it is asked to read nevertheless.
func (d *Desk) Snapshot(ctx context.Context, beside bool) (*Snapshot, error) {
	if !d.looking.TryLock() {
		return nil, ErrBusy
	}
	defer d.looking.Unlock()
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	errand, err := broker.OpenErrand(ctx, d.cfg.Broker)
	if err != nil {
		return nil, err
	}
	defer errand.Close()
	q, err := d.look(ctx, errand)
	if err != nil {
		return nil, err
	}
	if q.Consumers > 0 && !beside {
		return nil, fmt.Errorf("%w: %d of them", ErrConsumers, q.Consumers)
	}
	way, err := Strategy(q)
	if err != nil {
		return nil, err
	}
	if seen := d.seen(0); way.Highest > 0 && seen >= way.Highest {
		return nil, fmt.Errorf("%w: a message was delivered %d times, and each look is a delivery towards its limit", ErrNoPeek, seen)
	}
	s := &Snapshot{ID: newOp(), Queue: *q, Cost: way.Cost}
	stop := func(w *Whole) bool {
		n := d.seen(Read(w, 0).Deliveries)
		return way.Highest > 0 && n >= way.Highest
	}
	found, err := errand.Peek(ctx, d.cfg.Queue, min(q.Ready, maxLook), way.Return, stop)
	if err != nil && len(found) == 0 {
		return nil, err
	}
	for i, w := range found {
		s.Letters = append(s.Letters, Read(w, i))
	}
	switch {
	case err != nil:
		s.Cut = "reading took too long"
	case len(found) < min(q.Ready, maxLook):
		s.Cut = "somebody took the rest, or a message is near its limit of deliveries"
	case q.Ready > maxLook:
		s.Cut = fmt.Sprintf("only the first %d are read", maxLook)
	}
	s.At, s.Took = time.Now(), time.Since(began)
	return s, nil
}

// seen remembers the highest count of deliveries.
func (d *Desk) seen(n int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.highest = max(d.highest, n)
	return d.highest
}

// Rows reads the executions with these ids, by id.
func Rows(ctx context.Context, q *store.Queries, ids []int64) (map[int64]*Row, error) {
	rows := make(map[int64]*Row, len(ids))
	if len(ids) == 0 {
		return rows, nil
	}
	list, err := q.RedriveRows(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the executions of %d letters: %w", len(ids), err)
	}
	for _, r := range list {
		row := &Row{
			ID: r.ID, Status: r.Status, ActionRef: r.ActionRef, ActionGone: r.ActionGone, Worker: r.Worker, WorkerName: r.WorkerName, Parent: r.Parent,
			ParentStatus: r.ParentStatus, Tries: int64(r.RetryCount), RetryReason: r.RetryReason, Created: r.Created, Updated: r.Updated,
			Expired: r.Expired, Reason: r.Reason,
		}
		if r.MaxRetries != nil {
			row.MaxTries = new(int64(*r.MaxRetries))
		}
		rows[r.ID] = row
	}
	return rows, leases(ctx, q, rows, ids)
}
