package engine_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

func quickRetries(c *config.Config) {
	c.Executor.Retry.BaseDelay, c.Executor.Retry.MaxDelay = 50*time.Millisecond, 200*time.Millisecond
}

// honourRetries makes max_retries of actions count on an adopted schema too, where by
// default it does not.
func honourRetries(c *config.Config) {
	if testkit.Adopted() {
		c.Executor.Retry.HonourActionMaxRetries = "true"
	}
}

// quickWatch has workers missed after a second and a half.
func quickWatch(c *config.Config) {
	quickRetries(c)
	c.Executor.HeartbeatInterval, c.Executor.HeartbeatStalenessMultiplier = 500*time.Millisecond, 3
	c.Executor.TimeoutCheckInterval = 300 * time.Millisecond
}

func (b *bundle) fake(t *testing.T, change func(*testkit.FakeWorkerConfig)) *testkit.FakeWorker {
	t.Helper()
	cfg := testkit.FakeWorkerConfig{AMQPURL: b.AMQP, DatabaseURL: b.Database, HeartbeatInterval: 200 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	return testkit.StartFakeWorker(t, cfg)
}

// tap delivers a copy of each message published under a routing key.
func (b *bundle) tap(t *testing.T, key string) <-chan amqp.Delivery {
	t.Helper()
	conn, err := amqp.Dial(b.AMQP)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	channel, err := conn.Channel()
	require.NoError(t, err)
	queue, err := channel.QueueDeclare("", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, channel.QueueBind(queue.Name, key, message.ExchangeExecutions, false, nil))
	deliveries, err := channel.Consume(queue.Name, "", true, true, false, false, nil)
	require.NoError(t, err)
	return deliveries
}

// fence has a fake worker say that it refuses older attempts. It never starts
// anything by itself in these tests.
func fence(c *testkit.FakeWorkerConfig) {
	c.Capabilities = testkit.DefaultCapabilities(10)
	c.Capabilities["attempt_fence"] = true
}

// beating gives a worker a heartbeat that stays fresh until it is silenced.
func beating(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour }

// silence makes the last heartbeat of a worker an old one.
func (b *bundle) silence(t *testing.T, worker int64) {
	t.Helper()
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() - interval '1 hour' WHERE id = $1`, worker)
}

// Actions of an existing installation ran once, whatever their max_retries says, so they
// do unless the setting says otherwise.
func TestActionsOfAnExistingInstallationRunOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setting string
		runs    int
	}{"Unset": {"origin", 1}, "Honoured": {"true", 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			action := testkit.Action(t, b.store, "again.flaky", func(a *testkit.ActionRow) { a.MaxRetries = 2 })
			testkit.Policy(t, b.store, action, 1)
			b.fake(t, func(c *testkit.FakeWorkerConfig) {
				c.Behave = func(context.Context, testkit.Job) testkit.Answer {
					return testkit.Answer{Status: "failed", Result: map[string]any{"error": "out of luck"}}
				}
			})
			b.engine(t, func(cfg *config.Config) {
				quickRetries(cfg)
				cfg.Executor.Retry.HonourActionMaxRetries = c.setting
			})
			testkit.Exec(t, b.store, `update attune_schema_origin set origin = 'adopted'`)
			first := b.request(t, "again.flaky", 1, `{}`)[0]
			// A slot is released in the transaction that makes the next attempt.
			testkit.Eventually(t, func() bool {
				return testkit.Count(t, b.store, `select count(*) from execution where status = 'failed' and (id = $1 or original_execution = $1)
					and not exists (select from execution_holder h where h.execution = execution.id)`, first) == c.runs
			}, 20*time.Second, "attempts")
			require.Equal(t, c.runs, testkit.Count(t, b.store,
				`select count(*) from execution where id = $1 or original_execution = $1`, first))
		})
	}
}

// S19, upstream 37: an action that fails is repeated as often as it allows, each
// attempt a row of its own with its reason, on another worker while there is one,
// and never before the attempt before it has ended.
func TestAFailureIsRepeatedAsOftenAsItsActionAllows(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "again.flaky", func(a *testkit.ActionRow) { a.MaxRetries = 2 })
	testkit.Policy(t, b.store, action, 1)
	var starts atomic.Int32
	behave := func(context.Context, testkit.Job) testkit.Answer {
		if starts.Add(1) < 3 {
			return testkit.Answer{Status: "failed", Result: map[string]any{"error": "out of luck"}, Times: 3}
		}
		return testkit.Answer{}
	}
	for range 3 {
		b.fake(t, func(c *testkit.FakeWorkerConfig) { c.Behave = behave })
	}
	b.engine(t, quickRetries, honourRetries)
	b.engine(t, quickRetries, honourRetries) // two replicas, and every end is reported three times: one retry each
	first := b.request(t, "again.flaky", 1, `{"n":1}`)[0]
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'completed'`) == 1
	}, 20*time.Second)
	b.settled(t, 10*time.Second)

	var chain []struct {
		Status  string         `json:"status"`
		Retries int            `json:"retry_count"`
		Reason  *string        `json:"retry_reason"`
		Origin  *int64         `json:"original_execution"`
		Worker  int64          `json:"worker"`
		Config  map[string]any `json:"config"`
	}
	var raw []byte
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
		`SELECT jsonb_agg(to_jsonb(e) ORDER BY id) FROM execution e`).Scan(&raw))
	require.NoError(t, json.Unmarshal(raw, &chain))
	require.Len(t, chain, 3)
	workers := map[int64]bool{}
	for i, attempt := range chain {
		require.Equal(t, i, attempt.Retries)
		require.Equal(t, map[string]any{"n": 1.0}, attempt.Config)
		workers[attempt.Worker] = true
		if i > 0 {
			require.Equal(t, "action_failure", *attempt.Reason)
			require.Equal(t, first, *attempt.Origin)
		}
	}
	require.Len(t, workers, 3, "never where it failed before while another fits")
	require.Equal(t, 3, int(starts.Load()))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution_retry r
		JOIN execution f ON f.id = r.failed JOIN execution n ON n.id = r.execution WHERE n.created < f.finished_at`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution_retry WHERE waiting`))
}

// A retry waits for its time without a slot, outside all queues, and whatever asks
// for it before changes nothing; a restart of the engine does not forget it.
func TestARetryWaitsForItsTime(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "again.later", func(a *testkit.ActionRow) { a.MaxRetries = 1 })
	testkit.Policy(t, b.store, action, 1)
	var failing atomic.Bool
	failing.Store(true)
	b.fake(t, func(c *testkit.FakeWorkerConfig) {
		c.Behave = func(_ context.Context, job testkit.Job) testkit.Answer {
			if failing.Load() && string(job.Config) == `{"fails": true}` {
				return testkit.Answer{Status: "failed", Result: map[string]any{"error": "no"}}
			}
			return testkit.Answer{}
		}
	})
	slow := func(c *config.Config) {
		c.Executor.Retry.BaseDelay, c.Executor.Retry.MaxDelay, c.Executor.Retry.Jitter = time.Hour, 2*time.Hour, 0
	}
	e := b.engine(t, slow, honourRetries)
	b.request(t, "again.later", 1, `{"fails":true}`)
	var retry int64
	testkit.Eventually(t, func() bool {
		return b.store.Pool().QueryRow(testkit.Context(t),
			`SELECT execution FROM execution_retry WHERE waiting`).Scan(&retry) == nil
	}, 10*time.Second)
	wire := b.connect(t, "impatient")
	wire.Publisher().Publish(testkit.Context(t), []broker.Message{requestMessage(t, retry, "impatient")})
	others := b.request(t, "again.later", 3, `{}`)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, others[2]) == lifecycle.StatusCompleted },
		10*time.Second,
		"the slot is free for others")
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, b.store, retry))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution_admission_entry`))

	require.NoError(t, e.Stop(testkit.Context(t)))
	failing.Store(false)
	testkit.Exec(t, b.store, `UPDATE execution_retry SET due = now() + interval '1 second'`)
	b.engine(t, slow, honourRetries)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, retry) == lifecycle.StatusCompleted },
		15*time.Second)
	b.settled(t, 10*time.Second)
}

// L4, upstream 18: unstarted executions of a dead worker move to another one, in place if both refuse older
// attempts.
func TestWorkOfASilentWorkerMovesInPlaceWhenBothFence(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "move.me")
	testkit.Policy(t, b.store, action, 3)
	silent := testkit.Worker(t, b.store, "silent", beating, func(w *testkit.WorkerRow) {
		w.Capabilities = map[string]any{"attempt_fence": true, "max_concurrent_executions": 10}
	})
	wire := b.connect(t, "silent worker's queue")
	require.NoError(t, wire.DeclareWorker(testkit.Context(t), silent.ID, 5*time.Minute))
	b.engine(t, quickWatch)
	ids := b.request(t, "move.me", 3, `{}`)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'scheduled' AND worker = $1`,
			silent.ID) == 3
	}, 10*time.Second)
	saviour := b.fake(t, fence)
	b.silence(t, silent.ID)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM execution WHERE status = 'completed' AND worker = $1 AND attempt = 2`,
			saviour.ID) == 3
	}, 15*time.Second)
	require.Equal(t, 3, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = ANY ($1)`, ids),
		"the same rows")
	b.settled(t, 10*time.Second)
	require.Equal(t, 3, testkit.Count(t, b.store, `SELECT count(*) FROM execution`))
}

// Otherwise the row is closed and the work repeated as a new row: the worker
// could yet start the old one, and whatever it writes lands on a closed row.
func TestWorkOfASilentWorkerIsRepeatedAsANewRowWhenItCannotBeFenced(t *testing.T) {
	b := setup(t)
	testkit.Action(t, b.store, "move.me")
	silent := testkit.Worker(t, b.store, "silent", beating)
	wire := b.connect(t, "silent worker's queue")
	require.NoError(t, wire.DeclareWorker(testkit.Context(t), silent.ID, 5*time.Minute))
	b.engine(t, quickWatch)
	old := b.request(t, "move.me", 1, `{}`)[0]
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, old) == lifecycle.StatusScheduled },
		10*time.Second)
	saviour := b.fake(t, nil)
	b.silence(t, silent.ID)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'completed' AND worker = $1
			AND original_execution = $2 AND retry_reason = 'worker_unavailable'`, saviour.ID, old) == 1
	}, 15*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1 AND status = 'failed'
		AND result->>'failed_by' = 'execution_timeout_monitor' AND result->>'original_status' = 'scheduled'`, old))

	// The silent worker comes back and does as existing workers do.
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'running' WHERE id = $1`, old)
	testkit.Exec(t, b.store, `UPDATE execution SET status = 'completed', result = '{"late":true}' WHERE id = $1`, old)
	require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, b.store, old))
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM late_write WHERE execution = $1`, old))
}

// A dispatch that the broker returns, because the worker has no queue, goes to another worker. The worker is
// suspected until its queue is consumed again.
func TestAWorkerWithoutAQueueIsSuspectedAndItsWorkGoesElsewhere(t *testing.T) {
	b := setup(t)
	ctx := testkit.Context(t)
	testkit.Action(t, b.store, "move.me")
	saviour := b.fake(t, fence)
	b.engine(t, quickRetries)
	testkit.Eventually(t, func() bool { return testkit.Count(t, b.store, `SELECT count(*) FROM worker_probe`) == 1 },
		10*time.Second)
	bare := testkit.Worker(t, b.store, "bare", func(w *testkit.WorkerRow) { // not probed yet
		w.Capabilities = map[string]any{"attempt_fence": true, "max_concurrent_executions": 10}
	})
	time.Sleep(1100 * time.Millisecond) // batches may use workers that were read a second ago
	b.request(t, "move.me", 6, `{}`)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE status = 'completed' AND worker = $1`,
			saviour.ID) == 6
	}, 15*time.Second, "all of them, at the worker that has a queue")
	require.Positive(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE attempt = 2`),
		"in the same rows")
	require.Equal(t, 6, testkit.Count(t, b.store, `SELECT count(*) FROM execution`))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `SELECT count(*) FROM worker WHERE id = $1 AND suspect_since IS NOT NULL`, bare.ID))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM undelivered_dispatch`))
	for _, id := range b.request(t, "move.me", 5, `{}`) {
		testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusCompleted },
			10*time.Second)
	}
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE worker = $1`, bare.ID),
		"a suspect is given nothing")

	wire := b.connect(t, "bare worker comes back")
	require.NoError(t, wire.DeclareWorker(ctx, bare.ID, 5*time.Minute))
	back := wire.Consume(broker.ConsumerConfig{Queue: message.WorkerExecutionsQueue(bare.ID), Prefetch: 1})
	require.NoError(t, back.Start(ctx))
	t.Cleanup(back.Stop)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM worker WHERE id = $1 AND suspect_since IS NULL`,
			bare.ID) == 1
	}, 15*time.Second, "it is not suspected any more")
	b.settled(t, 10*time.Second)
}

// Upstream 12, 13: an unfinished claim is put back after half a minute, without any message.
func TestAStaleClaimIsPutBack(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "claim.stale")
	b.fake(t, nil)
	stale := testkit.Execution(t, b.store, action, func(e *testkit.ExecutionRow) {
		e.Status, e.Age = lifecycle.StatusScheduling, time.Minute
	}).ID
	young := testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusScheduling }).ID
	b.engine(t)
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, stale) == lifecycle.StatusCompleted },
		15*time.Second)
	require.Equal(t, lifecycle.StatusScheduling, testkit.StatusOf(t, b.store, young))
}

// S14, F24: the engine announces an unreported end with the contents of the row. A report that
// contradicts the row is recorded and changes nothing (F18).
func TestUnreportedEndsAreAnnouncedAndContradictingReportsRecorded(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "look for attempts that no message reported")
	b := setup(t)
	ctx := testkit.Context(t)
	action := testkit.Action(t, b.store, "end.silent")
	testkit.Policy(t, b.store, action, 1)
	worker := b.fake(t, func(c *testkit.FakeWorkerConfig) {
		c.Behave = func(context.Context, testkit.Job) testkit.Answer { return testkit.Answer{Never: true} }
	})
	wire := b.connect(t, "listener")
	tap := b.tap(t, message.KeyExecutionCompleted)
	b.engine(t)
	id := b.request(t, "end.silent", 1, `{}`)[0]
	testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusRunning },
		10*time.Second)
	testkit.Exec(t, b.store,
		`UPDATE execution SET status = 'completed', result = '{"n":7}' WHERE id = $1 AND worker = $2`, id, worker.ID)
	heard, err := message.Decode[message.ExecutionCompleted]((<-tap).Body)
	require.NoError(t, err)
	require.Equal(t, id, heard.Payload.ExecutionID)
	require.Equal(t, "completed", heard.Payload.Status)
	require.JSONEq(t, `{"n":7}`, string(heard.Payload.Result))

	body, err := message.New(message.TypeExecutionCompleted, message.ExecutionCompleted{
		ExecutionID: id, ActionRef: "end.silent", Status: "failed", CompletedAt: time.Now(),
	}, time.Now(), "liar").Encode()
	require.NoError(t, err)
	lie := broker.Message{
		ID: "lie", Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionCompleted,
		Type: message.TypeExecutionCompleted, Body: body,
	}
	wire.Publisher().Publish(ctx, []broker.Message{lie, lie, lie})
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM late_write WHERE execution = $1 AND refused_status = 'failed'`, id) == 1
	}, 10*time.Second)
	b.settled(t, 10*time.Second)
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, id))
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`), "three times said, once recorded")
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution`), "and not repeated")
}
