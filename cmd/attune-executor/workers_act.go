package main

import (
	"errors"
	"fmt"
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
