package demo

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/attune-go/attune/core/triage"
)

//go:embed orders.sql
var ordersSQL string

// underWay are the orders that are under way, or those of them that are paused.
func (d *Demo) underWay(ctx context.Context, paused bool) ([]int64, error) {
	var ids []int64
	if err := d.store.Pool().QueryRow(ctx, ordersSQL, d.before, paused).Scan(&ids); err != nil {
		return nil, fmt.Errorf("read the orders that are under way: %w", err)
	}
	return ids, nil
}

func (d *Demo) operator() *triage.Triage {
	return triage.New(triage.Config{Actor: "demo", Source: "attune-demo"}, d.store, d.relay)
}

// pauseOrders has every order that is under way start nothing more.
func (d *Demo) pauseOrders(ctx context.Context) error {
	return onceThere(ctx, func(ctx context.Context) (paused bool, err error) {
		ids, err := d.underWay(ctx, false)
		for _, id := range ids {
			if _, err := d.operator().PauseWorkflow(ctx, id, "the demo"); err != nil {
				d.logger.InfoContext(ctx, "An order was not paused", "execution", id, "error", err) // it has ended
				continue
			}
			paused = true
		}
		return paused, err
	})
}

// resumeOrders has the paused orders go on.
func (d *Demo) resumeOrders(ctx context.Context) error {
	ids, err := d.underWay(ctx, true)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := d.operator().ResumeWorkflow(ctx, id, "the demo"); err != nil {
			d.logger.InfoContext(ctx, "An order was not resumed", "execution", id, "error", err)
		}
	}
	return nil
}

// cancelOrder stops the newest order that is under way, with all its tasks.
func (d *Demo) cancelOrder(ctx context.Context) error {
	return onceThere(ctx, func(ctx context.Context) (bool, error) {
		ids, err := d.underWay(ctx, false)
		if err != nil || len(ids) == 0 {
			return false, err
		}
		if _, err := d.operator().CancelWorkflow(ctx, ids[0], "the demo"); err != nil {
			d.logger.InfoContext(ctx, "An order was not cancelled", "execution", ids[0], "error", err) // it has ended
			return false, nil
		}
		return true, nil
	})
}
