package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// Without a broker the action is done, and the note says that an engine publishes its messages.
func TestQueueActionsWithoutABroker(t *testing.T) {
	database := testkit.Database(t)
	st := testkit.OpenStore(t, database)
	action := testkit.Action(t, st, "pk.alone")
	state := testkit.State(t, st, action, 1, func(s *testkit.StateRow) { s.Queued, s.Paused = 1, true })
	waiter := testkit.Execution(t, st, action)
	testkit.Exec(t, st, `insert into execution_admission_entry (state_id, execution_id, status, queue_order) values ($1, $2, 'queued', 1)`,
		state.ID, waiter.ID)
	testkit.Exec(t, st, `update execution_admission_state set next_queue_order = 2`)
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		environ := []string{
			"ATTUNE__DATABASE__URL=" + database, "ATTUNE__MESSAGE_QUEUE__URL=amqp://guest:guest@127.0.0.1:1/%2f",
		}
		code = execute(testkit.Context(t), append([]string{"queue"}, args...), environ, strings.NewReader(""), &out,
			&errs)
		return code, out.String(), errs.String()
	}
	code, stdout, stderr := run("resume", "pk.alone")
	require.Equal(t, exitDone, code, stderr)
	require.Contains(t, stdout, "1 queue is resumed, 1 execution waits. (audit 1)\n  1 queue has room now")
	require.Contains(t, stderr,
		"the messages are stored, and a running engine will publish them: the broker refuses connections")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from outbox`))

	// repair exits with 0 only if nothing is wrong any more.
	testkit.Exec(t, st, `update execution_admission_state set queued_count = 9`)
	code, stdout, stderr = run("repair", "--dry-run")
	require.Equal(t, exitFailed, code)
	require.Regexp(t, `(?m)^queue \d+ \(pk.alone\): queued_count is 9, counted 1$`, stdout)
	require.Equal(t, "error: 1 difference: `attune-executor queue repair` corrects the counters\n", stderr)
	code, stdout, stderr = run("repair", "pk.alone", "-o", "json")
	require.Equal(t, exitDone, code, stderr)
	require.Contains(t, stdout, `"remains": []`)
	require.Contains(t, stdout, `"delivery": "stored"`)
	code, stdout, _ = run("repair")
	require.Equal(t, exitDone, code)
	require.Regexp(t, `^Found 0, repaired 0, 0 remain`, stdout)
}
