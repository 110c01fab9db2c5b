package worker_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/supervisetest"
)

func TestRegistration(t *testing.T) {
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) {
		c.Labels, c.Taints = map[string]string{"zone": "a"}, []worker.Taint{{Key: "gpu", Effect: "no_schedule"}}
		c.Capabilities = map[string]any{"extra": 1, "attempt_fence": "overridden"}
	})
	row := func(column string) string {
		var text string
		require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
			"select "+column+"::text from worker where name = 'w1'").Scan(&text))
		return text
	}
	require.Equal(t, "active", row("status"))
	var capabilities map[string]any
	require.NoError(t, json.Unmarshal([]byte(row("capabilities")), &capabilities))
	require.Equal(t, true, capabilities["attempt_fence"])
	require.Equal(t, []any{"shell", "native"}, capabilities["runtimes"])
	require.InDelta(t, 4, capabilities["max_concurrent_executions"], 0)
	require.Equal(t, map[string]any{"zone": "a"}, capabilities["labels"])
	require.InDelta(t, 1, capabilities["extra"], 0)
	for _, key := range []string{
		"taints", "worker_version", "runtime_versions", "detected_interpreters",
		"agent_mode", "agent_binary_name", "agent_binary_version",
	} {
		require.Contains(t, capabilities, key)
	}

	// The next heartbeat activates a worker that was declared inactive (upstream 30).
	before := row("last_heartbeat")
	testkit.Exec(t, b.store, "update worker set status = 'inactive', cordoned = true")
	testkit.Eventually(t, func() bool { return row("status") == "active" && row("last_heartbeat") != before },
		waitTimeout)

	state, err := b.engine.QueueState(testkit.Context(t), message.WorkerExecutionsQueue(w.ID()))
	require.NoError(t, err)
	require.Equal(t, 1, state.Consumers)

	w.Stop()
	require.Equal(t, "inactive", row("status"))
	require.Equal(t, "false", row("draining"))
	again := b.worker(t)
	require.Equal(t, w.ID(), again.ID(), "the same name is the same worker")
	require.Equal(t, "true", row("cordoned"), "a restart does not undo a cordon")
	require.Equal(t, "active", row("status"))
}

func TestStartAndStop(t *testing.T) {
	b := setup(t)
	supervisetest.Stress(t, func(t *testing.T) supervise.Service {
		return b.unstarted(t, func(c *worker.Config) { c.Name = t.Name() })
	})
}

// A second process does not start beside a living one with its name, unless it replaces it. Then the older one ends.
func TestANameBelongsToOneProcess(t *testing.T) {
	b := setup(t)
	held, _ := holding()
	older := b.worker(t, held)
	running := b.schedule(t, older, testkit.Action(t, b.store, "held.long"), nil)
	testkit.Hold(t, b.store, running, 1)
	b.dispatch(t, older, running)
	b.awaitRunning(t, running)
	testkit.Exec(t, b.store, "update worker set last_heartbeat = now() + interval '1 hour', heartbeat_seen = now()")
	var taken *worker.TakenError
	require.ErrorAs(t, b.unstarted(t).Start(testkit.Context(t)), &taken)
	require.Equal(t, []any{os.Getpid(), int64(1), older.ID()}, []any{taken.PID, taken.Running, taken.Worker})
	require.NotEmpty(t, taken.Host)
	require.Less(t, taken.Silent, time.Minute)
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, running))

	younger := b.worker(t, func(c *worker.Config) { c.Replace = true })
	supervisetest.Closed(t, "the end of the older worker", older.Done())
	require.Equal(t, lifecycle.StatusAbandoned, testkit.StatusOf(t, b.store, running))
	status, _ := b.run(t, younger, b.core(t, "core.noop"), nil)
	require.Equal(t, lifecycle.StatusCompleted, status)
	require.Equal(t, 1,
		testkit.Count(t, b.store, "select count(*) from worker where status = 'active' and not draining"))
}

// A process whose name was taken returns all that it gets, before a heartbeat tells it: the other process starts
// what it has not started, and gets its cancels and notices.
func TestAProcessWithoutItsNameReturnsItsMessages(t *testing.T) {
	t.Parallel()
	slow := func(c *worker.Config) { c.HeartbeatInterval = time.Hour }
	for name, send := range map[string]func(t *testing.T, b *bundle, w *worker.Worker) string{
		"Dispatches": func(t *testing.T, b *bundle, w *worker.Worker) string {
			ids := []int64{b.schedule(t, w, b.core(t, "core.noop"), nil), b.schedule(t, w, b.core(t, "core.echo"), nil)}
			b.dispatch(t, w, ids...)
			return message.WorkerExecutionsQueue(w.ID())
		},
		"Cancels": func(t *testing.T, b *bundle, w *worker.Worker) string {
			b.cancel(t, w, 4711, 4712)
			return message.WorkerCancelQueue(w.ID())
		},
		"Notices": func(t *testing.T, b *bundle, w *worker.Worker) string {
			for range 2 {
				notice := encode(t, message.TypePackRegistered, "", message.PackRegistered{PackRef: "pk"})
				notice.Exchange, notice.RoutingKey = "", message.WorkerPacksQueue(w.ID())
				b.publish(t, notice)
			}
			return message.WorkerPacksQueue(w.ID())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for _, statement := range []string{
				"create table beats (at timestamptz)",
				`create function beat() returns trigger language plpgsql as $$ begin
					insert into beats values (now()); return new; end $$`,
				"create trigger beat after update of last_heartbeat on worker for each row execute function beat()",
			} {
				testkit.Exec(t, b.store, statement)
			}
			w := b.worker(t, slow)
			testkit.Eventually(t, func() bool { return testkit.Count(t, b.store, "select count(*) from beats") == 2 },
				waitTimeout, "it is active and has sent its only heartbeat")
			testkit.Exec(t, b.store, "update worker set incarnation = gen_random_uuid()")
			queue := send(t, b, w)
			supervisetest.Closed(t, "the end of the worker", w.Done())
			testkit.Eventually(t, func() bool {
				state, err := b.engine.QueueState(testkit.Context(t), queue)
				return err == nil && state.Ready == 2 && state.Consumers == 0
			}, waitTimeout, "both messages are back")
			require.Zero(t, testkit.Count(t, b.store, "select count(*) from execution where started_at is not null"))
		})
	}
}

// A container that restarts has the name of its host and other processes. Its worker starts when no heartbeat comes.
func TestARestartedContainerWaitsForAHeartbeat(t *testing.T) {
	b := setup(t)
	older := b.worker(t)
	const elsewhere = `update worker set capabilities = jsonb_set(capabilities, '{process,place}', '"another boot"')`
	testkit.Exec(t, b.store, elsewhere)
	var taken *worker.TakenError
	require.ErrorAs(t, b.unstarted(t).Start(testkit.Context(t)), &taken, "its heartbeats come")
	older.Stop()

	crashed := b.worker(t, func(c *worker.Config) { c.Name, c.HeartbeatInterval = "w2", 200*time.Millisecond })
	testkit.Exec(t, b.store, elsewhere)
	testkit.Exec(t, b.store, "update worker set incarnation = gen_random_uuid() where name = 'w2'") // no heartbeats more
	again := b.worker(t, func(c *worker.Config) { c.Name = "w2" })
	require.Equal(t, crashed.ID(), again.ID())
}

// After a restore or a failover rows may be running although their worker has ended them. It ends them again; its
// actual executions continue.
func TestExecutionsThatOnlyTheirRowsCallRunningAreEnded(t *testing.T) {
	b := setup(t)
	w := b.worker(t)
	inHand := b.schedule(t, w, b.script(t, "forgotten.long", "exec sleep 600", nil), nil)
	noop := b.core(t, "core.noop")
	state := testkit.State(t, b.store, noop, 5).ID
	testkit.Hold(t, b.store, inHand, state)
	b.dispatch(t, w, inHand)
	b.awaitRunning(t, inHand)
	for status, end := range map[string]lifecycle.Status{
		"running": lifecycle.StatusAbandoned, "canceling": lifecycle.StatusCancelled,
	} {
		id := b.schedule(t, w, noop, nil)
		testkit.Exec(t, b.store, "update execution set status = $2::text::execution_status_enum where id = $1", id,
			status)
		testkit.Hold(t, b.store, id, state)
		ended, r := b.await(t, id)
		require.Equal(t, end, ended)
		require.Contains(t, r.Error, "does not run this execution")
	}
	require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, inHand))
	testkit.Exec(t, b.store, "update execution set status = 'canceling' where id = $1", inHand)
	b.await(t, inHand)
}

func TestDispatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.worker(t)

	// S2: an execution starts once, however often it is delivered.
	t.Run("DuplicatesRunOnce", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "runs")
		id := b.schedule(t, w, b.script(t, "once.only", "echo ran >> "+file, nil), nil)
		b.dispatch(t, w, id, id, id)
		status, _ := b.await(t, id)
		require.Equal(t, lifecycle.StatusCompleted, status)
		b.dispatch(t, w, id) // long after the end (upstream 32)
		b.drained(t, w)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "ran\n", string(text))
		require.Len(t, b.completions(id), 1)
	})

	t.Run("AnotherAttemptIsNotRun", func(t *testing.T) {
		t.Parallel()
		id := b.schedule(t, w, b.core(t, "core.noop"), nil)
		b.dispatchAttempt(t, w, 7, id)
		b.drained(t, w)
		require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, id))
		b.dispatchAttempt(t, w, 0, id) // an engine that names no attempt
		status, _ := b.await(t, id)
		require.Equal(t, lifecycle.StatusCompleted, status)
	})

	// A forged or doubled dispatch that starts nothing does not keep away the one that does, in any order.
	t.Run("AnotherAttemptDoesNotHideTheTrueOne", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "runs")
		action := b.script(t, "hidden.once", "echo $ATTUNE_EXEC_ID >> "+file, nil)
		orders := [][]int32{{7, 1}, {1, 7}, {0, 7, 1, 0, 1}}
		var ids []int64
		for _, attempts := range orders {
			id := b.schedule(t, w, action, nil)
			ids = append(ids, id)
			var payloads []message.Dispatch
			for _, attempt := range attempts {
				payloads = append(payloads, message.Dispatch{
					ExecutionID: id, WorkerID: w.ID(), ScheduledAttemptUpdatedAt: time.Now(), Attempt: attempt,
				})
			}
			b.publish(t, encode(t, message.TypeExecutionBatchRequested, message.DispatchKey(w.ID()),
				message.Batch{Executions: raws(t, payloads)}))
		}
		for _, id := range ids {
			status, _ := b.await(t, id)
			require.Equal(t, lifecycle.StatusCompleted, status)
		}
		b.drained(t, w)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Len(t, strings.Fields(string(text)), len(orders), "each once")
	})

	// S2: the process that started it may still run it.
	t.Run("ARunningExecutionIsNotRunAgain", func(t *testing.T) {
		t.Parallel()
		id := b.schedule(t, w, b.core(t, "core.noop"), nil)
		testkit.Exec(t, b.store, "update execution set status = 'running' where id = $1", id)
		b.dispatch(t, w, id)
		b.drained(t, w)
		require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b.store, id))
	})

	t.Run("AnotherWorkersExecutionIsNotRun", func(t *testing.T) {
		t.Parallel()
		other := testkit.Worker(t, b.store, "another worker")
		action := b.core(t, "core.echo")
		id := testkit.Execution(t, b.store, action, func(row *testkit.ExecutionRow) {
			row.Worker, row.Status, row.Attempt = &other.ID, lifecycle.StatusScheduled, 1
		}).ID
		b.dispatch(t, w, id)
		b.drained(t, w)
		require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, id))
	})

	t.Run("AMalformedDispatchIsDeadLettered", func(t *testing.T) {
		t.Parallel()
		bad := encode(t, message.TypeExecutionRequested, message.DispatchKey(w.ID()), "no dispatch")
		b.publish(t, bad)
		testkit.Eventually(t, func() bool {
			state, err := b.engine.QueueState(testkit.Context(t), message.QueueDeadLetter)
			return err == nil && state.Ready == 1
		}, waitTimeout)
	})
}

// drained waits until the worker has handled all earlier dispatches: a later one has run.
func (b *bundle) drained(t testing.TB, w *worker.Worker) {
	t.Helper()
	action := testkit.Action(t, b.store, "drain."+strings.ToLower(strings.ReplaceAll(t.Name(), "/", "_")),
		func(row *testkit.ActionRow) {
			row.Entrypoint = "core.noop"
		})
	status, _ := b.run(t, w, action, nil)
	require.Equal(t, lifecycle.StatusCompleted, status)
}

// S15: a cancel wins or loses cleanly at any time.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.MaxConcurrent = 10 })
	long := b.script(t, "cancel.long", "exec sleep 600", nil)

	for name, status := range map[string]string{"Canceling": "canceling", "Cancelled": "cancelled"} {
		t.Run("BeforeTheDispatch"+name, func(t *testing.T) {
			t.Parallel()
			id := b.schedule(t, w, long, nil)
			testkit.Exec(t, b.store, "update execution set status = $2::text::execution_status_enum where id = $1", id,
				status)
			b.cancel(t, w, id)
			b.dispatch(t, w, id)
			testkit.Eventually(t, func() bool { return len(b.completions(id)) == 1 }, waitTimeout)
			require.Equal(t, lifecycle.StatusCancelled, testkit.StatusOf(t, b.store, id))
			require.Zero(t, testkit.Count(t, b.store,
				"select count(*) from execution where id = $1 and started_at is not null", id))
		})
	}

	t.Run("WhileRunningByMessage", func(t *testing.T) {
		t.Parallel()
		id := b.schedule(t, w, long, nil)
		b.dispatch(t, w, id)
		b.awaitRunning(t, id)
		b.cancel(t, w, id) // an existing engine may send it before its row is committed
		testkit.Exec(t, b.store, "update execution set status = 'canceling' where id = $1", id)
		status, r := b.await(t, id)
		require.Equal(t, lifecycle.StatusCancelled, status)
		require.True(t, r.Cancelled)
		require.False(t, r.Succeeded)
		require.Equal(t, -1, r.ExitCode)
		require.Equal(t, "Execution cancelled by user", r.Error)
		b.dispatch(t, w, id)
		b.drained(t, w)
		require.Len(t, b.completions(id), 1, "a dispatch that comes again does not report the end again")
	})

	t.Run("WhileRunningByTheRowAlone", func(t *testing.T) {
		t.Parallel()
		id := b.schedule(t, w, long, nil)
		b.dispatch(t, w, id)
		b.awaitRunning(t, id)
		testkit.Exec(t, b.store, "update execution set status = 'canceling' where id = $1", id)
		status, r := b.await(t, id)
		require.Equal(t, lifecycle.StatusCancelled, status)
		require.True(t, r.Cancelled)
	})

	t.Run("TakenAwayWhileRunning", func(t *testing.T) {
		t.Parallel()
		id := b.schedule(t, w, b.script(t, "cancel.taken", "exec sleep 600", nil), nil)
		b.dispatch(t, w, id)
		b.awaitRunning(t, id)
		testkit.Exec(t, b.store, "update execution set status = 'abandoned' where id = $1", id)
		b.drained(t, w)
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, b.store,
				"select count(*) from execution where id = $1 and status = 'abandoned' and result is null", id) == 1
		}, waitTimeout)
		require.Empty(t, b.completions(id), "S14: the program that ended it announces the end")
	})

	t.Run("AfterTheEnd", func(t *testing.T) {
		t.Parallel()
		id := b.schedule(t, w, b.core(t, "core.noop"), nil)
		b.dispatch(t, w, id)
		status, _ := b.await(t, id)
		require.Equal(t, lifecycle.StatusCompleted, status)
		b.cancel(t, w, id, 987654321)
		b.drained(t, w)
		require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, id))
		require.Len(t, b.completions(id), 1)
	})
}

// S2: a row that runs as another attempt is not this process's any more.
func TestAnExecutionOfAnotherAttemptIsStopped(t *testing.T) {
	b := setup(t)
	stopped := make(chan error, 1)
	w := b.worker(t, func(c *worker.Config) {
		c.Actions["held.taken"] = func(ctx context.Context, _ worker.Task) (any, error) {
			<-ctx.Done()
			stopped <- context.Cause(ctx)
			return nil, ctx.Err()
		}
	})
	id := b.schedule(t, w, testkit.Action(t, b.store, "held.taken"), nil)
	b.dispatch(t, w, id)
	b.awaitRunning(t, id)
	testkit.Exec(t, b.store, "update execution set attempt = 2 where id = $1", id)
	select {
	case cause := <-stopped:
		require.ErrorIs(t, cause, worker.ErrTaken)
	case <-time.After(testkit.TestTimeout):
		require.Fail(t, "it runs on")
	}
}

func TestManyAtOnce(t *testing.T) {
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.MaxConcurrent = 200 })
	action := b.core(t, "core.sleep")
	ids := make([]int64, 200)
	for i := range ids {
		ids[i] = b.schedule(t, w, action, map[string]any{"seconds": 0.3})
	}
	b.dispatch(t, w, ids...)
	for _, id := range ids {
		status, _ := b.await(t, id)
		require.Equal(t, lifecycle.StatusCompleted, status)
		require.Len(t, b.completions(id), 1)
	}
}

func TestNeverMoreThanAllowedAtOnce(t *testing.T) {
	b := setup(t)
	w := b.worker(t, func(c *worker.Config) { c.MaxConcurrent = 2 })
	dir := t.TempDir()
	action := b.script(t, "at.once",
		"mkdir "+dir+"/$ATTUNE_EXEC_ID; ls "+dir+" | wc -l; sleep 0.1; rmdir "+dir+"/$ATTUNE_EXEC_ID", nil)
	ids := make([]int64, 9)
	for i := range ids {
		ids[i] = b.schedule(t, w, action, nil)
	}
	b.dispatch(t, w, ids...)
	for _, id := range ids {
		_, r := b.await(t, id)
		require.Contains(t, []string{"1", "2"}, strings.TrimSpace(r.Stdout))
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()

	t.Run("RunningFinishesAndUnstartedReturns", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		held, release := holding()
		w := b.worker(t, held, func(c *worker.Config) { c.MaxConcurrent = 1 })
		running := b.schedule(t, w, testkit.Action(t, b.store, "held.long"), nil)
		waiting := b.schedule(t, w, b.core(t, "core.noop"), nil)
		b.dispatch(t, w, running, waiting)
		b.awaitRunning(t, running)
		b.stopReleased(t, w, release)
		status, _ := b.await(t, running)
		require.Equal(t, lifecycle.StatusCompleted, status, "upstream 31")
		require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, b.store, waiting))
		next := b.worker(t, func(c *worker.Config) { c.MaxConcurrent = 1 })
		require.Equal(t, w.ID(), next.ID())
		status, _ = b.await(t, waiting)
		require.Equal(t, lifecycle.StatusCompleted, status)
	})

	t.Run("ALateExecutionIsStoppedAndReported", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		w := b.worker(t, func(c *worker.Config) { c.ShutdownTimeout = 100 * time.Millisecond })
		id := b.schedule(t, w, b.script(t, "drain.long", "exec sleep 600", nil), nil)
		b.dispatch(t, w, id)
		b.awaitRunning(t, id)
		w.Stop()
		status, r := b.await(t, id)
		require.Equal(t, lifecycle.StatusFailed, status)
		require.Contains(t, r.Error, "worker shut down")
	})
}

// An execution continues while all connections to the broker are cut, and its completion follows after a reconnect.
func TestConnectionLoss(t *testing.T) {
	b := setup(t)
	held, release := holding()
	w := b.worker(t, held)
	id := b.schedule(t, w, testkit.Action(t, b.store, "held.long"), nil)
	b.dispatch(t, w, id)
	b.awaitRunning(t, id)
	vhost := testkit.VHostName(t, b.brokerURL)
	cut := 0
	testkit.Eventually(t, func() bool {
		var connections []struct {
			Name string `json:"name"`
		}
		testkit.Manage(t, "GET", "/api/vhosts/"+vhost+"/connections", nil, &connections)
		for _, c := range connections {
			if testkit.Cut(t, c.Name) {
				cut++
			}
		}
		return cut >= 4
	}, waitTimeout)
	release()
	status, _ := b.await(t, id)
	require.Equal(t, lifecycle.StatusCompleted, status)
	next := b.schedule(t, w, b.core(t, "core.noop"), nil)
	dispatch := b.dispatchOf(t, w, 1, next)
	testkit.Eventually(t, func() bool { // the cut may reach this connection only now
		return b.engine.Publisher().Publish(testkit.Context(t), []broker.Message{dispatch})[0].Err == nil
	}, waitTimeout)
	status, _ = b.await(t, next)
	require.Equal(t, lifecycle.StatusCompleted, status, "the worker consumes again")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, "select count(*) from worker where status = 'active'") == 1
	}, waitTimeout)
}

// A worker that has lost the broker continues its heartbeats, so that its executions are not declared lost. It reports
// an error, so that it gets nothing new (upstream 3), and still writes ends.
func TestAWorkerWithoutBrokerReportsAnError(t *testing.T) {
	b := setup(t)
	held, release := holding()
	w, connection := b.unstartedOn(t, held)
	require.NoError(t, w.Start(testkit.Context(t)))
	id := b.schedule(t, w, testkit.Action(t, b.store, "held.long"), nil)
	b.dispatch(t, w, id)
	b.awaitRunning(t, id)
	connection.Stop()
	var last time.Time
	for range 2 { // heartbeats continue
		testkit.Eventually(t, func() bool {
			before := last
			err := b.store.Pool().QueryRow(testkit.Context(t), `select coalesce(max(last_heartbeat), $1) from worker
				where status = 'error' and last_heartbeat > $1`, before).Scan(&last)
			require.NoError(t, err)
			return last.After(before)
		}, waitTimeout)
	}
	release()
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusCompleted },
		waitTimeout)
	w.Stop()
	require.Empty(t, b.completions(id), "the engine's sweep finds it")
}

// A killed worker process leaves no process of its actions. The next process with its name ends the execution that
// had started as abandoned and starts the other one.
func TestKilledWorker(t *testing.T) {
	b := setup(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1", "CHILD_DATABASE="+b.databaseURL, "CHILD_BROKER="+b.brokerURL)
	var log strings.Builder
	child.Stderr = &log
	require.NoError(t, child.Start())
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, "select count(*) from worker where status = 'active'") == 1
	}, waitTimeout, "the child did not register")
	var id int64
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), "select id from worker").Scan(&id))

	pidFile := filepath.Join(t.TempDir(), "pid")
	long := b.script(t, "killed.long", "sleep 600 & echo $$ $! > "+pidFile+"; wait", nil)
	state := testkit.State(t, b.store, long, 2)
	schedule := func(action testkit.ActionRow) int64 {
		return testkit.Execution(t, b.store, action, func(row *testkit.ExecutionRow) {
			row.Worker, row.Status, row.Attempt, row.AdmissionState = &id, lifecycle.StatusScheduled, 1, &state.ID
		}).ID
	}
	running, waiting := schedule(long), schedule(b.core(t, "core.noop"))
	for _, execution := range []int64{running, waiting} {
		b.publish(t, encode(t, message.TypeExecutionRequested, message.DispatchKey(id), message.Dispatch{
			ExecutionID: execution, WorkerID: id, ActionRef: "x.y", ScheduledAttemptUpdatedAt: time.Now(), Attempt: 1,
		}))
	}
	b.awaitRunning(t, running)
	var pids []string
	testkit.Eventually(t, func() bool {
		raw, _ := os.ReadFile(pidFile)
		pids = strings.Fields(string(raw))
		return len(pids) == 2
	}, waitTimeout)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	for _, pid := range pids {
		testkit.Eventually(t, func() bool {
			state, err := exec.CommandContext(t.Context(), "ps", "-o", "stat=", "-p", pid).Output()
			return err != nil || strings.HasPrefix(string(state), "Z") // init may not have collected it
		}, waitTimeout, "process %s outlives its worker", pid)
	}

	w := b.worker(t)
	require.Equal(t, id, w.ID())
	status, r := b.await(t, running)
	require.Equal(t, lifecycle.StatusAbandoned, status, "its process has ended, and it does not run twice")
	require.Contains(t, r.Error, "process ended")
	status, _ = b.await(t, waiting)
	require.Equal(t, lifecycle.StatusCompleted, status, "upstream 33: an unstarted execution is not lost")
	require.Len(t, b.completions(running), 1)
}

// A worker process that is killed in the middle of a batch leaves the whole message in its queue. The next process
// with its name ends the started executions and starts only the rest.
func TestAKilledWorkerLeavesItsBatch(t *testing.T) {
	b := setup(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1", "CHILD_DATABASE="+b.databaseURL, "CHILD_BROKER="+b.brokerURL,
		"CHILD_PLACES=2")
	require.NoError(t, child.Start())
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, "select count(*) from worker where status = 'active'") == 1
	}, waitTimeout, "the child did not register")
	w := b.unstarted(t)
	var id int64
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), "select id from worker").Scan(&id))
	long := b.script(t, "killed.batch", "exec sleep 600", nil)
	noop := b.core(t, "core.noop")
	var payloads []message.Dispatch
	var ids []int64
	for _, action := range []testkit.ActionRow{long, long, noop, noop} {
		execution := testkit.Execution(t, b.store, action, func(row *testkit.ExecutionRow) {
			row.Worker, row.Status, row.Attempt = &id, lifecycle.StatusScheduled, 1
		}).ID
		testkit.Hold(t, b.store, execution, 1)
		ids = append(ids, execution)
		payloads = append(payloads,
			message.Dispatch{ExecutionID: execution, WorkerID: id, ScheduledAttemptUpdatedAt: time.Now(), Attempt: 1})
	}
	b.publish(t, encode(t, message.TypeExecutionBatchRequested, message.DispatchKey(id),
		message.Batch{Executions: raws(t, payloads)}))
	b.awaitRunning(t, ids[0])
	b.awaitRunning(t, ids[1])
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
	for i, execution := range ids {
		status, _ := b.await(t, execution)
		require.Equal(t, []lifecycle.Status{
			lifecycle.StatusAbandoned, lifecycle.StatusAbandoned, lifecycle.StatusCompleted,
			lifecycle.StatusCompleted,
		}[i], status)
		require.Len(t, b.completions(execution), 1)
	}
}

func raws[P any](t *testing.T, payloads []P) (list []json.RawMessage) {
	t.Helper()
	for _, payload := range payloads {
		raw, err := json.Marshal(payload)
		require.NoError(t, err)
		list = append(list, raw)
	}
	return list
}
