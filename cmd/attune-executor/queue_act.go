package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/triage"
)

// queueActs are the commands of `queue` that change something.
func (a *app) queueActs() []*cobra.Command {
	return []*cobra.Command{
		newQueuePauseCommand(a), newQueueResumeCommand(a), newQueueLimitCommand(a), newQueueClearCommand(a), newQueueRepairCommand(a),
	}
}

// groupFlag adds --group.
func groupFlag(cmd *cobra.Command, group *string) {
	cmd.Flags().StringVar(group, "group", "", `only the queue of this group, such as '{"tenant":"a"}'; default all queues of the action`)
}

func newQueuePauseCommand(a *app) *cobra.Command {
	order := triage.Order{Act: triage.Pause}
	cmd := &cobra.Command{
		Use:   "pause ACTION",
		Short: "Admit nothing from an action's queues until they are resumed",
		Long: "Admit nothing from an action's queues until they are resumed. What runs goes on, who waits keeps its place, and\n" +
			"who comes waits behind them. Of what is paused already only the reason changes.",
		Example: "  attune-executor queue pause core.echo --reason 'the service behind it is down'\n" +
			"  attune-executor queue pause deploy.rollout --group '{\"region\":\"eu\"}'",
		Args: oneArg("the ref of an action, such as core.echo"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.sayWord(cmd, args[0], order) },
	}
	groupFlag(cmd, &order.Group)
	cmd.Flags().StringVar(&order.Reason, "reason", "", "why, for those who look at the queue")
	return cmd
}

func newQueueResumeCommand(a *app) *cobra.Command {
	order := triage.Order{Act: triage.Resume}
	cmd := &cobra.Command{
		Use:     "resume ACTION",
		Short:   "Admit again from an action's queues, in the order in which they wait",
		Example: "  attune-executor queue resume core.echo",
		Args:    oneArg("the ref of an action, such as core.echo"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.sayWord(cmd, args[0], order) },
	}
	groupFlag(cmd, &order.Group)
	return cmd
}

func newQueueLimitCommand(a *app) *cobra.Command {
	order := triage.Order{Act: triage.Limit}
	reset := false
	cmd := &cobra.Command{
		Use:   "limit ACTION N | limit ACTION --reset",
		Short: "Let another number run at once than the action's policy says",
		Long: "Let another number of executions run at once than the action's policy says, in each of its queues, until --reset.\n" +
			"A lower limit ends nothing that runs; a higher one is filled at once.",
		Example: "  attune-executor queue limit core.echo 2\n  attune-executor queue limit core.echo --reset",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case reset && len(args) == 1, !reset && len(args) == 2:
				return nil
			case reset:
				return fmt.Errorf("limit --reset takes the ref of an action and nothing else")
			}
			return fmt.Errorf("limit needs the ref of an action and a number, or --reset")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			order := order
			if reset {
				order.Act = triage.Reset
				return a.sayWord(cmd, args[0], order)
			}
			limit, err := parseLimit(args[1])
			if err != nil {
				return err
			}
			order.Limit = limit
			return a.sayWord(cmd, args[0], order)
		},
	}
	cmd.SetFlagErrorFunc(negativeLimit)
	groupFlag(cmd, &order.Group)
	cmd.Flags().BoolVar(&reset, "reset", false, "the policy's limit again")
	return cmd
}

// maxLimit is the largest limit; the number above it stands for none.
const maxLimit = math.MaxInt32 - 1

func parseLimit(text string) (int, error) {
	limit, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && limit > 0, err == nil && limit > maxLimit:
		return 0, usageErrorf("%q is not a limit: it is at most %d; without a policy, --reset lets any number run", text, maxLimit)
	case err != nil || limit < 1:
		return 0, usageErrorf("%q is not a limit: it is a number of at least 1", text)
	}
	return int(limit), nil
}

// negativeLimit gives a limit below 0, which is taken for a flag, the sentence
// of other limits.
func negativeLimit(_ *cobra.Command, err error) error {
	for text := range strings.FieldsSeq(err.Error()) {
		if number, parseErr := strconv.ParseInt(text, 10, 64); parseErr == nil && number < 0 {
			return usageErrorf("%q is not a limit: it is a number of at least 1", text)
		}
	}
	return err
}

func newQueueRepairCommand(a *app) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use:   "repair [ACTION]",
		Short: "Compare the counters of queues with the facts, and put right what differs",
		Long: "Compare the counters of queues, workers and shared limits with the executions that hold and wait, put right what\n" +
			"differs, and give back what ended or deleted executions still hold. Exits with 0 only if nothing is wrong any more.",
		Example: "  attune-executor queue repair --dry-run\n  attune-executor queue repair core.echo",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s takes at most one argument, the ref of an action, not %d", cmd.Name(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.repairQueues(cmd, strings.Join(args, ""), dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what is wrong and do nothing")
	return cmd
}

// wordView is a receipt with the way of its messages.
type wordView struct {
	*triage.WordReceipt

	Delivery string `json:"delivery"`
}

func (a *app) sayWord(cmd *cobra.Command, ref string, order triage.Order) error {
	d, err := a.openDesk(cmd, order.Act != triage.Pause)
	if err != nil {
		return err
	}
	defer d.stop()
	order.Action = ref
	receipt, err := d.Say(cmd.Context(), order)
	if err != nil {
		return d.actError(cmd.Context(), ref, err)
	}
	view := wordView{WordReceipt: receipt, Delivery: d.delivery(cmd.Context(), a, receipt.Sent)}
	return a.print(cmd, view, func(w io.Writer) error { return wordTable(w, receipt) })
}

// nothingSaid is what there is to tell of an action without a queue.
var nothingSaid = map[triage.Act]string{
	triage.Resume: "nothing is paused in", triage.Reset: "no queue has another limit in",
}

func wordTable(w io.Writer, receipt *triage.WordReceipt) error {
	if len(receipt.Queues) == 0 {
		return row(w, fmt.Sprintf("%s %s: there is no queue yet (audit %d)", nothingSaid[receipt.Act], receipt.Target, receipt.Audit))
	}
	if err := row(w, "QUEUE", "GROUP", "STATE", "LIMIT", "ACTIVE", "WAITING", "CHANGED"); err != nil {
		return err
	}
	for _, q := range receipt.Queues {
		state, limit, changed := "open", "none", "no"
		if q.After.Paused {
			state = "paused"
		}
		if q.After.Limit != nil {
			limit = strconv.Itoa(*q.After.Limit)
		}
		switch {
		case q.ReasonChanged():
			changed = "reason"
		case q.Changed:
			changed = "yes"
		}
		if err := row(w, q.ID, dash(q.Group), state, limit, q.Active, q.Waiting, changed); err != nil {
			return err
		}
	}
	if hidden := receipt.Changed + receipt.Already - len(receipt.Queues); hidden > 0 {
		if err := row(w, fmt.Sprintf("and %d more", hidden)); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%s %s: %d changed, %d so already", receipt.Act, receipt.Action, receipt.Changed, receipt.Already)
	if receipt.ReasonChanged > 0 {
		line += ", reason changed"
	}
	switch {
	case receipt.WithRoom == 1:
		line += ", 1 queue has room now"
	case receipt.WithRoom > 1:
		line += fmt.Sprintf(", %d queues have room now", receipt.WithRoom)
	}
	return row(w, fmt.Sprintf("%s (audit %d)", line, receipt.Audit))
}

// repairView is a receipt with the way of its messages.
type repairView struct {
	*triage.RepairReceipt

	Delivery string `json:"delivery"`
}

func (a *app) repairQueues(cmd *cobra.Command, ref string, dryRun bool) error {
	d, err := a.openDesk(cmd, !dryRun)
	if err != nil {
		return err
	}
	defer d.stop()
	act := d.Repair
	if dryRun {
		act = d.PlanRepair
	}
	receipt, err := act(cmd.Context(), ref)
	if receipt == nil {
		return d.actError(cmd.Context(), ref, err)
	}
	view := repairView{RepairReceipt: receipt, Delivery: d.delivery(cmd.Context(), a, receipt.Sent)}
	printErr := a.print(cmd, view, func(w io.Writer) error { return repairTable(w, receipt) })
	switch {
	case err != nil:
		return d.actError(cmd.Context(), ref, err)
	case printErr != nil:
		return printErr
	case dryRun && len(receipt.Remains) > 0:
		return failedErrorf("%s: `attune-executor queue repair` puts right what differs", count(len(receipt.Remains), "difference"))
	case len(receipt.Remains) > 0:
		return failedErrorf("repaired, but for %s: run it again, and look at the log of the engine if it stays", count(len(receipt.Remains), "difference"))
	}
	return nil
}

func repairTable(w io.Writer, r *triage.RepairReceipt) error {
	for _, group := range []struct {
		title  string
		drifts []triage.Drift
	}{{"found", r.Found}, {"repaired", r.Repaired}, {"remains", r.Remains}} {
		if r.DryRun && group.title != "found" {
			continue
		}
		for _, drift := range group.drifts {
			if err := row(w, group.title, drift); err != nil {
				return err
			}
		}
	}
	return row(w, fmt.Sprintf("%d found, %d repaired, %d remain, in %s",
		len(r.Found), len(r.Repaired), len(r.Remains), short(time.Duration(r.Seconds*float64(time.Second)))))
}
