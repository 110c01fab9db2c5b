package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

const (
	// aheadBound is where counting those who wait before an execution stops.
	aheadBound = 10_000
	// replicaAlive is how long ago a replica that lives was seen at most.
	replicaAlive = 30 * time.Second
	// replicaLate is how long a replica has been silent that has missed a report.
	replicaLate = 10 * time.Second
)

// Why says why an execution waits, or what it does instead.
type Why struct {
	Reading
	Execution
	Priority int `json:"priority"`
	// Summary is one plain sentence; Lines are all of it in sentences.
	Summary string   `json:"summary"`
	Lines   []string `json:"lines"`
	// Unknown says why nothing is known beyond the row; empty where it is.
	Unknown string `json:"unknown,omitempty"`
	// Replicas is how many replicas of the engine are alive; nil when not asked.
	Replicas *int64 `json:"engine_replicas"`

	// What follows is set for one that waits in a queue. Queue is also set while
	// an execution holds a slot of it.
	Waiting *Waiting `json:"waiting"`
	Queue   *Queue   `json:"queue"`
	Holders *Holders `json:"holders"`
	// Scope is the shared limit that keeps the head of the queue, and
	// ScopeHolders who holds its slots; nil when nothing or a worker does.
	Scope        *Scope       `json:"scope"`
	ScopeHolders *Holders     `json:"scope_holders"`
	Policies     []PolicyLine `json:"policies"`
	Drain        *Drain       `json:"drain"`
	Expected     *Expected    `json:"expected"`

	// Workers are the first of the workers, those that could take it before the
	// others, of one that waits for a worker or failed for want of one, as they
	// are now. WorkerReasons counts what all of them are to it.
	Workers       []WorkerVerdict `json:"workers"`
	WorkerReasons []ReasonCount   `json:"worker_reasons"`
	// Retry is set for a repetition that waits for its time.
	Retry *PendingRetry `json:"retry"`

	admittedAt *time.Time
	holds      bool
	inLine     bool
	refusal    string // the error of the result
	workflow   bool
	silent     time.Duration // since any replica of the engine was seen
	checks     time.Duration // Config.OrphanInterval
	allowed    time.Duration // how long its worker may take to begin it; 0 when that is not known
	worker     *Holder       // the worker that has it, as far as holders tell
}

// Why reads why an execution waits and for what, or says in a sentence what it
// does instead. An execution that does not exist is ErrNotFound. Where the
// schema does not record admission, the answer says so.
func (m *Monitor) Why(ctx context.Context, id int64) (*Why, error) {
	w := &Why{}
	err := m.database(ctx, "why execution "+strconv.FormatInt(id, 10), &w.Reading, func(ctx context.Context, tx *store.Tx, s shape) error {
		reading := w.Reading
		*w = Why{Reading: reading} // the transaction may be repeated
		return m.why(ctx, tx, s, id, w)
	})
	return w, err
}

func (m *Monitor) why(ctx context.Context, tx *store.Tx, s shape, id int64, w *Why) error {
	rows, err := readExecutions(ctx, tx, s, []int64{id})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return ErrNotFound
	}
	w.Execution = rows[0]
	if !s.shared {
		w.Unknown = "this database has not been migrated by this engine, which alone records places in line"
		w.tell(m.cfg.StaleAfter)
		return nil
	}
	facts, err := tx.ViewAdmission(ctx, configCut, id)
	if err != nil {
		return fmt.Errorf("read what admission knows of execution %d: %w", id, err)
	}
	if len(facts) == 0 {
		return ErrNotFound
	}
	a := facts[0]
	w.Priority, w.admittedAt, w.holds, w.refusal, w.workflow = int(a.Priority), a.AdmittedAt, a.HeldState != 0, a.Error, a.WorkflowDef != nil
	w.inLine, w.checks, w.allowed = a.StateID != nil, m.cfg.OrphanInterval, m.cfg.ScheduledTimeout
	if a.ScheduledTimeoutSeconds > 0 {
		w.allowed = time.Duration(a.ScheduledTimeoutSeconds) * time.Second
	}
	if w.inLine && w.Status == string(attune.StatusRequested) {
		err = m.whyWaiting(ctx, tx, a, w)
	} else {
		err = m.whyNot(ctx, tx, a, w)
	}
	if err != nil {
		return err
	}
	if err := m.whyWorkers(ctx, tx, s, a.ActionID, w); err != nil {
		return err
	}
	w.tell(m.cfg.StaleAfter)
	if err := w.conditions(ctx, tx, s); err != nil {
		return err
	}
	lease, err := leaseLine(ctx, tx, s, id)
	if err != nil {
		return err
	}
	if lease != "" {
		w.Lines = append(w.Lines, lease)
	}
	return nil
}

// falseConditions bounds how many conditions are told of.
const falseConditions = 5

// conditions adds what the log of a workflow says of conditions that were false.
func (w *Why) conditions(ctx context.Context, tx *store.Tx, s shape) error {
	if !w.workflow {
		return nil
	}
	switch err := recordsWorkflows(ctx, tx, s); {
	case errors.Is(err, ErrUnmigrated):
		return nil
	case err != nil:
		return err
	}
	lines, err := tx.ViewFalseConditions(ctx, w.ID, falseConditions)
	if err != nil {
		return fmt.Errorf("read the conditions of workflow %d: %w", w.ID, err)
	}
	if len(lines) > 0 {
		w.Lines = append(w.Lines, "Conditions that were false:")
	}
	for _, line := range slices.Backward(lines) {
		w.Lines = append(w.Lines, "  "+line)
	}
	return nil
}

// whyNot reads what there is to say of an execution that stands in no queue.
func (m *Monitor) whyNot(ctx context.Context, tx *store.Tx, a store.ViewAdmissionRow, w *Why) error {
	if err := w.readReplicas(ctx, tx); err != nil {
		return err
	}
	if a.HeldState != 0 {
		queues, err := m.queuesByID(ctx, tx, []int64{a.HeldState})
		if err != nil {
			return err
		}
		if len(queues) > 0 {
			w.Queue = &queues[0]
		}
	}
	if w.WorkerID == nil {
		return nil
	}
	h := &Holders{}
	if err := m.fillHolders(ctx, tx, h, []found{{w.ID, w.Updated}}, w.At); err != nil {
		return err
	}
	if len(h.List) > 0 {
		w.worker = &h.List[0]
	}
	return nil
}

func (w *Why) readReplicas(ctx context.Context, tx *store.Tx) error {
	r, err := tx.ViewReplicas(ctx, replicaAlive.Seconds())
	if err != nil {
		return fmt.Errorf("count the replicas that are alive: %w", err)
	}
	w.Replicas, w.silent = &r.Alive, time.Duration(r.Silent*float64(time.Second))
	return nil
}

// whyWaiting reads everything about the queue that an execution waits in.
func (m *Monitor) whyWaiting(ctx context.Context, tx *store.Tx, a store.ViewAdmissionRow, w *Why) error {
	if err := w.readReplicas(ctx, tx); err != nil {
		return err
	}
	queues, err := m.queuesByID(ctx, tx, []int64{*a.StateID})
	if err != nil {
		return err
	}
	if len(queues) == 0 {
		return nil
	}
	q := &queues[0]
	w.Queue = q
	if w.Waiting, err = readPlace(ctx, tx, q, *a.Lane, *a.QueueOrder, *a.EnqueuedAt); err != nil {
		return err
	}
	p, err := readPolicies(ctx, tx, q.ActionID, q.packID, a.ParamSchema)
	if err != nil {
		return err
	}
	if w.Policies, err = p.lines(ctx, tx, q, policy.WithDefaults(a.Config, a.ParamSchema), w.At); err != nil {
		return err
	}
	if w.Holders, err = m.queueHolders(ctx, tx, q, w.At); err != nil {
		return err
	}
	if w.Scope, w.ScopeHolders, err = m.keeper(ctx, tx, q, w.At); err != nil {
		return err
	}
	f, _, err := m.forecast(ctx, tx, q, p, w.Policies, w.At)
	if err != nil {
		return err
	}
	place, about := w.Waiting.Position()
	d, e := f.drain(), f.start(place, about)
	w.Drain, w.Expected = &d, &e
	return nil
}

// keeper reads the shared limit that keeps the head of a queue and who holds
// its slots, if one does.
func (m *Monitor) keeper(ctx context.Context, tx *store.Tx, q *Queue, at time.Time) (*Scope, *Holders, error) {
	if q.BlockedScope == nil {
		return nil, nil, nil
	}
	list, err := scopesByID(ctx, tx, []int64{*q.BlockedScope}, at)
	if err != nil || len(list) == 0 {
		return nil, nil, err
	}
	scope := &list[0]
	if !policy.WideKind(scope.Kind).Slots() {
		return scope, nil, nil
	}
	holders, err := m.scopeHolders(ctx, tx, scope, at)
	return scope, holders, err
}

// readPlace counts who goes before a waiter: the higher lanes have counters,
// its own is counted up to a bound.
func readPlace(ctx context.Context, tx *store.Tx, q *Queue, number int16, order int64, since time.Time) (*Waiting, error) {
	waiting := &Waiting{
		Queue: q.Name(), Lane: laneName(number), Since: since, Of: q.Queued, Active: q.Active, Limit: q.Limit, Paused: q.Paused,
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
	n, err := tx.ViewAhead(ctx, store.ViewAheadParams{State: q.ID, Lane: number, Head: own.head, Place: order, Bound: aheadBound})
	if err != nil {
		return nil, fmt.Errorf("count who waits before place %d of queue %d: %w", order, q.ID, err)
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
		expires := from.Add(q.QueueTimeout)
		waiting.Expires = &expires
	}
	return waiting, nil
}

// estimate guesses how many wait before a place of a lane: the lane's waiters
// spread evenly over the places that were given.
func estimate(l lane, order int64) int64 {
	places := l.next - l.head
	if places <= 0 || order <= l.head {
		return 0
	}
	return int64(float64(l.queued) * float64(order-l.head) / float64(places))
}
