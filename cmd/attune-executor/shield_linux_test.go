package main

import (
	"testing"

	"github.com/attune-go/attune/lab/testkit"
)

// An action of the same user reads no password from a command that runs beside it.
func TestCommandsAreShielded(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"Serve": {"serve"}, "Worker": {"worker"}, "Run": {"run", "core.echo", "--wait"}, "Doctor": {"doctor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.Shielded(t, testkit.Program(t), nil, args...)
		})
	}
}
