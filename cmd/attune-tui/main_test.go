package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/app"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/settings"
)

// asProgram makes the test binary behave as the program itself.
const asProgram = "ATTUNE_TUI_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(testkit.Tests{M: m})
}

// A terminal that cannot move its cursor gets lines, and a locale without UTF-8 gets ASCII.
func TestTerminalsThatCanDoLittle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environ, args []string
		plain, ascii  bool
	}{
		{[]string{"TERM=xterm", "LANG=de_DE.UTF-8"}, nil, false, false},
		{[]string{"TERM=xterm", "LANG=C.utf8"}, nil, false, false},
		{[]string{"TERM=xterm"}, nil, false, false},
		{[]string{"TERM=xterm", "LANG=de_DE.UTF-8", "LC_ALL=C"}, nil, false, true},
		{[]string{"TERM=xterm", "LANG=de_DE.ISO-8859-1"}, nil, false, true},
		{[]string{"TERM=xterm", "LANG=C"}, []string{"--ascii=false"}, false, false},
		{[]string{"TERM=dumb", "LANG=C.UTF-8"}, nil, true, false},
		{[]string{"TERM=dumb", "LANG=POSIX"}, []string{"--snapshot", "dlq"}, false, true},
	} {
		o, err := parse(c.args, c.environ)
		require.NoError(t, err)
		o.follow(&settings.Settings{})
		require.Equal(t, c.plain, o.plain, c)
		require.Equal(t, c.ascii, o.app.Theme.ASCII, c)
	}
}

// call runs the program and returns its exit code and what it printed.
func call(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, environ, &out, &err)
	return code, out.String(), err.String()
}

// noServers are addresses at which no server answers.
var noServers = []string{
	"ATTUNE__DATABASE__URL=postgres://x@127.0.0.1:1/x?sslmode=disable",
	"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=http://a:b@127.0.0.1:1",
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	code, out, _ := call(t, nil, "--version")
	require.Zero(t, code)
	require.Contains(t, out, "attune-tui")
	code, out, _ = call(t, nil, "--help")
	require.Zero(t, code)
	require.Contains(t, out, "--snapshot VIEW")
	require.Contains(t, out, "Exit codes")
}

func TestWrongUsageIsOneLineAndExitCodeTwo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--nonsense"},
		{"extra"},
		{"--snapshot", "nowhere"},
		{"-o", "xml"},
		{"--snapshot", "queues", "--width", "0"},
		{"--theme", "pink", "--snapshot", "queues"},
		{"--refresh", "0s"},
		{"--id", "7"},
		{"--snapshot", "execution"},
		{"--snapshot", "executions", "--filter", "status:odd"},
		{"--config", "missing.yaml"},
	} {
		code, out, err := call(t, noServers, args...)
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, out, args)
		require.Equal(t, 1, strings.Count(err, "\n"), "%v: %q", args, err)
	}
}

// TestWithoutATerminalOtherModesAreNamed starts the program in a session without a controlling terminal.
func TestWithoutATerminalOtherModesAreNamed(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append([]string{asProgram + "=1", "HOME=/nonexistent"}, noServers...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, exitFailed, cmd.ProcessState.ExitCode(), string(out))
	require.Contains(t, string(out), "use --plain for every change, --snapshot VIEW for one frame")
}

func TestSnapshotWithoutServersSaysSo(t *testing.T) {
	t.Parallel()
	code, out, _ := call(t, noServers, "--snapshot", "overview", "--width", "80", "--height", "24")
	require.Equal(t, exitUnreachable, code)
	require.Contains(t, out, "PG ✗ down")
	require.Contains(t, out, "refuses connections")
}

// A viewer sees every view.
func TestSnapshotOfRealServers(t *testing.T) {
	viewer := testkit.NewLogin(t, roles.Viewer, testkit.Database(t), testkit.VHost(t))
	environ := []string{
		"ATTUNE__DATABASE__URL=" + viewer.DatabaseURL, "ATTUNE__MESSAGE_QUEUE__URL=" + viewer.AMQPURL,
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + viewer.ManagementURL,
	}
	code, out, err := call(t, environ, "--snapshot", "dlq", "--width", "80", "--height", "24")
	require.Zero(t, code, err)
	require.Contains(t, out, "there is no queue attune.dlx.queue")
	for _, view := range app.SnapshotViews() {
		args := []string{"--snapshot", string(view), "-o", "json"}
		if v := keymap.ViewOf(view); v != nil && v.One {
			args = append(args, "--id", "1") // there is none; the view says so
		}
		code, out, err = call(t, environ, args...)
		require.Zero(t, code, err)
		require.True(t, json.Valid([]byte(out)), view)
		require.NotContains(t, out, "permission denied", view)
	}
}

// --version asks the terminal nothing, because some terminals never answer.
func TestAMuteTerminalDoesNotDelayTheStart(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("there is no script command to make a terminal with")
	}
	cmd := exec.CommandContext(t.Context(), script, "-qec", os.Args[0]+" --version", "/dev/null")
	cmd.Env = []string{asProgram + "=1", "TERM=xterm-256color", "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "failed to create pseudo-terminal") {
		t.Skip("this machine makes no terminals")
	}
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "attune-tui")
	require.NotContains(t, string(out), "\x1b",
		"the program asked the terminal something, and waits up to five seconds for the answer")
}

func TestVirtualHostOfAnAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"amqp://h": "/", "amqp://h/": "/", "amqp://h/%2f": "/",
		"amqp://h/attune": "attune", "amqp://h/%2Fattune": "/attune",
	} {
		require.Equal(t, want, vhostOf(address), address)
	}
}
