package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

func newWorkflowPauseCommand(a *app) *cobra.Command {
	return newWorkflowWordCommand(a, &cobra.Command{
		Use:   "pause ID",
		Short: "Have a workflow, and those within it, start nothing more until it is resumed",
		Long: "Have a workflow, and the workflows within it, start nothing more, neither tasks nor items of lists nor repetitions, until\n" +
			"it is resumed. What runs goes on to its end. A running engine notices within seconds.",
		Example: "  attune-executor workflow pause 42 --reason 'prices change'",
	}, (*triage.Triage).PauseWorkflow)
}

func newWorkflowResumeCommand(a *app) *cobra.Command {
	return newWorkflowWordCommand(a, &cobra.Command{
		Use:     "resume ID",
		Short:   "Have a paused workflow go on, and those within it that were not paused by themselves",
		Example: "  attune-executor workflow resume 42",
	}, (*triage.Triage).ResumeWorkflow)
}

// newWorkflowWordCommand makes the command of an act that one word decides.
func newWorkflowWordCommand(a *app, cmd *cobra.Command,
	act func(t *triage.Triage, ctx context.Context, execution int64, reason string) (*triage.WorkflowReceipt, error),
) *cobra.Command {
	reason := ""
	cmd.Args = oneArg("the id of a workflow")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := workflowID(args[0])
		if err != nil {
			return err
		}
		d, err := a.openDesk(cmd, false)
		if err != nil {
			return err
		}
		defer d.stop()
		receipt, err := act(d.Triage, cmd.Context(), id, reason)
		if err != nil {
			return d.noWorkflow(cmd.Context(), id, err)
		}
		return a.print(cmd, receipt, func(w io.Writer) error {
			text := fmt.Sprintf("workflow %d (%s) %s", receipt.Execution, receipt.Action, receipt.Says)
			if receipt.PauseReason != "" {
				text += ": " + receipt.PauseReason
			}
			return row(w, text+fmt.Sprintf(" (audit %d)", receipt.Audit))
		})
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at the workflow")
	return cmd
}

// noWorkflow says what an execution is that an act took for a workflow.
func (d *desk) noWorkflow(ctx context.Context, id int64, err error) error {
	if !errors.Is(err, triage.ErrNoWorkflow) {
		return workflowError(id, err)
	}
	if _, looked := d.monitor().Workflow(ctx, id); looked != nil {
		return workflowError(id, looked)
	}
	return err // it was begun just now
}

func newWorkflowCancelCommand(a *app) *cobra.Command {
	options := &cancelOptions{}
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Stop a workflow; its definition says what becomes of its tasks that run",
		Long: "Stop a workflow: nothing more is started, and what waits is cancelled. What runs is stopped too if its definition says\n" +
			"cancellation_policy: cancel_running, and else goes on to its end.",
		Example: "  attune-executor workflow cancel 42 --reason 'wrong cart' --wait --timeout 30s",
		Args:    oneArg("the id of a workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := workflowID(args[0])
			if err != nil {
				return err
			}
			if err := a.mustBeWorkflow(cmd, id); err != nil {
				return err
			}
			if options.dryRun {
				return a.planWorkflowCancel(cmd, id, options)
			}
			return a.cancelExecutions(cmd, []int64{id}, options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.reason, "reason", "", "why, for those who look at the result")
	flags.BoolVar(&options.dryRun, "dry-run", false, "show what would become of it and of each task, and do nothing")
	flags.BoolVar(&options.wait, "wait", false, "wait until it has ended")
	flags.DurationVar(&options.timeout, "timeout", 0, "how long to wait, 0 for ever")
	return cmd
}

// mustBeWorkflow refuses to cancel by mistake what is no workflow.
func (a *app) mustBeWorkflow(cmd *cobra.Command, id int64) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	_, err = c.monitor().Workflow(cmd.Context(), id)
	if none, isNone := errors.AsType[*monitor.NoWorkflowError](err); isNone && none.Waiting {
		return nil // it is stopped before it begins
	}
	if err != nil {
		return workflowError(id, err)
	}
	return nil
}
