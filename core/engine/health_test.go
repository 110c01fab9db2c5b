package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// logBuffer collects the log of replicas that run in this process.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logged starts a replica whose log is kept.
func (b *bundle) logged(t *testing.T, log *logBuffer) {
	t.Helper()
	logger, err := telemetry.NewLogger(log, "info", "text")
	require.NoError(t, err)
	e, err := engine.New(testkit.Context(t), b.config(), engine.Deps{Logger: logger, Version: "test"})
	require.NoError(t, err)
	require.NoError(t, e.Start(testkit.Context(t)))
	t.Cleanup(func() { require.NoError(t, e.Stop(context.Background())) })
}

func listening(c *config.Config) { c.Executor.HTTP.Listen = "127.0.0.1:0" }

func TestAReplicaReportsItself(t *testing.T) {
	b := setup(t)
	e := b.engine(t, listening)
	view := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: b.store}), nil, nil)
	var mine monitor.Replica
	reporting := []string{"recovery", "replica", "outbox", "retention", "timeouts"}
	testkit.Eventually(t, func() bool {
		all, err := view.Replicas(testkit.Context(t))
		require.NoError(t, err)
		if all.Total != 1 {
			return false // not reported yet
		}
		mine = all.List[0]
		for _, loop := range reporting {
			if mine.Loops[loop].IsZero() {
				return false // its first course is under way
			}
		}
		return len(mine.Problems) == 0 && len(mine.Details.Consumers) == 8 &&
			mine.Details.Consumers[message.QueueExecutionRequests] &&
			mine.Details.Consumers[message.QueueExecutionBatches]
	}, 20*time.Second, "the next report says that all is well")
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, e.ID().String(), mine.ID)
	require.Equal(t, host, mine.Host)
	require.Equal(t, os.Getpid(), mine.PID)
	require.Equal(t, "connected", mine.State)
	require.Equal(t, e.Addr(), mine.Details.HTTP)
	require.WithinDuration(t, time.Now(), mine.Started, testkit.TestTimeout)
	require.False(t, mine.Late)
	require.Len(t, mine.Details.Connections, 2)
	for _, loop := range reporting {
		require.Positive(t, mine.Details.Loops[loop].Timeout, loop)
	}
}

// A replica that falls silent without a goodbye is missed by one of the others,
// once.
func TestAVanishedReplicaIsMissedOnce(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "wait until a replica is missed")
	b := setup(t)
	var log logBuffer
	b.logged(t, &log)
	b.logged(t, &log)
	victim := startReplica(t, b.servers)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from engine_replica where pid = $1`, victim.Process.Pid) == 1
	}, 20*time.Second)
	require.NoError(t, victim.Process.Signal(syscall.SIGKILL))
	_ = victim.Wait()
	testkit.Eventually(t, func() bool { return log.count("Replica has vanished") > 0 }, 90*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store,
		`select count(*) from engine_replica where state = 'vanished' and pid = $1`, victim.Process.Pid))
	require.Equal(t, 1, log.count(fmt.Sprintf("pid=%d", victim.Process.Pid)))
	time.Sleep(12 * time.Second) // two more reports of each
	require.Equal(t, 1, log.count("Replica has vanished"), "no other replica logs it again")
}

// readiness asks /readyz.
func readiness(t *testing.T, e *engine.Engine) (int, map[string]string) {
	t.Helper()
	code, body := fetch(t, e, "/readyz")
	var answer struct {
		Checks []struct {
			Name   string `json:"name"`
			OK     bool   `json:"ok"`
			Detail string `json:"detail"`
		} `json:"checks"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	failing := map[string]string{}
	for _, check := range answer.Checks {
		if !check.OK {
			failing[check.Name] = check.Detail
		}
	}
	return code, failing
}

func fetch(t *testing.T, e *engine.Engine, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(testkit.Context(t), http.MethodGet, "http://"+e.Addr()+path, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// TestReadinessSaysWhichServerIsAway: F4, F5 and F7. A server that goes away or
// blocks is named with the time since when, the process lives on, and without a
// restart it is ready again.
//
//nolint:paralleltest,tparallel // one stack, one fault after the other
func TestReadinessSaysWhichServerIsAway(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "stop and block servers of a private stack")
	stack := testkit.NewStack(t)
	_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: stack.DatabaseURL(), Schema: testkit.Schema})
	require.NoError(t, err)
	b := &bundle{
		servers: servers{Database: stack.DatabaseURL(), AMQP: stack.AMQPURL(), Management: stack.ManagementURL()},
		store:   testkit.OpenStore(t, stack.DatabaseURL()),
	}
	e := b.engine(t, listening, func(c *config.Config) { c.MessageQueue.RabbitMQ.ReconnectDelay = reconnectDelay })
	well := func() {
		t.Helper()
		testkit.Eventually(t, func() bool { code, _ := readiness(t, e); return code == http.StatusOK }, 60*time.Second,
			"it is ready")
	}
	fails := func(check, detail string) {
		t.Helper()
		testkit.Eventually(t, func() bool {
			code, failing := readiness(t, e)
			return code == http.StatusServiceUnavailable && strings.Contains(failing[check], detail)
		}, 40*time.Second, "%s: %s", check, detail)
		code, _ := fetch(t, e, "/healthz")
		require.Equal(t, http.StatusOK, code, "the process lives")
	}
	well()

	t.Run("TheDatabaseIsAway", func(t *testing.T) {
		require.NoError(t, stack.KillPostgres(testkit.Context(t)))
		fails("database", "away since 20")
		_, failing := readiness(t, e)
		require.NotContains(t, failing, "broker")
		_, metrics := fetch(t, e, "/metrics")
		require.Contains(t, metrics, `attune_ready{check="database"} 0`)
		require.Regexp(t, `attune_database_away_seconds [0-9.e-]*[1-9]`, metrics)
		require.NoError(t, stack.StartPostgres(testkit.Context(t)))
		well()
		testkit.Eventually(t, func() bool {
			all, err := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: b.store}), nil,
				nil).Replicas(testkit.Context(t))
			return err == nil && all.Total == 1 && !all.List[0].Late && all.List[0].Details.DatabaseAway != nil
		}, 30*time.Second, "the reports go on, and tell of the outage")
	})

	t.Run("TheBrokerBlocks", func(t *testing.T) {
		_, err := stack.Rabbitmqctl(testkit.Context(t), "set_vm_memory_high_watermark", "0.00001")
		require.NoError(t, err)
		// A connection hears of it when it publishes.
		testkit.Action(t, b.store, "block.noop", func(a *testkit.ActionRow) { a.Entrypoint = "core.noop" })
		testkit.Exec(t, b.store, `insert into outbox (message_ids, exchanges, routing_keys, message_types, bodies, traces)
			values (array['00000000-0000-0000-0000-000000000001'], array['attune.notifications'], array['x'], array['x'], array['{}'::bytea], array[''])`)
		fails("broker", "blocked since 20")
		_, failing := readiness(t, e)
		require.Contains(t, failing["broker"], "low on memory")
		_, metrics := fetch(t, e, "/metrics")
		require.Regexp(t, `attune_broker_blocked_seconds [0-9.e-]*[1-9]`, metrics)
		_, err = stack.Rabbitmqctl(testkit.Context(t), "set_vm_memory_high_watermark", "absolute", "1GB")
		require.NoError(t, err)
		well()
		_, metrics = fetch(t, e, "/metrics")
		require.Contains(t, metrics, "attune_broker_blocked_seconds 0\n")
	})

	t.Run("TheBrokerIsAway", func(t *testing.T) {
		_, err := stack.Rabbitmqctl(testkit.Context(t), "eval", "mnesia:sync_log().")
		require.NoError(t, err)
		require.NoError(t, stack.KillBroker(testkit.Context(t)))
		fails("broker", "disconnected since 20")
		fails("consumer "+message.QueueExecutionRequests, "not subscribed")
		require.NoError(t, stack.StartBroker(testkit.Context(t)))
		well()
	})
}

// A migration may require newer programs while a replica runs. The replica is then not ready, and its health page
// says what to do.
func TestAReplicaIsNotReadyOnASchemaThatNeedsANewerProgram(t *testing.T) {
	b := setup(t)
	e := b.engine(t, listening)
	schema := func() (detail string, ok bool) {
		for _, check := range e.Ready(testkit.Context(t)) {
			if check.Name == "schema" {
				return check.Detail, check.OK
			}
		}
		return "no check", false
	}
	_, ok := schema()
	require.True(t, ok)
	testkit.Exec(t, b.store, `insert into attune_schema_needs values (9090, 9090, '0.99.0')`)
	testkit.Eventually(t, func() bool {
		detail, ok := schema()
		return !ok && strings.Contains(detail, "needs a program of at least 0.99.0")
	}, 30*time.Second)
	testkit.Exec(t, b.store, `delete from attune_schema_needs where version = 9090`)
	testkit.Eventually(t, func() bool { _, ok := schema(); return ok }, 30*time.Second)
}
