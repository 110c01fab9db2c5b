package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

func newQueueClearCommand(a *app) *cobra.Command {
	options := &clearOptions{}
	cmd := &cobra.Command{
		Use:   "clear ACTION",
		Short: "Cancel the executions that wait in an action's queues",
		Long: "Cancel the executions that wait in an action's queues when the command begins. What runs goes on, and who comes\n" +
			"meanwhile stays. Interrupted, it has cancelled some and not others; the same command goes on.",
		Example: "  attune-executor queue clear core.echo --dry-run\n  attune-executor queue clear core.echo --older-than 1h --yes\n" +
			"  attune-executor queue clear shop.bill -p tenant=t7 --dry-run",
		Args: oneArg("the ref of an action, such as core.echo"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.clearQueue(cmd, args[0], options) },
	}
	groupFlag(cmd, &options.group)
	flags := cmd.Flags()
	flags.DurationVar(&options.olderThan, "older-than", 0, "only who has waited for this long, such as 1h")
	options.plan.add(flags, "show who would be cancelled and do nothing", "do not ask")
	options.chosen.paramFlags(cmd)
	return cmd
}

func (a *app) clearQueue(cmd *cobra.Command, ref string, options *clearOptions) error {
	if options.olderThan < 0 {
		return usageErrorf("--older-than must not be negative")
	}
	filter, err := options.chosen.read()
	if err != nil {
		return err
	}
	t, err := a.openTriage(cmd, !options.plan.dryRun)
	if err != nil {
		return err
	}
	defer t.close()
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	order := triage.ClearOrder{Target: triage.Target{Action: ref, Group: options.group}, OlderThan: options.olderThan}
	if options.chosen.given() {
		filter.Action, filter.Statuses = ref, []attune.Status{attune.StatusRequested}
		chosen, err := t.monitor().Choose(ctx, filter, monitor.ChoiceBound)
		if err != nil {
			return err
		}
		if text := cutText(chosen); text != "" {
			a.notef("%s", text)
		}
		order.Only = chosen.IDs
	}
	plan, err := t.PlanClear(ctx, order)
	if err != nil {
		return t.actionError(ctx, ref, err)
	}
	run, err := t.settle(options.plan, plan, func(w *page) { clearPlanPage(w, plan) }, clearQuestion(plan))
	if !run || err != nil {
		return err
	}
	receipt, err := t.Clear(ctx, plan)
	printErr := t.show(delivered(receipt, t.delivery(ctx, receipt.Sent)), func(w *page) { clearPage(w, receipt) })
	switch {
	case err != nil && ctx.Err() != nil:
		return failedErrorf("interrupted with %d of %s left: the same command goes on", receipt.Left, count(receipt.Planned, "execution"))
	case err != nil:
		return t.actionError(ctx, ref, err)
	}
	return printErr
}

// clearQuestion asks for the action's name; nil: nothing waits.
func clearQuestion(plan *triage.ClearPlan) *question {
	if plan.Waiting == 0 {
		return nil
	}
	where := plan.Action
	if plan.Group != "" {
		where += " " + clean(plan.Group)
	}
	return &question{
		unasked: fmt.Sprintf("%s in the queues of %s: --yes cancels, --dry-run shows who", waiting(plan.Waiting), plan.Action),
		text:    fmt.Sprintf("clear %s waiting in %s? type the action's name: ", count(plan.Waiting, "execution"), where),
		want:    plan.Action, nothing: "nothing was cancelled",
	}
}

func clearPlanPage(w *page, plan *triage.ClearPlan) {
	if plan.Waiting == 0 {
		w.row("nothing waits in " + triage.Target{Action: plan.Action, Group: plan.Group}.String())
		return
	}
	type cleared = triage.Line
	table(w, "", plan.Queues,
		col("QUEUE", func(q *cleared) any { return q.ID }),
		col("GROUP", func(q *cleared) any { return dash(q.Group) }),
		col("WAITING", func(q *cleared) any { return q.Waiting }),
		col("OLDEST", func(q *cleared) any {
			if q.Oldest.IsZero() {
				return "-"
			}
			return short(plan.At.Sub(q.Oldest))
		}))
	w.row(count(plan.Waiting, "execution") + " would be cancelled")
}

func clearPage(w *page, r *triage.ClearReceipt) {
	if r.Planned == 0 {
		w.rowf("nothing waits in %s (audit %d)", r.Target, r.Audit)
		return
	}
	line := fmt.Sprintf("clear %s: %d planned, %d cancelled, %d already gone", r.Target, r.Planned, r.Cancelled, r.AlreadyGone)
	if r.Left > 0 {
		line += fmt.Sprintf(", %d left", r.Left)
	}
	if r.Cancelled > 0 {
		line += fmt.Sprintf(", executions %d to %d", r.First, r.Last)
	}
	w.rowf("%s, in %s (audit %d)", line, short(time.Duration(r.Seconds*float64(time.Second))), r.Audit)
}

// clearOptions are the flags of `queue clear`.
type clearOptions struct {
	group     string
	olderThan time.Duration
	plan      planFlags
	chosen    selection
}
