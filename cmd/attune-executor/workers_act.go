package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/triage"
)

// workerOptions are the flags of the acts on workers.
type workerOptions struct {
	reason  string
	dryRun  bool
	yes     bool
	wait    bool
	timeout time.Duration
}

// workerActs are the commands of `workers` that change something.
func (a *app) workerActs() []*cobra.Command {
	return []*cobra.Command{
		a.workerAct(triage.CordonWorker, "Hand nothing more to a worker; what it has goes on",
			"Hand nothing more to a worker until it is uncordoned. What it has goes on, begun or not. A restart of the worker does\n"+
				"not end it. When the command has ended with 0, no execution is handed to the worker any more.",
			"  attune-executor workers cordon worker-node-01 --reason 'its disk is full'"),
		a.workerAct(triage.UncordonWorker, "Hand work to a worker again, after a cordon or a drain", "",
			"  attune-executor workers uncordon worker-node-01"),
		a.workerAct(triage.DrainWorker, "Empty a worker: nothing new, what runs ends, the rest goes to others",
			"Hand nothing more to a worker, and give what it has not begun to other workers; what runs there goes on to its end.\n"+
				"Of workers that do not refuse outdated hand-overs nothing is taken away: they end what they have. Asks first, unless\n"+
				"--yes is given.",
			"  attune-executor workers drain worker-node-01 --yes --wait --timeout 10m\n"+
				"  attune-executor workers drain worker-node-01 --dry-run"),
		a.workerAct(triage.ForgetWorker, "Remove a worker that is gone, with its queues",
			"Remove the row of a worker that is inactive or sends no heartbeats, its queues and the routes of its dead letters. It is\n"+
				"refused while anything runs there, was handed to it, or lies in its queue of hand-overs. A worker that starts again\n"+
				"later under its name is a new one. Asks first, unless --yes is given.",
			"  attune-executor workers forget worker-node-01 --yes"),
	}
}

func (a *app) workerAct(act triage.WorkerAct, short, long, example string) *cobra.Command {
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
	flags.BoolVar(&options.dryRun, "dry-run", false, "show what would happen and do nothing")
	if act == triage.DrainWorker || act == triage.ForgetWorker {
		flags.BoolVar(&options.yes, "yes", false, "do not ask")
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
	d, err := a.openDesk(cmd, order.Act == triage.ForgetWorker && !options.dryRun)
	if err != nil {
		return err
	}
	defer d.stop()
	plan, err := d.PlanWorker(cmd.Context(), order)
	if err != nil {
		return d.workerError(order.Worker, err)
	}
	if options.dryRun {
		return a.print(cmd, workerPlanView{plan, true}, func(w io.Writer) error { return workerPlanTable(w, plan) })
	}
	if plan.Refused {
		return refusedErrorf("worker %s %s", plan.Now.Name, plan.Says)
	}
	if asks := order.Act == triage.DrainWorker || order.Act == triage.ForgetWorker; asks && plan.Changes && !options.yes {
		in := cmd.InOrStdin()
		if err := confirmWorker(in, a.stderr, interactive(in), plan); err != nil {
			return err
		}
	}
	return a.carryOutOnWorker(cmd, d, order, options)
}

// carryOutOnWorker does what was planned, prints the receipt and waits if asked.
func (a *app) carryOutOnWorker(cmd *cobra.Command, d *desk, order triage.WorkerOrder, options *workerOptions) error {
	operator := d.Triage
	if order.Act == triage.ForgetWorker {
		operator = operator.With(d.link)
	}
	receipt, err := operator.ActOnWorker(cmd.Context(), order)
	if err != nil {
		return d.workerError(order.Worker, err)
	}
	if !receipt.Settled {
		a.notef("a hand-over to worker %s that was being decided may still follow, within seconds", receipt.After.Name)
	}
	if !options.wait {
		return a.print(cmd, receipt, func(w io.Writer) error { return workerReceiptTable(w, receipt) })
	}
	a.notef("worker %s %s (audit %d)", receipt.After.Name, receipt.Says, receipt.Audit)
	return a.awaitDrained(cmd, d, receipt, options.timeout)
}

// workerError gives errors of acts on workers their exit codes and what to do.
func (d *desk) workerError(which string, err error) error {
	refused, isRefused := errors.AsType[*triage.WorkerRefusedError](err)
	switch {
	case isRefused:
		return refusedErrorf("%w", refused)
	case errors.Is(err, triage.ErrNoWorker):
		return failedErrorf("there is no worker %s: `attune-executor workers list` shows them", which)
	case errors.Is(err, broker.ErrNotConnected):
		return &exitError{exitUnreachable, fmt.Errorf("the broker %s does not answer, and it has the queues of worker %s: start it, or correct message_queue.url (%s)",
			config.MaskURL(d.cfg.MessageQueue.URL), which, d.cfg.Source("message_queue.url"))}
	}
	return err
}

// workerPlanView is a plan that is not run.
type workerPlanView struct {
	*triage.WorkerPlan

	DryRun bool `json:"dry_run"`
}

// confirmWorker shows a person what would happen and asks for the worker's name.
// Without one it refuses.
func confirmWorker(in io.Reader, out io.Writer, person bool, plan *triage.WorkerPlan) error {
	if !person {
		return refusedErrorf("worker %s would be changed (it %s): --yes does it, --dry-run shows what happens", plan.Now.Name, plan.Says)
	}
	_, _ = fmt.Fprintf(out, "worker %s %s\n", clean(plan.Now.Name), plan.Says)
	for _, effect := range plan.Effects {
		_, _ = fmt.Fprintln(out, "  "+clean(effect))
	}
	_, _ = fmt.Fprintf(out, "%s it? type its name: ", plan.Act)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != plan.Now.Name {
		return refusedErrorf("nothing was changed: the answer is not %s", plan.Now.Name)
	}
	return nil
}

func workerPlanTable(w io.Writer, plan *triage.WorkerPlan) error {
	if err := row(w, fmt.Sprintf("worker %s %s", plan.Now.Name, plan.Says)); err != nil {
		return err
	}
	for _, effect := range plan.Effects {
		if err := row(w, effect); err != nil {
			return err
		}
	}
	if len(plan.Takers) == 0 || plan.Act != triage.DrainWorker {
		return nil
	}
	if err := row(w, "TAKER", "NAME", "ROOM", "COULD TAKE"); err != nil {
		return err
	}
	for _, taker := range plan.Takers {
		if err := row(w, taker.ID, taker.Name, taker.Room, taker.Executions); err != nil {
			return err
		}
	}
	return nil
}

func workerReceiptTable(w io.Writer, r *triage.WorkerReceipt) error {
	if err := row(w, fmt.Sprintf("worker %s %s (audit %d)", r.After.Name, r.Says, r.Audit)); err != nil {
		return err
	}
	switch {
	case r.Act == triage.ForgetWorker && r.Discarded > 0:
		return row(w, count(r.Discarded, "notice")+" to it alone went with its queues")
	case r.Act == triage.ForgetWorker:
		return nil
	}
	return row(w, fmt.Sprintf("%d running there, %d handed to it and not begun", r.After.Running, r.After.Unstarted))
}
