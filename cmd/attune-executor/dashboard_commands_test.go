package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// The commands that the dashboard copies exist, with their arguments and flags.
func TestCommandsOfTheDashboardExist(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		act.FieldLimit: "2", act.FieldOlderThan: "10m", act.FieldReason: "expired", act.FieldAction: "core.*",
		act.FieldWorker: "7", act.FieldAs: "ada",
	}
	target := act.Target{ID: 42, Action: "core.echo", Group: `{"tenant":"acme"}`}
	seen := 0
	for _, kind := range []act.Kind{
		act.CancelExecution, act.CancelTree, act.RetryExecution, act.PauseQueue, act.ResumeQueue, act.LimitQueue,
		act.ResetQueue, act.ClearQueue,
		act.RepairQueue, act.CordonWorker, act.UncordonWorker, act.DrainWorker, act.ForgetWorker, act.RequeueDeadLetter,
		act.DiscardDeadLetter, act.DiscardAllDeadLetters,
		act.PauseWorkflow, act.ResumeWorkflow, act.CancelWorkflow, act.RetryWorkflow, act.RetryTask, act.AnswerInquiry,
	} {
		for _, targets := range [][]act.Target{nil, {target, target}} {
			request := act.Request{Kind: kind, Target: target, Targets: targets, Values: values}
			for _, argv := range request.Commands("it's late") {
				requireCommand(t, argv)
				seen++
			}
		}
	}
	require.Greater(t, seen, 40)
	for _, thing := range []screen.Thing{
		screen.ExecutionThing(&monitor.Execution{ID: 42}, nil), screen.DeadLetterThing(12, nil),
		screen.QueueThing(&monitor.Queue{ActionRef: "core.echo", Group: `{"tenant":"acme"}`}, nil),
		screen.Numbered("event", 1, "event", "event", nil),
		screen.Numbered("enforcement", 1, "enforcement", "enforcement", nil),
		screen.Numbered("inquiry", 1, "inquiry", "inquiry", nil),
		screen.Numbered("workflow", 1, "workflow", "workflow_execution", nil),
	} {
		requireCommand(t, thing.Command)
	}
}

func requireCommand(t *testing.T, argv []string) {
	t.Helper()
	cmd, rest, err := newRootCommand(&app{}).Find(argv)
	require.NoError(t, err, argv)
	require.Equal(t, argv[1], cmd.Name(), argv)
	require.NoError(t, cmd.ParseFlags(rest), argv)
	require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), argv)
}
