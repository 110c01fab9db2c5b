package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/export"
)

func TestPagesOfQueuesCarryNoLogin(t *testing.T) {
	t.Parallel()
	require.Equal(t, "https://mq:15671/#/queues/%2F/", queuePages("https://u:secret@mq:15671/", "/"))
	require.Equal(t, "http://mq/rabbit/#/queues/attune/", queuePages("http://mq/rabbit", "attune"))
	require.Empty(t, queuePages("", "/"))
	require.Empty(t, queuePages("://", "/"))
}

func TestTheClipboardIsSetInOneWrite(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	put := clipboard(&out, export.Within{})
	require.NoError(t, put("884301"))
	require.Equal(t, "\x1b]52;c;ODg0MzAx\a", out.String())
	require.Error(t, put(strings.Repeat("x", export.MaxCopy+1)))
	require.Equal(t, "\x1b]52;c;ODg0MzAx\a", out.String(), "nothing is written of a text that is too long")
}

// Copies arrive in the buffer of a real terminal, exports in files that only their owner can read.
func TestCopiesAndExportsArrive(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.Worker(t, st, "worker-a")
	testkit.Worker(t, st, "worker-b")
	state := t.TempDir()
	x := openTerminalIn(t, []string{
		"HOME=/nonexistent", "XDG_STATE_HOME=" + state, "TMUX=yes",
		"ATTUNE__DATABASE__URL=" + url, noServers[1],
	}, "--view", "workers")
	x.call("set-option", "-s", "set-clipboard", "on")
	x.shows("worker-b")
	x.press("y", "c")
	x.shows("given to the terminal")
	require.Equal(t, "attune-executor workers show worker-a", x.call("show-buffer"))
	x.press("e", "j")
	x.shows("2 rows")
	named := filepath.Join(state, "attune", "exports", "named.csv")
	x.press(":", "export "+named, "Enter")
	testkit.Eventually(t, func() bool {
		about, err := os.Stat(named)
		return err == nil && about.Size() > 0 // it is empty until it is complete
	}, 60*time.Second, "the named file")
	files, err := filepath.Glob(filepath.Join(state, "attune", "exports", "*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		about, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), about.Mode().Perm(), file)
		require.NotZero(t, about.Size(), file)
	}
}
