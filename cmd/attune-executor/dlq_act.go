package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

func newDLQRequeueCommand(a *app) *cobra.Command {
	reason, yes := "", false
	cmd := &cobra.Command{
		Use:   "requeue ID...",
		Short: "Send dead letters again, or repeat their executions",
		Long: "Try dead letters again, each once. A dispatch to a worker is never sent again, because it could\n" +
			"start the execution twice: its execution is repeated as a new one after it has ended. Every other\n" +
			"message goes to its destination again. A useless requeue is refused with the reason; --yes does it\n" +
			"anyway if it is possible.",
		Example: "  attune-executor dlq requeue 12 --reason 'the worker is back'\n" +
			"  attune-executor dlq requeue 12 13 14 -o json",
		Args: some(aDeadLetter),
		RunE: a.actingOn(aDeadLetter, true, func(t *triageClient, ids []int64) error {
			return t.requeueDeadLetters(ids, reason, yes)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the audit")
	cmd.Flags().BoolVar(&yes, "yes", false, "also useless requeues")
	return cmd
}

func newDLQDiscardCommand(a *app) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:     "discard ID...",
		Short:   "Discard dead letters: nothing is done about them",
		Long:    "Discard waiting dead letters: nothing is done about them. The rows keep everything.",
		Example: "  attune-executor dlq discard 12 --reason 'a test of ours'",
		Args:    some(aDeadLetter),
		RunE: a.actingOn(aDeadLetter, false, func(t *triageClient, ids []int64) error {
			return runEach(t, ids, eachAction[*triage.DiscardReceipt]{
				what: "dead letter", done: "discarded", field: "done", problem: deadLetterProblem,
				run: func(ctx context.Context, id int64) (*triage.DiscardReceipt, error) {
					return t.Discard(ctx, id, reason)
				},
				line: func(r *triage.DiscardReceipt) string {
					return fmt.Sprintf("dead letter %d: discarded (audit %d)", r.DeadLetter, r.Audit)
				},
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the audit")
	return cmd
}

func (t *triageClient) requeueDeadLetters(ids []int64, reason string, yes bool) error {
	_, err := ofLedger(t.client, func(m *monitor.Monitor) (struct{}, error) {
		return struct{}{}, t.requeueFrom(m, ids, reason, yes)
	})
	return err
}

func (t *triageClient) requeueFrom(ledger *monitor.Monitor, ids []int64, reason string, yes bool) error {
	deadLetters, err := ledger.DeadLettersByID(t.cmd.Context(), ids)
	if err != nil {
		return err
	}
	monitor.SortByExecution(deadLetters) // as the dashboard requeues them
	place := func(id int64) int {
		return slices.IndexFunc(deadLetters, func(e monitor.LedgerEntry) bool { return e.ID == id })
	}
	slices.SortStableFunc(ids, func(a, b int64) int { return cmp.Compare(place(a), place(b)) })
	requeue := t.RequeueIfUseful // the state may have changed since the check
	if yes {
		requeue = t.Requeue
	}
	return runEach(t, ids, eachAction[*triage.RequeueReceipt]{
		what: "dead letter", done: "requeued", field: "done", problem: deadLetterProblem,
		run: func(ctx context.Context, id int64) (*triage.RequeueReceipt, error) {
			if !yes {
				if err := useless(ctx, ledger, id); err != nil {
					return nil, err
				}
			}
			return requeue(ctx, id, reason)
		},
		line: func(r *triage.RequeueReceipt) string {
			if r.Repeated != nil {
				return fmt.Sprintf("dead letter %d: execution %d repeats execution %d of %s, attempt %d (audit %d)",
					r.DeadLetter, r.Repeated.Execution, r.Repeated.Failed, r.Repeated.ActionRef, r.Repeated.Attempt,
					r.Audit)
			}
			text := fmt.Sprintf("dead letter %d: sent again to %s (audit %d)", r.DeadLetter,
				phrase.Destination(r.Exchange, r.RoutingKey), r.Audit)
			for _, lost := range r.NotKept {
				text += "; without " + lost
			}
			return text
		},
		sent: func(r *triage.RequeueReceipt) triage.Sent { return r.Sent },
	})
}

// uselessError refuses a possible but useless requeue.
type uselessError struct{ why string }

func (e uselessError) Error() string        { return e.why }
func (e uselessError) Is(target error) bool { return target == triage.ErrUseless }

// useless returns an error if a requeue of a dead letter is useless. Refusals are left to the requeue itself.
func useless(ctx context.Context, ledger *monitor.Monitor, id int64) error {
	deadLetter, err := ledger.DeadLetter(ctx, id)
	if errors.Is(err, monitor.ErrNotFound) {
		return triage.ErrNoDeadLetter
	}
	if err != nil {
		return err
	}
	if deadLetter.Verdict.Requeue == monitor.RequeueRefused || deadLetter.Verdict.Advice == monitor.AdviseRequeue {
		return nil
	}
	return uselessError{deadLetter.Verdict.Why}
}

// deadLetterProblem explains an error about a dead letter, with advice and its exit code.
func deadLetterProblem(id int64, err error) error {
	already, isAlready := errors.AsType[*triage.AlreadyRetriedError](err)
	switch {
	case errors.Is(err, triage.ErrNoDeadLetter):
		return aDeadLetter.missing(id)
	case isAlready:
		return refusedErrorf(
			"dead letter %d: %w: `attune-executor execution retry %d` repeats that one once it has ended", id, err,
			already.By)
	case errors.Is(err, triage.ErrNotEnded):
		return refusedErrorf(
			"dead letter %d: %w, so there is nothing to repeat: `attune-executor dlq show %d` says more", id, err, id)
	case errors.Is(err, triage.ErrNoExecution):
		return refusedErrorf("dead letter %d: its execution does not exist any more: discard it", id)
	case errors.Is(err, triage.ErrUseless):
		return refusedErrorf("dead letter %d: %w: --yes requeues it anyway", id, err)
	case errors.Is(err, triage.ErrDecided):
		return refusedErrorf("%w", err)
	case errors.Is(err, triage.ErrNoMessage):
		return refusedErrorf("%w: keep a copy with `attune-executor dlq export`, then discard it", err)
	}
	return unknownOutcome(err)
}

func newDLQDiscardAllCommand(a *app) *cobra.Command {
	filter, note, plan := monitor.DeadLetterFilter{}, "", planFlags{}
	cmd := &cobra.Command{
		Use: "discard-all", Aliases: []string{"purge"},
		Short: "Discard all waiting dead letters that match",
		Long: "Discard the dead letters that wait when the command begins and match, at most 10000 at once; without\n" +
			"a filter all of them. Decided ones stay as they are, later ones wait, and the rows keep everything\n" +
			"until they are pruned. If you interrupt it, run the same command again.",
		Example: "  attune-executor dlq discard-all --type EventCreated --older-than 7d --dry-run\n" +
			"  attune-executor dlq discard-all --reason rejected --note 'tests of last week' --yes",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := filter.Check(); err != nil {
				return usageErrorf("%w", err)
			}
			request := triage.DiscardRequest{
				Reason: filter.Reason, Action: filter.Action, Worker: filter.Worker, Type: filter.Type,
				Execution: filter.Execution, MaxAge: filter.MaxAge, MinAge: filter.MinAge, Note: note,
			}
			return a.withTriage(cmd, false, func(t *triageClient) error {
				return t.discardAllDeadLetters(request,
					plan)
			})
		},
	}
	deadLetterFlags(cmd.Flags(), &filter)
	cmd.Flags().StringVar(&note, "note", "", "the reason, for the audit")
	plan.add(cmd.Flags(), "show what would be discarded and do nothing", "do not ask")
	return cmd
}

func (t *triageClient) discardAllDeadLetters(request triage.DiscardRequest, flags planFlags) error {
	plan, err := t.PlanDiscard(t.cmd.Context(), request)
	if err != nil {
		return err
	}
	run, err := t.settle(flags, plan, func(w *page) { discardPlanPage(w, plan) }, discardQuestion(plan))
	if !run || err != nil {
		return err
	}
	ctx, stop := t.start("dead letter")
	defer stop()
	receipt, err := t.DiscardMany(ctx, plan)
	return t.finish(ctx, receipt, func(w *page) { discardPage(w, receipt, plan) }, err,
		interruptedError(receipt.Left, receipt.Planned, "dead letter"),
		func(err error) error { return deadLetterProblem(0, err) })
}

// discardQuestion asks for a yes, or for the number if there are many; nil if there is nothing to
// discard.
func discardQuestion(plan *triage.DiscardPlan) *question {
	if plan.DeadLetters == 0 {
		return nil
	}
	var w page
	discardGroups(&w, plan)
	what := count(plan.DeadLetters, "dead letter")
	want, ask := howMany(plan.DeadLetters)
	return &question{
		unasked: what + " would be discarded: --yes does it, --dry-run shows which",
		text:    fmt.Sprintf("%sdiscard %s? %s: ", &w, what, ask),
		want:    want, nothing: "nothing was discarded",
	}
}

func discardGroups(w *page, plan *triage.DiscardPlan) {
	table(w, "", plan.Groups,
		col("COUNT", func(g *triage.DiscardGroup) any { return g.Count }),
		col("OLDEST", func(g *triage.DiscardGroup) any { return age(plan.At.Sub(g.Oldest)) }),
		flexible("REASON", func(g *triage.DiscardGroup) any { return g.Reason }),
		flexible("TYPE", func(g *triage.DiscardGroup) any { return g.Type }))
}

func discardPlanPage(w *page, plan *triage.DiscardPlan) {
	if plan.DeadLetters == 0 {
		w.row("no waiting dead letter matches")
		return
	}
	discardGroups(w, plan)
	text := count(plan.DeadLetters, "dead letter") + " would be discarded"
	if plan.More {
		text += ", and more match: run the same command again"
	}
	w.row(text)
}

func discardPage(w *page, r *triage.DiscardManyReceipt, plan *triage.DiscardPlan) {
	if r.Planned == 0 {
		w.rowf("no waiting dead letter matches (audit %d)", r.Audit)
		return
	}
	line := fmt.Sprintf("discard: %d planned, %d discarded, %d already decided", r.Planned, r.Discarded,
		r.AlreadyDecided)
	if r.Left > 0 {
		line += fmt.Sprintf(", %d left", r.Left)
	}
	line += fmt.Sprintf(", in %s (audit %d)", short(time.Duration(r.Seconds*float64(time.Second))), r.Audit)
	if plan.More {
		line += ": more match, run the same command again"
	}
	w.row(line)
}

func newDLQTakeCommand(a *app) *cobra.Command {
	request, plan := triage.TakeRequest{}, planFlags{}
	cmd := &cobra.Command{
		Use:   "take",
		Short: "Take messages from the broker's queue of dead letters into the ledger",
		Long: "Take messages from the broker's queue of dead letters into the ledger, in their order, as rows that\n" +
			"wait for a person. An engine does that by itself while message_queue.rabbitmq.dead_letter.enabled is\n" +
			"true. It takes no more messages than are ready when it begins. Each row is committed before its\n" +
			"message is acknowledged, and no message is returned on purpose: filters do not choose messages, they\n" +
			"choose the rows that the last line names for the next command. If you interrupt it, run the same\n" +
			"command again.",
		Example: "  attune-executor dlq take --dry-run\n  attune-executor dlq take --first 100 --yes\n" +
			"  attune-executor dlq take --queue worker.7.executions --note 'worker 7 is gone'\n" +
			"  attune-executor dlq take --action 'core.http*' --yes",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case request.First < 0:
				return usageErrorf("--first must not be negative")
			case request.Rate <= 0:
				return usageErrorf("--rate must be above 0")
			}
			return a.withTriage(cmd, true, func(t *triageClient) error { return t.takeDeadLetters(request, plan) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Queue, "queue", message.QueueDeadLetter,
		"take from this queue, such as that of a lost worker")
	flags.IntVar(&request.First, "first", 0, "how many to take at most, 0 for all")
	flags.Float64Var(&request.Rate, "rate", triage.TakeRate, "how many to take in a second")
	flags.StringVar(&request.Match.Reason, "reason", "", "name the rows with this reason")
	flags.StringVar(&request.Match.Action, "action", "",
		"name the rows about actions whose ref matches; * stands for anything")
	flags.StringVar(&request.Match.Worker, "worker", "",
		"name the rows of messages to the worker with this id")
	flags.StringVar(&request.Match.Type, "type", "", "name the rows of this message type")
	flags.Int64Var(&request.Match.Execution, "execution", 0, "name the rows about this execution")
	flags.StringVar(&request.Note, "note", "", "the reason, for the audit")
	plan.add(flags, "show what would be taken and do nothing", "do not ask")
	return cmd
}

func (t *triageClient) takeDeadLetters(request triage.TakeRequest, flags planFlags) error {
	operator := t.With(t.publisher.link)
	plan, err := operator.PlanTake(t.cmd.Context(), request)
	if err != nil {
		return takeProblem(err)
	}
	run, err := t.settle(flags, plan, func(w *page) { w.row(takePlanText(plan)) }, takeQuestion(plan))
	if !run || err != nil {
		return err
	}
	ctx, stop := t.start("message")
	defer stop()
	receipt, err := operator.Take(ctx, plan)
	if receipt == nil {
		return takeProblem(err)
	}
	interrupted := interruptedError(receipt.Left, receipt.Planned, "message")
	if err == nil && receipt.Stopped != "" {
		err = interrupted
	}
	err = t.finish(ctx, receipt, func(w *page) { takePage(w, receipt, request.Match) }, err, interrupted,
		func(err error) error {
			return failedErrorf("stopped with %d of %s left: %w: run the same command again", receipt.Left,
				count(receipt.Planned, "message"), err)
		})
	if err == nil && receipt.Lost != "" {
		return failedErrorf("%d of %s had left %s before they were taken: %s", receipt.Absent,
			count(receipt.Planned, "message"), receipt.Queue, receipt.Lost)
	}
	return err
}

// takeQuestion is nil if there is nothing to take.
func takeQuestion(plan *triage.TakePlan) *question {
	if plan.Bound == 0 {
		return nil
	}
	return &question{
		unasked: fmt.Sprintf("%s would be taken from %s: --yes does it, --dry-run shows more",
			count(plan.Bound, "message"), plan.Queue),
		text: takePlanText(plan) + "\ntake them? y or n: ", want: "y", nothing: "nothing was taken",
	}
}

// takeProblem explains an error of a take, with its exit code.
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

func takePage(w *page, r *triage.TakeReceipt, match triage.DeadLetterMatch) {
	after := "unknown"
	if r.After >= 0 {
		after = fmt.Sprint(r.After)
	}
	lines := []string{fmt.Sprintf(
		"planned %d: %d taken (%d new, %d known, %d probes), %d gone, %d left; %s %d -> %s (audit %d)",
		r.Planned, r.Taken, r.New, r.Known, r.Probes, r.Absent, r.Left, r.Queue, r.Before, after, r.Audit)}
	if match != (triage.DeadLetterMatch{}) {
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
