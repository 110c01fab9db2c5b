package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/wire"
	"github.com/attune-go/attune/lab/testkit"
)

// beforeProgram names the program of the release before this tree, which `make upgrade` builds.
const beforeProgram = "ATTUNE_TEST_BEFORE_PROGRAM"

// upgrade is one database and one virtual host with programs of two releases and a load.
type upgrade struct {
	environ []string
	pool    *pgxpool.Pool

	mu   sync.Mutex
	sent map[string]int // requests by action, and events as "event"; guarded by mu
}

// loadState has a workflow, a limited action and a rule.
const loadState = `
	INSERT INTO policy (ref, pack, pack_ref, action, action_ref, method, threshold, name)
	SELECT 'core.three', p.id, p.ref, a.id, a.ref, 'enqueue', 3, 'Three' FROM pack p, action a
	WHERE p.ref = 'core' AND a.ref = 'core.sleep';
	INSERT INTO "trigger" (ref, pack, pack_ref, label) SELECT 'core.tick', id, ref, 'Tick' FROM pack WHERE ref = 'core';
	INSERT INTO rule (ref, pack, pack_ref, label, action, action_ref, "trigger", trigger_ref, conditions, action_params,
		enabled)
	SELECT 'core.on_tick', p.id, p.ref, 'On a tick', a.id, a.ref, t.id, t.ref, '{}', '{"message": "{{ event.payload.n }}"}',
		true FROM pack p, action a, "trigger" t WHERE p.ref = 'core' AND a.ref = 'core.echo' AND t.ref = 'core.tick';
	INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
	SELECT 'core.flow', id, ref, 'Flow', '1.0.0', '{"version": "1.0.0", "tasks": [
		{"name": "first", "action": "core.echo", "next": [{"when": "{{ succeeded() }}", "do": ["each"]}]},
		{"name": "each", "action": "core.echo", "with_items": "{{ parameters.items }}", "concurrency": 2,
			"input": {"message": "{{ item }}"}, "next": [{"do": ["last"]}]},
		{"name": "last", "action": "core.noop"}]}' FROM pack WHERE ref = 'core';
	INSERT INTO action (ref, pack, pack_ref, label, entrypoint, workflow_def)
	SELECT d.ref, d.pack, d.pack_ref, d.label, 'flow.yaml', d.id FROM workflow_definition d WHERE d.ref = 'core.flow'`

// loads are the requests of one cycle of the load.
var loads = []struct{ action, config, end string }{
	{"core.echo", `{"message": "x"}`, "completed"},
	{"core.sleep", `{"seconds": 0.05}`, "completed"},
	{"core.flow", `{"items": ["a", "b", "c"]}`, "completed"},
	{"core.fail", `{}`, "failed"},
}

// Two adjacent releases serve one database under load, in both directions: the new program migrates the schema
// while the old one serves, new replicas and workers join, old ones leave, and the other way round without a
// `migrate down`. No request is lost, and none starts twice.
func TestAdjacentReleasesServeOneDatabase(t *testing.T) {
	t.Parallel()
	before := os.Getenv(beforeProgram)
	if before == "" {
		t.Skip("run make upgrade, which builds the release before")
	}
	now, ctx := testkit.Program(t), testkit.Context(t)
	u := &upgrade{sent: map[string]int{}}
	database, host := testkit.EmptyDatabase(t), testkit.VHost(t)
	u.environ = append(os.Environ(), "ATTUNE__DATABASE__URL="+database, "ATTUNE__MESSAGE_QUEUE__URL="+host,
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="+testkit.ManagementURL(t), "ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0",
		"ATTUNE__EXECUTOR__TIMEOUT_CHECK_INTERVAL=1")
	u.command(t, before, "migrate", "up")
	var err error
	u.pool, err = installation.Open(ctx, database, "attune", "load")
	require.NoError(t, err)
	t.Cleanup(u.pool.Close)
	_, err = u.pool.Exec(ctx, loadState)
	require.NoError(t, err)
	from := u.version(t)

	replicas := []*exec.Cmd{u.start(t, before, "serve"), u.start(t, before, "serve")}
	workers := []*exec.Cmd{u.worker(t, before, "before-1"), u.worker(t, before, "before-2")}
	u.awaitReplicas(t, 2)
	stop := u.load(t, host)
	u.goOn(t, "the release before alone")

	u.command(t, now, "migrate", "up")
	t.Logf("schema %d → %d", from, u.version(t))
	require.Greater(t, u.version(t), from)
	u.goOn(t, "the release before on the new schema")
	newReplicas := []*exec.Cmd{u.start(t, now, "serve"), u.start(t, now, "serve")}
	u.awaitReplicas(t, 4)
	u.goOn(t, "replicas of both releases")
	u.leave(t, replicas[0], syscall.SIGKILL)
	u.leave(t, replicas[1], syscall.SIGTERM)
	u.goOn(t, "new replicas with the workers of the release before")
	newWorkers := []*exec.Cmd{u.worker(t, now, "now-1"), u.worker(t, now, "now-2")}
	u.goOn(t, "workers of both releases")
	for _, w := range workers {
		u.leave(t, w, syscall.SIGTERM)
	}
	u.goOn(t, "the new release alone")

	// Back, without migrate down.
	replicas = []*exec.Cmd{u.start(t, before, "serve"), u.start(t, before, "serve")}
	workers = []*exec.Cmd{u.worker(t, before, "before-1"), u.worker(t, before, "before-2")}
	u.goOn(t, "both releases again")
	u.leave(t, newReplicas[0], syscall.SIGKILL)
	u.leave(t, newReplicas[1], syscall.SIGTERM)
	u.goOn(t, "the release before with workers of both")
	for _, w := range newWorkers {
		u.leave(t, w, syscall.SIGTERM)
	}
	u.goOn(t, "the release before alone on the new schema")

	stop()
	u.settled(t)
	u.assess(t)
	for _, cmd := range slices.Concat(workers, replicas) {
		u.leave(t, cmd, syscall.SIGTERM)
	}
}

func (u *upgrade) command(t *testing.T, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(testkit.Context(t), program, args...)
	cmd.Env = u.environ
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", program, args, out)
}

// start starts a program that runs until it leaves.
func (u *upgrade) start(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stderr = u.environ, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // a second call returns at once
		if t.Failed() {
			t.Logf("log of %s %v, process %d:\n%s", program, args, cmd.Process.Pid, log.String())
		}
	})
	return cmd
}

func (u *upgrade) worker(t *testing.T, program, name string) *exec.Cmd {
	t.Helper()
	return u.start(t, program, "worker", "--name", name, "--concurrency", "8")
}

// leave ends a process; one that drains ends without an error.
func (u *upgrade) leave(t *testing.T, cmd *exec.Cmd, signal syscall.Signal) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(signal))
	if err := cmd.Wait(); signal == syscall.SIGTERM {
		require.NoError(t, err, "%v", cmd.Args)
	}
}

func (u *upgrade) count(t *testing.T, sql string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, u.pool.QueryRow(testkit.Context(t), sql, args...).Scan(&n))
	return n
}

func (u *upgrade) version(t *testing.T) int64 {
	t.Helper()
	return u.count(t, "SELECT max(version_id) FROM attune_schema_version")
}

// awaitReplicas waits until n replicas report that they are connected.
func (u *upgrade) awaitReplicas(t *testing.T, n int64) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return u.count(t, `SELECT count(*) FROM engine_replica WHERE state = 'connected'
			AND last_seen > now() - interval '20 seconds'`) >= n
	}, time.Minute)
}

// goOn waits until requests of every kind that were sent in this phase have ended.
func (u *upgrade) goOn(t *testing.T, phase string) {
	t.Helper()
	begun, last := time.Now(), u.count(t, "SELECT coalesce(max(id), 0) FROM execution")
	testkit.Eventually(t, func() bool {
		return u.count(t, `SELECT count(*) FROM (SELECT action_ref FROM execution WHERE id > $1 AND parent IS NULL
			AND status IN ('completed', 'failed') GROUP BY action_ref HAVING count(*) >= 60) a`, last) == int64(len(loads))
	}, 2*time.Minute, "%s: work goes on", phase)
	t.Logf("%s: 60 requests of each kind ended after %s", phase, time.Since(begun).Round(time.Second))
}

// load sends requests and events as the services of an installation do, until the returned function is called.
func (u *upgrade) load(t *testing.T, host string) (stop func()) {
	t.Helper()
	conn, err := amqp.Dial(host)
	require.NoError(t, err)
	channel, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, channel.Confirm(false))
	publisher := wire.Publisher{Channel: channel, Service: "api"}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- u.send(ctx, publisher) }()
	var once sync.Once
	end := func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, conn.Close())
		})
	}
	t.Cleanup(end)
	return end
}

// send ends only between two requests, so that every row has its message.
func (u *upgrade) send(ctx context.Context, to wire.Publisher) error {
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	whole := context.WithoutCancel(ctx)
	for {
		for _, l := range loads {
			if err := u.request(whole, to, l.action, l.config); err != nil {
				return err
			}
		}
		if err := u.emit(whole, to); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
	}
}

func (u *upgrade) request(ctx context.Context, to wire.Publisher, ref, config string) error {
	var id, action int64
	err := u.pool.QueryRow(ctx, `INSERT INTO execution (action, action_ref, config)
		SELECT id, ref, $2::text::jsonb FROM action WHERE ref = $1 RETURNING id, action`, ref, config).Scan(&id, &action)
	if err != nil {
		return fmt.Errorf("insert a request of %s: %w", ref, err)
	}
	u.note(ref)
	return to.Send(ctx, wire.Executions, "execution.requested", "ExecutionRequested", map[string]any{
		"execution_id": id, "action_id": action, "action_ref": ref, "parent_id": nil, "enforcement_id": nil,
		"config": json.RawMessage(config),
	})
}

func (u *upgrade) emit(ctx context.Context, to wire.Publisher) error {
	var id, trigger int64
	err := u.pool.QueryRow(ctx, `INSERT INTO event ("trigger", trigger_ref, payload)
		SELECT id, ref, '{"n": 1}' FROM "trigger" WHERE ref = 'core.tick' RETURNING id, "trigger"`).Scan(&id, &trigger)
	if err != nil {
		return fmt.Errorf("insert an event: %w", err)
	}
	u.note("event")
	return to.Send(ctx, wire.Events, "event.created", "EventCreated", map[string]any{
		"event_id": id, "trigger_id": trigger, "trigger_ref": "core.tick", "sensor_id": nil, "sensor_ref": nil,
		"payload": map[string]any{"n": 1}, "config": nil,
	})
}

func (u *upgrade) note(kind string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sent[kind]++
}

// settled waits until nothing is under way.
func (u *upgrade) settled(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return u.count(t, `SELECT (SELECT count(*) FROM execution
				WHERE status IN ('requested', 'scheduling', 'scheduled', 'running', 'canceling'))
			+ (SELECT count(*) FROM enforcement WHERE status = 'created')
			+ (SELECT count(*) FROM event v WHERE NOT EXISTS (SELECT FROM enforcement f WHERE f.event = v.id))
			+ (SELECT count(*) FROM execution_holder) + (SELECT count(*) FROM outbox)`) == 0
	}, 3*time.Minute, "everything ends")
}

// assess fails the test unless every request ended once.
func (u *upgrade) assess(t *testing.T) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	total := 0
	for _, l := range loads {
		total += u.sent[l.action]
		require.EqualValues(t, u.sent[l.action], u.count(t, `SELECT count(*) FROM execution
			WHERE action_ref = $1 AND status = $2::text::execution_status_enum AND parent IS NULL AND enforcement IS NULL`,
			l.action, l.end), l.action)
	}
	require.EqualValues(t, u.sent["event"], u.count(t,
		"SELECT count(*) FROM execution WHERE enforcement IS NOT NULL AND status = 'completed'"), "events")
	require.EqualValues(t, 5*u.sent["core.flow"], u.count(t,
		"SELECT count(*) FROM execution WHERE parent IS NOT NULL AND status = 'completed'"), "tasks of workflows")
	require.Zero(t, u.count(t, "SELECT count(*) FROM execution WHERE original_execution IS NOT NULL"), "retries")
	require.Zero(t, u.count(t, "SELECT count(*) FROM dead_letter"), "dead letters")
	require.EqualValues(t, 4, u.count(t, `SELECT count(DISTINCT w.name) FROM worker w JOIN execution e ON e.worker = w.id`),
		"workers that ran something")
	// Each execution began once: its history has one change to running.
	require.Zero(t, u.count(t, `SELECT count(*) FROM (SELECT entity_id FROM execution_history
		WHERE new_values ->> 'status' = 'running' GROUP BY entity_id HAVING count(*) > 1) twice`), "started twice")
	violations, err := doctor.Invariants(testkit.Context(t), u.pool)
	require.NoError(t, err)
	require.Empty(t, violations)
	t.Logf("%d requests and %d events, all ended as expected", total, u.sent["event"])
}
