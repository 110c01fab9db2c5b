package demo

import (
	"context"

	"github.com/attune-go/attune/core/triage"
)

// underWay returns the orders under way, or only the paused ones of them.
func (d *Demo) underWay(ctx context.Context, paused bool) (ids []int64, err error) {
	err = d.queryRow(ctx, "read the orders under way", sql.Orders, args{d.before, paused}, &ids)
	return ids, err
}

func (d *Demo) operator(actor string) *triage.Triage {
	return triage.New(triage.Config{Actor: actor, Source: "attune-demo"}, d.store, d.relay)
}

// cancel cancels executions as an operator.
func (d *Demo) cancel(ctx context.Context, ids []int64, reason string) error {
	plan, err := d.operator("demo").PlanCancel(ctx, triage.CancelRequest{IDs: ids, Reason: reason})
	if err == nil {
		_, err = d.operator("demo").Cancel(ctx, plan)
	}
	return err
}

// pauseOrders pauses the orders under way.
func (d *Demo) pauseOrders(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) (paused bool, err error) {
		ids, err := d.underWay(ctx, false)
		for _, id := range ids {
			if _, err := d.operator("demo").PauseWorkflow(ctx, id, "the demo"); err != nil {
				d.logger.InfoContext(ctx, "Order not paused", "execution_id", id, "error", err) // it has ended
				continue
			}
			paused = true
		}
		return paused, err
	})
}

// resumeOrders resumes the paused orders.
func (d *Demo) resumeOrders(ctx context.Context) error {
	ids, err := d.underWay(ctx, true)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := d.operator("demo").ResumeWorkflow(ctx, id, "the demo"); err != nil {
			d.logger.InfoContext(ctx, "Order not resumed", "execution_id", id, "error", err)
		}
	}
	return nil
}

// cancelOrder cancels the newest order under way with all its tasks.
func (d *Demo) cancelOrder(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) (bool, error) {
		ids, err := d.underWay(ctx, false)
		if err != nil || len(ids) == 0 {
			return false, err
		}
		if _, err := d.operator("demo").CancelWorkflow(ctx, ids[0], "the demo"); err != nil {
			d.logger.InfoContext(ctx, "Order not cancelled", "execution_id", ids[0], "error", err) // it has ended
			return false, nil
		}
		return true, nil
	})
}
