package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// terminal is the program in a terminal of its own, driven by keys.
type terminal struct {
	t      *testing.T
	tmux   string
	socket string
	// program is the command line that starts it.
	program string
}

// openTerminal starts the program on a database. Nothing answers for the broker.
func openTerminal(t *testing.T, databaseURL string, args ...string) *terminal {
	t.Helper()
	return openTerminalIn(t, []string{"HOME=/nonexistent", "ATTUNE__DATABASE__URL=" + databaseURL, noServers[1]},
		args...)
}

// openTerminalIn starts the program with variables. An adopted schema gets the row of a running replica, without which
// acting is disabled.
func openTerminalIn(t *testing.T, environ []string, args ...string) *terminal {
	t.Helper()
	for _, variable := range environ {
		if url, ok := strings.CutPrefix(variable, "ATTUNE__DATABASE__URL="); ok && testkit.Adopted() {
			replicaRuns(t, url)
		}
	}
	return openDefault(t, environ, args...)
}

// replicaRuns adds the row of a running replica, unless the database does not answer.
func replicaRuns(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return
	}
	_, err = conn.Exec(t.Context(), `insert into attune.engine_replica (id, host, version, pid, last_seen)
		values (gen_random_uuid(), 'h', 'v', 1, now() + interval '1 hour')`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

// openDefault starts the program with exactly these arguments.
func openDefault(t *testing.T, environ []string, args ...string) *terminal {
	t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("there is no tmux to make a terminal with")
	}
	// the name of a test in t.TempDir makes the socket's path too long
	folder, err := os.MkdirTemp("", "tmux-*")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	x := &terminal{t: t, tmux: tmux, socket: filepath.Join(folder, "tmux")}
	t.Cleanup(func() {
		if t.Failed() {
			last := exec.Command(tmux, "-S", x.socket, "capture-pane",
				"-p") //nolint:noctx // The test's context has ended by then.
			screen, _ := last.CombinedOutput() // It may be gone.
			t.Logf("the last screen:\n%s", screen)
		}
		stop := exec.Command(tmux, "-S", x.socket,
			"kill-server") //nolint:noctx // The test's context has ended by then.
		stop.Env = []string{"PATH=" + os.Getenv("PATH")}
		_ = stop.Run() // It is gone already when the program has ended.
	})
	x.program = "env -i " + asProgram + "=1 TERM=tmux-256color PATH=" + os.Getenv("PATH") +
		" '" + strings.Join(environ, "' '") + "' " + os.Args[0] + " " + strings.Join(args, " ")
	x.call("-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "32", x.program)
	return x
}

func (x *terminal) call(args ...string) string {
	x.t.Helper()
	cmd := exec.CommandContext(x.t.Context(), x.tmux, append([]string{"-S", x.socket}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=xterm"}
	out, err := cmd.CombinedOutput()
	require.NoError(x.t, err, "%v: %s", args, out)
	return string(out)
}

// press types keys by the names that tmux has for them.
func (x *terminal) press(keys ...string) {
	x.t.Helper()
	for _, key := range keys {
		x.call("send-keys", key)
	}
}

// shows waits until a text is on the screen.
func (x *terminal) shows(text string) {
	x.t.Helper()
	var screen string
	pause := 20 * time.Millisecond // each check starts a process
	for deadline := time.Now().Add(4 * wait); time.Now().Before(deadline); time.Sleep(pause) {
		if screen = x.call("capture-pane", "-p"); strings.Contains(screen, text) {
			return
		}
		pause = min(pause*5/4, 200*time.Millisecond)
	}
	require.Fail(x.t, "the screen never showed "+text, screen)
}

// hides waits until a text is no longer on the screen.
func (x *terminal) hides(text string) {
	x.t.Helper()
	testkit.Eventually(x.t, func() bool { return !strings.Contains(x.call("capture-pane", "-p"), text) },
		60*time.Second, text)
}

func TestAWorkerIsCordonedByKeys(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	testkit.Worker(t, st, "worker-b", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	x := openTerminal(t, url, "--view", "workers")
	x.shows(" RW ")
	x.shows("worker-a")
	x.plans(act.CordonWorker, "Cordon worker worker-a")
	x.shows(buttons)
	x.press("BTab")
	x.call("send-keys", "-l", "disk is full")
	x.press("Tab", "y")
	x.shows("✓ Cordon worker worker-a")
	x.shows("audit ")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from worker where name = 'worker-a' and cordoned`))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from operator_audit
		where action = 'worker.cordon' and source = 'attune-tui' and reason = 'disk is full' and outcome = 'done' and actor like '%@%'`))
	x.shows("cordoned") // in the list, without a key
	x.press("L")
	x.shows("disk is full")
	x.press("Escape")
	x.hides("esc · L log")
	x.press("Escape")
	x.shows("[4 Work")
	x.plans(act.UncordonWorker, "Uncordon worker worker-a")
	x.runs("Uncordon worker worker-a")
	require.Zero(t, testkit.Count(t, st, `select count(*) from worker where cordoned`))
}

func TestARunningExecutionIsCancelledByKeys(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	worker := testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	execution := testkit.Execution(t, st, testkit.Action(t, st, "demo.sleep"), func(e *testkit.ExecutionRow) {
		e.Status, e.Worker = lifecycle.StatusRunning, &worker.ID
	})
	x := openTerminal(t, url, "--view", "executions")
	x.shows("demo.sleep")
	x.shows(" RW ")
	x.press("A", "c")
	x.shows("worker worker-a is asked to stop it")
	x.press("Enter") // on the button that cancels
	x.hides("is asked to stop it")
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, st, execution.ID))
	x.press("A", "c")
	x.shows("worker worker-a is asked to stop it")
	x.shows(buttons)
	x.press("y")
	x.shows("1 execution asked to stop")
	x.press("y") // now copies the execution
	x.shows("copy of execution")
	x.press("Escape")
	require.Equal(t, lifecycle.StatusCanceling, testkit.StatusOf(t, st, execution.ID))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from operator_audit where action = 'execution.cancel'`))
	x.shows("canceling")
}

func TestAQuestionIsAnsweredByKeys(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	execution := testkit.Execution(t, st, testkit.Action(t, st, "demo.ask"),
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning })
	testkit.Exec(t, st, `insert into inquiry (execution, prompt, response_schema)
		values ($1, 'Shall it be deployed?', '{"ok": {"type": "boolean", "required": true}, "token": {"type": "string", "secret": true}}')`, execution.ID)
	x := openTerminal(t, url, "--view", "inquiries")
	x.shows("Shall it be deployed?")
	x.shows("yes or no, required") // the form is loaded
	x.shows(" RW ")
	x.plans(act.AnswerInquiry, "answer inquiry")
	x.shows("choose")
	x.press("Enter")
	x.shows("it is required")
	x.press("y", "Enter", "Enter")
	x.shows("An answer is given once")
	x.shows(buttons)
	x.press("y")
	x.shows("is answered")
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, st, execution.ID))
	require.Equal(t, 1,
		testkit.Count(t, st, `select count(*) from inquiry where status = 'responded' and response = '{"ok": true}'`))
	x.shows("responded")
}

func TestReadOnlyActsOnNothing(t *testing.T) {
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	x := openTerminal(t, url, "--view", "workers", "--read-only")
	x.shows("worker-a")
	x.shows(" RO ")
	x.press("A")
	x.shows("started with --read-only")
	require.Zero(t, testkit.Count(t, st, `select count(*) from operator_audit`))
}

func TestAnAdoptedInstallationIsActedUponOnlyWhenAReplicaRuns(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "act upon an adopted installation")
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url, func(c *store.Config) { c.ApplicationName = "test" })
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	testkit.Exec(t, st, `update attune_schema_origin set origin = 'adopted'`)
	_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: url}) // migrations of adopted schemas
	require.NoError(t, err)
	x := openDefault(t, []string{"HOME=/nonexistent", "ATTUNE__DATABASE__URL=" + url, noServers[1]}, "--view",
		"workers")
	x.shows("worker-a")
	testkit.Eventually(t, func() bool { // the schema may not have been read yet
		x.press("A")
		return strings.Contains(x.call("capture-pane", "-p"), "no replica of attune-executor runs")
	}, 60*time.Second, "the reason why acting is disabled is not shown")
	testkit.Exec(t, st, `insert into engine_replica (id, host, version, pid, last_seen) values (gen_random_uuid(), 'h', 'v', 1, now() + interval '1 hour')`)
	x.shows(" RW ")
	x.shows("worker-a") // the action is about the row under the cursor
	x.press("A")
	x.shows("give it nothing new")
}

func TestWithoutADatabaseTheReasonIsShown(t *testing.T) {
	t.Parallel()
	_, url, _ := strings.Cut(noServers[0], "=")
	x := openTerminal(t, url, "--view", "workers")
	x.shows("PG ✗ down")
	testkit.Eventually(t, func() bool {
		x.press("A")
		return strings.Contains(x.call("capture-pane", "-p"), "the database has not answered yet")
	}, 60*time.Second, "the reason why acting is disabled is not shown")
	x.shows(" RO ")
}
