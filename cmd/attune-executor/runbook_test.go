package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// shellBlocks are the commands of a page.
var shellBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```")

// prepared is the installation of the runbook: one engine, one worker and one completed execution.
const prepared = `set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null; wait || true' EXIT
attune-executor serve > serve.log 2>&1 &
attune-executor worker --name worker-1 > worker.log 2>&1 &
until attune-executor run core.echo -p message=hi --wait; do sleep 0.2; done
`

// TestRunbook runs every command of the runbook as it stands.
func TestRunbook(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts an engine and a worker")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbook.md"))
	require.NoError(t, err)
	script := prepared
	all := shellBlocks.FindAllStringSubmatch(string(page), -1)
	require.Len(t, all, strings.Count(string(page), "\n## ")-1, "each symptom has commands")
	for i, block := range all {
		script += "echo '@@ " + strconv.Itoa(i) + "'\n" + block[1]
	}
	run := filepath.Join(t.TempDir(), "runbook.txtar")
	require.NoError(t, os.WriteFile(run, []byte("exec timeout 600 bash -c 'bash runbook.sh 2>&1'\n"+
		"stdout 'worker-1 .*active'\n-- runbook.sh --\n"+script), 0o600))
	testscript.Run(t, testscript.Params{
		Files: []string{run}, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			setProgram(t, env)
			env.Setenv("ATTUNE__DATABASE__URL", testkit.Database(t))
			env.Setenv("ATTUNE__MESSAGE_QUEUE__URL", testkit.VHost(t))
			env.Setenv("ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL", testkit.ManagementURL(t))
			env.Setenv("ATTUNE__EXECUTOR__HTTP__LISTEN", "127.0.0.1:0")
			return nil
		},
	})
}
