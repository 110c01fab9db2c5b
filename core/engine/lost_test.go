package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// Rules on core.alert react to the loss of a worker and of its executions, once on two replicas, with the published
// payload.
func TestRulesAnswerLostWork(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "lose work until rules answer")
	b := setup(t)
	answerAlerts(t, b)
	testkit.Action(t, b.store, "demo.long")
	lost := testkit.Worker(t, b.store, "lost", func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour })
	id := testkit.Execution(t, b.store,
		testkit.ActionRow{
			ID:  int64(testkit.Count(t, b.store, `SELECT id FROM action WHERE ref = 'demo.long'`)),
			Ref: "demo.long",
		},
		func(e *testkit.ExecutionRow) { e.Worker, e.Status = &lost.ID, lifecycle.StatusRunning }).ID
	watch := func(c *config.Config) {
		c.Executor.HeartbeatInterval, c.Executor.HeartbeatStalenessMultiplier = time.Second, 5
		c.Executor.TimeoutCheckInterval, c.Executor.HeartbeatCheckInterval = 300*time.Millisecond, 300*time.Millisecond
	}
	b.worker(t, "w1", 5)
	b.engine(t, watch)
	b.engine(t, watch)
	ran := func(correlation string) int {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM execution WHERE status = 'completed' AND config->>'message' = $1`, correlation)
	}
	correlations := []string{
		fmt.Sprintf("execution:%d:worker_unavailable", id),
		fmt.Sprintf("worker:%d:stale_heartbeat", lost.ID),
	}
	testkit.Eventually(t, func() bool { return ran(correlations[0]) == 1 && ran(correlations[1]) == 1 }, 30*time.Second)
	require.Equal(t, lifecycle.StatusAbandoned, testkit.StatusOf(t, b.store, id))
	b.settled(t, 10*time.Second)
	for _, correlation := range correlations {
		require.Equal(t, 1,
			testkit.Count(t, b.store, `SELECT count(*) FROM event WHERE payload->>'correlation_id' = $1`, correlation))
		require.Equal(t, 1,
			testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE config->>'message' = $1`, correlation))
	}
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE original_execution = $1`, id),
		"a lost execution is not retried unless its action says so")
}

// answerAlerts makes a rule that echoes the correlation_id of every core.alert event.
func answerAlerts(t *testing.T, b *bundle) {
	t.Helper()
	pack := testkit.Pack(t, b.store, "demo")
	testkit.Exec(t, b.store, `INSERT INTO trigger (ref, label) VALUES ('core.alert', 'Alert')`)
	testkit.Exec(t, b.store, `INSERT INTO rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, action_params, enabled)
		SELECT 'demo.alerts', $1, 'demo', 'x', a.id, a.ref, t.id, t.ref, '{"message":"{{ event.payload.correlation_id }}"}', true
		FROM action a, trigger t WHERE a.ref = 'core.echo' AND t.ref = 'core.alert'`, pack.ID)
}

// With the default times, on an adopted database: executions of a worker marked inactive are abandoned within 75 s,
// as published. Those of a killed worker are abandoned when its heartbeat is 90 s old. Rules receive both events
// within 15 s.
func TestLostWorkIsAbandonedWithinTheDefaultTimes(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "wait until a heartbeat is stale by the default times")
	for name, c := range map[string]struct {
		marked bool
		since  string // from when the time counts, on worker w
		within time.Duration
	}{
		"Inactive": {true, `w.updated`, 75 * time.Second},
		"Killed":   {false, `w.heartbeat_seen`, 95 * time.Second}, // 5 s for a busy machine
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupOn(t, testkit.AdoptedDatabase(t))
			answerAlerts(t, b)
			testkit.Action(t, b.store, "demo.long")
			b.engine(t)
			begin := time.Now()
			worker := b.fake(t, func(f *testkit.FakeWorkerConfig) {
				f.HeartbeatInterval = 30 * time.Second
				f.Behave = func(ctx context.Context, _ testkit.Job) testkit.Answer {
					<-ctx.Done()
					return testkit.Answer{Never: true}
				}
			})
			id := b.request(t, "demo.long", 1, `{}`)[0]
			b.untilStatus(t, lifecycle.StatusRunning, id)
			b.worker(t, "answers", 5)
			if !c.marked { // a replica believes in silence after it has seen the database for 90 s
				testkit.Eventually(t, func() bool { return time.Since(begin) > 100*time.Second }, time.Minute)
			}
			worker.Kill()
			killed := time.Now()
			if c.marked {
				testkit.Exec(t, b.store, `UPDATE worker SET status = 'inactive', updated = now() WHERE id = $1`,
					worker.ID)
			}
			testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusAbandoned },
				time.Minute)
			t.Logf("abandoned %.1f s after the worker was killed", time.Since(killed).Seconds())
			correlation := fmt.Sprintf("execution:%d:worker_unavailable", id)
			testkit.Eventually(t, func() bool {
				return testkit.Count(t, b.store,
					`SELECT count(*) FROM execution WHERE status = 'completed' AND config->>'message' = $1`,
					correlation) == 1
			}, 15*time.Second, "the rule has fired")
			var took, told float64
			require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `SELECT extract(epoch FROM e.updated - `+c.since+`)::float8,
				extract(epoch FROM v.created - e.updated)::float8 FROM execution e JOIN worker w ON w.id = e.worker, event v
				WHERE e.id = $1 AND v.payload->>'correlation_id' = $2`, id, correlation).Scan(&took, &told))
			t.Logf("abandoned %.1f s after %s, told %.1f s later", took, c.since, told)
			require.Less(t, took, c.within.Seconds())
			require.Less(t, told, 15.0)
			if !c.marked {
				require.GreaterOrEqual(t, took, 90.0, "not before its heartbeat is stale")
			}
		})
	}
}

// The published manual test, with short times: an execution whose message is in the queue of a dead worker fails,
// and its result has the published words, whichever loop decides first. Without another worker nothing waits.
func TestUnstartedExecutionsOfADeadWorkerFailInThePublishedWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ttl    time.Duration
		change func(*config.Config)
		die    string
		by     string
	}{
		"heartbeat": {
			5 * time.Minute, quickWatch, `UPDATE worker SET heartbeat_seen = now() - interval '1 hour'`,
			"execution_timeout_monitor",
		},
		"expiry": {
			3 * time.Second, quickRetries,
			`UPDATE worker SET cordoned = true, cordoned_at = now() - interval '1 hour'`, "dead_letter_handler",
		},
		"timeout": {
			5 * time.Minute, func(c *config.Config) {
				quickWatch(c)
				c.Executor.ScheduledTimeout = 10 * time.Second
			}, `WITH w AS (UPDATE worker SET suspect_since = now() + interval '1 hour', suspect_reason = 'its queue has no consumer')
				UPDATE action SET scheduled_timeout_seconds = 1`,
			"execution_timeout_monitor",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			testkit.Action(t, b.store, "manual.test")
			b.withoutConsumer(t, "stopped", c.ttl)
			b.engine(t, c.change)
			id := b.request(t, "manual.test", 1, `{}`)[0]
			testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) != lifecycle.StatusRequested },
				10*time.Second)
			testkit.Exec(t, b.store, c.die)
			testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id) == lifecycle.StatusFailed },
				20*time.Second)
			require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE id = $1
				AND concat_ws(' ', result->>'error', result->>'message') LIKE '%Worker queue TTL expired%' AND result->>'failed_by' = $2`, id, c.by))
			if name == "timeout" {
				return // the worker beats: retries wait for it
			}
			testkit.Eventually(t, func() bool {
				return testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE retry_reason = 'worker_unavailable' AND status = 'failed'
					AND result->>'error' = 'no workers available'`) == 1
			}, 20*time.Second, "executor.no_workers is fail")
			b.settled(t, 10*time.Second)
		})
	}
}

// Requested executions and created enforcements of another engine are continued at any age, and events that had a
// rule and got no enforcement unless they are too old. Nothing runs twice.
func TestWorkOfAnotherEngineIsContinued(t *testing.T) {
	b := setup(t)
	b.door(t, 1)
	testkit.Exec(t, b.store, `UPDATE event_matching SET since = now()`)
	testkit.Exec(t, b.store, `ALTER TABLE rule DISABLE TRIGGER USER`)
	testkit.Exec(t, b.store,
		`UPDATE rule SET created = now() - interval '90 days', updated = now() - interval '90 days'`)
	testkit.Exec(t, b.store, `ALTER TABLE rule ENABLE TRIGGER USER`)
	event := func(who string, age time.Duration) int64 {
		return int64(testkit.Count(t, b.store, `INSERT INTO event (trigger, trigger_ref, payload, created)
			SELECT id, ref, jsonb_build_object('who', $1::text), now() - make_interval(secs => $2) FROM trigger WHERE ref = 'demo.door' RETURNING id`,
			who, age.Seconds()))
	}
	enforcement := func(who, status string, event int64, age time.Duration) int64 {
		return int64(testkit.Count(t, b.store, `INSERT INTO enforcement (rule, rule_ref, trigger_ref, payload, event, created, config, status)
			SELECT id, ref, trigger_ref, '{}', $3, now() - make_interval(secs => $4), jsonb_build_object('message', $1::text), $2::enforcement_status_enum
			FROM rule WHERE ref = 'demo.rule0' RETURNING id`, who, status, event, age.Seconds()))
	}
	execution := func(who, status string, enforcement int64, age time.Duration) {
		testkit.Exec(t, b.store, `INSERT INTO execution (action, action_ref, config, enforcement, status, created, updated)
			SELECT id, ref, jsonb_build_object('message', $1::text), nullif($3, 0), $2::execution_status_enum, now() - make_interval(secs => $4), now() - make_interval(secs => $4)
			FROM action WHERE ref = 'core.echo'`, who, status, enforcement, age.Seconds())
	}
	const day = 24 * time.Hour
	event("event", time.Hour)
	event("late event", 25*time.Hour)
	done := event("done", time.Hour)
	execution("done", "completed", enforcement("done", "processed", done, time.Hour), time.Hour)
	enforcement("enforcement", "created", event("enforcement", 40*day), 40*day)
	enforcement("fresh enforcement", "created", event("fresh enforcement", 14*time.Minute), 14*time.Minute)
	execution("both", "requested", enforcement("both", "created", event("both", 3*day), 3*day), 3*day)
	execution("request", "requested", 0, 40*day)

	b.worker(t, "w1", 5)
	var log logBuffer
	b.logged(t, &log)
	ran := func() map[string]int {
		rows, err := b.store.Pool().Query(testkit.Context(t), `SELECT config->>'message', count(*) FILTER (WHERE status = 'completed')
			FROM execution GROUP BY 1`)
		require.NoError(t, err)
		defer rows.Close()
		got := map[string]int{}
		for rows.Next() {
			var who string
			var n int
			require.NoError(t, rows.Scan(&who, &n))
			got[who] = n
		}
		require.NoError(t, rows.Err())
		return got
	}
	// The rule makes its own message of an event; the rows bring theirs.
	want := map[string]int{"event": 1, "done": 1, "enforcement": 1, "fresh enforcement": 1, "both": 1, "request": 1}
	testkit.Eventually(t, func() bool { return fmt.Sprint(ran()) == fmt.Sprint(want) }, 60*time.Second)
	b.settled(t, 10*time.Second)
	require.Equal(t, 6, testkit.Count(t, b.store, `SELECT count(*) FROM execution`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM enforcement WHERE status = 'created'`))
	testkit.Eventually(t, func() bool {
		return log.count("Forgotten enforcements found") > 0 &&
			log.count("they are too old or their rule has changed since") > 0
	}, 20*time.Second)
	require.Equal(t, 1, log.count("Forgotten events found"))
	require.Equal(t, 2, log.count("events=1 first="), "one is matched, and one is too late")
}

// The existing API opens an inquiry about an ended execution: it writes a row, and later the answer
// and a message. The engine does not cancel it, and the answer neither releases a slot nor starts
// anything.
func TestAnInquiryOfTheAPIAboutAnEndedExecutionIsAnswered(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "ask.api")
	testkit.Policy(t, b.store, action, 1)
	b.fake(t, nil)
	b.engine(t)
	b.engine(t)
	ids := b.request(t, "ask.api", 2, `{}`)
	b.untilStatus(t, lifecycle.StatusCompleted, ids...)
	b.settled(t, 10*time.Second)
	var open []int64
	for _, id := range ids {
		open = append(open, int64(testkit.Count(t, b.store, `INSERT INTO inquiry (execution, prompt, timeout_at)
			VALUES ($1, 'fine?', now() + interval '1 hour') RETURNING id`, id)))
	}
	before := testkit.Count(t, b.store, `SELECT total_completed FROM queue_stats WHERE action_id = $1`, action.ID)
	b.request(t, "ask.api", 1, `{}`) // a release that is not to be taken for another
	b.settled(t, 10*time.Second)
	looks := time.Now().Add(2500 * time.Millisecond) // of the watch over questions
	testkit.Eventually(t, func() bool { return time.Now().After(looks) }, 10*time.Second)
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE status = 'pending'`))

	answered, late := open[0], open[1]
	testkit.Exec(t, b.store, `UPDATE inquiry SET status = 'responded', response = '{"approved": true}', responded_at = now(), updated = now() WHERE id = $1`, answered)
	body, err := message.New(message.TypeInquiryResponded, message.InquiryResponded{
		InquiryID: answered, ExecutionID: ids[0], Response: json.RawMessage(`{"approved": true}`),
		RespondedAt: time.Now().UTC(),
	}, time.Now(), "api").Encode()
	require.NoError(t, err)
	told := broker.Message{
		ID: "m", Exchange: message.ExchangeExecutions, RoutingKey: message.KeyInquiryResponded,
		Type: message.TypeInquiryResponded, Body: body,
	}
	for _, outcome := range b.connect(t, "api").Publisher().Publish(testkit.Context(t), []broker.Message{told, told}) {
		require.NoError(t, outcome.Err)
	}
	testkit.Exec(t, b.store, `UPDATE inquiry SET timeout_at = now() WHERE id = $1`, late)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE settled AND status = CASE WHEN id = $1 THEN 'responded' ELSE 'timeout' END::inquiry_status_enum`,
			answered) == 2
	}, 10*time.Second)
	b.settled(t, 10*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store,
		`SELECT count(*) FROM inquiry WHERE id = $1 AND response = '{"approved": true}'`, answered))
	require.Equal(t, 3, testkit.Count(t, b.store,
		`SELECT count(*) FROM execution WHERE status = 'completed' AND NOT coalesce(result ? '__inquiry_id', false)`))
	require.Equal(t, before+1, testkit.Count(t, b.store, `SELECT total_completed FROM queue_stats WHERE action_id = $1`,
		action.ID), "each is released once")
	require.Zero(t, testkit.Count(t, b.store, `SELECT active_count FROM queue_stats WHERE action_id = $1`, action.ID))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM late_write`))
}

// An inquiry made through the API about the task of a workflow keeps the workflow from
// nothing: neither while the question is open nor by how it ends.
func TestAWorkflowDoesNotWaitForInquiriesOfTheAPI(t *testing.T) {
	b := setup(t)
	const ref, text = "pk.asked", `
version: "1"
tasks:
  - {name: fine, action: pk.fine, next: [{when: "{{ succeeded() }}", do: [bad]}]}
  - {name: bad, action: pk.bad, next: [{when: "{{ failed() }}", do: [last]}]}
  - {name: last, action: pk.last}
`
	parsed, mistakes, _ := workflow.Parse(ref, []byte(text))
	require.Empty(t, mistakes)
	definition, err := parsed.JSON()
	require.NoError(t, err)
	for _, action := range []string{"pk.fine", "pk.bad", "pk.last"} {
		testkit.Action(t, b.store, action)
	}
	action := testkit.Action(t, b.store, ref)
	testkit.Exec(t, b.store, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition) VALUES ($2::text, $3, 'pk', $2::text, '1.0.0', $4) RETURNING id)
		UPDATE action SET workflow_def = d.id FROM d WHERE action.id = $1`, action.ID, ref, action.PackID, definition)
	testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: b.AMQP, DatabaseURL: b.Database,
		Behave: func(ctx context.Context, job testkit.Job) testkit.Answer {
			_, err := b.store.Pool().Exec(ctx, `INSERT INTO inquiry (execution, prompt) VALUES ($1, 'fine?')`,
				job.ExecutionID)
			if err != nil || job.ActionRef == "pk.bad" {
				return testkit.Answer{Status: "failed", Result: map[string]any{"error": fmt.Sprint("on purpose ", err)}}
			}
			return testkit.Answer{}
		},
	})
	b.engine(t)
	id := b.request(t, ref, 1, `{}`)[0]
	b.untilStatus(t, lifecycle.StatusCompleted, id)
	b.settled(t, 15*time.Second)
	require.Equal(t, 3, testkit.Count(t, b.store, `SELECT count(*) FROM execution WHERE parent = $1`, id),
		"each task once")
	require.Equal(t, 3, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry WHERE status = 'pending'`))
}
