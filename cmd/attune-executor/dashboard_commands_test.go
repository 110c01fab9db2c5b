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
		act.FieldWorker: "7", act.FieldAs: "ada", act.FieldLane: "low",
	}
	target := act.Target{ID: 42, Action: "core.echo", Group: `{"tenant":"acme"}`}
	seen := 0
	for _, of := range act.All() {
		for _, targets := range [][]act.Target{nil, {target, target}} {
			if len(targets) > 0 && of.Many == "" {
				continue
			}
			request := act.Request{Kind: of.Kind, Target: target, Targets: targets, Values: values}
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
