package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/triage"
)

//go:embed syncs.sql
var syncsSQL string

// faults breaks things while traffic runs, and says what it does.
func (d *Demo) faults(ctx context.Context, news chan<- string) {
	length := d.cfg.Duration
	if length <= 0 {
		length = 2 * time.Minute
	}
	script := []struct {
		name string
		do   func(context.Context) error
	}{
		{"kill -9 " + replicaName(0), func(context.Context) error { d.fleet.kill(replicaName(0)); return nil }},
		{replicaName(0) + " starts again", func(context.Context) error { return d.fleet.restart(replicaName(0)) }},
		{"demo.report is paused", d.say(triage.Override{Act: triage.Pause, Reason: "the demo"})},
		{"demo.report goes on, with a limit of six", d.resume},
		{"what waits and runs of demo.sync is cancelled", d.cancel},
		{"kill -9 " + workerName(2) + ", whose work is repeated elsewhere", func(context.Context) error {
			d.calm.Lock()
			defer d.calm.Unlock()
			d.fleet.kill(workerName(2))
			d.workerKilled = true
			return nil
		}},
		{"the orders under way are paused", d.pauseOrders},
		{"every completion of the last seconds is delivered again", d.duplicate},
		{"the orders go on", d.resumeOrders},
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
				d.miss(left.name, errors.New("the time was over"))
			}
			break
		}
		news <- "fault: " + fault.name
		if err := fault.do(ctx); err != nil {
			d.miss(fault.name, err)
			if ctx.Err() == nil {
				news <- fmt.Sprintf("fault failed: %v", err)
			}
		}
	}
	// Whatever time has left undone.
	if err := d.say(triage.Override{Act: triage.Resume})(context.WithoutCancel(ctx)); err != nil {
		d.logger.WarnContext(ctx, "Pause of the demo could not be ended", "error", err)
	}
	if err := d.resumeOrders(context.WithoutCancel(ctx)); err != nil {
		d.logger.WarnContext(ctx, "Paused orders could not be resumed", "error", err)
	}
	d.revive()
}

// miss records a fault that did not happen. The user may end the demo before all faults happen;
// only a demo of a given length promises them.
func (d *Demo) miss(name string, err error) {
	d.noting.Lock()
	defer d.noting.Unlock()
	if d.cfg.Duration > 0 {
		d.undone = append(d.undone, fmt.Sprintf("%s: %v", name, err))
	}
}

// onceThere calls a fault until there was something for it to be done to.
func onceThere(ctx context.Context, do func(context.Context) (bool, error)) error {
	const patience = 15 * time.Second
	for begun := time.Now(); ; {
		done, err := do(ctx)
		if err != nil || done {
			return err
		}
		if time.Since(begun) > patience || !supervise.Sleep(ctx, 50*time.Millisecond) {
			return errors.New("there was nothing to do it to")
		}
	}
}

// reports are what operators act on in the show.
var reports = triage.Target{Action: "demo.report"}

// say puts an operator's word on the reports' queue.
func (d *Demo) say(order triage.Override) func(context.Context) error {
	order.Target = reports
	return func(ctx context.Context) error {
		_, err := triage.New(triage.Config{Actor: "demo", Source: "attune-demo"}, d.store, d.relay).Override(ctx, order)
		return err
	}
}

// resume ends the pause and raises the limit.
func (d *Demo) resume(ctx context.Context) error {
	return errors.Join(d.say(triage.Override{Act: triage.Limit, Limit: 6})(ctx),
		d.say(triage.Override{Act: triage.Resume})(ctx))
}

// cancel stops every execution of demo.sync that has not ended.
func (d *Demo) cancel(ctx context.Context) error {
	return onceThere(ctx, func(ctx context.Context) (bool, error) {
		var ids []int64
		if err := d.store.Pool().QueryRow(ctx, syncsSQL).Scan(&ids); err != nil {
			return false, fmt.Errorf("read what to cancel: %w", err)
		}
		if len(ids) == 0 {
			return false, nil
		}
		plan, err := d.operator().PlanCancel(ctx, triage.CancelOrder{IDs: ids, Reason: "the demo"})
		if err == nil {
			_, err = d.operator().Cancel(ctx, plan)
		}
		return true, err
	})
}

// revive starts what a fault has left dead when time ran out.
func (d *Demo) revive() {
	for i := range d.cfg.Replicas {
		d.reviveOne(replicaName(i))
	}
	for i := range d.cfg.Workers {
		d.reviveOne(workerName(i))
	}
}

func (d *Demo) reviveOne(name string) {
	d.fleet.mu.Lock()
	p := d.fleet.processes[name]
	d.fleet.mu.Unlock()
	select {
	case <-p.done:
		if err := d.fleet.restart(name); err != nil {
			d.sayf("%v", err)
		}
	default:
	}
}

// duplicate publishes execution.completed again for executions that ended a
// moment ago, as a broker that lost acknowledgements would.
func (d *Demo) duplicate(ctx context.Context) error {
	var ended []message.ExecutionCompleted
	err := onceThere(ctx, func(ctx context.Context) (there bool, err error) {
		ended, err = d.recentlyEnded(ctx)
		return len(ended) > 0, err
	})
	if err != nil {
		return err
	}
	messages := make([]broker.Message, 0, len(ended))
	for _, e := range ended {
		envelope := message.New(message.TypeExecutionCompleted, e, time.Now(), "attune-demo")
		body, err := envelope.Encode()
		if err != nil {
			return fmt.Errorf("encode a duplicate: %w", err)
		}
		messages = append(messages, broker.Message{
			ID: envelope.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionCompleted,
			Type: message.TypeExecutionCompleted, Body: body,
		})
	}
	for _, outcome := range d.broker.Publisher().Publish(ctx, messages) {
		if err := outcome.Err; err != nil {
			return fmt.Errorf("publish a completion again: %w", err)
		}
	}
	return nil
}

func (d *Demo) recentlyEnded(ctx context.Context) ([]message.ExecutionCompleted, error) {
	rows, err := d.store.Pool().Query(ctx, recentSQL)
	if err != nil {
		return nil, fmt.Errorf("read what ended lately: %w", err)
	}
	defer rows.Close()
	var ended []message.ExecutionCompleted
	for rows.Next() {
		e := message.ExecutionCompleted{CompletedAt: time.Now().UTC()}
		if err := rows.Scan(&e.ExecutionID, &e.ActionID, &e.ActionRef, &e.Status); err != nil {
			return nil, fmt.Errorf("read what ended lately: %w", err)
		}
		ended = append(ended, e)
	}
	return ended, rows.Err()
}

// closeConnections closes every client's connection, as an operator may from
// the broker's own pages.
func (d *Demo) closeConnections(ctx context.Context) error {
	management, err := broker.NewManagement(d.stack.ManagementURL(), "/", 10*time.Second)
	if err != nil {
		return err
	}
	return management.CloseConnections(ctx, "closed by the demo")
}
