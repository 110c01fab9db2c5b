package worker_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// A result that is too large as JSON is truncated and marked.
func TestResultsAreBounded(t *testing.T) {
	b := setup(t)
	const most = 100 << 10
	w := b.worker(t, func(c *worker.Config) { c.MaxResultBytes = most })
	size := func(id int64) int {
		return testkit.Count(t, b.store, "select length(result::text) from execution where id = $1", id)
	}
	run := func(ref, script, format string) (int64, result) {
		action := b.script(t, ref, "cat >/dev/null; "+script, map[string]any{"output_format": format})
		id := b.schedule(t, w, action, nil)
		b.dispatch(t, w, id)
		status, r := b.await(t, id)
		require.NotEqual(t, lifecycle.StatusCancelled, status)
		require.LessOrEqual(t, size(id), most+1000) // spaces between members
		return id, r
	}
	id, r := run("bound.control", `head -c 90000 /dev/zero | tr '\0' '\1'; head -c 90000 /dev/zero | tr '\0' '\1' >&2`,
		"text")
	require.True(t, r.StdoutTruncated)
	require.True(t, r.StderrTruncated)
	require.Greater(t, size(id), most*9/10)
	require.NotEmpty(t, r.Stdout)
	require.InDelta(t, len(r.Stdout), len(r.StderrLog), 10, "both get half of it")

	_, r = run("bound.one", `head -c 90000 /dev/zero | tr '\0' x; echo few >&2`, "text")
	require.False(t, r.StdoutTruncated, "output that fits is whole")
	require.Len(t, r.Stdout, 90000)

	_, r = run("bound.quotes", `head -c 90000 /dev/zero | tr '\0' '"'; echo few >&2`, "text")
	require.True(t, r.StdoutTruncated)
	require.False(t, r.StderrTruncated)
	require.Equal(t, "few\n", r.StderrLog)

	_, r = run("bound.failed", `head -c 200000 /dev/zero | tr '\0' e >&2; exit 3`, "text")
	require.True(t, r.StderrTruncated)
	require.Greater(t, len(r.Error), most/3)

	_, r = run("bound.data", `printf '["'; head -c 150000 /dev/zero | tr '\0' x; printf '"]'`, "json")
	require.Empty(t, r.Data)
	require.Equal(t, fmt.Sprintf("the data has 150004 bytes as JSON and was left out: a result may have %d", most),
		r.OutputError)
	require.True(t, strings.HasPrefix(r.Stdout, `["xxx`))
	require.True(t, r.StdoutTruncated)

	_, r = run("bound.fits", `printf '["'; head -c 90000 /dev/zero | tr '\0' x; printf '"]'`, "json")
	require.Len(t, r.Data, 90004)
	require.Empty(t, r.OutputError)
}

// An execution that writes the most output, of the characters with the longest JSON, needs little memory. With
// ATTUNE_SLOW_TESTS ten run at once and need less than 512 MB.
func TestLargeOutputTakesLittleMemory(t *testing.T) {
	b, child, id := measured(t, 10, "GOMEMLIMIT=384MiB")
	places, most, characters := 1, 300<<20, []string{`\1`}
	if testkit.Slow() {
		places, most, characters = 10, 512<<20, []string{`\1`, `"`}
	}
	script := `head -c 10485760 /dev/zero | tr '\0' '%[1]s'; head -c 10485760 /dev/zero | tr '\0' '%[1]s' >&2`
	for _, character := range characters {
		action := b.script(t, fmt.Sprintf("memory.of%d", character[len(character)-1]), fmt.Sprintf(script, character),
			nil)
		executions := b.runAt(t, id, action, places)
		require.Equal(t, places, testkit.Count(t, b.store, `select count(*) from execution
			where id = any($1) and status = 'completed' and length(result::text) between 15000000 and 17000000`, executions))
		require.Less(t, testkit.MemoryOf(t, child.Process.Pid).Peak, most)
	}
}

// A worker with 50 places needs less than 256 MB if each execution writes a mebibyte, faster than the database stores
// them.
func TestManyLargeResultsTakeLittleMemory(t *testing.T) {
	b, child, id := measured(t, 50)
	// With its escapes the output is a mebibyte.
	action := b.script(t, "memory.mebibyte", `yes 0123456789abcde | head -c 1015808`, nil)
	rounds := 2
	if testkit.Slow() {
		rounds = 20
	}
	executions := b.runAt(t, id, action, rounds*50)
	require.Equal(t, rounds*50, testkit.Count(t, b.store, `select count(*) from execution
		where id = any($1) and status = 'completed' and length(result::text) > 1048576`, executions))
	require.Less(t, testkit.MemoryOf(t, child.Process.Pid).Peak, 256<<20)
}

// measured starts the built program as a worker, without the race detector, and returns the worker's id.
func measured(t *testing.T, places int, env ...string) (*bundle, *exec.Cmd, int64) {
	t.Helper()
	testkit.MemoryOf(t, os.Getpid()) // skips where the memory cannot be read
	b := setup(t)
	child := exec.CommandContext(t.Context(), testkit.Program(t), "worker", "--name", "w1", "--log-level", "error",
		"--concurrency", strconv.Itoa(places))
	own := slices.DeleteFunc(os.Environ(), func(one string) bool { return strings.HasPrefix(one, "ATTUNE__") })
	child.Env = append(append(own, "GOGC=100", "ATTUNE__DATABASE__URL="+b.databaseURL,
		"ATTUNE__DATABASE__SCHEMA="+testkit.Schema, "ATTUNE__MESSAGE_QUEUE__URL="+b.brokerURL), env...)
	child.Stderr = os.Stderr
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, "select count(*) from worker where status = 'active'") == 1
	}, waitTimeout, "the child did not register")
	var id int64
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), "select id from worker").Scan(&id))
	return b, child, id
}

// runAt runs n executions at a worker of another process to their ends.
func (b *bundle) runAt(t *testing.T, id int64, action testkit.ActionRow, n int) (executions []int64) {
	t.Helper()
	for range n {
		execution := testkit.Execution(t, b.store, action, func(row *testkit.ExecutionRow) {
			row.Worker, row.Status, row.Attempt = &id, lifecycle.StatusScheduled, 1
		}).ID
		executions = append(executions, execution)
		b.publish(t, encode(t, message.TypeExecutionRequested, message.DispatchKey(id), message.Dispatch{
			ExecutionID: execution, WorkerID: id, ActionRef: action.Ref, ScheduledAttemptUpdatedAt: time.Now(),
			Attempt: 1,
		}))
	}
	for _, execution := range executions {
		testkit.Eventually(t, func() bool { return len(b.completions(execution)) > 0 }, 6*waitTimeout,
			"execution %d did not end", execution)
	}
	return executions
}
