package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/textmode"
)

// The program writes a line for each change to a pipe, and exits with 0 after an interrupt.
func TestPlainWritesEveryChangeToAPipe(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.Worker(t, st, "worker-p", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--plain", "--refresh", "500ms")
	cmd.Env = []string{
		asProgram + "=1", "HOME=/nonexistent", "ATTUNE__DATABASE__URL=" + url, noServers[1],
		"PATH=" + os.Getenv("PATH"),
	}
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(pipe)
	until := func(text string) string {
		for lines.Scan() {
			require.NotContains(t, lines.Text(), "\x1b", "it writes no control sequences")
			if strings.Contains(lines.Text(), text) {
				return lines.Text()
			}
		}
		require.Fail(t, "the program never wrote "+text)
		return ""
	}
	until("dashboard ")
	until("worker: 1 registered")
	testkit.Exec(t, st, `update worker set cordoned = true where name = 'worker-p'`)
	line := until("worker worker-p: cordoned")
	at, _, _ := strings.Cut(line, " ")
	_, err = time.Parse(time.RFC3339, at)
	require.NoError(t, err, "time comes first")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.False(t, lines.Scan() && strings.Contains(lines.Text(), "does not answer"))
	require.NoError(t, cmd.Wait())
}

func TestPlainWithoutServersReportsThemAndContinues(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--plain", "-o", "json")
	cmd.Env = append([]string{asProgram + "=1", "HOME=/nonexistent"}, noServers...)
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(pipe)
	for _, want := range []string{"watched every 2s", "refuses connections", "refuses connections"} {
		require.True(t, lines.Scan())
		var line textmode.Line
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), lines.Text())
		require.Contains(t, line.Text, want)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
