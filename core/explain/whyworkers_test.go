package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// TestWhyNamesEveryWorkerThatDoesNotTakeIt: by its action's needs, its own, and
// where it failed before.
func TestWhyNamesEveryWorkerThatDoesNotTakeIt(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	action := testkit.Action(t, b.Store, "demo.new")
	b.NeedsPython(t, action.ID, ">=3.11")
	full := b.AddWorker(t, "full", versions("3.12"))
	failed := b.AddWorker(t, "failed", versions("3.12"))
	cordoned := b.AddWorker(t, "kept", versions("3.12"), func(r *testkit.WorkerRow) { r.Cordoned = true })
	suspect := b.AddWorker(t, "suspect", versions("3.12"))
	b.AddWorker(t, "old", versions("3.9"))
	b.AddWorker(t, "silent", versions("3.9"), func(r *testkit.WorkerRow) { r.HeartbeatAge = 48 * time.Hour })
	b.AddWorker(t, "ahead", versions("3.11"), func(r *testkit.WorkerRow) { r.HeartbeatAge = -time.Hour })
	b.Load(t, full, 12)
	testkit.Exec(t, b.Store, `insert into identity (login) values ('alice')`)
	testkit.Exec(t, b.Store,
		`update worker set cordon_reason = 'new disk', cordoned_by = (select id from identity where login = 'alice') where id = $1`, cordoned)
	testkit.Exec(t, b.Store,
		`update worker set suspect_since = now(), suspect_reason = 'no queue took it' where id = $1`, suspect)
	testkit.Exec(t, b.Store, `update worker set host = name`)
	state, _, waiters := b.AddQueue(t, action, 5, 0, 1, full)
	b.BlockQueue(t, state, "waiting for a worker: the only fitting worker is busy")
	first := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusFailed))
	testkit.Exec(t, b.Store, `update execution set retry_count = 1, worker_selector = '{}' where id = $1`, waiters[0])
	testkit.Exec(t, b.Store,
		`insert into execution_retry (failed, execution, reason, due, waiting, avoid) values ($1, $2, 'unknown', now(), false, array[$3::bigint])`,
		first.ID, waiters[0], failed)

	w := b.ask(t, waiters[0])
	got := map[string]string{}
	for _, one := range w.Workers {
		got[one.Name] = string(one.Answer) + ": " + one.Reason
	}
	require.Equal(t, map[string]string{
		"ahead":   "room: has room, 0 of 10",
		"full":    "full: busy 10 of 10 (+2 waiting)",
		"failed":  "avoided: avoided, since an earlier attempt failed on it",
		"suspect": "waited: suspected (no queue took it)",
		"kept":    "absent: cordoned by alice (new disk)",
		"old":     "rejected: lacks runtime python >=3.11",
		"silent":  "absent: silent for 2d, and lacks runtime python >=3.11",
	}, got)
	require.Equal(t, "ahead", w.Workers[0].Name, "workers that could run it come first")
	require.Equal(t, "silent", w.Workers[5].Name, "workers that could never run it come last")
	text := strings.Join(w.Lines, "\n")
	require.Regexp(t, `but its head has been blocked for 1m[3-5]\ds: waiting for a worker`, text)
	require.Contains(t, text,
		"The workers, as they are now:\n  ahead: has room, 0 of 10\n  full: busy 10 of 10 (+2 waiting)\n")
	require.NotContains(t, text, "more; of all")
	raw, err := json.Marshal(w)
	require.NoError(t, err)
	require.Contains(t, string(raw), `{"id":`+fmt.Sprint(full)+
		`,"name":"full","answer":"full","reason":"busy 10 of 10 (+2 waiting)","assigned":12,"capacity":10,"weight":0}`)

	d, err := b.Execution(t.Context(), waiters[0])
	require.NoError(t, err)
	require.Len(t, d.Why, len(w.Lines), "the page of an execution says the same")

	// The requirements of the execution itself count.
	testkit.Exec(t, b.Store, `update execution set worker_selector = '{"zone": "a"}' where id = $1`, waiters[0])
	require.Equal(t, ReasonCount{"lacks the label zone=a", 4}, b.ask(t, waiters[0]).WorkerReasons[0])

	// Where a limit keeps it and no worker does, workers are no matter.
	testkit.Exec(t, b.Store, `delete from admission_blocked`)
	require.Nil(t, b.ask(t, waiters[0]).Workers)
}

func TestWhyBoundsTheWorkersItNames(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.new")
	b.NeedsPython(t, action.ID, ">=3.11")
	for i := range 9 {
		b.AddWorker(t, fmt.Sprintf("old-%d", i), versions("3.9"))
	}
	for i := range 3 {
		b.AddWorker(t, fmt.Sprintf("gone-%d", i), versions("3.12"),
			func(r *testkit.WorkerRow) { r.Status = "inactive" })
	}
	for i := range 10 {
		b.AddWorker(t, fmt.Sprintf("tainted-%d", i), map[string]any{
			"runtime_versions": map[string]any{"python": []string{"3.12"}},
			"taints":           []any{map[string]any{"key": fmt.Sprintf("t%d", i)}},
		})
	}
	failed := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusFailed),
		func(r *testkit.ExecutionRow) {
			r.Result = map[string]any{
				"error":     "no compatible worker: 9 live workers lack runtime python >=3.11",
				"failed_by": "execution_scheduler",
			}
		})
	w := b.ask(t, failed.ID)
	require.Len(t, w.Workers, 8)
	require.Len(t, w.WorkerReasons, 8)
	require.Equal(t, ReasonCount{"lacks runtime python >=3.11", 9}, w.WorkerReasons[0])
	require.Equal(t, ReasonCount{"other reasons", 5}, w.WorkerReasons[7])
	text := strings.Join(w.Lines, "\n")
	require.Contains(t, text, "  gone-0: inactive\n")
	require.Contains(t, text,
		"  and 14 more; of all 22: lacks runtime python >=3.11 (9), inactive (3), has the taint t0:no_schedule that is not tolerated (1), ")

	done := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusFailed),
		func(r *testkit.ExecutionRow) { r.Result = map[string]any{"error": "exit code 1"} })
	require.Nil(t, b.ask(t, done.ID).Workers)
}

func TestWhyWithoutAnyWorker(t *testing.T) {
	b := setup(t)
	failed := testkit.Execution(t, b.Store, testkit.Action(t, b.Store, "demo.a"),
		monitortest.Status(lifecycle.StatusFailed), func(r *testkit.ExecutionRow) {
			r.Result = map[string]any{"error": "no workers available", "failed_by": "execution_scheduler"}
		})
	w := b.ask(t, failed.ID)
	require.Equal(t, []WorkerVerdict{}, w.Workers)
	require.Contains(t, w.Lines[1], "No worker is registered")
}

func TestWhyNamesTheTimeOfARetry(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	testkit.Exec(t, b.Store, `update attune_schema_origin set origin = 'own'`)
	action := testkit.Action(t, b.Store, "demo.a", func(r *testkit.ActionRow) { r.MaxRetries = 3 })
	first := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusFailed))
	again := testkit.Execution(t, b.Store, action,
		func(r *testkit.ExecutionRow) { r.RetryCount, r.OriginalExecution = 2, &first.ID })
	testkit.Exec(t, b.Store,
		`insert into execution_retry (failed, execution, reason, due) values ($1, $2, 'worker_unavailable', now() + interval '12.4 seconds')`,
		first.ID, again.ID)
	w := b.ask(t, again.ID)
	require.Regexp(t,
		`^Execution \d+ of demo.a waits for its time: retry 2 of 3 after worker_unavailable, due in 1[0-2]s\.$`,
		w.Summary)
	require.Equal(t, "worker_unavailable", w.Retry.Reason)
	require.Nil(t, w.Workers)

	// On the schema of an existing installation the number of the action has no effect
	// unless the setting says so: neither the explanation nor the list of dead letters
	// promises a retry.
	testkit.Exec(t, b.Store, `update attune_schema_origin set origin = 'adopted'`)
	testkit.Exec(t, b.Store,
		`insert into dead_letter (fingerprint, execution, action_ref, reason) values ('f', $1, 'demo.a', 'expired')`,
		again.ID)
	for setting, of := range map[lifecycle.ActionRetries]int64{
		"": 0, lifecycle.RetriesNever: 0, lifecycle.RetriesAlways: 3,
	} {
		m := explaining(monitor.Config{ActionRetries: setting}, monitor.Deps{Store: b.Store})
		w, err := m.Why(t.Context(), again.ID)
		require.NoError(t, err)
		require.Equal(t, of, w.Retry.Of, setting)
		require.Equal(t, of == 3, strings.Contains(w.Summary, "retry 2 of 3"), "%s: %s", setting, w.Summary)
		page, err := m.LedgerList(t.Context(), monitor.DeadLetterFilter{}, 0)
		require.NoError(t, err)
		require.Len(t, page.List, 1)
		require.Nil(t, page.List[0].MaxTries, "only what the row of the execution says counts there")
	}

	testkit.Exec(t, b.Store,
		`update execution_retry set due = now() - interval '1 second', requested_by = 'alice', reason = 'manual_retry'`)
	testkit.Exec(t, b.Store, `update execution set max_retries = 1 where id = $1`, again.ID)
	require.Contains(t, b.ask(t, again.ID).Summary, "retry 2 after manual_retry, asked for by alice, due now")

	testkit.Exec(t, b.Store, `update execution_retry set waiting = false`)
	require.Nil(t, b.ask(t, again.ID).Retry)
	require.Contains(t, b.ask(t, again.ID).Summary, "is in no queue yet")
}

func TestAnswersHaveAnOrder(t *testing.T) {
	t.Parallel()
	require.Len(t, answerOrder, 6, "every answer of placement")
	require.Contains(t, answerOrder, placement.AnswerRejected)
}

func versions(list ...string) map[string]any {
	return map[string]any{"runtime_versions": map[string]any{"python": list}}
}

// An execution whose workers have all left says when it fails, or times out before that.
func TestWhySaysWhenAnExecutionWithoutAWorkerFails(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	action := testkit.Action(t, b.Store, "demo.new")
	for name, left := range map[string]string{"w1": "40 seconds", "w2": "1 hour"} {
		gone := b.AddWorker(t, name, nil)
		testkit.Exec(t, b.Store, `update worker set status = 'inactive', heartbeat_seen = now() - $2::text::interval
			where id = $1`, gone, left)
	}
	state, _, waiters := b.AddQueue(t, action, 5, 0, 2, 0)
	b.BlockQueue(t, state, "no workers available; 2 workers would fit but are not there")
	testkit.Exec(t, b.Store, `update admission_blocked set until = now() + interval '560 seconds'`)
	text := strings.Join(b.ask(t, waiters[1]).Lines, "\n")
	require.Regexp(t, `; unless one comes back, it fails at [-0-9: ]+Z \(in 9m\d+s\)\.\nw1 left 4[0-9.]+s ago\.\n`,
		text)
	require.NotContains(t, text, "times out")
	testkit.Exec(t, b.Store, `update execution_admission_state set queue_timeout_seconds = 300`)
	testkit.Exec(t, b.Store, `update execution_admission_entry set enqueued_at = now()`)
	text = strings.Join(b.ask(t, waiters[1]).Lines, "\n")
	require.Regexp(t, `Before it fails without a worker, at [-0-9: ]+Z \(in [45]m\w*\), it times out\.`, text)
	b.AddWorker(t, "w3", nil)
	require.NotContains(t, strings.Join(b.ask(t, waiters[1]).Lines, "\n"), "w1 left", "one is there")
}
