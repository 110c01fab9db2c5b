package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
)

func newExecutionRetryCommand(a *app) *cobra.Command {
	var chosen selection
	reason, dryRun, yes := "", false, false
	cmd := &cobra.Command{
		Use:   "retry ID... | retry --param NAME=VALUE...",
		Short: "Repeat executions that have ended, each as a new execution that is due at once",
		Long: "Repeat executions that have ended, however they did and however often they were repeated before. Each repetition is\n" +
			"a new execution with the same parameters; what has ended stays as it is and can be repeated once: repeat the newest\n" +
			"attempt instead. With several ids, what can be repeated is, and the exit code says that something was refused.\n\n" +
			"Without ids the flags choose: all executions that match, of the statuses failed, timeout and abandoned unless --status says\n" +
			"otherwise, at most 10000 at once, of the newest 50000. You are asked first; --dry-run shows which there are.",
		Example: "  attune-executor execution retry 42 --reason 'the disk is free again'\n" +
			"  attune-executor execution retry 42 43 44 -o json\n" +
			"  attune-executor execution retry --action shop.bill --since 1h -p tenant=t7 --dry-run",
		Args: chosen.someExecutions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := executionIDs(args)
			if err != nil {
				return err
			}
			if !chosen.given() && dryRun {
				return usageErrorf("--dry-run goes with flags that choose executions")
			}
			return a.retryExecutions(cmd, ids, &chosen, reason, dryRun, yes)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at what was done")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show which executions the flags choose and do nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask, of executions that flags choose")
	chosen.flags(cmd)
	return cmd
}

func executionIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, text := range args {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			return nil, usageErrorf("%q is not the id of an execution", text)
		}
		ids[i] = id
	}
	return ids, nil
}

// retryView is what `execution retry` prints.
type retryView struct {
	Retried  []*triage.RetryReceipt `json:"retried"`
	Refused  []refusal              `json:"refused"`
	Delivery string                 `json:"delivery"`
}

// refusal is an execution that an act left alone, and why.
type refusal struct {
	ID    int64  `json:"id"`
	Error string `json:"error"`
}

func (a *app) retryExecutions(cmd *cobra.Command, ids []int64, selected *selection, reason string, dryRun, yes bool) error {
	filter, err := selected.read()
	if err != nil {
		return err
	}
	d, err := a.openDesk(cmd, !dryRun)
	if err != nil {
		return err
	}
	defer d.stop()
	if selected.given() {
		chosen, err := d.choose(cmd.Context(), statusOr(filter, attune.StatusFailed, attune.StatusTimeout, attune.StatusAbandoned))
		if err != nil {
			return err
		}
		goOn, err := a.confirmChosen(cmd, d.client, chosen, "retry", dryRun, yes)
		if !goOn || err != nil {
			return err
		}
		ids = chosen.IDs
	}
	view := retryView{Retried: []*triage.RetryReceipt{}, Refused: []refusal{}}
	var sent triage.Sent
	var problems []error
	for _, id := range ids {
		receipt, err := d.RetryExecution(cmd.Context(), id, reason)
		if err == nil {
			view.Retried = append(view.Retried, receipt)
			sent.Rows = append(sent.Rows, receipt.Rows...)
			continue
		}
		err = retryProblem(id, err)
		view.Refused = append(view.Refused, refusal{id, err.Error()})
		problems = append(problems, err)
		if store.IsAway(err) || cmd.Context().Err() != nil {
			break // the others would say the same
		}
	}
	view.Delivery = d.delivery(cmd.Context(), a, sent)
	if err := a.print(cmd, view, func(w io.Writer) error { return retryTable(w, view) }); err != nil {
		return err
	}
	return a.verdict(len(ids), problems)
}

// verdict is the error of an act on several executions: the one there was, or
// how many there were once each has been told.
func (a *app) verdict(asked int, problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	if asked == 1 {
		return problems[0]
	}
	worst := exitRefused
	for _, problem := range problems {
		a.notef("error: %s", oneLine(problem.Error()))
		if code := a.exitCode(problem); code != exitRefused && worst != exitUnreachable {
			worst = code
		}
	}
	return &exitError{worst, fmt.Errorf("%d of %s not repeated", len(problems), count(asked, "execution"))}
}

// retryProblem says why an execution was not repeated, what to do, and by its
// code what kind of problem it is.
func retryProblem(id int64, err error) error {
	already, isAlready := errors.AsType[*triage.AlreadyRetriedError](err)
	switch {
	case isAlready:
		return refusedErrorf("%w: `attune-executor execution retry %d` repeats that one once it has ended", err, already.By)
	case errors.Is(err, triage.ErrNotEnded):
		return refusedErrorf("%w: wait for its end, or end it with `attune-executor execution cancel %d`", err, id)
	case errors.Is(err, triage.ErrNoExecution):
		return failedErrorf("there is no execution %d: `attune-executor execution list` shows the newest", id)
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was done is unknown, the same again is safe", err)
	case errors.Is(err, context.Canceled):
		return failedErrorf("interrupted before execution %d: the same again is safe", id)
	}
	return err
}

func retryTable(w io.Writer, view retryView) error {
	for _, r := range view.Retried {
		line := fmt.Sprintf("execution %d repeats execution %d of %s, attempt %d (audit %d)",
			r.Execution, r.Failed, r.ActionRef, r.Attempt, r.Audit)
		if err := row(w, line); err != nil {
			return err
		}
	}
	return nil
}
