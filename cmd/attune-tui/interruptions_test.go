package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

const (
	// manyFailed is the number of failed executions: the most that a run retries without a typed word.
	manyFailed = 50
	// gated is the step of a run that waits at the gate.
	gated = 10
)

// repeated counts the retried executions, and retries counts the new ones.
const (
	repeated = `select count(distinct original_execution) from execution where original_execution is not null`
	retries  = `select count(*) from execution where original_execution is not null`
)

func failedExecutions(t *testing.T) (url string, st *store.Store, action testkit.ActionRow) {
	t.Helper()
	url = testkit.Database(t)
	st = testkit.OpenStore(t, url)
	action = testkit.Action(t, st, "demo.sleep")
	for range manyFailed {
		testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusFailed })
	}
	return url, st, action
}

// closeGateAt blocks the retry of the execution of step gated.
func closeGateAt(t *testing.T, st *store.Store, url string) (open func()) {
	t.Helper()
	id := testkit.Count(t, st, fmt.Sprintf(`select id from execution order by id limit 1 offset %d`, gated-1))
	return closeGate(t, st, url, "execution", fmt.Sprintf("new.original_execution = %d", id))
}

// plansAll marks all executions and plans to retry the failed ones.
func (x *terminal) plansAll(all int) {
	x.t.Helper()
	x.shows("demo.sleep")
	x.shows(" RW ")
	x.press("*")
	x.shows(fmt.Sprintf("%d marked", all))
	x.plansMarked(act.RetryExecution, fmt.Sprintf("Retry %d executions", manyFailed))
	x.shows(buttons)
}

// reads waits for a text and returns the numbers in it.
func (x *terminal) reads(pattern string) []int {
	x.t.Helper()
	var found []string
	testkit.Eventually(x.t, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(x.call("capture-pane", "-p"))
		return found != nil
	}, wait, "%s is shown", pattern)
	numbers := make([]int, len(found)-1)
	for i, text := range found[1:] {
		if text == "" { // a count that is left out is zero
			continue
		}
		n, err := strconv.Atoi(text)
		require.NoError(x.t, err)
		numbers[i] = n
	}
	return numbers
}

// TestAStoppedRunIsContinued stops a run after the step under way, while the window changes and new rows arrive. The
// other rows stay marked, and the same action again retries them.
func TestAStoppedRunIsContinued(t *testing.T) {
	url, st, action := failedExecutions(t)
	x := openTerminal(t, url, "--view", "executions", "--refresh", "500ms")
	x.plansAll(manyFailed)
	x.press("Escape", "Escape")
	x.hides(buttons)
	late := testkit.Execution(t, st, action, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusFailed })
	x.shows(fmt.Sprintf(" %d ✗ failed", late.ID)) // polls continue while rows are marked
	x.plansMarked(act.RetryExecution, fmt.Sprintf("Retry %d executions", manyFailed))
	x.shows(buttons)
	open := closeGateAt(t, st, url)
	x.press("y")
	x.shows(fmt.Sprintf(" %d/50", gated-1))
	for _, size := range [][2]string{{"60", "15"}, {"20", "4"}, {"140", "40"}} {
		x.call("resize-window", "-x", size[0], "-y", size[1])
	}
	x.shows("Running for")
	x.press("x")
	x.shows("stopping after the step under way")
	open()
	n := x.reads(`(\d+) of 50 done\.`)
	left := x.reads(`Stopped by hand; (\d+) were not reached and stay marked`)[0]
	require.Equal(t, gated, n[0])
	require.Equal(t, manyFailed, n[0]+left)
	require.Equal(t, n[0], testkit.Count(t, st, retries))
	require.Equal(t, n[0], testkit.Count(t, st,
		`select count(*) from operator_audit where action = 'execution.retry' and outcome = 'done'`))
	x.press("Escape")
	x.shows(fmt.Sprintf("%d marked", left))
	again := "Retry " + strconv.Itoa(left) + " execution"
	x.plansMarked(act.RetryExecution, again)
	x.runs(again)
	require.Equal(t, manyFailed, testkit.Count(t, st, repeated))
	require.Equal(t, manyFailed, testkit.Count(t, st, retries))
	require.Zero(t, testkit.Count(t, st, `select count(*) from execution where original_execution = $1`, late.ID),
		"it came after the marks")
}

// TestTwoDashboardsRepeatTheSameExecutions retries each execution once; the other dashboard counts it as changed.
func TestTwoDashboardsRepeatTheSameExecutions(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "repeat from two dashboards; another test takes one queue from two")
	url, st, _ := failedExecutions(t)
	two := []*terminal{openTerminal(t, url, "--view", "executions"), openTerminal(t, url, "--view", "executions")}
	for _, x := range two {
		x.plansAll(manyFailed)
	}
	for _, x := range two {
		x.press("y")
	}
	done := 0
	for _, x := range two {
		n := x.reads(`(\d+) of 50 done(?:, (\d+) changed meanwhile)?\.`)
		require.Equal(t, manyFailed, n[0]+n[1])
		done += n[0]
	}
	require.Equal(t, manyFailed, done)
	require.Equal(t, manyFailed, testkit.Count(t, st, repeated))
	require.Equal(t, manyFailed, testkit.Count(t, st, retries))
	require.Equal(t, manyFailed, testkit.Count(t, st,
		`select count(*) from operator_audit where action = 'execution.retry' and outcome = 'done'`))
}

// After a dashboard was killed in the middle of a run, completed steps are recorded and no others run. The next
// dashboard retries the rest and restores the terminal.
func TestADashboardIsKilledInTheMiddleOfARun(t *testing.T) {
	url, st, _ := failedExecutions(t)
	x := openTerminal(t, url, "--view", "executions")
	x.shows("demo.sleep")
	x.call("respawn-pane", "-k", "exec sh")
	x.call("send-keys", "-l", x.program)
	x.press("Enter")
	x.plansAll(manyFailed)
	open := closeGateAt(t, st, url)
	x.press("y")
	x.shows(fmt.Sprintf(" %d/50", gated-1))
	shell := strings.TrimSpace(x.call("display-message", "-p", "#{pane_pid}"))
	x.call("run-shell", "kill -9 $(ps -o pid= --ppid "+shell+")")
	open() // the server notices the end of the client after the statement
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, `select count(*) from pg_stat_activity where datname = current_database() and application_name like 'attune-tui%'`) == 0
	}, wait, "a session of the killed dashboard goes on")
	done := testkit.Count(t, st, retries)
	require.Equal(t, gated-1, done)
	require.Equal(t, done, testkit.Count(t, st,
		`select count(*) from operator_audit where action = 'execution.retry' and outcome = 'done'`))
	require.Equal(t, "alternate screen 1, cursor 0, mouse 1", x.state(), "a killed program cannot restore the terminal")
	x.press("C-j") // to the shell, since Enter is not a line's end in such a terminal
	x.call("send-keys", "-l", `reset; printf 'it is %s\n' well`)
	x.press("C-j")
	x.shows("it is well")
	x.becomes("alternate screen 1, cursor 1, mouse 0")
	x.call("send-keys", "-l", x.program)
	x.press("Enter")
	x.plansAll(manyFailed + done)
	x.press("y")
	n := x.reads(`(\d+) of 50 done(?:, (\d+) changed meanwhile)?\.`)
	require.Equal(t, done, n[1])
	require.Equal(t, manyFailed, testkit.Count(t, st, repeated))
	require.Equal(t, manyFailed, testkit.Count(t, st, retries))
	x.press("C-c")
	x.becomes("alternate screen 0, cursor 1, mouse 0")
}

// state is the state of the terminal.
func (x *terminal) state() string {
	return strings.TrimSpace(x.call("display-message", "-p",
		"alternate screen #{alternate_on}, cursor #{cursor_flag}, mouse #{mouse_any_flag}"))
}

// becomes waits for a state of the terminal.
func (x *terminal) becomes(state string) {
	x.t.Helper()
	testkit.Eventually(x.t, func() bool { return x.state() == state }, wait, state)
}
