package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// A worker that is the first process of its container says that it needs an init, and another one does not.
func TestAWorkerWithoutAnInitWarns(t *testing.T) {
	t.Parallel()
	program, alone := testkit.Program(t), []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if exec.CommandContext(t.Context(), alone[0], append(alone[1:], "true")...).Run() != nil {
		t.Skip("unshare makes no namespace of processes here")
	}
	environ := append(os.Environ(), "ATTUNE__DATABASE__URL="+testkit.Database(t),
		"ATTUNE__MESSAGE_QUEUE__URL="+testkit.VHost(t), "ATTUNE__PACKS_BASE_DIR="+t.TempDir())
	for name, before := range map[string][]string{"first": alone, "other": nil} {
		args := append(before[:len(before):len(before)], program, "worker", "--name", name)
		worker := startService(t, environ, nil, args[0], args[1:]...)
		testkit.Eventually(t, func() bool { return strings.Contains(worker.output.String(), "Worker started") },
			testkit.TestTimeout, name)
		require.Equal(t, before != nil, strings.Contains(worker.output.String(),
			"because the worker is PID 1: start it with an init"), worker.output)
	}
}
