package monitor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Queue is one admission queue: of an action, or of one group of an action.
type Queue struct {
	ID        int64  `json:"id"`
	ActionID  int64  `json:"action_id"`
	ActionRef string `json:"action_ref"`
	Group     string `json:"group,omitempty"`
	// Queued counts all waiting executions, QueuedHigh and QueuedLow those of two lanes.
	Queued     int64 `json:"queued"`
	QueuedHigh int64 `json:"queued_high"`
	QueuedLow  int64 `json:"queued_low"`
	Active     int64 `json:"active"`
	// Limit is nil without a limit.
	Limit *int64 `json:"limit"`
	// LimitFrom says who set the limit; the zero value where it is not recorded.
	LimitFrom LimitSource `json:"limit_from"`
	// MaxQueued bounds the waiting executions, QueueTimeout the wait of one; nil and 0 are
	// unbounded.
	MaxQueued    *int64        `json:"max_queued"`
	QueueTimeout time.Duration `json:"queue_timeout_ns"`
	// Oldest is since when the longest waiting head of the lanes waits.
	Oldest      *time.Time `json:"oldest"`
	Completed   int64      `json:"completed"`
	Enqueued    int64      `json:"enqueued"`
	Paused      bool       `json:"paused"`
	PauseReason string     `json:"pause_reason,omitempty"`
	PausedBy    string     `json:"paused_by,omitempty"`
	PausedAt    *time.Time `json:"paused_at,omitempty"`
	// ResumedAt is the end of the last pause: queue timeouts count from there.
	ResumedAt *time.Time `json:"resumed_at,omitempty"`
	// Blocked is the reason while the head has a free slot but no shared limit or worker.
	Blocked      string     `json:"blocked,omitempty"`
	BlockedSince *time.Time `json:"blocked_since,omitempty"`
	// BlockedUntil is when a retry can succeed, if known.
	BlockedUntil *time.Time `json:"blocked_until,omitempty"`
	// BlockedScope is the shared limit that blocks the head; nil for workers.
	BlockedScope *int64 `json:"blocked_scope,omitempty"`
	// Empties is when it will be empty if no execution joins. Lists of package explain have it for the
	// longest queues.
	Empties *Expected `json:"empties,omitempty"`

	lanes  [3]lane // high, normal, low
	PackID int64   `json:"-"`
}

// lane is one of the three priorities of a queue.
type lane struct {
	number int16
	queued int64
	// No execution waits before head. next was never given.
	head, next int64
	// first is the execution at the head, 0 if none.
	first int64
}

// The names of the lanes.
const (
	LaneHigh   = "high"
	LaneNormal = "normal"
	LaneLow    = "low"
)

// laneName names a lane.
func laneName(n int16) string {
	switch {
	case n > 0:
		return LaneHigh
	case n < 0:
		return LaneLow
	default:
		return LaneNormal
	}
}

// LimitSource says where the limit of a queue comes from.
type LimitSource struct {
	Kind LimitKind `json:"kind"`
	// Policy and Threshold are of the action's newest concurrency policy, even if it is overridden.
	Policy    string `json:"policy,omitempty"`
	Threshold *int64 `json:"threshold,omitempty"`
}

// LimitKind names the source of a limit.
type LimitKind string

// The sources of limits.
const (
	// LimitNone: no policy applies.
	LimitNone LimitKind = "none"
	// LimitPolicy: the threshold of the policy holds.
	LimitPolicy LimitKind = "policy"
	// LimitOverride: an operator replaced the threshold.
	LimitOverride LimitKind = "override"
	// LimitAdaptive: failures or slow runs lowered it.
	LimitAdaptive LimitKind = "adaptive"
)

// String is the source as tables show it.
func (l LimitSource) String() string {
	if l.Kind == LimitPolicy && l.Policy != "" {
		return l.Policy
	}
	return string(l.Kind)
}

// Name is the action, and its group if it has one.
func (q Queue) Name() string {
	if q.Group == "" {
		return q.ActionRef
	}
	return q.ActionRef + " " + q.Group
}

// Full reports whether every slot of the queue is taken.
func (q Queue) Full() bool { return q.Limit != nil && q.Active >= *q.Limit }

// State is the first true of paused, blocked, full, idle and open, with the reason.
func (q Queue) State() string {
	switch {
	case q.Paused:
		return strings.TrimSuffix("paused: "+q.PauseReason, ": ")
	case q.Blocked != "":
		return "blocked: " + q.Blocked
	case q.Queued > 0 && q.Full():
		return "full"
	case q.Queued+q.Active == 0:
		return "idle"
	default:
		return "open"
	}
}

// QueueFilter selects queues.
type QueueFilter struct {
	// Text keeps queues whose action or group contains it. Case does not matter.
	Text string
	// Paused and Blocked keep queues in these states; both together require both.
	Paused, Blocked bool
	// All includes leftovers: empty queues of groups that no present policy makes.
	All bool
	// Limit bounds the answer; 0 means DefaultQueueLimit.
	Limit int
}

// Queues is one page of admission queues, the busiest first.
type Queues struct {
	Reading
	Totals QueueTotals `json:"totals"`
	List   []Queue     `json:"list"`
	// More is true when further queues match.
	More bool `json:"more"`
}

// Waiting is the place of an execution in its queue.
type Waiting struct {
	Queue string    `json:"queue"`
	Lane  string    `json:"lane"`
	Since time.Time `json:"since"`
	// Ahead counts the executions that go first: the higher lanes, and the own lane up to a bound.
	// Beyond it, About is an estimate.
	Ahead Count `json:"ahead"`
	About int64 `json:"about,omitempty"`
	// Of is the length of the queue.
	Of     int64  `json:"of"`
	Active int64  `json:"active"`
	Limit  *int64 `json:"limit"`
	Paused bool   `json:"paused"`
	// Expires is when its queue timeout ends; nil without one and while the queue is paused.
	Expires *time.Time `json:"expires"`
}

// Position is the place, the first being 1. about is true for an estimate.
func (w Waiting) Position() (place int64, about bool) {
	if w.Ahead.AtLeast {
		return max(w.About, w.Ahead.Value) + 1, true
	}
	return w.Ahead.Value + 1, false
}

// ActionTotals sums up all queues of an action.
type ActionTotals struct {
	// Groups counts the groups with a queue.
	Groups int64 `json:"groups"`
	Queued int64 `json:"queued"`
	Active int64 `json:"active"`
}

// Queues reads the busiest queues that match the filter. A filter by pause or block finds none where
// these are not recorded.
func (m *Monitor) Queues(ctx context.Context, filter QueueFilter) (*Queues, error) {
	limit := filter.Limit
	if limit <= 0 {
		limit = DefaultQueueLimit
	}
	q := &Queues{}
	err := m.Read(ctx, "queues", &q.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		var err error
		q.List, q.Totals, q.More, err = m.ReadQueues(ctx, tx, s, filter, limit)
		return err
	})
	return q, err
}

// ReadQueues reads the busiest matching queues, the totals of all, and whether more match.
func (m *Monitor) ReadQueues(ctx context.Context, tx *store.Tx, s Shape, filter QueueFilter,
	limit int,
) ([]Queue, QueueTotals, bool, error) {
	read := m.listQueues
	if !s.Ours {
		read = readPublishedQueues
	}
	list, err := read(ctx, tx, filter, int64(limit)+1)
	if err != nil {
		return nil, QueueTotals{}, false, fmt.Errorf("list queues: %w", err)
	}
	totals, err := store.Rows[QueueTotals](ctx, tx, s.query(store.MonitorQueueTotals, store.MonitorPublishedTotals))
	if err != nil {
		return nil, QueueTotals{}, false, fmt.Errorf("sum up queues: %w", err)
	}
	return list[:min(len(list), limit)], totals[0], len(list) > limit, nil
}

func (m *Monitor) listQueues(ctx context.Context, tx *store.Tx, filter QueueFilter, bound int64) ([]Queue, error) {
	ids, err := tx.ViewQueueIDs(ctx, store.ViewQueueIDsParams{
		Pattern: Pattern(filter.Text, true), OnlyPaused: filter.Paused, OnlyBlocked: filter.Blocked,
		Everything: filter.All, Bound: bound,
	})
	if err != nil {
		return nil, err
	}
	return m.QueuesByID(ctx, tx, ids)
}

// QueuesByID reads queues with the heads of their lanes, the busiest first.
func (m *Monitor) QueuesByID(ctx context.Context, tx *store.Tx, ids []int64) ([]Queue, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := store.Rows[queueRow](ctx, tx, store.ViewQueues, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d queues: %w", len(ids), err)
	}
	heads, err := tx.ViewHeads(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the heads of %d queues: %w", len(ids), err)
	}
	list := make([]Queue, len(rows))
	at := make(map[int64]int, len(rows))
	for i, r := range rows {
		list[i] = m.queueOf(r)
		at[r.ID] = i
	}
	for _, h := range heads {
		q := &list[at[h.StateID]]
		for i := range q.lanes {
			if q.lanes[i].number == h.Lane {
				q.lanes[i].first = h.ExecutionID
			}
		}
		if q.Oldest == nil || h.EnqueuedAt.Before(*q.Oldest) {
			q.Oldest = &h.EnqueuedAt
		}
	}
	return list, nil
}

type queueRow struct {
	Queue
	Kind                                         LimitKind
	Policy                                       string
	Threshold                                    *int64
	HeadHigh, HeadOrder, HeadLow, NextQueueOrder int64
}

// queueOf adds the lanes and the defaults.
func (m *Monitor) queueOf(r queueRow) Queue {
	q := r.Queue
	q.LimitFrom = LimitSource{Kind: r.Kind, Policy: r.Policy, Threshold: r.Threshold}
	q.lanes = [3]lane{
		{number: 1, queued: q.QueuedHigh, head: r.HeadHigh, next: r.NextQueueOrder},
		{number: 0, queued: q.Queued - q.QueuedHigh - q.QueuedLow, head: r.HeadOrder, next: r.NextQueueOrder},
		{number: -1, queued: q.QueuedLow, head: r.HeadLow, next: r.NextQueueOrder},
	}
	if q.MaxQueued == nil && m.cfg.MaxQueued > 0 {
		q.MaxQueued = new(int64(m.cfg.MaxQueued))
	}
	q.QueueTimeout = cmp.Or(q.QueueTimeout, m.cfg.QueueTimeout)
	return q
}

// readPublishedQueues reads queue_stats, which every Attune executor writes, one row for each
// action.
func readPublishedQueues(ctx context.Context, tx *store.Tx, filter QueueFilter, bound int64) ([]Queue, error) {
	if filter.Paused || filter.Blocked {
		return nil, nil
	}
	return store.Rows[Queue](ctx, tx, store.MonitorPublishedQueues, Pattern(filter.Text, true), bound)
}

// aheadBound is where counting the executions ahead stops.
const aheadBound = 10_000

// ReadPlace counts the executions ahead: by counters for the higher lanes, up to a bound in the own
// lane.
func ReadPlace(ctx context.Context, tx *store.Tx, q *Queue, number int16, order int64,
	since time.Time,
) (*Waiting, error) {
	waiting := &Waiting{
		Queue: q.Name(), Lane: laneName(number), Since: since, Of: q.Queued, Active: q.Active, Limit: q.Limit,
		Paused: q.Paused,
	}
	own, higher := lane{head: math.MinInt64, next: order}, int64(0)
	for _, l := range q.lanes {
		switch {
		case l.number > number:
			higher += max(l.queued, 0)
		case l.number == number:
			own = l
		}
	}
	n, err := tx.ViewAhead(ctx,
		store.ViewAheadParams{State: q.ID, Lane: number, Head: own.head, Place: order, Bound: aheadBound})
	if err != nil {
		return nil, fmt.Errorf("count the executions before place %d of queue %d: %w", order, q.ID, err)
	}
	waiting.Ahead = Count{Value: higher + n, AtLeast: n >= aheadBound}
	if waiting.Ahead.AtLeast {
		waiting.About = higher + max(estimate(own, order), n)
	}
	if q.QueueTimeout > 0 && !q.Paused {
		from := since
		if q.ResumedAt != nil && q.ResumedAt.After(from) {
			from = *q.ResumedAt
		}
		waiting.Expires = new(from.Add(q.QueueTimeout))
	}
	return waiting, nil
}

// estimate assumes that the waiting executions are spread evenly over the places of the lane.
func estimate(l lane, order int64) int64 {
	places := l.next - l.head
	if places <= 0 || order <= l.head {
		return 0
	}
	return int64(float64(l.queued) * float64(order-l.head) / float64(places))
}
