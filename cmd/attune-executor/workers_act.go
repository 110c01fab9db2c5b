package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/triage"
)

// workerOptions are the flags of the commands that change workers.
type workerOptions struct {
	reason  string
	plan    planFlags
	wait    bool
	timeout time.Duration
}

func (a *app) workerAction(act triage.WorkerAct, short, long, example string) *cobra.Command {
	options := &workerOptions{}
	cmd := &cobra.Command{
		Use: string(act) + " WORKER", Short: short, Long: long, Example: example,
		Args: oneArg("the id or name of a worker"),
		RunE: func(cmd *cobra.Command, args []string) error {
			order := triage.WorkerOrder{Act: act, Worker: args[0], Reason: options.reason}
			return a.actOnWorker(cmd, order, options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.reason, "reason", "", "why, for those who look at the worker")
	flags.BoolVar(&options.plan.dryRun, "dry-run", false, "show what would happen and do nothing")
	if act == triage.DrainWorker || act == triage.ForgetWorker {
		flags.BoolVar(&options.plan.yes, "yes", false, "do not ask")
	}
	if act == triage.DrainWorker {
		flags.BoolVar(&options.wait, "wait", false, "wait until nothing is there any more")
		flags.DurationVar(&options.timeout, "timeout", 0, "how long to wait at most, such as 10m; 0 is without end")
	}
	return cmd
}

func (a *app) actOnWorker(cmd *cobra.Command, order triage.WorkerOrder, options *workerOptions) error {
	if options.timeout < 0 || options.timeout > 0 && !options.wait {
		return usageErrorf("--timeout goes with --wait and must not be negative")
	}
	forgets := order.Act == triage.ForgetWorker
	t, err := a.openTriage(cmd, forgets && !options.plan.dryRun)
	if err != nil {
		return err
	}
	defer t.close()
	plan, err := t.PlanWorker(cmd.Context(), order)
	if err != nil {
		return t.workerError(order.Worker, err)
	}
	if plan.Refused && !options.plan.dryRun {
		return refusedErrorf("worker %s %s", plan.Now.Name, plan.Says)
	}
	run, err := t.settle(options.plan, plan, func(w *page) { workerPlanPage(w, plan) }, workerQuestion(plan))
	if !run || err != nil {
		return err
	}
	operator := t.Triage
	if forgets {
		operator = operator.With(t.publisher.link)
	}
	receipt, err := operator.ActOnWorker(cmd.Context(), order)
	if err != nil {
		return t.workerError(order.Worker, err)
	}
	if !receipt.Settled {
		a.notef("a hand-over to worker %s that was being decided may still follow, within seconds", receipt.After.Name)
	}
	if !options.wait {
		return t.show(receipt, func(w *page) { workerReceiptPage(w, receipt) })
	}
	a.notef("worker %s %s (audit %d)", receipt.After.Name, receipt.Says, receipt.Audit)
	return t.awaitDrained(receipt, options.timeout)
}

// workerQuestion asks for the worker's name before a drain or a removal; nil: nothing is asked.
func workerQuestion(plan *triage.WorkerPlan) *question {
	if plan.Act != triage.DrainWorker && plan.Act != triage.ForgetWorker || !plan.Changes {
		return nil
	}
	text := fmt.Sprintf("worker %s %s\n", clean(plan.Now.Name), plan.Says)
	for _, effect := range plan.Effects {
		text += "  " + clean(effect) + "\n"
	}
	return &question{
		unasked: fmt.Sprintf("worker %s would be changed (it %s): --yes does it, --dry-run shows what happens", plan.Now.Name, plan.Says),
		text:    text + fmt.Sprintf("%s it? type its name: ", plan.Act), want: plan.Now.Name, nothing: "nothing was changed",
	}
}

// workerError gives errors of acts on workers their exit codes and what to do.
func (t *triageClient) workerError(which string, err error) error {
	refused, isRefused := errors.AsType[*triage.WorkerRefusedError](err)
	switch {
	case isRefused:
		return refusedErrorf("%w", refused)
	case errors.Is(err, triage.ErrNoWorker):
		return noWorker(which)
	case errors.Is(err, broker.ErrNotConnected):
		return &exitError{exitUnreachable, fmt.Errorf("the broker %s does not answer, and it has the queues of worker %s: start it, or correct message_queue.url (%s)",
			config.MaskURL(t.cfg.MessageQueue.URL), which, t.cfg.Source("message_queue.url"))}
	}
	return err
}

func workerPlanPage(w *page, plan *triage.WorkerPlan) {
	w.rowf("worker %s %s", plan.Now.Name, plan.Says)
	for _, effect := range plan.Effects {
		w.row(effect)
	}
	if len(plan.Takers) == 0 || plan.Act != triage.DrainWorker {
		return
	}
	table(w, "", plan.Takers,
		col("TAKER", func(t *triage.Taker) any { return t.ID }),
		col("NAME", func(t *triage.Taker) any { return t.Name }),
		col("ROOM", func(t *triage.Taker) any { return t.Room }),
		col("COULD TAKE", func(t *triage.Taker) any { return t.Executions }))
}

func workerReceiptPage(w *page, r *triage.WorkerReceipt) {
	w.rowf("worker %s %s (audit %d)", r.After.Name, r.Says, r.Audit)
	switch {
	case r.Act == triage.ForgetWorker && r.Discarded > 0:
		w.row(count(r.Discarded, "notice") + " to it alone went with its queues")
		return
	case r.Act == triage.ForgetWorker:
		return
	}
	w.rowf("%d running there, %d handed to it and not begun", r.After.Running, r.After.Unstarted)
}

// drainLook is the pause between two looks at a draining worker, and drainTell
// the longest silence of its progress.
const (
	drainLook = 500 * time.Millisecond
	drainTell = 15 * time.Second
)

// awaitDrained waits until nothing is at a worker, and says how it goes.
func (t *triageClient) awaitDrained(receipt *triage.WorkerReceipt, timeout time.Duration) error {
	ctx, stop := signal.NotifyContext(t.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	begin := time.Now()
	progress := drainProgress{app: t.app, begin: begin}
	for {
		now, err := t.WorkerNow(ctx, triage.WorkerOrder{Worker: strconv.FormatInt(receipt.After.ID, 10), ByID: true})
		switch {
		case ctx.Err() != nil:
			return drainGivenUp(ctx, receipt, timeout)
		case errors.Is(err, triage.ErrNoWorker):
			return failedErrorf("worker %s was forgotten by somebody while it drained", receipt.After.Name)
		case err != nil:
			return err
		}
		receipt.After = *now
		if now.Empty() {
			return t.show(extended{receipt, "waited_seconds", time.Since(begin).Seconds()}, func(w *page) {
				w.rowf("worker %s has drained: nothing is there any more, after %s", now.Name, short(time.Since(begin)))
			})
		}
		if !now.Cordoned {
			return failedErrorf("worker %s no longer drains: somebody has uncordoned it", now.Name)
		}
		progress.tell(now)
		select {
		case <-ctx.Done():
			return drainGivenUp(ctx, receipt, timeout)
		case <-time.After(drainLook):
		}
	}
}

func drainGivenUp(ctx context.Context, receipt *triage.WorkerReceipt, timeout time.Duration) error {
	why := "interrupted"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		why = "after " + short(timeout)
	}
	return failedErrorf("%s, %d run at worker %s and %d have not begun: it drains on, the same command waits on",
		why, receipt.After.Running, receipt.After.Name, receipt.After.Unstarted)
}

// drainProgress tells how a drain goes, when something changes or now and then.
type drainProgress struct {
	app   *app
	begin time.Time
	said  string
	at    time.Time
}

func (p *drainProgress) tell(now *triage.WorkerNow) {
	text := fmt.Sprintf("worker %s: %d running, %d not begun", now.Name, now.Running, now.Unstarted)
	switch {
	case now.Stale:
		text += ", its heartbeat is stale: the engine decides about them"
	case now.Running == 0 && now.Fences:
		text += ", which wait for another worker that can take them"
	}
	if text == p.said && time.Since(p.at) < drainTell {
		return
	}
	p.said, p.at = text, time.Now()
	p.app.notef("%s (%s)", text, short(time.Since(p.begin)))
}
