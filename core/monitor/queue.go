package monitor

import (
	"strings"
	"time"
)

// Queue is one admission queue: an action, or one group of an action.
type Queue struct {
	ID        int64  `json:"id"`
	ActionID  int64  `json:"action_id"`
	ActionRef string `json:"action_ref"`
	Group     string `json:"group,omitempty"`
	// Queued counts all who wait; QueuedHigh and QueuedLow those of them in the
	// lanes of high and low priority.
	Queued     int64 `json:"queued"`
	QueuedHigh int64 `json:"queued_high"`
	QueuedLow  int64 `json:"queued_low"`
	Active     int64 `json:"active"`
	// Limit is nil when the queue admits without limit.
	Limit *int64 `json:"limit"`
	// LimitFrom says who set the limit. It is the zero value where that is not
	// recorded.
	LimitFrom LimitSource `json:"limit_from"`
	// MaxQueued is how many may wait, QueueTimeout how long one may; nil and
	// zero mean without bound.
	MaxQueued    *int64        `json:"max_queued"`
	QueueTimeout time.Duration `json:"queue_timeout_ns"`
	// Oldest is since when the one waits that has waited longest of the heads of
	// the lanes; nil when nobody waits.
	Oldest      *time.Time `json:"oldest"`
	Completed   int64      `json:"completed"`
	Enqueued    int64      `json:"enqueued"`
	Paused      bool       `json:"paused"`
	PauseReason string     `json:"pause_reason,omitempty"`
	PausedBy    string     `json:"paused_by,omitempty"`
	PausedAt    *time.Time `json:"paused_at,omitempty"`
	// ResumedAt is when a pause ended last: the patience of who waits counts
	// from there.
	ResumedAt *time.Time `json:"resumed_at,omitempty"`
	// Blocked is set while the head has room in its own limit and waits for
	// something else, such as a worker.
	Blocked      string     `json:"blocked,omitempty"`
	BlockedSince *time.Time `json:"blocked_since,omitempty"`
	// BlockedUntil is when trying again is worth it, where that is known.
	BlockedUntil *time.Time `json:"blocked_until,omitempty"`
	// BlockedScope is the shared limit that keeps the head; nil when workers do.
	BlockedScope *int64 `json:"blocked_scope,omitempty"`

	lanes  [3]lane // high, normal, low
	PackID int64   `json:"-"`
}

// lane is one of the three lines of a queue.
type lane struct {
	number int16
	queued int64
	// head is a place before which nobody of the lane waits, next the first
	// place that was never given.
	head, next int64
	// first is the execution at the head, 0 when nobody waits.
	first int64
	since time.Time
}

// The names of the lanes, for people.
const (
	LaneHigh   = "high"
	LaneNormal = "normal"
	LaneLow    = "low"
)

// laneName is how people call a lane, or a priority.
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

// LimitSource says who set the limit of a queue.
type LimitSource struct {
	Kind LimitKind `json:"kind"`
	// Policy is the newest concurrency policy of the action and Threshold what
	// it says, also while something else is in force.
	Policy    string `json:"policy,omitempty"`
	Threshold *int64 `json:"threshold,omitempty"`
}

// LimitKind names who sets a limit.
type LimitKind string

// Who sets a limit.
const (
	// LimitNone: no policy applies, the queue admits without limit.
	LimitNone LimitKind = "none"
	// LimitPolicy: the threshold of the policy is in force.
	LimitPolicy LimitKind = "policy"
	// LimitOverride: an operator has replaced the threshold.
	LimitOverride LimitKind = "override"
	// LimitAdaptive: failures or slow runs have lowered it.
	LimitAdaptive LimitKind = "adaptive"
)

// String is the source in a few words, as tables show it.
func (l LimitSource) String() string {
	if l.Kind == LimitPolicy && l.Policy != "" {
		return l.Policy
	}
	return string(l.Kind)
}

// Name is how people call the queue: the action, and its group if it has one.
func (q Queue) Name() string {
	if q.Group == "" {
		return q.ActionRef
	}
	return q.ActionRef + " " + q.Group
}

// Full reports whether every slot of the queue is taken.
func (q Queue) Full() bool { return q.Limit != nil && q.Active >= *q.Limit }

// State is the state of the queue in a few words: paused, blocked, full, idle or
// open, the first that is true.
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
	// Text keeps queues whose action or group contains it, whatever the case.
	Text string
	// Paused and Blocked keep queues that are paused, and those whose head waits
	// for something wider than the queue. With both set a queue has to be both.
	Paused, Blocked bool
	// All keeps also what is left over: queues that hold nothing, of groups that
	// the policies in force do not make.
	All bool
	// Limit bounds the answer; zero means DefaultQueueLimit.
	Limit int
}

// Queues is one page of admission queues, the busiest first.
type Queues struct {
	Reading
	Totals QueueTotals `json:"totals"`
	List   []Queue     `json:"list"`
	// More is true when the filter matches queues beyond the limit.
	More bool `json:"more"`
}

// Waiting is an execution's place in its admission queue.
type Waiting struct {
	Queue string `json:"queue"`
	Lane  string `json:"lane"`
	// Since is when it began to wait.
	Since time.Time `json:"since"`
	// Ahead counts those who go first: all of the higher lanes, and those of its
	// own lane up to a bound. Beyond the bound About estimates the number, from
	// the places that were given.
	Ahead Count `json:"ahead"`
	About int64 `json:"about,omitempty"`
	// Of is how many wait in the queue.
	Of     int64  `json:"of"`
	Active int64  `json:"active"`
	Limit  *int64 `json:"limit"`
	Paused bool   `json:"paused"`
	// Expires is when it is given up as waiting too long; nil when it may wait
	// for ever, and while the queue is paused, which stops that clock.
	Expires *time.Time `json:"expires"`
}

// Position is the place in line, the first being 1; about is true when it had
// to be estimated.
func (w Waiting) Position() (place int64, about bool) {
	if w.Ahead.AtLeast {
		return max(w.About, w.Ahead.Value) + 1, true
	}
	return w.Ahead.Value + 1, false
}

// ActionTotals is what all queues of an action hold together.
type ActionTotals struct {
	// Groups is how many groups have a queue.
	Groups int64 `json:"groups"`
	Queued int64 `json:"queued"`
	Active int64 `json:"active"`
}
