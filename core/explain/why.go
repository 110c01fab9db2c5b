package explain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// Why says why an execution waits, or what it does instead.
type Why struct {
	monitor.Reading
	monitor.Execution
	Priority int `json:"priority"`
	// Summary is one sentence; Lines are all sentences.
	Summary string   `json:"summary"`
	Lines   []string `json:"lines"`
	// Unknown says why only the row is known.
	Unknown string `json:"unknown,omitempty"`
	// Replicas counts live replicas; nil if unknown.
	Replicas *int64 `json:"engine_replicas"`

	// These are set while it waits in a queue; Queue also while it holds a slot.
	Waiting *monitor.Waiting `json:"waiting"`
	Queue   *monitor.Queue   `json:"queue"`
	Holders *monitor.Holders `json:"holders"`
	// Scope is the shared limit that blocks the head of the queue, with its holders; nil for none or
	// a worker.
	Scope        *monitor.Scope       `json:"scope"`
	ScopeHolders *monitor.Holders     `json:"scope_holders"`
	Policies     []monitor.PolicyLine `json:"policies"`
	Drain        *Drain               `json:"drain"`
	Expected     *Expected            `json:"expected"`

	// Workers are the best candidates for an execution that waits for a worker or failed without
	// one, as they are now. WorkerReasons counts all of them.
	Workers       []WorkerVerdict `json:"workers"`
	WorkerReasons []ReasonCount   `json:"worker_reasons"`
	// Retry is set for a retry that waits for its time.
	Retry *PendingRetry `json:"retry"`

	admittedAt *time.Time
	holds      bool
	inLine     bool
	refusal    string // the error of the result
	workflow   bool
	silent     time.Duration     // since the last report of a replica
	checks     time.Duration     // Config.OrphanInterval
	allowed    time.Duration     // how long its worker may take to start it; 0 if unknown
	worker     *monitor.Holder   // its worker, as holders show it
	missed     *placement.Worker // the last worker that fits and that is gone; nil while one lives
}

// Why reads why an execution waits, or what it does instead. A missing one is ErrNotFound. Where the
// schema records no admission, the answer says so.
func (m *Reader) Why(ctx context.Context, id int64) (*Why, error) {
	w := &Why{}
	err := m.Read(ctx, "why execution "+strconv.FormatInt(id, 10), &w.Reading,
		func(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
			reading := w.Reading
			*w = Why{Reading: reading} // the transaction may be repeated
			return m.why(ctx, tx, s, id, w)
		})
	return w, err
}

func (m *Reader) why(ctx context.Context, tx *store.Tx, s monitor.Shape, id int64, w *Why) error {
	rows, err := monitor.ReadExecutions(ctx, tx, s, []int64{id})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return monitor.ErrNotFound
	}
	w.Execution = rows[0]
	if !s.Ours {
		w.Unknown = "this database has not been migrated by this engine, which alone records places in line"
		w.tell(m.Config().StaleAfter)
		return nil
	}
	facts, err := tx.ViewAdmission(ctx, monitor.ConfigCut, id)
	if err != nil {
		return fmt.Errorf("read what admission knows of execution %d: %w", id, err)
	}
	if len(facts) == 0 {
		return monitor.ErrNotFound
	}
	a := facts[0]
	w.Priority, w.admittedAt, w.holds, w.refusal, w.workflow = int(a.Priority), a.AdmittedAt, a.HeldState != 0, a.Error,
		a.WorkflowDef != nil
	w.inLine, w.checks, w.allowed = a.StateID != nil, m.Config().OrphanInterval, m.Config().ScheduledTimeout
	if a.ScheduledTimeoutSeconds > 0 {
		w.allowed = time.Duration(a.ScheduledTimeoutSeconds) * time.Second
	}
	if w.inLine && w.Status == string(lifecycle.StatusRequested) {
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
	w.tell(m.Config().StaleAfter)
	if err := w.conditions(ctx, tx, s); err != nil {
		return err
	}
	lease, err := monitor.LeaseLine(ctx, tx, s, id)
	if err != nil {
		return err
	}
	if lease != "" {
		w.Lines = append(w.Lines, lease)
	}
	return nil
}

// falseConditions bounds the listed conditions.
const falseConditions = 5

// conditions adds the conditions that the log of a workflow records as false.
func (w *Why) conditions(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
	if !w.workflow || !s.Ours {
		return nil
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

// whyNot reads about an execution outside a queue.
func (m *Reader) whyNot(ctx context.Context, tx *store.Tx, a store.ViewAdmissionRow, w *Why) error {
	if err := w.readReplicas(ctx, tx); err != nil {
		return err
	}
	if a.HeldState != 0 {
		queues, err := m.QueuesByID(ctx, tx, []int64{a.HeldState})
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
	h, err := m.Holders(ctx, tx, 1, []store.ViewQueueHoldersRow{{ID: w.ID, Since: w.Updated}}, w.At)
	if err != nil {
		return err
	}
	if len(h.List) > 0 {
		w.worker = &h.List[0]
	}
	return nil
}

func (w *Why) readReplicas(ctx context.Context, tx *store.Tx) error {
	r, err := tx.ViewReplicas(ctx, monitor.ReplicaAlive.Seconds())
	if err != nil {
		return fmt.Errorf("count the replicas that are alive: %w", err)
	}
	w.Replicas, w.silent = &r.Alive, time.Duration(r.Silent*float64(time.Second))
	return nil
}

// whyWaiting reads everything about the queue of an execution.
func (m *Reader) whyWaiting(ctx context.Context, tx *store.Tx, a store.ViewAdmissionRow, w *Why) error {
	if err := w.readReplicas(ctx, tx); err != nil {
		return err
	}
	queues, err := m.QueuesByID(ctx, tx, []int64{*a.StateID})
	if err != nil {
		return err
	}
	if len(queues) == 0 {
		return nil
	}
	q := &queues[0]
	w.Queue = q
	if w.Waiting, err = monitor.ReadPlace(ctx, tx, q, *a.Lane, *a.QueueOrder, *a.EnqueuedAt); err != nil {
		return err
	}
	p, err := monitor.ReadPolicies(ctx, tx, q.ActionID, q.PackID, a.ParamSchema)
	if err != nil {
		return err
	}
	if w.Policies, err = p.Lines(ctx, tx, q, policy.WithDefaults(a.Config, a.ParamSchema), w.At); err != nil {
		return err
	}
	if w.Holders, err = m.QueueHolders(ctx, tx, q, w.At); err != nil {
		return err
	}
	if w.Scope, w.ScopeHolders, err = m.Keeper(ctx, tx, q, w.At); err != nil {
		return err
	}
	f, _, err := m.forecast(ctx, tx, q, p, w.Policies, w.At)
	if err != nil {
		return err
	}
	place, _ := w.Waiting.Position()
	d, e := f.drain(), f.start(place)
	w.Drain, w.Expected = &d, &e
	return nil
}
