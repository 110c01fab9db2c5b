package redrive

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/attune-go/attune/core/store"
)

// The outcomes of a run, by the words of all audits. One that died stays running.
const (
	outcomeRunning     = "running"
	outcomeDone        = "done"
	outcomeInterrupted = "interrupted"
	outcomeFailed      = "failed"
)

// auditQueue is what the audit of a run on the broker is about.
const auditQueue = "broker_queue"

// record writes down that a run begins, where there is a table for it. What is not
// written down is not done.
func (r *runner) record(ctx context.Context) error {
	shape, err := r.desk.store.RedriveShape(ctx)
	if err != nil {
		return fmt.Errorf("look at the schema: %w", err)
	}
	if !shape.Records {
		return nil
	}
	request, err := r.asked()
	if err != nil {
		return err
	}
	cfg := &r.desk.cfg
	r.receipt.Audit, err = r.desk.store.InsertAudit(ctx, store.InsertAuditParams{
		Actor: cfg.Actor, Source: cfg.Source, Action: "dead_letter." + r.plan.Do, TargetType: auditQueue, Target: cfg.Queue, Reason: r.reason,
		Request: request, Outcome: outcomeRunning,
	})
	if err != nil {
		return fmt.Errorf("audit the %s: %w", r.plan.Do, err)
	}
	return nil
}

// amend writes down what a run has come to.
func (r *runner) amend(ctx context.Context) {
	receipt := r.receipt
	if receipt.Audit == 0 {
		return
	}
	arg := store.UpdateAuditParams{ID: receipt.Audit, Outcome: outcomeDone, Error: receipt.Stopped}
	switch receipt.Stopped {
	case "":
	case stoppedByHand:
		arg.Outcome = outcomeInterrupted
	default:
		arg.Outcome = outcomeFailed
	}
	var err error
	if arg.Request, err = r.asked(); err == nil {
		err = r.desk.store.UpdateAudit(ctx, arg)
	}
	if err != nil {
		receipt.Errors = append(receipt.Errors, fmt.Sprintf("audit %d still says that it runs: %s", receipt.Audit, err))
	}
}

// asked is what was planned, and how far it has come.
func (r *runner) asked() ([]byte, error) {
	p := r.plan
	asked := map[string]any{"op": p.Op, "queue": p.Queue.Name, "planned": p.Work(), "receipt": r.receipt}
	for key, value := range map[string]string{"exchange": p.Exchange, "key": p.Key, "override": p.Override, "undoes": p.Order.Op} {
		if value != "" {
			asked[key] = value
		}
	}
	if p.Real {
		asked["by_the_broker"] = true
	}
	raw, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("encode the audit of %s: %w", p.Op, err)
	}
	return raw, nil
}
