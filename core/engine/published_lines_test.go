package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/lab/testkit"
)

const (
	ttlDocument          = "worker-queue-ttl"
	availabilityDocument = "worker-availability"
	heartbeatsDocument   = "worker-heartbeats"
	queuesDocument       = "queues-and-policies"
)

// quickSilence counts a worker as dead after ten seconds, which is longer than a busy machine pauses.
func quickSilence(c *config.Config) {
	quickRetries(c)
	c.Executor.HeartbeatInterval, c.Executor.HeartbeatStalenessMultiplier = time.Second, 10
	c.Executor.HeartbeatCheckInterval, c.Executor.TimeoutCheckInterval = 300*time.Millisecond, 300*time.Millisecond
}

// silent makes the last heartbeat of all workers as old as it is after a long sleep.
func (b *bundle) silent(t *testing.T) {
	t.Helper()
	testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() - interval '1 hour'`)
}

// The published manual test of the time to live of worker queues, for each way of stopping workers: stopped by
// `docker compose stop`, killed, or connected without consuming. All assertions of the document hold except one:
// stopped workers are never given the execution, so its message cannot expire. The long form uses the default times
// and the real sleep.
func TestThePublishedManualTestLineByLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop func(t *testing.T, b *bundle, workers []*testkit.FakeWorker)
		fail string // a pattern for result.error
		by   string // a pattern for result.failed_by
		ttl  bool   // whether the result has the words of the document
	}{
		"Asked": {
			stop: func(t *testing.T, _ *bundle, workers []*testkit.FakeWorker) {
				for _, w := range workers {
					require.NoError(t, w.Stop(testkit.Context(t)))
				}
			},
			fail: `^no workers available$`, by: `^execution_scheduler$`,
		},
		"Killed": {
			stop: func(t *testing.T, b *bundle, workers []*testkit.FakeWorker) {
				for _, w := range workers {
					w.Kill()
				}
				if !testkit.Slow() { // however long the next command takes to start
					testkit.Exec(t, b.store, `UPDATE worker SET heartbeat_seen = now() + interval '1 hour'`)
				}
			},
			fail: `^Worker queue TTL expired: heartbeat timeout before the worker started the execution$`,
			by:   `^execution_timeout_monitor$`, ttl: true,
		},
		"TakingNothing": {
			stop: func(t *testing.T, b *bundle, workers []*testkit.FakeWorker) {
				for _, w := range workers {
					require.NoError(t, w.Stop(testkit.Context(t)))
				}
				ttl := 500 * time.Millisecond
				if testkit.Slow() {
					ttl = 5 * time.Minute
				}
				b.withoutConsumer(t, "worker-stuck", ttl)
			},
			fail: `^(Worker queue TTL expired$|Execution timeout: worker did not pick up task within )`,
			by:   `^(dead_letter_handler|execution_timeout_monitor)$`, ttl: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupOn(t, testkit.AdoptedDatabase(t))
			var workers []*testkit.FakeWorker
			for _, service := range []string{"worker-shell", "worker-python", "worker-node"} {
				workers = append(workers, b.fake(t, func(f *testkit.FakeWorkerConfig) { f.Name = service }))
			}
			o := newOperator(t, b, func(c *config.Config) {
				if !testkit.Slow() {
					quickSilence(c)
				}
			})
			o.docker = func(args string) string {
				require.Equal(t, "compose stop worker-shell worker-python worker-node", args)
				c.stop(t, b, workers)
				return ""
			}
			o.sleep = func(seconds string) {
				if testkit.Slow() {
					pause, err := time.ParseDuration(seconds + "s")
					require.NoError(t, err)
					select {
					case <-t.Context().Done():
					case <-time.After(pause):
					}
					return
				}
				var id int64
				_, err := fmt.Sscan(o.id, &id)
				require.NoError(t, err)
				if name == "Killed" {
					b.untilStatus(t, lifecycle.StatusScheduled, id)
					b.silent(t)
				}
				testkit.Eventually(t, func() bool { return testkit.StatusOf(t, b.store, id).Terminal() },
					30*time.Second)
			}
			o.manualTest(t, c.fail, c.by, c.ttl)
		})
	}
}

// manualTest runs the six steps and asserts the published outcome of each.
func (o *operator) manualTest(t *testing.T, fail, by string, ttl bool) {
	t.Helper()
	for i, s := range steps(t) {
		if strings.HasPrefix(s.command, "rabbitmqadmin ") {
			needs(t, "rabbitmqadmin")
		}
		printed := o.run(s.command)
		switch i + 1 {
		case 2: // Create execution
			var answer struct {
				Data struct {
					ID     int64  `json:"id"`
					Status string `json:"status"`
				} `json:"data"`
			}
			require.NoError(t, json.Unmarshal([]byte(printed), &answer), printed)
			require.Equal(t, "requested", answer.Data.Status)
			o.id = fmt.Sprint(answer.Data.ID)
		case 4:
			require.Equal(t, `Should be "failed"`, s.should)
			require.Equal(t, "\"failed\"\n", printed)
		case 5:
			require.Equal(t, `Should contain "Worker queue TTL expired"`, s.should)
			var result map[string]any
			require.NoError(t, json.Unmarshal([]byte(printed), &result))
			require.Regexp(t, fail, result["error"])
			require.Regexp(t, by, result["failed_by"])
			require.Equal(t, ttl, strings.Contains(printed, "Worker queue TTL expired"), printed)
		case 6:
			require.Equal(t, "Should show 0 messages (processed and removed)", s.should)
			empty := regexp.MustCompile(`(?m)^\|\s*attune\.dlx\.queue\s*\|\s*0\s*\|$`)
			testkit.Eventually(t, func() bool { return empty.MatchString(o.run(s.command)) }, 30*time.Second,
				"the broker's statistics follow")
		default:
			require.Zero(t, o.code, "%s", s.title)
		}
	}
}

// With a configured secret, published commands without a token are refused like in the published API. With the
// published header they are answered.
func TestPublishedLinesNeedTheirToken(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "ask every published line for its token")
	const secret = "the_secret_of_the_published_api"
	b := setupOn(t, testkit.OwnDatabase(t))
	o := newOperator(t, b, func(c *config.Config) { c.Security.JWTSecret = secret })
	b.fake(t, nil) // without a worker a request fails at once
	parent := b.request(t, "core.echo", 1, `{}`)[0]
	b.untilStatus(t, lifecycle.StatusCompleted, parent)
	testkit.Exec(t, b.store, `INSERT INTO identity (id, login) VALUES (77, 'ann')`)
	o.env = append(o.env, "TOKEN="+accessToken(t, secret, 77))
	all := steps(t)
	var answer struct {
		Data struct {
			ID       int64 `json:"id"`
			Executor int64 `json:"executor"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(o.run(all[1].command)), &answer))
	require.Equal(t, int64(77), answer.Data.Executor)
	o.id = fmt.Sprint(answer.Data.ID)
	b.untilStatus(t, lifecycle.StatusCompleted, answer.Data.ID)
	get, _, _ := strings.Cut(all[3].command, " | jq")
	require.JSONEq(t, `{"error": {"code": 401, "message": "Missing authentication token"}}`, o.run(get))
	require.Equal(t, "null\n", o.run(all[3].command))
	require.Equal(t, "\"completed\"\n",
		o.run(strings.Replace(all[3].command, " | jq", ` -H "Authorization: Bearer $TOKEN" | jq`, 1)))
}

// The log lines that operators use to watch workers and dead letters, as published.
func TestPublishedLinesOfOperators(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "run every published line; other tests run the published statements")
	needs(t, "rabbitmqadmin")
	b := setupOn(t, testkit.AdoptedDatabase(t))
	testkit.Exec(t, b.store, `ALTER SEQUENCE worker_id_seq RESTART WITH 1`)
	b.withoutConsumer(t, "worker-shell", 500*time.Millisecond)
	o := newOperator(t, b, quickSilence)
	o.docker = func(args string) string {
		switch args {
		case "compose ps", "compose ps executor":
			return "worker-shell   running\nexecutor   running\n"
		case "compose logs -f executor":
			return o.log.String()
		case "compose restart executor", "compose restart executor worker-shell":
			o.stop()
			o.start()
		case "compose down":
			o.stop()
		case "compose up -d":
			o.start()
		case "compose logs -f worker-shell": // it has none
		default:
			require.Fail(t, "unknown command of docker", args)
		}
		return ""
	}
	id := b.request(t, "core.echo", 1, `{}`)[0]
	b.untilStatus(t, lifecycle.StatusFailed, id)
	testkit.Exec(t, b.store, `UPDATE worker SET cordoned = true`)
	until := func(line, pattern string) {
		t.Helper()
		wanted := regexp.MustCompile(pattern)
		testkit.Eventually(t, func() bool { return wanted.MatchString(o.run(line)) }, 30*time.Second, "%s prints %s",
			line, pattern)
	}

	watch := lines(t, "Monitoring")
	until(watch[0], `\| attune\.dlx\.queue +\| 0 +\|`)
	require.Contains(t, o.run(watch[1]), fmt.Sprintf(`"id":%d,`, id))

	rate := lines(t, "High DLQ Rate")
	require.Contains(t, o.run(rate[0]), "worker-shell")
	o.run(rate[1])
	require.Regexp(t, `worker-shell\W+active\W+2`, o.run(rate[2]))
	until(rate[3], `\| worker\.1\.executions +\| 0 +\|`)

	handler := lines(t, "DLQ Not Processing")
	require.Contains(t, o.run(handler[0]), "executor")
	require.Contains(t, o.run(handler[1]), fmt.Sprintf("Received dead letter for execution %d", id))
	file := filepath.Join(o.home, "config.docker.yaml")
	require.NoError(t, os.WriteFile(file, []byte(section(t, ttlDocument, "Configuration")), 0o600))
	require.Regexp(t, `(?s)enabled: true.*exchange: attune.dlx.*ttl_ms: 86400000`, o.run(handler[2]))
	o.run(handler[3])
	until(watch[0], `attune\.dlx\.queue`)

	expiring := lines(t, "Messages Not Expiring")
	o.run(expiring[0])
	require.NotZero(t, o.code, "rabbitmqadmin cannot show a queue; it lists them")
	require.Regexp(t, `"x-dead-letter-exchange": "attune.dlx", "x-message-ttl": 500`,
		o.run(`rabbitmqadmin -f raw_json list queues name arguments | jq -c '.[] | select(.name == "worker.1.executions")' | sed 's/,/, /g; s/:/: /g'`))
	o.run(expiring[1])
	until(watch[0], `attune\.dlx\.queue`)

	for _, line := range lines(t, "View DLQ Messages") {
		require.Contains(t, o.run(line), "No items", "the handler has taken it into the ledger")
	}
	o.run(lines(t, "Manually Purge DLQ")[0])
	require.Zero(t, o.code)

	adjust := lines(t, "Adjust TTL Without Restart")
	for _, line := range adjust[:2] {
		o.run(line)
		require.Zero(t, o.code, line)
	}
	testkit.Eventually(t, func() bool { return !strings.Contains(o.run(rate[3]), "worker.1.executions") },
		30*time.Second)
	o.run(adjust[2])
	until(watch[0], `attune\.dlx\.queue`)
}

// Published configurations load without a warning and have the documented meaning.
func TestPublishedConfigurationsLoad(t *testing.T) {
	t.Parallel()
	for _, document := range []string{ttlDocument, availabilityDocument} {
		path := filepath.Join(t.TempDir(), "config.docker.yaml")
		require.NoError(t, os.WriteFile(path, []byte(section(t, document, "Configuration")), 0o600))
		cfg, err := config.Load(path,
			[]string{"ATTUNE__DATABASE__URL=postgres://h/d", "ATTUNE__MESSAGE_QUEUE__URL=amqp://h"})
		require.NoError(t, err)
		require.Equal(t, 5*time.Minute, cfg.MessageQueue.RabbitMQ.WorkerQueueTTL)
		require.Equal(t, 5*time.Minute, cfg.Executor.ScheduledTimeout)
		require.Equal(t, time.Minute, cfg.Executor.TimeoutCheckInterval)
		require.Equal(t, 30*time.Second, cfg.Executor.HealthCheckInterval)
		require.Equal(t, 10*time.Second, cfg.Worker.HeartbeatInterval)
		require.Equal(t, 30*time.Second, cfg.Worker.ShutdownTimeout)
		require.True(t, cfg.MessageQueue.RabbitMQ.DeadLetter.Enabled)
	}
}

// The statements of the document about heartbeats, as they are written.
func TestPublishedStatementsAboutHeartbeats(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "run the published statements about heartbeats; another test has those about queues")
	b := setupOn(t, testkit.AdoptedDatabase(t))
	testkit.Worker(t, b.store, "live", beating)
	stale := testkit.Worker(t, b.store, "stale", func(w *testkit.WorkerRow) { w.HeartbeatAge = time.Hour })
	old := testkit.Worker(t, b.store, "old",
		func(w *testkit.WorkerRow) { w.Status, w.HeartbeatAge = "inactive", 240*time.Hour })
	testkit.Exec(t, b.store, `ALTER TABLE worker DISABLE TRIGGER USER`)
	testkit.Exec(t, b.store, `UPDATE worker SET updated = now() - interval '10 days' WHERE id = $1`, old.ID)
	testkit.Exec(t, b.store, `ALTER TABLE worker ENABLE TRIGGER USER`)
	action := testkit.Action(t, b.store, "demo.kept")
	kept := testkit.Execution(t, b.store, action,
		func(e *testkit.ExecutionRow) { e.Worker, e.Status = &old.ID, lifecycle.StatusCompleted }).ID
	o := newOperator(t, b, func(c *config.Config) {
		quickSilence(c)
		c.Retention.InactiveWorkers = 8760 * time.Hour // only the statement deletes
	})
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM worker WHERE id = $1 AND status = 'inactive'`,
			stale.ID) == 1
	}, 30*time.Second)
	statement := func(heading string) string {
		return o.run("psql -c \"" + section(t, heartbeatsDocument, heading) + "\"")
	}
	require.NotContains(t, statement("Check Active Workers"), "stale")
	require.Contains(t, statement("Check Active Workers"), "live")
	recent := statement("Check Recent Deactivations")
	require.Contains(t, recent, "stale")
	require.NotContains(t, recent, "old")
	require.Regexp(t, `inactive\W+2`, statement("Count Workers by Status"))
	require.NoError(t, os.WriteFile(filepath.Join(o.home, "executor.log"), []byte(o.log.String()), 0o600))
	require.Contains(t, o.run(section(t, heartbeatsDocument, "Stale Workers Not Being Deactivated")),
		"Worker heartbeat monitor started (check interval: 0.3s, staleness threshold: 10s)")
	statement("Too Many Inactive Workers")
	require.Zero(t, o.code)
	require.Equal(t, 2, testkit.Count(t, b.store, `SELECT count(*) FROM worker`), "the one of ten days ago is gone")
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b.store, kept), "its executions stay")
}

// The statements of the document about queues, as they are written, while one of three
// executions runs and two wait.
func TestPublishedStatementsAboutQueues(t *testing.T) {
	b := setupOn(t, testkit.AdoptedDatabase(t))
	action := testkit.Action(t, b.store, "demo.one")
	testkit.Policy(t, b.store, action, 1)
	finish := make(chan struct{})
	b.fake(t, func(f *testkit.FakeWorkerConfig) {
		f.Behave = func(ctx context.Context, _ testkit.Job) testkit.Answer {
			select {
			case <-ctx.Done():
			case <-finish:
			}
			return testkit.Answer{}
		}
	})
	o := newOperator(t, b, nil)
	ids := b.request(t, "demo.one", 3, `{}`)
	statement := func(heading string) string {
		text := section(t, queuesDocument, heading)
		if !strings.HasPrefix(text, "psql") {
			text = "psql -c \"" + text + "\""
		}
		return strings.ReplaceAll(text, "<action_id>", fmt.Sprint(action.ID))
	}
	until := func(heading, pattern string) {
		t.Helper()
		wanted := regexp.MustCompile(pattern)
		testkit.Eventually(t, func() bool { return wanted.MatchString(o.run(statement(heading))) }, 30*time.Second,
			"%s", pattern)
		require.Zero(t, o.code)
	}
	until("Active queues", fmt.Sprintf(`\b%d\W+2\W+1\W+1\b`, action.ID))
	until("Queue Not Progressing", `running`)
	for _, id := range ids {
		require.Regexp(t, fmt.Sprintf(`\b%d\W+(running|requested)`, id), o.run(statement("Queue Not Progressing")))
	}
	require.Regexp(t, `\b2\W+1\W+2\b`, o.run(statement("Memory Exhaustion")))
	require.NotContains(t, o.run(statement("Stuck queues")), "demo.one")
	stuck := regexp.MustCompile(`demo\.one\W+2\W+1`)
	testkit.Eventually(t, func() bool { // the engine may write the row once more
		testkit.Exec(t, b.store, `UPDATE queue_stats SET last_updated = now() - interval '11 minutes'`)
		return stuck.MatchString(o.run(statement("Stuck queues")))
	}, 30*time.Second)
	close(finish)
	b.untilStatus(t, lifecycle.StatusCompleted, ids...)
	until("Queue throughput", `demo\.one\W+3\W+3\W+100\b`)
}

// accessToken is a token of a person, as the published API issues it.
func accessToken(t *testing.T, key string, identity int64) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": fmt.Sprint(identity), "login": "ann", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"token_type": secret.AccessToken,
	}).SignedString([]byte(key))
	require.NoError(t, err)
	return text
}
