package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/query"
)

// faults runs the faults while traffic runs, and reports each.
func (d *Demo) faults(ctx context.Context, news chan<- string) {
	length := d.cfg.Duration
	if length <= 0 {
		length = 2 * time.Minute
	}
	resume := d.apply("demo", triage.Override{Act: triage.Resume, Target: reports})
	script := []struct {
		name string
		do   func(context.Context) error
	}{
		{"kill -9 " + replicaName(0), func(context.Context) error { d.fleet.kill(replicaName(0)); return nil }},
		{replicaName(0) + " starts again", func(context.Context) error { return d.fleet.restart(replicaName(0)) }},
		{
			"demo.report is paused",
			d.apply("demo", triage.Override{Act: triage.Pause, Target: reports, Reason: "the demo"}),
		},
		{"demo.report is resumed, with a limit of six", func(ctx context.Context) error {
			return errors.Join(d.apply("demo", triage.Override{Act: triage.Limit, Target: reports, Limit: 6})(ctx),
				resume(ctx))
		}},
		{"queued and running executions of demo.sync are cancelled", d.cancelSyncs},
		{"kill -9 " + workerName(2) + "; other workers retry its executions", func(context.Context) error {
			d.incidentLock.Lock()
			defer d.incidentLock.Unlock()
			d.fleet.kill(workerName(2))
			d.workerKilled = true
			return nil
		}},
		{"the orders under way are paused", d.pauseOrders},
		{"every completion of the last seconds is delivered again", d.duplicate},
		{"the orders are resumed", d.resumeOrders},
		{workerName(1) + " drains and restarts", func(context.Context) error {
			d.fleet.stop(workerName(1))
			return d.fleet.restart(workerName(1))
		}},
		{"an order is cancelled", d.cancelOrder},
		{"all broker connections are closed", d.closeConnections},
		{workerName(2) + " starts again", func(context.Context) error { return d.fleet.restart(workerName(2)) }},
		{"kill -9 " + replicaName(1), func(context.Context) error { d.fleet.kill(replicaName(1)); return nil }},
		{replicaName(1) + " starts again", func(context.Context) error { return d.fleet.restart(replicaName(1)) }},
	}
	pause := length / time.Duration(len(script)+2)
	for i, fault := range script {
		if !supervise.Sleep(ctx, pause) {
			for _, left := range script[i:] {
				d.recordMissed(left.name, errors.New("the demo ended before"))
			}
			break
		}
		news <- "fault: " + fault.name
		if err := fault.do(ctx); err != nil {
			d.recordMissed(fault.name, err)
			if ctx.Err() == nil {
				news <- fmt.Sprintf("fault failed: %v", err)
			}
		}
	}
	// Undo the faults whose end was not reached in time.
	if err := resume(context.WithoutCancel(ctx)); err != nil {
		d.logger.WarnContext(ctx, "Failed to resume the demo's queue", "error", err)
	}
	if err := d.resumeOrders(context.WithoutCancel(ctx)); err != nil {
		d.logger.WarnContext(ctx, "Failed to resume paused orders", "error", err)
	}
	if err := d.fleet.restartDead(); err != nil {
		d.printf("%v", err)
	}
}

// recordMissed records a fault that did not happen. The user may end the demo before all faults happen;
// only a demo of a given length promises them.
func (d *Demo) recordMissed(name string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cfg.Duration > 0 {
		d.undone = append(d.undone, fmt.Sprintf("%s: %v", name, err))
	}
}

// retry repeats a fault until it had an object, for at most 15 seconds.
func retry(ctx context.Context, do func(context.Context) (bool, error)) error {
	const timeout = 15 * time.Second
	for begun := time.Now(); ; {
		done, err := do(ctx)
		if err != nil || done {
			return err
		}
		if time.Since(begun) > timeout || !supervise.Sleep(ctx, 50*time.Millisecond) {
			return errors.New("no execution to do this to")
		}
	}
}

// reports is the target of the operator's overrides.
var reports = triage.Target{Action: "demo.report"}

// apply returns a function that applies an override as the given operator.
func (d *Demo) apply(actor string, order triage.Override) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := d.operator(actor).Override(ctx, order)
		return err
	}
}

// cancelSyncs cancels every execution of demo.sync that has not ended.
func (d *Demo) cancelSyncs(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) (bool, error) {
		var ids []int64
		err := d.queryRow(ctx, "read the executions to cancel", sql.Syncs, nil, &ids)
		if err != nil || len(ids) == 0 {
			return false, err
		}
		return true, d.cancel(ctx, ids, "the demo")
	})
}

// duplicate publishes execution.completed again for recently completed executions, as a broker does
// after lost acknowledgements.
func (d *Demo) duplicate(ctx context.Context) error {
	var ended []message.ExecutionCompleted
	err := retry(ctx, func(ctx context.Context) (there bool, err error) {
		ended, err = query.Rows(ctx, d.store.Pool(), "read recent completions", sql.Recent, nil,
			func(e *message.ExecutionCompleted) []any {
				e.CompletedAt = time.Now().UTC()
				return []any{&e.ExecutionID, &e.ActionID, &e.ActionRef, &e.Status}
			})
		return len(ended) > 0, err
	})
	if err != nil {
		return err
	}
	messages := make([]broker.Message, 0, len(ended))
	for _, e := range ended {
		m, err := encode(message.TypeExecutionCompleted, e, "attune-demo")
		if err != nil {
			return err
		}
		messages = append(messages, m)
	}
	for _, outcome := range d.broker.Publisher().Publish(ctx, messages) {
		if err := outcome.Err; err != nil {
			return fmt.Errorf("publish a completion again: %w", err)
		}
	}
	return nil
}

// closeConnections closes every client's connection, as an operator can with the management plugin.
func (d *Demo) closeConnections(ctx context.Context) error {
	management, err := broker.NewManagement(d.stack.ManagementURL(), "/", 10*time.Second)
	if err != nil {
		return err
	}
	return management.CloseConnections(ctx, "closed by the demo")
}
