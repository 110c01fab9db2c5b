package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
)

// cancelOptions are the flags of `execution cancel`.
type cancelOptions struct {
	tree    bool
	reason  string
	dryRun  bool
	wait    bool
	timeout time.Duration
	yes     bool
	chosen  selection
}

// stoppable are the statuses of executions that can be cancelled and were not.
var stoppable = []attune.Status{attune.StatusRequested, attune.StatusScheduling, attune.StatusScheduled, attune.StatusRunning}

func newExecutionCancelCommand(a *app) *cobra.Command {
	options := &cancelOptions{}
	cmd := &cobra.Command{
		Use:   "cancel ID... | cancel --param NAME=VALUE...",
		Short: "Stop executions, whether they wait or run",
		Long: "Stop executions. Who waits, and what was handed over and cannot be started any more, is cancelled at once; of what\n" +
			"runs the worker is asked to stop it, and how it ends is written by the worker. Of one that has failed the repetition\n" +
			"is stopped. What was asked to stop is not repeated, however it ends.\n\n" +
			"Without ids the flags choose: all executions that have not ended and match, at most 10000 at once, of the newest 50000.\n" +
			"You are asked first; --dry-run shows how many there are of which action and status.",
		Example: "  attune-executor execution cancel 42 --reason 'wrong host' --wait --timeout 30s\n" +
			"  attune-executor execution cancel 42 --tree --dry-run\n" +
			"  attune-executor execution cancel --action shop.bill --status requested -p tenant=t7 --yes",
		Args: options.chosen.someExecutions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := executionIDs(args)
			if err != nil {
				return err
			}
			return a.cancelExecutions(cmd, ids, options)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&options.tree, "tree", false, "everything that they have started, too")
	flags.StringVar(&options.reason, "reason", "", "why, for those who look at the result")
	flags.BoolVar(&options.dryRun, "dry-run", false, "show what would become of them and do nothing")
	flags.BoolVar(&options.wait, "wait", false, "wait until they have ended")
	flags.DurationVar(&options.timeout, "timeout", 0, "how long to wait, 0 for ever")
	flags.BoolVar(&options.yes, "yes", false, "do not ask, of executions that flags choose")
	options.chosen.flags(cmd)
	return cmd
}

func (a *app) cancelExecutions(cmd *cobra.Command, ids []int64, options *cancelOptions) error {
	switch {
	case options.timeout != 0 && !options.wait:
		return usageErrorf("--timeout needs --wait")
	case options.timeout < 0:
		return usageErrorf("--timeout must not be negative")
	}
	filter, err := options.chosen.read()
	if err != nil {
		return err
	}
	d, err := a.openDesk(cmd, !options.dryRun)
	if err != nil {
		return err
	}
	defer d.stop()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	if options.chosen.given() {
		chosen, err := d.choose(ctx, statusOr(filter, stoppable...))
		if err != nil {
			return err
		}
		goOn, err := a.confirmChosen(cmd, d.client, chosen, "cancel", options.dryRun, options.yes)
		if !goOn || err != nil {
			return err
		}
		ids = chosen.IDs
	}
	order := triage.CancelOrder{IDs: ids, Tree: options.tree, Reason: options.reason}
	if options.dryRun {
		plan, err := d.PlanCancel(ctx, order)
		if err != nil {
			return cancelProblem(ctx, err)
		}
		return a.print(cmd, cancelPlanView{plan, true}, func(w io.Writer) error { return cancelPlanTable(w, plan) })
	}
	receipt, err := d.Cancel(ctx, &triage.CancelPlan{CancelOrder: order})
	view := cancelView{CancelReceipt: receipt, Delivery: a.cancelDelivery(ctx, d, receipt.Sent)}
	if err != nil {
		_ = a.print(cmd, view, func(w io.Writer) error { return cancelTable(w, receipt) }) // what follows says more
		return cancelProblem(ctx, err)
	}
	return a.reportCancel(ctx, cmd, d, view, options)
}

// cancelPlanView is a plan that is not run.
type cancelPlanView struct {
	*triage.CancelPlan

	DryRun bool `json:"dry_run"`
}

// cancelView is a receipt with the way of its messages and, after a wait, the
// ends of what was asked to stop.
type cancelView struct {
	*triage.CancelReceipt

	Delivery string      `json:"delivery"`
	Ends     []cancelEnd `json:"ends,omitempty"`
}

// cancelEnd is how an execution ended that was asked to stop.
type cancelEnd struct {
	ID     int64         `json:"id"`
	Status attune.Status `json:"status"`
}

// reportCancel prints the receipt, waits for the ends if that is asked for, and
// gives the whole its exit code.
func (a *app) reportCancel(ctx context.Context, cmd *cobra.Command, d *desk, view cancelView, options *cancelOptions) error {
	people, verdict := a.output != "json" && a.output != "yaml", cancelVerdict(view.CancelReceipt)
	if people && (verdict == nil || len(view.Executions) > 1) { // of one that was refused the error says it all
		if err := a.print(cmd, view, func(w io.Writer) error { return cancelTable(w, view.CancelReceipt) }); err != nil {
			return err
		}
	}
	var waited error
	if options.wait {
		view.Ends, waited = awaitStops(ctx, d, view.Executions, options.timeout)
	}
	if !people {
		if err := a.print(cmd, view, nil); err != nil {
			return err
		}
	} else if len(view.Ends) > 0 {
		if err := a.print(cmd, view, func(w io.Writer) error { return endsTable(w, view.Ends) }); err != nil {
			return err
		}
	}
	if waited != nil {
		return waited
	}
	return verdict
}

// cancelVerdict is the error of a cancellation that could cancel nothing.
func cancelVerdict(r *triage.CancelReceipt) error {
	switch {
	case r.Acted() > 0:
		return nil
	case r.Ended == 0 && r.Moving == 0 && len(r.IDs) == 1:
		return failedErrorf("there is no execution %d: `attune-executor execution list` shows the newest", r.IDs[0])
	case r.Ended == 0 && r.Moving == 0:
		return failedErrorf("there are no such executions: `attune-executor execution list` shows the newest")
	case len(r.Executions) == 1:
		return refusedErrorf("nothing was cancelled: %s (audit %d)", cancelLine(r.Executions[0]), r.Audit)
	}
	return refusedErrorf("nothing was cancelled")
}

// awaitStops waits for the ends of what was asked to stop.
func awaitStops(ctx context.Context, d *desk, results []triage.CancelResult, timeout time.Duration) ([]cancelEnd, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	submitter := submit.New(d.store, nil)
	var ends []cancelEnd
	for _, r := range results {
		if r.Outcome != triage.CancelAsked {
			continue
		}
		row, err := submitter.Wait(ctx, r.Acting())
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return ends, failedErrorf("execution %d has not ended within %s: it was asked to stop, look with `attune-executor execution show %d`",
				r.Acting(), timeout, r.Acting())
		case errors.Is(err, context.Canceled):
			return ends, failedErrorf("interrupted: execution %d was asked to stop, look with `attune-executor execution show %d`", r.Acting(), r.Acting())
		case err != nil:
			return ends, err
		}
		ends = append(ends, cancelEnd{ID: r.Acting(), Status: row.Status})
	}
	return ends, nil
}

// cancelDelivery waits until the broker has confirmed the messages.
func (a *app) cancelDelivery(ctx context.Context, d *desk, sent triage.Sent) string {
	if len(sent.Rows) == 0 {
		return deliveryNone
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishPatience)
	defer cancel()
	submitter := submit.New(d.store, nil)
	for _, row := range sent.Rows {
		if d.link.State() != broker.StateConnected || submitter.AwaitPublished(ctx, row) != nil {
			a.notef("the broker does not answer: it is stored that they shall stop, and a running engine passes it on")
			return deliveryStored
		}
	}
	if d.returned.Load() {
		a.notef("a message reached no queue: it is stored that they shall stop, and a running engine passes it on")
		return deliveryStored
	}
	return deliveryPublished
}

func cancelProblem(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return failedErrorf("interrupted: the same command goes on")
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was done is unknown, the same again is safe", err)
	}
	return err
}

// cancelLine says what became of one execution.
func cancelLine(r triage.CancelResult) string {
	name := fmt.Sprintf("execution %d: ", r.ID)
	if r.Repetition != 0 {
		name = fmt.Sprintf("execution %d, repeated by %d: ", r.ID, r.Repetition)
	}
	worker := r.WorkerName
	if worker == "" {
		worker = fmt.Sprintf("worker %d", r.WorkerID)
	}
	switch r.Outcome {
	case triage.CancelDone:
		return name + "cancelled"
	case triage.CancelAsked:
		if r.WorkerGone {
			return name + "shall stop, but " + worker + " is gone: the engine decides"
		}
		if r.WorkerID == 0 {
			return name + "ends when the last of its tasks has ended"
		}
		return name + "asked " + worker + " to stop"
	case triage.CancelEnded:
		return name + fmt.Sprintf("has ended (%s)", r.Status)
	case triage.CancelMissing:
		return name + "there is no such execution"
	default:
		return name + "changed under every try: the same again goes on"
	}
}

// countsText says how many executions came to what.
func countsText(c triage.CancelCounts) string {
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{
		{c.Cancelled, "cancelled"}, {c.Asked, "asked to stop"}, {c.Ended, "had ended"}, {c.Missing, "not found"}, {c.Moving, "kept changing"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	return strings.Join(parts, ", ")
}

func cancelTable(w io.Writer, r *triage.CancelReceipt) error {
	for _, one := range r.Executions {
		if len(r.Executions) > fewLetters && (one.Outcome == triage.CancelDone || one.Outcome == triage.CancelAsked) {
			continue // the counts say it
		}
		if err := row(w, cancelLine(one)); err != nil {
			return err
		}
	}
	text := countsText(r.CancelCounts)
	if text == "" {
		return nil
	}
	return row(w, fmt.Sprintf("%s (audit %d)", text, r.Audit))
}

func cancelPlanTable(w io.Writer, plan *triage.CancelPlan) error {
	if err := row(w, "EXECUTION", "ACTION", "STATUS", "WOULD BE"); err != nil {
		return err
	}
	for _, r := range plan.Executions {
		if err := row(w, r.Acting(), dash(r.ActionRef), dash(string(r.Was)), r.Outcome); err != nil {
			return err
		}
	}
	return row(w, "it would be: "+countsText(plan.CancelCounts))
}

func endsTable(w io.Writer, ends []cancelEnd) error {
	for _, end := range ends {
		line := fmt.Sprintf("execution %d: %s", end.ID, end.Status)
		if end.Status != attune.StatusCancelled {
			line += " before it was stopped"
		}
		if err := row(w, line); err != nil {
			return err
		}
	}
	return nil
}
