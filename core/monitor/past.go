package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
)

// PastSpan is how far back Past reads.
const PastSpan = time.Hour

// pastDeadLetters bounds the dead letters that Past reads.
const pastDeadLetters = 20_000

// MinuteSettled is how long after the end of a minute an engine has recorded it.
const MinuteSettled = 15 * time.Second

// Past is the last hour as engines recorded it, so that a new dashboard begins with history.
type Past struct {
	Reading
	// Minutes are the last sixty recorded ones, the oldest first; empty without the engine's tables or
	// without an answer.
	Minutes []PastMinute `json:"minutes"`
	// DeadLetters says whether dead letters are recorded.
	DeadLetters bool `json:"letters"`
	// Depth is the broker's own record of waiting dead letters, the oldest first; empty without an
	// answer.
	Depth []PastDepth `json:"depth"`
}

// PastMinute counts the events of a minute.
type PastMinute struct {
	// At is the end of the minute.
	At time.Time `json:"at"`
	// Done are all ends. Failed includes timeouts and abandoned executions.
	Done   float64 `json:"done"`
	Failed float64 `json:"failed"`
	// Queued executions waited at the end of the minute, Running ones held a slot.
	Queued  float64 `json:"queued"`
	Running float64 `json:"running"`
	// Waiting dead letters were undecided at the end of the minute.
	Waiting float64 `json:"waiting"`
	// Uncounted says that no engine has counted what ended, and Unseen that none ran at the end of the minute:
	// Queued and Running are unknown.
	Uncounted bool `json:"uncounted,omitempty"`
	Unseen    bool `json:"unseen,omitempty"`
}

// PastDepth is how many dead letters waited, by the broker's clock.
type PastDepth = broker.LengthSample

// Past reads the last hour, for the start of a dashboard and not for every poll. Without one source
// its half is empty; without both it fails.
func (m *Monitor) Past(ctx context.Context) (*Past, error) {
	p := &Past{}
	brokerErr, databaseErr := m.both(ctx, "the last hour", &p.Reading, func(b BrokerReader) (err error) {
		p.Depth, err = b.ReadDepth(ctx, DeadLetterQueue)
		return err
	}, func(ctx context.Context, tx *store.Tx, s Shape) error {
		p.Minutes, p.DeadLetters = nil, false // the transaction may be repeated
		if !s.Ours {
			return nil
		}
		return p.read(ctx, tx)
	})
	if brokerErr != nil && databaseErr != nil {
		return p, errors.Join(brokerErr, databaseErr)
	}
	return p, nil
}

func (p *Past) read(ctx context.Context, tx *store.Tx) error {
	var err error
	if p.Minutes, err = store.Rows[PastMinute](ctx, tx, store.PastMinutes, MinuteSettled.Seconds()); err != nil {
		return fmt.Errorf("read the last hour: %w", err)
	}
	p.DeadLetters = true
	changes, err := tx.PastWaiting(ctx, pastDeadLetters)
	if err != nil {
		return fmt.Errorf("count the dead letters that waited in the last hour: %w", err)
	}
	for _, row := range changes {
		begun := p.At.Truncate(time.Minute).Add(-time.Duration(row.Ago) * time.Minute)
		for i := range p.Minutes {
			if p.Minutes[i].At.After(begun) {
				p.Minutes[i].Waiting += float64(row.Change)
			}
		}
	}
	return nil
}

// pastQueues bounds the queues whose last hour is read at once.
const pastQueues = 12

// QueuesPast is the last hour of some queues.
type QueuesPast struct {
	Reading
	// List is empty where admissions are not recorded.
	List []QueuePast `json:"list"`
}

// QueuePast is the last hour of a queue.
type QueuePast struct {
	ID int64 `json:"id"`
	// Minutes are the last sixty recorded ones, the oldest first.
	Minutes []QueueMinute `json:"minutes"`
}

// QueueMinute is a queue at the end of a minute.
type QueueMinute struct {
	At time.Time `json:"at"`
	// Depth is the number of waiting executions.
	Depth float64 `json:"depth"`
	// Head is how long the first of them has waited.
	Head time.Duration `json:"head_ns"`
	// Unseen says that no engine ran at the end of the minute, or that the queue was not among the longest: its
	// depth is unknown.
	Unseen bool `json:"unseen,omitempty"`
}

// QueuesPast reads the last hour of a queue, or of the busiest for id 0, for the start of a
// dashboard and not for every poll.
func (m *Monitor) QueuesPast(ctx context.Context, id int64) (*QueuesPast, error) {
	p := &QueuesPast{}
	err := m.Read(ctx, "the last hour of queues", &p.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		p.List = nil // the transaction may be repeated
		if !s.Ours {
			return nil
		}
		ids := []int64{id}
		if id == 0 {
			var err error
			if ids, err = tx.ViewQueueIDs(ctx, store.ViewQueueIDsParams{Bound: pastQueues}); err != nil {
				return fmt.Errorf("list the busiest queues: %w", err)
			}
		}
		type row struct {
			ID int64
			QueueMinute
		}
		rows, err := store.Rows[row](ctx, tx, store.PastQueues, ids, MinuteSettled.Seconds())
		if err != nil {
			return fmt.Errorf("read the last hour of %d queues: %w", len(ids), err)
		}
		for _, r := range rows { // queue by queue
			if n := len(p.List); n == 0 || p.List[n-1].ID != r.ID {
				p.List = append(p.List, QueuePast{ID: r.ID})
			}
			last := &p.List[len(p.List)-1]
			last.Minutes = append(last.Minutes, r.QueueMinute)
		}
		return nil
	})
	return p, err
}

// WorkersPast is the last hour of all workers.
type WorkersPast struct {
	Reading
	// List has the workers that ran something; empty where that is not recorded.
	List []WorkerPast `json:"list"`
}

// WorkerPast is the last hour of a worker.
type WorkerPast struct {
	ID int64 `json:"id"`
	// Minutes are the last sixty recorded ones, the oldest first.
	Minutes []WorkerMinute `json:"minutes"`
}

// WorkerMinute is the use of a worker in a minute.
type WorkerMinute struct {
	// At is the end of the minute.
	At time.Time `json:"at"`
	// Slots were taken at the end of the minute.
	Slots float64 `json:"slots"`
	Ended float64 `json:"ended"`
	// Unseen says that no engine ran at the end of the minute.
	Unseen bool `json:"unseen,omitempty"`
}

// Of finds the past of a worker; nil if it ran nothing.
func (p *WorkersPast) Of(worker int64) *WorkerPast {
	if p == nil {
		return nil
	}
	for i := range p.List {
		if p.List[i].ID == worker {
			return &p.List[i]
		}
	}
	return nil
}

// PerMinute is the rate of ends over the last minutes.
func (w *WorkerPast) PerMinute(minutes int) float64 {
	minutes = min(minutes, len(w.Minutes))
	if minutes == 0 {
		return 0
	}
	n := 0.0
	for _, m := range w.Minutes[len(w.Minutes)-minutes:] {
		n += m.Ended
	}
	return n / float64(minutes)
}

// WorkersPast reads the last hour of all workers, once a minute and not for every poll.
func (m *Monitor) WorkersPast(ctx context.Context) (*WorkersPast, error) {
	p := &WorkersPast{}
	err := m.Read(ctx, "the last hour of workers", &p.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		p.List = nil // the transaction may be repeated
		if !s.Ours {
			return nil
		}
		type row struct {
			ID int64
			WorkerMinute
		}
		rows, err := store.Rows[row](ctx, tx, store.PastWorkers, MinuteSettled.Seconds())
		if err != nil {
			return fmt.Errorf("read what workers did in the last hour: %w", err)
		}
		for _, r := range rows { // worker by worker
			if n := len(p.List); n == 0 || p.List[n-1].ID != r.ID {
				p.List = append(p.List, WorkerPast{ID: r.ID})
			}
			last := &p.List[len(p.List)-1]
			last.Minutes = append(last.Minutes, r.WorkerMinute)
		}
		return nil
	})
	return p, err
}
