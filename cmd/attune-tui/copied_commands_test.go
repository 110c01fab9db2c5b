package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// copied is an action whose plan is copied as a command. The command has no terminal to ask on, so the test adds the
// answers as flags.
type copied struct {
	view   string
	marked bool
	kind   act.Kind
	title  string
	enters []string // keys for its form
	more   string   // flags of the command
	effect string   // a query of the changed rows
	want   string
}

// The seeded rows have the ids 1, 2 and 3. The newest come first, and the first two are marked.
var copies = []copied{
	{
		view: "executions", kind: act.CancelExecution, title: "Cancel execution 3",
		effect: `select id from execution where status = 'cancelled'`, want: "3",
	},
	{
		view: "executions", kind: act.RetryExecution, title: "Retry execution 3",
		effect: `select original_execution from execution where original_execution is not null`, want: "3",
	},
	{
		view: "executions", marked: true, kind: act.RetryExecution, title: "Retry 2 executions",
		effect: `select original_execution from execution where original_execution is not null`, want: "2 3",
	},
	{
		view: "executions", marked: true, kind: act.CancelExecution, title: "Cancel 2 executions",
		effect: `select id from execution where status = 'cancelled'`, want: "2 3",
	},
	{
		view: "queues", kind: act.PauseQueue, title: "Pause demo.a",
		effect: `select id from execution_admission_state where paused`, want: "1",
	},
	{
		view: "queues", kind: act.LimitQueue, title: "limit queue demo.a", enters: []string{"BSpace", "3", "Enter"},
		effect: `select max_concurrent from execution_admission_state where id = 1`, want: "3",
	},
	{
		view: "queues", kind: act.RepairQueue, title: "Repair the queues of demo.a",
		effect: `select active_count from execution_admission_state where id = 1`, want: "0",
	},
	{
		view: "queues", marked: true, kind: act.PauseQueue, title: "Pause 2 queues",
		effect: `select id from execution_admission_state where paused`, want: "1 2",
	},
	{
		view: "workers", kind: act.CordonWorker, title: "Cordon worker worker-a",
		effect: `select id from worker where cordoned`, want: "1",
	},
	{
		view: "workers", marked: true, kind: act.CordonWorker, title: "Cordon 2 workers",
		effect: `select id from worker where cordoned`, want: "1 2",
	},
	{
		view: "workers", marked: true, kind: act.DrainWorker, title: "Drain 2 workers", more: " --yes",
		effect: `select id from worker where draining`, want: "1 2",
	},
	{
		view: "dlq", kind: act.DiscardDeadLetter, title: "Discard dead letter 3",
		effect: `select id from dead_letter where decision is not null`, want: "3",
	},
	{
		view: "dlq", marked: true, kind: act.DiscardDeadLetter, title: "Discard 2 dead letters",
		effect: `select id from dead_letter where decision is not null`, want: "2 3",
	},
	{
		view: "dlq", marked: true, kind: act.RequeueDeadLetter, title: "Requeue 2 dead letters",
		effect: `select original_execution from execution where original_execution is not null`, want: "2 3",
	},
}

func TestCopiedCommandsDoWhatTheirPlansSay(t *testing.T) {
	t.Parallel()
	executor := filepath.Join(t.TempDir(), "attune-executor")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", executor, "../attune-executor").CombinedOutput()
	require.NoError(t, err, string(out))
	for _, c := range testkit.Some(t, copies, 5) {
		t.Run(string(c.kind)+" "+c.title, func(t *testing.T) {
			t.Parallel()
			url := testkit.Database(t)
			st := testkit.OpenStore(t, url)
			first := seedCopies[c.view](t, st, c.kind)
			x := openTerminalIn(t,
				[]string{"HOME=/nonexistent", "TMUX=yes", "ATTUNE__DATABASE__URL=" + url, noServers[1]},
				"--view", c.view)
			x.call("set-option", "-s", "set-clipboard", "on")
			x.shows(first)
			x.shows(" RW ")
			if c.marked {
				x.marksTwo()
				x.plansMarked(c.kind, c.title)
			} else {
				x.press("g", "g")
				x.plans(c.kind, c.title)
			}
			x.press(c.enters...)
			x.shows(buttons)
			before := testkit.Count(t, st, `select count(*) from operator_audit`)
			x.press("c")
			x.shows("given to the terminal")
			line := x.call("show-buffer")
			x.press("Escape")
			x.hides(buttons)
			require.Equal(t, before, testkit.Count(t, st, `select count(*) from operator_audit`))
			run := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(line, "\n", c.more+"\n")+c.more)
			run.Env = []string{
				"PATH=" + filepath.Dir(executor) + ":" + os.Getenv("PATH"), "HOME=/nonexistent",
				"ATTUNE__DATABASE__URL=" + url, noServers[1],
			}
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s\n%s", line, out)
			var got string
			require.NoError(t, st.Pool().QueryRow(t.Context(),
				`select coalesce(string_agg(q.v::text, ' ' order by q.v), '') from (`+c.effect+`) q(v)`).Scan(&got))
			require.Equal(t, c.want, got, "%s\n%s", line, out)
		})
	}
}

// seedCopies make three rows in a view, with the ids 1 to 3, and return a text that the screen then shows.
var seedCopies = map[string]func(t *testing.T, st *store.Store, kind act.Kind) string{
	"executions": func(t *testing.T, st *store.Store, kind act.Kind) string {
		t.Helper()
		action := testkit.Action(t, st, "demo.sleep")
		for range 3 {
			testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) {
				if e.Status = lifecycle.StatusFailed; kind == act.CancelExecution {
					e.Status = lifecycle.StatusScheduled // without a worker
				}
			})
		}
		return "demo.sleep"
	},
	"queues": func(t *testing.T, st *store.Store, _ act.Kind) string {
		t.Helper()
		threeQueues(t, st)
		return "demo.c"
	},
	"workers": func(t *testing.T, st *store.Store, _ act.Kind) string {
		t.Helper()
		threeWorkers(t, st)
		return "worker-c"
	},
	"dlq": func(t *testing.T, st *store.Store, _ act.Kind) string {
		t.Helper()
		threeDeadLetters(t, st)
		return "waiting for a person 3"
	},
}
