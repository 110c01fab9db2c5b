package main

import (
	"os"
	"testing"

	"github.com/attune-go/attune/lab/testkit"
)

// An action of the same user reads no password from the dashboard.
func TestTheDashboardIsShielded(t *testing.T) {
	t.Parallel()
	testkit.Shielded(t, os.Args[0], []string{asProgram + "=1"}, "--plain")
}
