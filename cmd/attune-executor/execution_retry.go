package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
)

func newExecutionRetryCommand(a *app) *cobra.Command {
	var chosen selection
	reason, flags := "", planFlags{}
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
			ids, err := anExecution.ids(args)
			if err != nil {
				return err
			}
			if !chosen.given() && flags.dryRun {
				return usageErrorf("--dry-run goes with flags that choose executions")
			}
			return a.retryExecutions(cmd, ids, &chosen, reason, flags)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at what was done")
	flags.add(cmd.Flags(), "show which executions the flags choose and do nothing", "do not ask, of executions that flags choose")
	chosen.flags(cmd)
	return cmd
}

func (a *app) retryExecutions(cmd *cobra.Command, ids []int64, selected *selection, reason string, flags planFlags) error {
	filter, err := selected.read(attune.StatusFailed, attune.StatusTimeout, attune.StatusAbandoned)
	if err != nil {
		return err
	}
	t, err := a.openTriage(cmd, !flags.dryRun)
	if err != nil {
		return err
	}
	defer t.close()
	if selected.given() {
		chosen, err := t.monitor().Choose(cmd.Context(), filter, maxChosen)
		if err != nil {
			return err
		}
		run, err := t.settleChosen(chosen, "retry", flags)
		if !run || err != nil {
			return err
		}
		ids = chosen.IDs
	}
	retried, refused, problems := each(cmd.Context(), ids, func(id int64) (*triage.RetryReceipt, error) {
		return t.RetryExecution(cmd.Context(), id, reason)
	}, retryProblem)
	var sent triage.Sent
	for _, receipt := range retried {
		sent.Rows = append(sent.Rows, receipt.Rows...)
	}
	view := struct {
		Retried  []*triage.RetryReceipt `json:"retried"`
		Refused  []refusal              `json:"refused"`
		Delivery string                 `json:"delivery"`
	}{retried, refused, t.delivery(cmd.Context(), sent)}
	err = t.show(view, func(w *page) {
		for _, r := range retried {
			w.rowf("execution %d repeats execution %d of %s, attempt %d (audit %d)", r.Execution, r.Failed, r.ActionRef, r.Attempt, r.Audit)
		}
	})
	if err != nil {
		return err
	}
	return a.verdict(len(ids), "execution", "repeated", problems)
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
		return anExecution.missing(id)
	case errors.Is(err, context.Canceled) && store.ClassOf(err) != store.ClassUnknown:
		return failedErrorf("interrupted before execution %d: the same again is safe", id)
	}
	return unknownOutcome(err)
}
