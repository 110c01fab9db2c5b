package demo

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/lab/devstack"
)

// Quoted paths mean the same folder to a shell.
func TestPathsAreQuotedForAShell(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/opt/attune/bin/attune-tui", ".attune/demo", "/home/o'brien/my demo",
		`/a/$HOME/"b"/*`, "/ä/ö",
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+inShell(path)).Output()
		require.NoError(t, err)
		require.Equal(t, path, string(out))
	}
	require.Equal(t, "/opt/attune/bin/attune-tui", inShell("/opt/attune/bin/attune-tui"),
		"without quotes where none are needed")
}

// The command fits a narrow terminal if the demo is below the working folder.
func TestTheWatchCommandIsShort(t *testing.T) {
	t.Parallel()
	command, where := watchCommand("/home/ada/src/attune", "/home/ada/src/attune/bin/attune-executor",
		"/home/ada/src/attune/.attune/demo")
	require.Equal(t, `(eval "$(bin/attune-lab stack env --dir .attune/demo)"; bin/attune-tui)`, command)
	require.Equal(t, ", in this folder", where)
	command, where = watchCommand("/home/ada", "/opt/attune/bin/attune-executor", "/tmp/my demo")
	require.Equal(t,
		`(eval "$(/opt/attune/bin/attune-lab stack env --dir '/tmp/my demo')"; /opt/attune/bin/attune-tui)`,
		command)
	require.Empty(t, where)
}

// The dashboard of the demo writes into the demo's folder, and expected failures raise no alert.
func TestTheDashboardWritesIntoTheDemosFolder(t *testing.T) {
	t.Parallel()
	d := &Demo{stack: &devstack.Stack{}}
	require.Contains(t, d.DashboardEnv(), "XDG_STATE_HOME="+filepath.Join(d.stack.Dir(), "dashboard"))
	cfg, err := config.Load("", d.Env())
	require.NoError(t, err)
	failing := cfg.Alerts["action_failing"]
	require.True(t, failing.Covers("ops.invoice"))
	require.False(t, failing.Covers("core.fail") || failing.Covers("demo.unlucky"))
}
