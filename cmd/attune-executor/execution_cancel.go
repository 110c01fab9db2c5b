package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
)

// cancelOptions are the flags of `execution cancel`.
type cancelOptions struct {
	tree    bool
	reason  string
	flags   planFlags
	wait    bool
	timeout time.Duration
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
			ids, err := anExecution.ids(args)
			if err != nil {
				return err
			}
			return a.cancelExecutions(cmd, ids, options)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&options.tree, "tree", false, "everything that they have started, too")
	flags.StringVar(&options.reason, "reason", "", "why, for those who look at the result")
	flags.BoolVar(&options.wait, "wait", false, "wait until they have ended")
	flags.DurationVar(&options.timeout, "timeout", 0, "how long to wait, 0 for ever")
	options.flags.add(flags, "show what would become of them and do nothing", "do not ask, of executions that flags choose")
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
	filter, err := options.chosen.read(stoppable...)
	if err != nil {
		return err
	}
	t, err := a.openTriage(cmd, !options.flags.dryRun)
	if err != nil {
		return err
	}
	defer t.close()
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	if options.chosen.given() {
		chosen, err := t.monitor().Choose(ctx, filter, maxChosen)
		if err != nil {
			return err
		}
		run, err := t.settleChosen(chosen, "cancel", options.flags)
		if !run || err != nil {
			return err
		}
		ids = chosen.IDs
	}
	order := triage.CancelOrder{IDs: ids, Tree: options.tree, Reason: options.reason}
	if options.flags.dryRun {
		plan, err := t.PlanCancel(ctx, order)
		if err != nil {
			return cancelError(ctx, err)
		}
		_, err = t.settle(options.flags, plan, func(w *page) { cancelPlanPage(w, plan) }, nil)
		return err
	}
	receipt, err := t.Cancel(ctx, &triage.CancelPlan{CancelOrder: order})
	delivery := t.deliver(ctx, receipt.Sent, "the broker does not answer: it is stored that they shall stop, and a running engine passes it on",
		"a message reached no queue: it is stored that they shall stop, and a running engine passes it on")
	view := cancelView{CancelReceipt: receipt, Delivery: delivery}
	if err != nil {
		_ = t.show(view, func(w *page) { cancelPage(w, receipt) }) // what follows says more
		return cancelError(ctx, err)
	}
	return t.reportCancel(ctx, view, options)
}

func cancelError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return failedErrorf("interrupted: the same command goes on")
	}
	return unknownOutcome(err)
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
func (t *triageClient) reportCancel(ctx context.Context, view cancelView, options *cancelOptions) error {
	people, verdict := t.output != "json" && t.output != "yaml", cancelVerdict(view.CancelReceipt)
	if people && (verdict == nil || len(view.Executions) > 1) { // of one that was refused the error says it all
		if err := t.show(view, func(w *page) { cancelPage(w, view.CancelReceipt) }); err != nil {
			return err
		}
	}
	var waited error
	if options.wait {
		view.Ends, waited = t.awaitStops(ctx, view.Executions, options.timeout)
	}
	if !people || len(view.Ends) > 0 {
		if err := t.show(view, func(w *page) { endsPage(w, view.Ends) }); err != nil {
			return err
		}
	}
	return cmp.Or(waited, verdict)
}

// cancelVerdict is the error of a cancellation that could cancel nothing.
func cancelVerdict(r *triage.CancelReceipt) error {
	switch {
	case r.Acted() > 0:
		return nil
	case r.Ended == 0 && r.Moving == 0 && len(r.IDs) == 1:
		return anExecution.missing(r.IDs[0])
	case r.Ended == 0 && r.Moving == 0:
		return failedErrorf("there are no such executions: `attune-executor execution list` shows the newest")
	case len(r.Executions) == 1:
		return refusedErrorf("nothing was cancelled: %s (audit %d)", cancelLine(r.Executions[0]), r.Audit)
	}
	return refusedErrorf("nothing was cancelled")
}

// awaitStops waits for the ends of what was asked to stop.
func (t *triageClient) awaitStops(ctx context.Context, results []triage.CancelResult, timeout time.Duration) ([]cancelEnd, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	submitter := submit.New(t.store, nil)
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

func cancelPage(w *page, r *triage.CancelReceipt) {
	for _, one := range r.Executions {
		if len(r.Executions) > few && (one.Outcome == triage.CancelDone || one.Outcome == triage.CancelAsked) {
			continue // the counts say it
		}
		w.row(cancelLine(one))
	}
	text := countsText(r.CancelCounts)
	if text == "" {
		return
	}
	w.rowf("%s (audit %d)", text, r.Audit)
}

func cancelPlanPage(w *page, plan *triage.CancelPlan) {
	table(w, "", plan.Executions,
		col("EXECUTION", func(r *triage.CancelResult) any { return r.Acting() }),
		col("ACTION", func(r *triage.CancelResult) any { return dash(r.ActionRef) }),
		col("STATUS", func(r *triage.CancelResult) any { return dash(string(r.Was)) }),
		col("WOULD BE", func(r *triage.CancelResult) any { return r.Outcome }))
	w.row("it would be: " + countsText(plan.CancelCounts))
}

func endsPage(w *page, ends []cancelEnd) {
	for _, end := range ends {
		line := fmt.Sprintf("execution %d: %s", end.ID, end.Status)
		if end.Status != attune.StatusCancelled {
			line += " before it was stopped"
		}
		w.row(line)
	}
}
