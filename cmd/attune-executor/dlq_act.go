package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
)

// someLetters asks for ids of dead letters.
func someLetters(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s needs the id of a dead letter, or several", cmd.Name())
	}
	return nil
}

func newDLQRequeueCommand(a *app) *cobra.Command {
	reason, yes := "", false
	cmd := &cobra.Command{
		Use:   "requeue ID...",
		Short: "Try again what dead letters were about",
		Long: "Try again what dead letters were about, each once. A hand-over to a worker is never sent again, since it could start the\n" +
			"execution twice: its execution is repeated as a new one once it has ended. Every other message goes back to where it was\n" +
			"sent to. What would be of no use is refused, with why; --yes does it all the same if it can be done.",
		Example: "  attune-executor dlq requeue 12 --reason 'the worker is back'\n  attune-executor dlq requeue 12 13 14 -o json",
		Args:    someLetters,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.requeueLetters(cmd, args, reason, yes) },
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at what was done")
	cmd.Flags().BoolVar(&yes, "yes", false, "also what is of no use")
	return cmd
}

func newDLQDiscardCommand(a *app) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:     "discard ID...",
		Short:   "Decide that nothing is done about dead letters",
		Long:    "Decide that nothing is done about dead letters that wait for a person. The rows keep everything.",
		Example: "  attune-executor dlq discard 12 --reason 'a test of ours'",
		Args:    someLetters,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.discardLetters(cmd, args, reason) },
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at what was done")
	return cmd
}

// letterView is what `dlq requeue` and `dlq discard` print.
type letterView[R any] struct {
	Done     []R       `json:"done"`
	Refused  []refusal `json:"refused"`
	Delivery string    `json:"delivery,omitempty"`
}

// eachLetter acts on one letter after the other until the database is away.
func eachLetter[R any](ctx context.Context, ids []int64, act func(id int64) (R, error)) (view letterView[R], problems []error) {
	view = letterView[R]{Done: []R{}, Refused: []refusal{}}
	for _, id := range ids {
		receipt, problem := act(id)
		if problem == nil {
			view.Done = append(view.Done, receipt)
			continue
		}
		problem = letterProblem(id, problem)
		view.Refused = append(view.Refused, refusal{id, problem.Error()})
		problems = append(problems, problem)
		if store.IsAway(problem) || ctx.Err() != nil {
			break // the others would say the same
		}
	}
	return view, problems
}

func letterIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, text := range args {
		id, err := letterID(text)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

func (a *app) requeueLetters(cmd *cobra.Command, args []string, reason string, yes bool) error {
	ids, err := letterIDs(args)
	if err != nil {
		return err
	}
	d, err := a.openDesk(cmd, true)
	if err != nil {
		return err
	}
	defer d.stop()
	var sent triage.Sent
	look, requeue := d.monitor(), d.RequeueIfUseful // what it is of no use for may have changed since it was looked at
	if yes {
		requeue = d.Requeue
	}
	view, problems := eachLetter(cmd.Context(), ids, func(id int64) (*triage.RequeueReceipt, error) {
		if err := useless(cmd.Context(), look, id, yes); err != nil {
			return nil, err
		}
		receipt, err := requeue(cmd.Context(), id, reason)
		if err == nil {
			sent.Rows = append(sent.Rows, receipt.Rows...)
		}
		return receipt, err
	})
	view.Delivery = d.delivery(cmd.Context(), a, sent)
	err = a.print(cmd, view, func(w io.Writer) error {
		for _, r := range view.Done {
			if err := row(w, requeuedText(r)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.letterVerdict(len(args), "requeued", problems)
}

// useless refuses a requeue that can be done and is of no use.
func useless(ctx context.Context, look *alerting.Reader, id int64, yes bool) error {
	if yes {
		return nil
	}
	letter, err := look.Letter(ctx, id)
	if errors.Is(err, monitor.ErrNotFound) {
		return triage.ErrNoLetter
	}
	if err != nil {
		return err
	}
	if letter.Verdict.Requeue == monitor.RequeueRefused || letter.Verdict.Advice == monitor.AdviseRequeue {
		return nil // the act itself says best what refuses it
	}
	return refusedErrorf("dead letter %d: %s: --yes requeues it all the same", id, letter.Verdict.Why)
}

func requeuedText(r *triage.RequeueReceipt) string {
	if r.Repeated != nil {
		return fmt.Sprintf("dead letter %d: execution %d repeats execution %d of %s, attempt %d (audit %d)",
			r.Letter, r.Repeated.Execution, r.Repeated.Failed, r.Repeated.ActionRef, r.Repeated.Attempt, r.Audit)
	}
	return fmt.Sprintf("dead letter %d: sent again to %s with the key %s (audit %d)", r.Letter, r.Exchange, r.RoutingKey, r.Audit)
}

func (a *app) discardLetters(cmd *cobra.Command, args []string, reason string) error {
	ids, err := letterIDs(args)
	if err != nil {
		return err
	}
	d, err := a.openDesk(cmd, false)
	if err != nil {
		return err
	}
	defer d.stop()
	view, problems := eachLetter(cmd.Context(), ids, func(id int64) (*triage.DiscardReceipt, error) {
		return d.Discard(cmd.Context(), id, reason)
	})
	err = a.print(cmd, view, func(w io.Writer) error {
		for _, r := range view.Done {
			if err := row(w, fmt.Sprintf("dead letter %d: discarded (audit %d)", r.Letter, r.Audit)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.letterVerdict(len(args), "discarded", problems)
}

// letterVerdict is the error of an act on several letters: the one there was, or
// how many there were once each has been told.
func (a *app) letterVerdict(asked int, done string, problems []error) error {
	if len(problems) == 0 || asked == 1 {
		return errors.Join(problems...)
	}
	worst := exitRefused
	for _, problem := range problems {
		a.notef("error: %s", oneLine(problem.Error()))
		if code := a.exitCode(problem); code != exitRefused && worst != exitUnreachable {
			worst = code
		}
	}
	return &exitError{worst, fmt.Errorf("%d of %s not %s", len(problems), count(asked, "dead letter"), done)}
}

// letterProblem says why nothing was done about a letter, what to do, and by its
// code what kind of problem it is.
func letterProblem(id int64, err error) error {
	already, isAlready := errors.AsType[*triage.AlreadyRetriedError](err)
	switch {
	case errors.Is(err, triage.ErrNoLetter):
		return noLetter(id)
	case isAlready:
		return refusedErrorf("dead letter %d: %w: `attune-executor execution retry %d` repeats that one once it has ended", id, err, already.By)
	case errors.Is(err, triage.ErrNotEnded):
		return refusedErrorf("dead letter %d: %w, so there is nothing to repeat: `attune-executor dlq show %d` says more", id, err, id)
	case errors.Is(err, triage.ErrNoExecution):
		return refusedErrorf("dead letter %d: its execution does not exist any more: discard it", id)
	case errors.Is(err, triage.ErrUseless):
		return refusedErrorf("dead letter %d: %w: --yes requeues it all the same", id, err)
	case errors.Is(err, triage.ErrDecided):
		return refusedErrorf("%w", err)
	case errors.Is(err, triage.ErrNoMessage):
		return refusedErrorf("%w: keep a copy with `attune-executor dlq export`, then discard it", err)
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was done is unknown, the same again is safe", err)
	case errors.Is(err, context.Canceled):
		return failedErrorf("interrupted before dead letter %d: the same again is safe", id)
	}
	return err
}

func newDLQDiscardAllCommand(a *app) *cobra.Command {
	filter, note, dryRun, yes := monitor.DeadLetterFilter{}, "", false, false
	cmd := &cobra.Command{
		Use: "discard-all", Aliases: []string{"purge"},
		Short: "Discard all dead letters that wait and match",
		Long: "Discard the dead letters that wait for a person when the command begins and match, at most 10000 at once; without a\n" +
			"filter all of them. What was decided stays as it is, what comes meanwhile waits on, and the rows keep everything until\n" +
			"they are pruned. Interrupted, it has decided some and not others; the same command goes on.",
		Example: "  attune-executor dlq discard-all --type EventCreated --older-than 7d --dry-run\n" +
			"  attune-executor dlq discard-all --reason rejected --note 'tests of last week' --yes",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := filter.Check(); err != nil {
				return usageErrorf("%w", err)
			}
			return a.discardAllLetters(cmd, triage.DiscardOrder{
				Reason: filter.Reason, Action: filter.Action, Worker: filter.Worker, Type: filter.Type, Execution: filter.Execution,
				MaxAge: filter.MaxAge, MinAge: filter.MinAge, Note: note,
			}, dryRun, yes)
		},
	}
	letterFlags(cmd.Flags(), &filter)
	cmd.Flags().StringVar(&note, "note", "", "why, for those who look at what was done")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be discarded and do nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// discardPlanView is a plan that is not run.
type discardPlanView struct {
	*triage.DiscardPlan

	DryRun bool `json:"dry_run"`
}

func (a *app) discardAllLetters(cmd *cobra.Command, order triage.DiscardOrder, dryRun, yes bool) error {
	d, err := a.openDesk(cmd, false)
	if err != nil {
		return err
	}
	defer d.stop()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	plan, err := d.PlanDiscard(ctx, order)
	if err != nil {
		return err
	}
	if dryRun {
		return a.print(cmd, discardPlanView{plan, true}, func(w io.Writer) error { return discardPlanTable(w, plan) })
	}
	if !yes && plan.Letters > 0 {
		in := cmd.InOrStdin()
		if err := confirmDiscard(in, a.stderr, interactive(in), plan); err != nil {
			return err
		}
	}
	receipt, err := d.DiscardMany(ctx, plan)
	printErr := a.print(cmd, receipt, func(w io.Writer) error { return discardTable(w, receipt, plan) })
	switch {
	case err != nil && ctx.Err() != nil:
		return failedErrorf("interrupted with %d of %s left: the same command goes on", receipt.Left, count(receipt.Planned, "dead letter"))
	case err != nil:
		return letterProblem(0, err)
	}
	return printErr
}

// fewLetters is how many letters a plain yes is enough for.
const fewLetters = 50

// confirmDiscard asks a person: for a yes, or for the number when they are many.
// Without a person it refuses.
func confirmDiscard(in io.Reader, out io.Writer, person bool, plan *triage.DiscardPlan) error {
	if !person {
		return refusedErrorf("%s would be discarded: --yes does it, --dry-run shows which", count(plan.Letters, "dead letter"))
	}
	if err := discardGroups(out, plan); err != nil {
		return err
	}
	want, ask := "y", "y or n"
	if plan.Letters > fewLetters {
		want, ask = strconv.Itoa(plan.Letters), "type the number"
	}
	_, _ = fmt.Fprintf(out, "discard %s? %s: ", count(plan.Letters, "dead letter"), ask)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if !strings.EqualFold(strings.TrimSpace(answer), want) {
		return refusedErrorf("nothing was discarded: the answer is not %s", want)
	}
	return nil
}

func discardGroups(w io.Writer, plan *triage.DiscardPlan) error {
	cells := [][]string{{"COUNT", "OLDEST", "REASON", "TYPE"}}
	for _, g := range plan.Groups {
		cells = append(cells, []string{strconv.Itoa(g.Count), age(plan.At.Sub(g.Oldest)), g.Reason, g.Type})
	}
	for _, line := range fit(cells, 2, 3) {
		if err := row(w, line...); err != nil {
			return err
		}
	}
	return nil
}

func discardPlanTable(w io.Writer, plan *triage.DiscardPlan) error {
	if plan.Letters == 0 {
		return row(w, "no dead letter that waits matches")
	}
	if err := discardGroups(w, plan); err != nil {
		return err
	}
	text := count(plan.Letters, "dead letter") + " would be discarded"
	if plan.More {
		text += ", and more match: the same again goes on"
	}
	return row(w, text)
}

func discardTable(w io.Writer, r *triage.DiscardManyReceipt, plan *triage.DiscardPlan) error {
	if r.Planned == 0 {
		return row(w, fmt.Sprintf("no dead letter that waits matches (audit %d)", r.Audit))
	}
	line := fmt.Sprintf("discard: %d planned, %d discarded, %d already decided", r.Planned, r.Discarded, r.AlreadyDecided)
	if r.Left > 0 {
		line += fmt.Sprintf(", %d left", r.Left)
	}
	line += fmt.Sprintf(", in %s (audit %d)", short(time.Duration(r.Seconds*float64(time.Second))), r.Audit)
	if plan.More {
		line += ": more match, the same again goes on"
	}
	return row(w, line)
}
