package main

import (
	"bufio"
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
	"golang.org/x/term"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// clearOptions are the flags of `queue clear`.
type clearOptions struct {
	group     string
	olderThan time.Duration
	dryRun    bool
	yes       bool
	chosen    selection
}

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
	flags.BoolVar(&options.dryRun, "dry-run", false, "show who would be cancelled and do nothing")
	flags.BoolVar(&options.yes, "yes", false, "do not ask")
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
	d, err := a.openDesk(cmd, !options.dryRun)
	if err != nil {
		return err
	}
	defer d.stop()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	order := triage.ClearOrder{Target: triage.Target{Action: ref, Group: options.group}, OlderThan: options.olderThan}
	if options.chosen.given() {
		filter.Action, filter.Statuses = ref, []attune.Status{attune.StatusRequested}
		chosen, err := d.monitor().Choose(ctx, filter, monitor.ChoiceBound)
		if err != nil {
			return err
		}
		if text := cutText(chosen); text != "" {
			a.notef("%s", text)
		}
		order.Only = chosen.IDs
	}
	plan, err := d.PlanClear(ctx, order)
	if err != nil {
		return d.actError(ctx, ref, err)
	}
	if options.dryRun {
		return a.print(cmd, planView{plan, true}, func(w io.Writer) error { return clearPlanTable(w, plan) })
	}
	if !options.yes && plan.Waiting > 0 {
		in := cmd.InOrStdin()
		if err := confirmClear(in, a.stderr, interactive(in), plan); err != nil {
			return err
		}
	}
	receipt, err := d.Clear(ctx, plan)
	view := clearView{ClearReceipt: receipt, Delivery: d.delivery(ctx, a, receipt.Sent)}
	printErr := a.print(cmd, view, func(w io.Writer) error { return clearTable(w, receipt) })
	switch {
	case err != nil && ctx.Err() != nil:
		return failedErrorf("interrupted with %d of %s left: the same command goes on", receipt.Left, count(receipt.Planned, "execution"))
	case err != nil:
		return d.actError(ctx, ref, err)
	}
	return printErr
}

// planView is a plan that is not run.
type planView struct {
	*triage.ClearPlan

	DryRun bool `json:"dry_run"`
}

// clearView is a receipt with the way of its messages.
type clearView struct {
	*triage.ClearReceipt

	Delivery string `json:"delivery"`
}

// interactive reports whether a person can be asked.
func interactive(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// confirmClear asks a person to type the action's name. Without one it refuses.
func confirmClear(in io.Reader, out io.Writer, person bool, plan *triage.ClearPlan) error {
	if !person {
		return refusedErrorf("%s in the queues of %s: --yes cancels, --dry-run shows who", waiting(plan.Waiting), plan.Action)
	}
	where := plan.Action
	if plan.Group != "" {
		where += " " + clean(plan.Group)
	}
	_, _ = fmt.Fprintf(out, "clear %s waiting in %s? type the action's name: ", count(plan.Waiting, "execution"), where)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != plan.Action {
		return refusedErrorf("nothing was cancelled: the answer is not %s", plan.Action)
	}
	return nil
}

func waiting(n int) string {
	if n == 1 {
		return "1 execution waits"
	}
	return fmt.Sprintf("%d executions wait", n)
}

func clearPlanTable(w io.Writer, plan *triage.ClearPlan) error {
	if plan.Waiting == 0 {
		return row(w, "nothing waits in "+triage.Target{Action: plan.Action, Group: plan.Group}.String())
	}
	if err := row(w, "QUEUE", "GROUP", "WAITING", "OLDEST"); err != nil {
		return err
	}
	for _, q := range plan.Queues {
		oldest := "-"
		if !q.Oldest.IsZero() {
			oldest = short(plan.At.Sub(q.Oldest))
		}
		if err := row(w, q.ID, dash(q.Group), q.Waiting, oldest); err != nil {
			return err
		}
	}
	return row(w, count(plan.Waiting, "execution")+" would be cancelled")
}

func clearTable(w io.Writer, r *triage.ClearReceipt) error {
	if r.Planned == 0 {
		return row(w, fmt.Sprintf("nothing waits in %s (audit %d)", r.Target, r.Audit))
	}
	line := fmt.Sprintf("clear %s: %d planned, %d cancelled, %d already gone", r.Target, r.Planned, r.Cancelled, r.AlreadyGone)
	if r.Left > 0 {
		line += fmt.Sprintf(", %d left", r.Left)
	}
	if r.Cancelled > 0 {
		line += fmt.Sprintf(", executions %d to %d", r.First, r.Last)
	}
	return row(w, fmt.Sprintf("%s, in %s (audit %d)", line, short(time.Duration(r.Seconds*float64(time.Second))), r.Audit))
}
