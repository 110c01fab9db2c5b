package monitor

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/store"
)

// The bounds of looking back at queues: so many looks of so many rows for one queue,
// and at how many queues where none is named. Then each is given fewer looks.
const (
	leftLooks      = 150
	leftLooksShort = 30
	leftPer        = 15
	pastQueues     = 12
	// mostBefore is how far before the hour what joined a queue of groups is looked for
	// at most.
	mostBefore = 24 * time.Hour
)

// QueuesPast is the last hour of some queues.
type QueuesPast struct {
	Reading
	// List is empty where nobody records when executions were let in.
	List []QueuePast `json:"list"`
}

// QueuePast is the last hour of a queue, as the rows of its executions tell it.
type QueuePast struct {
	ID int64 `json:"id"`
	// Minutes are the last sixty, the oldest first; the last is now.
	Minutes []QueueMinute `json:"minutes"`
	// Estimated says that more left the queue than were looked at one by one.
	Estimated bool `json:"estimated,omitempty"`
}

// QueueMinute is a queue at the end of a minute.
type QueueMinute struct {
	At time.Time `json:"at"`
	// Depth is how many waited.
	Depth float64 `json:"depth"`
	// Head is for how long the one had waited who had waited longest.
	Head time.Duration `json:"head_ns"`
}

// QueuesPast reads the last hour of a queue, or of the busiest where the id is zero.
// It is meant for the start of a dashboard and not for every poll. Who waited is told
// from when executions were requested and let in, or ended without that; so an
// attempt that was kept back before it joined counts as waiting all the while.
func (m *Monitor) QueuesPast(ctx context.Context, id int64) (*QueuesPast, error) {
	p := &QueuesPast{}
	err := m.Read(ctx, "the last hour of queues", &p.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		p.List = nil // the transaction may be repeated
		if !s.Shared {
			return nil
		}
		ids, looks := []int64{id}, int64(leftLooks)
		if id == 0 {
			var err error
			if ids, err = tx.ViewQueueIDs(ctx, store.ViewQueueIDsParams{Bound: pastQueues}); err != nil {
				return fmt.Errorf("list the busiest queues: %w", err)
			}
			looks = leftLooksShort
		}
		queues, err := m.QueuesByID(ctx, tx, ids)
		if err != nil {
			return err
		}
		for i := range queues {
			past, err := readQueuePast(ctx, tx, &queues[i], p.At, looks)
			if err != nil {
				return err
			}
			p.List = append(p.List, *past)
		}
		return nil
	})
	return p, err
}

// left is an execution that waited in a queue. Where it stands for more than itself,
// these joined evenly until another time, and each waited for as long.
type left struct {
	joined, until time.Time
	wait          time.Duration
	weight        float64
}

// at counts who of them waited at a time, and tells for how long the first of them
// had.
func (l *left) at(then time.Time) (n float64, head time.Duration) {
	first := then.Add(-l.wait)
	if l.weight <= 1 {
		if l.joined.After(then) || !l.joined.After(first) {
			return 0, 0
		}
		return l.weight, then.Sub(l.joined)
	}
	from, to := l.joined, l.until
	if first.After(from) {
		from = first
	}
	if then.Before(to) {
		to = then
	}
	if !from.Before(to) {
		return 0, 0
	}
	return l.weight * to.Sub(from).Seconds() / l.until.Sub(l.joined).Seconds(), then.Sub(from)
}

func readQueuePast(ctx context.Context, tx *store.Tx, q *Queue, at time.Time, looks int64) (*QueuePast, error) {
	past := &QueuePast{ID: q.ID}
	list, err := readLeft(ctx, tx, q, at, looks)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		past.Estimated = past.Estimated || l.weight > 1
	}
	waits, estimated, err := readWaits(ctx, tx, q)
	if err != nil {
		return nil, err
	}
	past.Estimated = past.Estimated || estimated
	for _, then := range pastMinutes(at) {
		past.Minutes = append(past.Minutes, minuteOf(list, waits, at, then))
	}
	return past, nil
}

// minuteOf counts who waited at a time: of those who have left since, and of those
// who wait still.
func minuteOf(list []left, waits []waitedSoFar, now, then time.Time) QueueMinute {
	m := QueueMinute{At: then}
	for _, l := range list {
		n, head := l.at(then)
		m.Depth += n
		m.Head = max(m.Head, head)
	}
	ago := now.Sub(then)
	for _, w := range waits {
		if w.since >= ago {
			m.Depth += w.weight
			m.Head = max(m.Head, w.since-ago)
		}
	}
	m.Depth = math.Round(m.Depth)
	return m
}

// readLeft reads what left the queue within the hour.
func readLeft(ctx context.Context, tx *store.Tx, q *Queue, at time.Time, looks int64) ([]left, error) {
	p := &Policies{}
	before := time.Duration(0)
	if q.Group != "" {
		a, err := FindAction(ctx, tx, "", q.ActionID)
		if err != nil {
			return nil, err
		}
		if p, err = ReadPolicies(ctx, tx, a.ID, a.PackID, a.ParamSchema); err != nil {
			return nil, err
		}
		before = PastSpan // the groups of an action do not move at one pace
		if q.Oldest != nil {
			before = max(before, 2*at.Sub(*q.Oldest))
		}
	}
	rows, err := tx.ViewLeft(ctx, store.ViewLeftParams{
		ActionID: q.ActionID, Below: behind(q), Seconds: (PastSpan + min(before, mostBefore)).Seconds(), Looks: looks, Per: leftPer,
		WithConfig: q.Group != "", Cut: ConfigCut,
	})
	if err != nil {
		return nil, fmt.Errorf("read what left queue %d within the hour: %w", q.ID, err)
	}
	var list []left
	for i, r := range rows {
		one := store.ViewSampleRow{ID: r.ID, HeldState: r.HeldState, Config: r.Config}
		if gone := moment(r.At); gone != nil && (q.Group == "" && r.HeldState == 0 || belongs(one, q, p)) {
			l := left{joined: r.Created, wait: max(gone.Sub(r.Created), 0), weight: r.Weight}
			if r.Weight > 1 {
				l.joined, l.until = stretch(rows, i, at)
			}
			list = append(list, l)
		}
	}
	return list, nil
}

// stretch is from when to when those were requested for which the rows of a look
// stand.
func stretch(rows []store.ViewLeftRow, i int, now time.Time) (from, until time.Time) {
	first, next := i, i
	for first > 0 && rows[first-1].Start == rows[i].Start {
		first--
	}
	for next < len(rows) && rows[next].Start == rows[i].Start {
		next++
	}
	from = rows[first].Created
	if next < len(rows) {
		until = rows[next].Created
	} else { // nothing was seen behind the last look: its pace goes on for its share
		pace := rows[next-1].Created.Sub(from)
		until = from.Add(min(time.Duration(rows[i].Weight*float64(pace)), now.Sub(from)))
	}
	if !from.Before(until) {
		until = from.Add(time.Millisecond)
	}
	return from, until
}

// behind is an id that everybody who has left the line is below, as far as they came
// in order. Where lanes overtake each other there is none.
func behind(q *Queue) int64 {
	if normal := q.lanes[1]; normal.first != 0 && q.QueuedHigh+q.QueuedLow == 0 {
		return normal.first
	}
	return math.MaxInt64
}
