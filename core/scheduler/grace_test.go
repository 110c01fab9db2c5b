package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

func graceful(c *scheduler.Config) {
	c.NoWorkersGrace = func(adopted bool) time.Duration {
		if adopted {
			return 0
		}
		return 10 * time.Minute
	}
}

// gone stops a worker, some time ago.
func (b *bundle) gone(t *testing.T, worker int64, ago time.Duration) {
	t.Helper()
	testkit.Exec(t, b.store, `UPDATE worker SET status = 'inactive', heartbeat_seen = now() - make_interval(secs => $2)
		WHERE id = $1`, worker, ago.Seconds())
	b.scheduler = b.replica(t, graceful)
}

func (b *bundle) failedWith(t *testing.T, id int64) string {
	t.Helper()
	var text string
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
		`SELECT coalesce(result ->> 'error', '') FROM execution WHERE id = $1`, id).Scan(&text))
	return text
}

// ofOurSchema skips a test of what a schema of attune-executor's own does.
func ofOurSchema(t *testing.T, b *bundle) {
	t.Helper()
	if testkit.Count(t, b.store, `SELECT count(*) FROM attune_schema_origin WHERE origin = 'adopted'`) > 0 {
		t.Skip("on the schema of an existing installation there is no grace")
	}
}

// Executions that wait when the only worker leaves keep their order and hold no slot until it is back; a
// new request fails at once.
func TestAcceptedExecutionsWaitForAWorkerToComeBack(t *testing.T) {
	b := setup(t, graceful)
	ofOurSchema(t, b)
	worker := testkit.Worker(t, b.store, "w1").ID
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 2)
	ids := b.request(t, action, 5)
	require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 3}, b.dispatch(t, ids...))
	b.gone(t, worker, 30*time.Second)

	full := b.request(t, action, 1)[0]
	require.Equal(t, scheduler.Result{Ended: 1}, b.dispatch(t, full), "it fails although all slots are taken")
	require.Equal(t, "no workers available", b.failedWith(t, full))
	b.finish(t, lifecycle.StatusAbandoned, ids[:2]...)
	result := b.complete(t, ids[:2]...)
	require.Equal(t, 2, result.Released)
	require.Zero(t, result.Ended)
	require.InDelta(t, (9*time.Minute + 30*time.Second).Seconds(), result.Wake.Seconds(), 20)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM admission_blocked b, worker w
		WHERE b.until = w.heartbeat_seen + interval '10 minutes' AND b.wake = b.until
		AND b.reason = 'no workers available; w1 would fit but is inactive'`), "any replica ends them at that time")
	for range 2 { // any replica, as often as it tries
		b.scheduler = b.replica(t, graceful)
		b.dispatch(t)
	}
	late := b.request(t, action, 1)[0]
	require.Equal(t, 1, b.dispatch(t, late).Ended, "a free slot and executions that wait")
	require.Equal(t, "no workers available", b.failedWith(t, late))
	require.Equal(t, []lifecycle.Status{"requested", "requested", "requested"}, b.statuses(t, ids[2:]))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution_holder`))

	testkit.Worker(t, b.store, "another name")
	b.scheduler = b.replica(t, graceful)
	require.Equal(t, 2, b.dispatch(t).Granted)
	require.Equal(t, []lifecycle.Status{"scheduled", "scheduled", "requested"}, b.statuses(t, ids[2:]), "in order (S4)")
	b.quiet(t)
}

// At the end of the grace all of them fail, and not before. Cordoned workers are counted from their cordon on.
func TestTheGraceCountsFromTheLastSignOfAWorkerThatFits(t *testing.T) {
	t.Parallel()
	for name, absent := range map[string]string{
		"it left":                `status = 'inactive', heartbeat_seen = $2`,
		"it fell silent":         `heartbeat_seen = $2`,
		"it was cordoned":        `cordoned = true, cordoned_at = $2, heartbeat_seen = now()`,
		"its clock is ahead":     `status = 'inactive', heartbeat_seen = $2, last_heartbeat = now() + interval '1 day'`,
		"it was cordoned and is": `cordoned = true, cordoned_at = now(), heartbeat_seen = $2`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, graceful)
			ofOurSchema(t, b)
			worker := testkit.Worker(t, b.store, "w1").ID
			action := testkit.Action(t, b.store, "pk.a")
			testkit.Policy(t, b.store, action, 1)
			ids := b.request(t, action, 3)
			b.dispatch(t, ids...)
			b.finish(t, lifecycle.StatusCompleted, ids[0])
			seen := func(ago time.Duration) scheduler.Result {
				var at time.Time
				require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
					`SELECT now() - make_interval(secs => $1)`, ago.Seconds()).Scan(&at))
				testkit.Exec(t, b.store, `UPDATE worker SET `+absent+` WHERE id = $1`, worker, at)
				if name == "its clock is ahead" { // the trigger has recorded when it arrived
					testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = $2 WHERE id = $1`, worker, at)
				}
				b.scheduler = b.replica(t, graceful)
				return b.complete(t, ids[0])
			}
			require.Zero(t, seen(9*time.Minute).Ended)
			require.Equal(t, []lifecycle.Status{"requested", "requested"}, b.statuses(t, ids[1:]))
			require.Equal(t, 2, seen(10*time.Minute).Ended)
			require.Equal(t, "no workers available", b.failedWith(t, ids[1]))
			b.quiet(t)
		})
	}
}

// What was accepted while a worker lived waits, in whichever way it comes; a request since then fails.
func TestWhatCountsAsAccepted(t *testing.T) {
	b := setup(t, graceful)
	ofOurSchema(t, b)
	worker := testkit.Worker(t, b.store, "w1").ID
	action := testkit.Action(t, b.store, "pk.a", func(a *testkit.ActionRow) { a.MaxRetries = 1 })
	ran, late := b.request(t, action, 1)[0], b.request(t, action, 1)[0]
	require.Equal(t, 1, b.dispatch(t, ran).Granted)
	b.gone(t, worker, 0)

	// A retry of an attempt that a worker ran.
	b.finish(t, lifecycle.StatusAbandoned, ran)
	always := lifecycle.RetryPolicy{Enabled: true, ActionRetries: lifecycle.RetriesAlways}
	retry := scheduler.CompletionConfig{Retry: always}
	result := b.run(t, scheduler.NewCompletionStep(retry, []scheduler.Report{{Execution: ran}}))
	require.Len(t, result.Repeated, 1)
	require.Equal(t, 1, b.dispatch(t, result.Repeated[0].ID).Enqueued)

	require.Equal(t, 1, b.dispatch(t, late).Enqueued, "its message was lost while a worker lived")

	refused := b.request(t, action, 1)[0]
	require.Equal(t, 1, b.dispatch(t, refused).Ended)
	result = b.run(t, scheduler.NewCompletionStep(retry, []scheduler.Report{{Execution: refused}}))
	require.Len(t, result.Repeated, 1)
	require.Equal(t, 1, b.dispatch(t, result.Repeated[0].ID).Ended, "nor does its retry")

	// A silent worker counted as live until its heartbeat was stale.
	testkit.Exec(t, b.store, `UPDATE worker SET status = 'active', heartbeat_seen = now() - interval '100 seconds'`)
	b.scheduler = b.replica(t, graceful)
	silent := b.request(t, action, 1)[0]
	testkit.Exec(t, b.store, `UPDATE execution SET created = now() - interval '20 seconds' WHERE id = $1`, silent)
	require.Equal(t, 1, b.dispatch(t, silent).Enqueued)
	testkit.Exec(t, b.store, `UPDATE worker SET status = 'inactive', deactivated_at = now()`)
	b.scheduler = b.replica(t, graceful)
	require.Zero(t, b.dispatch(t).Ended, "also when the engine has marked it inactive")
}

// Without any worker since the beginning, and for a worker that only others need, nothing waits.
func TestARequestThatNoWorkerEverFittedFailsAtOnce(t *testing.T) {
	b := setup(t, graceful)
	elsewhere := testkit.Action(t, b.store, "pk.elsewhere", func(a *testkit.ActionRow) {
		a.WorkerSelector = map[string]any{"zone": "z"}
	})
	id := b.request(t, elsewhere, 1)[0]
	require.Equal(t, 1, b.dispatch(t, id).Ended)
	require.Equal(t, "no workers available", b.failedWith(t, id))
	gone := testkit.Worker(t, b.store, "shell", announces(1, nil)).ID
	id = b.request(t, elsewhere, 1)[0]
	b.gone(t, gone, 0)
	require.Equal(t, 1, b.dispatch(t, id).Ended, "the worker that left never fitted")
}

// A worker that comes back with other labels may have fitted before: what waits for it is not failed by its
// return.
func TestAWorkerThatComesBackWithOtherLabelsFailsNothingAtOnce(t *testing.T) {
	b := setup(t, graceful)
	ofOurSchema(t, b)
	worker := testkit.Worker(t, b.store, "w1", announces(9, inZone("a"))).ID
	action := testkit.Action(t, b.store, "pk.a", func(a *testkit.ActionRow) {
		a.WorkerSelector = map[string]any{"zone": "a"}
	})
	testkit.Policy(t, b.store, action, 1)
	ids := b.request(t, action, 2)
	b.dispatch(t, ids...)
	b.finish(t, lifecycle.StatusCompleted, ids[0])
	testkit.Exec(t, b.store, `UPDATE worker SET created = now() - interval '1 hour', capabilities = capabilities || jsonb_build_object('labels', '{"zone": "b"}'::jsonb, 'registered_at', extract(epoch FROM now() - interval '9 minutes'))`)
	b.scheduler = b.replica(t, graceful)
	result := b.complete(t, ids[0])
	require.Zero(t, result.Ended)
	require.NotZero(t, result.Wake)
	fresh := b.request(t, action, 1)[0]
	require.Equal(t, 1, b.dispatch(t, fresh).Ended, "a request since then fails")
	require.Equal(t, "no compatible worker: 1 live worker lacks the label zone=a", b.failedWith(t, fresh))
	testkit.Exec(t, b.store, `UPDATE worker SET capabilities = capabilities ||
		jsonb_build_object('registered_at', extract(epoch FROM now() - interval '10 minutes')) WHERE id = $1`, worker)
	b.scheduler = b.replica(t, graceful)
	require.Equal(t, 1, b.dispatch(t).Ended)
}

// An execution that waits for an absent worker takes nothing of a shared limit from others.
func TestAnExecutionWithoutAWorkerReservesNothing(t *testing.T) {
	b := setup(t, graceful)
	ofOurSchema(t, b)
	gone := testkit.Worker(t, b.store, "gone", announces(9, inZone("a"))).ID
	testkit.Worker(t, b.store, "here", announces(9, nil))
	action := testkit.Action(t, b.store, "pk.a", func(a *testkit.ActionRow) {
		a.WorkerSelector = map[string]any{"zone": "a"}
	})
	other := testkit.Action(t, b.store, "pk.b")
	testkit.Policy(t, b.store, action, 1, testkit.OfPack(action))
	ids := b.request(t, action, 2)
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 1}, b.dispatch(t, ids...))
	b.gone(t, gone, 0)
	b.finish(t, lifecycle.StatusAbandoned, ids[0])
	require.Equal(t, 1, b.complete(t, ids[0]).Released)
	require.Equal(t, 1, b.dispatch(t, b.request(t, other, 1)...).Granted)
	b.quiet(t)
}

// A paused queue takes requests although no worker lives, as before.
func TestAPausedQueueTakesRequestsWithoutAWorker(t *testing.T) {
	b := setup(t, graceful)
	action := testkit.Action(t, b.store, "pk.a")
	b.gone(t, testkit.Worker(t, b.store, "w1").ID, time.Hour)
	b.dispatch(t, b.request(t, action, 1)...) // makes the queue
	testkit.Exec(t, b.store, `UPDATE execution_admission_state SET paused = true`)
	require.Equal(t, 1, b.dispatch(t, b.request(t, action, 1)...).Enqueued)
}

// A dispatch that a lost worker never started stays while the grace runs, unless it is repeated.
func TestAnUnstartedExecutionIsNotLostWithoutRetries(t *testing.T) {
	b := setup(t, graceful)
	ofOurSchema(t, b)
	ids, old, other := unstartedAtDeadWorker(t, b, 1)
	testkit.Exec(t, b.store, `DELETE FROM worker WHERE id = $1`, other)
	b.scheduler = b.replica(t, graceful)
	unrepeated := scheduler.NewReassignStep([]scheduler.Unstarted{{Execution: ids[0]}}, false)
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() - interval '9 minutes' WHERE id = $1`, old)
	b.scheduler = b.replica(t, graceful)
	require.Zero(t, b.run(t, unrepeated).Ended)
	require.Len(t, unrepeated.Left(), 1, "the next batch tries again")
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, ids[0]))
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() - interval '10 minutes' WHERE id = $1`, old)
	b.scheduler = b.replica(t, graceful)
	require.Equal(t, 1, b.run(t, unrepeated).Ended)
}
