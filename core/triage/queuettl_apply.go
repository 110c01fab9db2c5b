package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/store"
)

// ErrQueueTTLRefused says that something stands in the way of an act.
var ErrQueueTTLRefused = errors.New("refused")

// QueueTTLReceipt is what a change of the time to live has done.
type QueueTTLReceipt struct {
	Target    int64       `json:"target_ms"`
	Worker    string      `json:"worker,omitempty"`
	Put       string      `json:"put_policy,omitempty"`
	Deleted   []string    `json:"deleted_policies,omitempty"`
	Recreated []Recreated `json:"recreated"`
	Refused   int         `json:"refused"`
	Seconds   float64     `json:"seconds"`
	Outcome   string      `json:"outcome"`
	Audit     int64       `json:"audit_id,omitempty"`
}

// ApplyTTL runs a plan: policies first, then one queue after the other. Each is
// looked at again; one that is in use is refused, and the others go on. It always
// returns a receipt; with an error too it says what had been done by then, and
// the same again goes on. One change runs at a time.
func (q *QueueTTLs) ApplyTTL(ctx context.Context, plan *QueueTTLPlan) (*QueueTTLReceipt, error) {
	began := time.Now()
	receipt := &QueueTTLReceipt{Target: plan.Target, Worker: plan.Worker, Recreated: []Recreated{}, Outcome: outcomeRunning}
	if plan.Blocked != "" {
		return receipt, fmt.Errorf("%w: %s", ErrQueueTTLRefused, plan.Blocked)
	}
	err := q.alone(ctx, func(lock *store.SessionLock) error { return q.apply(ctx, lock, plan, receipt) })
	receipt.Seconds = time.Since(began).Seconds()
	switch {
	case err != nil && ctx.Err() != nil:
		receipt.Outcome = outcomeInterrupted
	case err != nil:
		receipt.Outcome = outcomeFailed
	case plan.Nothing():
		receipt.Outcome = outcomeUnchanged
	case receipt.Refused == len(plan.Recreate) && receipt.Refused > 0 && receipt.Put == "" && len(receipt.Deleted) == 0:
		receipt.Outcome = outcomeRefused
	default:
		receipt.Outcome = outcomeDone
	}
	if receipt.Audit == 0 {
		return receipt, err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditPatience)
	defer cancel()
	a := audit{request: map[string]any{"plan": plan, "receipt": receipt}, outcome: receipt.Outcome}
	if err != nil {
		a.failure = err.Error()
	}
	return receipt, errors.Join(err, q.triage.amend(ending, q.store.Queries, receipt.Audit, a))
}

// alone runs a change while no other does. The lock is that of a session: the broker
// may need longer than a transaction may be idle.
func (q *QueueTTLs) alone(ctx context.Context, change func(*store.SessionLock) error) error {
	lock, err := q.store.LockSession(ctx, "the time to live of worker queues", q.cfg.Actor)
	if locked := (*store.LockedError)(nil); errors.As(err, &locked) {
		return fmt.Errorf("%w: another change of the time to live is under way: %w", ErrQueueTTLRefused, locked)
	}
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return change(lock)
}

func (q *QueueTTLs) apply(ctx context.Context, lock *store.SessionLock, plan *QueueTTLPlan, receipt *QueueTTLReceipt) (err error) {
	if receipt.Audit, err = q.begin(ctx, plan); err != nil {
		return err
	}
	if plan.Put != nil {
		if err := q.management.PutPolicy(ctx, *plan.Put); err != nil {
			return err
		}
		receipt.Put = plan.Put.Name
	}
	for _, name := range plan.Delete {
		if err := q.management.DeletePolicy(ctx, name); err != nil {
			return err
		}
		receipt.Deleted = append(receipt.Deleted, name)
	}
	for _, one := range plan.Recreate {
		if err := lock.Check(ctx); err != nil {
			return err
		}
		newest, err := q.newest(ctx, one)
		if err != nil {
			return err
		}
		result, err := q.recreate(ctx, newest, plan.Target)
		if err != nil {
			result.Outcome, result.Reason = outcomeFailed, err.Error()
		}
		if result.Outcome == outcomeRefused {
			receipt.Refused++
		}
		receipt.Recreated = append(receipt.Recreated, result)
		if err != nil {
			return err
		}
	}
	return nil
}

// newest looks at a queue again.
func (q *QueueTTLs) newest(ctx context.Context, one QueueTTL) (QueueTTL, error) {
	report, err := q.report(ctx, one.Worker)
	if err != nil {
		return one, err
	}
	for _, other := range report.Queues {
		if other.Worker == one.Worker {
			return other, nil
		}
	}
	return one, fmt.Errorf("%w: %s is gone", ErrNoWorkerQueue, one.Queue)
}

// begin writes down that the change is under way.
func (q *QueueTTLs) begin(ctx context.Context, plan *QueueTTLPlan) (int64, error) {
	request, err := json.Marshal(map[string]any{"plan": plan})
	if err != nil {
		return 0, fmt.Errorf("encode the audit of worker.ttl: %w", err)
	}
	row := store.InsertAuditParams{
		Actor: q.cfg.Actor, Source: q.cfg.Source, Action: "worker.ttl", TargetType: "workers", Target: "all",
		Reason: plan.Reason, Request: request, Outcome: outcomeRunning,
	}
	if plan.Worker != "" {
		row.TargetType, row.Target, row.TargetID = "worker", plan.Worker, &plan.queues[0].Worker
	}
	id, err := q.store.InsertAudit(ctx, row)
	if err != nil {
		return 0, fmt.Errorf("audit worker.ttl: %w", err)
	}
	return id, nil
}
