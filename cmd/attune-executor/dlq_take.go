package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
)

func newDLQTakeCommand(a *app) *cobra.Command {
	order, plan := triage.TakeOrder{}, planFlags{}
	cmd := &cobra.Command{
		Use:   "take",
		Short: "Take messages from the broker's queue of dead letters into the ledger",
		Long: "Take messages from the broker's queue of dead letters into the ledger, in their order, as rows that wait for a person.\n" +
			"An engine does that by itself while message_queue.rabbitmq.dead_letter.enabled is true. It takes no more\n" +
			"messages than are ready when it begins. Each row is committed before its message is acknowledged, and no message is\n" +
			"returned on purpose: filters do not choose messages, they choose the rows that the last line names for the next\n" +
			"command. If you interrupt it, run the same command again.",
		Example: "  attune-executor dlq take --dry-run\n  attune-executor dlq take --first 100 --yes\n" +
			"  attune-executor dlq take --queue worker.7.executions --note 'worker 7 is gone'\n  attune-executor dlq take --action 'core.http*' --yes",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case order.First < 0:
				return usageErrorf("--first must not be negative")
			case order.Rate <= 0:
				return usageErrorf("--rate must be above 0")
			}
			return a.takeLetters(cmd, order, plan)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&order.Queue, "queue", message.QueueDeadLetter, "take from this queue, such as that of a worker that is gone")
	flags.IntVar(&order.First, "first", 0, "take so many at most, 0 for all")
	flags.Float64Var(&order.Rate, "rate", triage.TakeRate, "take so many in a second")
	flags.StringVar(&order.Match.Reason, "reason", "", "name the rows that died for this reason")
	flags.StringVar(&order.Match.Action, "action", "", "name the rows about actions whose ref matches; * stands for anything")
	flags.StringVar(&order.Match.Worker, "worker", "", "name the rows that were on their way to the worker with this id")
	flags.StringVar(&order.Match.Type, "type", "", "name the rows of this message type")
	flags.Int64Var(&order.Match.Execution, "execution", 0, "name the rows about this execution")
	flags.StringVar(&order.Note, "note", "", "why, for the audit")
	plan.add(flags, "show what would be taken and do nothing", "do not ask")
	return cmd
}

func (a *app) takeLetters(cmd *cobra.Command, order triage.TakeOrder, flags planFlags) error {
	t, err := a.openTriage(cmd, true)
	if err != nil {
		return err
	}
	defer t.close()
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	operator := t.With(t.publisher.link)
	plan, err := operator.PlanTake(ctx, order)
	if err != nil {
		return takeProblem(err)
	}
	run, err := t.settle(flags, plan, func(w *page) { w.row(takePlanText(plan)) }, takeQuestion(plan))
	if !run || err != nil {
		return err
	}
	receipt, err := operator.Take(ctx, plan)
	if receipt == nil {
		return takeProblem(err)
	}
	printErr := t.show(receipt, func(w *page) { takePage(w, receipt, order.Match) })
	switch {
	case err != nil:
		return failedErrorf("stopped with %d of %s left: %w: the same command goes on", receipt.Left, count(receipt.Planned, "message"), err)
	case receipt.Stopped != "":
		return failedErrorf("interrupted with %d of %s left: the same command goes on", receipt.Left, count(receipt.Planned, "message"))
	}
	return printErr
}

// takeQuestion is nil where nothing would be taken.
func takeQuestion(plan *triage.TakePlan) *question {
	if plan.Bound == 0 {
		return nil
	}
	return &question{
		unasked: fmt.Sprintf("%s would be taken from %s: --yes does it, --dry-run shows more", count(plan.Bound, "message"), plan.Queue),
		text:    takePlanText(plan) + "\ntake them? y or n: ", want: "y", nothing: "nothing was taken",
	}
}

// takeProblem says why nothing was taken, and by its code what kind of problem it is.
func takeProblem(err error) error {
	locked, isLocked := errors.AsType[*triage.LockedError](err)
	switch {
	case isLocked:
		return refusedErrorf("another operator acts on that queue: %w", locked)
	case errors.Is(err, triage.ErrQueueMissing):
		return failedErrorf("%w: an engine declares attune.dlx.queue when it starts", err)
	case errors.Is(err, broker.ErrNotConnected):
		return &exitError{exitUnreachable, fmt.Errorf("%w: nothing was taken", err)}
	}
	return err
}

func takePlanText(p *triage.TakePlan) string {
	text := fmt.Sprintf("%s ready in %s with %s; the first %d would be taken into the ledger",
		count(p.Ready, "message"), p.Queue, count(p.Consumers, "consumer"), p.Bound)
	if p.Consumers > 0 {
		text += "; others consume this queue, and each message goes to one of you"
	}
	return text
}

func takePage(w *page, r *triage.TakeReceipt, match triage.LetterMatch) {
	after := "unknown"
	if r.After >= 0 {
		after = fmt.Sprint(r.After)
	}
	lines := []string{fmt.Sprintf("planned %d: %d taken (%d new, %d known, %d probes), %d gone, %d left; %s %d -> %s (audit %d)",
		r.Planned, r.Taken, r.New, r.Known, r.Probes, r.Absent, r.Left, r.Queue, r.Before, after, r.Audit)}
	if match != (triage.LetterMatch{}) {
		ids := strings.Trim(fmt.Sprint(r.Matched), "[]")
		if r.Matching > len(r.Matched) {
			ids += " ..."
		}
		lines = append(lines, fmt.Sprintf("%s: %s", count(r.Matching, "matching row"), cmp.Or(ids, "none")))
	} else if r.New > 0 {
		lines = append(lines, "`attune-executor dlq list --open` shows them")
	}
	for _, text := range lines {
		w.row(text)
	}
}
