package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/testkit"
)

// cluster is a stage with three replicas with short timeouts. Its scenarios run in parallel: each has actions that
// only its own workers may run.
type cluster struct {
	*stage

	replicas []*process
	entering sync.RWMutex     // held for reading during the start of a worker, which must not be disturbed
	disturb  func(testing.TB) // the fault in every scenario
}

// soon are the settings of a replica that soon notices a dead worker and overdue executions. Heartbeats may be older
// than a busy machine pauses.
func soon() []string {
	return []string{
		"ATTUNE__EXECUTOR__NO_WORKERS=wait", "ATTUNE__EXECUTOR__HEARTBEAT_INTERVAL=1s",
		fmt.Sprintf("ATTUNE__EXECUTOR__HEARTBEAT_STALENESS_MULTIPLIER=%d", staleness/time.Second),
		"ATTUNE__EXECUTOR__HEARTBEAT_CHECK_INTERVAL=300ms", "ATTUNE__EXECUTOR__HEALTH_CHECK_INTERVAL=500ms",
		"ATTUNE__EXECUTOR__TIMEOUT_CHECK_INTERVAL=200ms", "ATTUNE__EXECUTOR__SCHEDULED_TIMEOUT=2s",
		"ATTUNE__EXECUTOR__TIMEOUT_GRACE=1s", "ATTUNE__MESSAGE_QUEUE__RABBITMQ__WORKER_QUEUE_TTL_MS=1000",
		"ATTUNE__MESSAGE_QUEUE__RABBITMQ__RECONNECT_DELAY_SECS=1",
	}
}

// staleness is the heartbeat age at which these replicas count a worker as dead.
const staleness = 10 * time.Second

func newCluster(s *stage) *cluster {
	h := &cluster{stage: s}
	for range 3 {
		h.replicas = append(h.replicas, s.serve(soon()...))
	}
	h.disturb = func(t testing.TB) { s.closeConnections(t) }
	return h
}

// play runs all scenarios in parallel and checks that nothing remains of them.
func (h *cluster) play(t *testing.T, scenarios map[string]func(*scenario)) {
	t.Helper()
	t.Run("Scenes", func(t *testing.T) { //nolint:paralleltest // it waits for those in it
		for name, act := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				act(h.scenario(t, name))
			})
		}
	})
	if t.Failed() {
		return // a failed scenario leaves executions
	}
	h.close()
}

// close checks that every execution has ended once, is published and released, that one replica decided each loss
// once, and that no dead letter remains (L2, L3, L5, S8, S9).
func (h *cluster) close() {
	h.t.Helper()
	testkit.Eventually(h.t, func() bool { return h.left() == "0 executions, 0 in lines, 0 unpublished" },
		40*time.Second, "%s", lazily(h.left))
	h.over()
	require.Zero(h.t,
		h.count(`SELECT count(*) FROM (SELECT FROM lost_work GROUP BY execution, attempt HAVING count(*) > 1) twice`),
		"S9: one decision for each execution and attempt")
	require.Zero(h.t, h.count(`SELECT count(*) FROM dead_letter WHERE decision IS NULL`),
		"L5: no dead letter is undecided: %s",
		lazily(func() string { return h.deadLetters(`decision IS NULL`) }))
	for _, replica := range h.replicas {
		require.Zero(h.t, replica.stop(h.t))
	}
	deadLetters, err := h.wire.QueueState(testkit.Context(h.t), message.QueueDeadLetter)
	require.NoError(h.t, err)
	require.Zero(h.t, deadLetters.Ready, "L5: the queue of dead letters is empty")
}

// left describes open executions, queue entries and unpublished messages.
func (h *cluster) left() (text string) {
	h.t.Helper()
	require.NoError(h.t, h.store.Pool().QueryRow(testkit.Context(h.t), `SELECT concat_ws(', ',
		(SELECT count(*) || ' executions' || coalesce(string_agg(format(E'\n%s %s attempt %s worker %s %s', id, status, attempt, worker, action_ref), ''), '')
		 FROM execution e WHERE e.finished_status IS NULL OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id)),
		(SELECT count(*) FROM execution_admission_entry) || ' in lines',
		(SELECT count(*) || ' unpublished' || coalesce(string_agg(format(E'\n%s attempts %s claimed %s %s', routing_keys, attempts, claimed_at, last_error), ''), '') FROM outbox))`).Scan(&text))
	return text
}

// deadLetters describes dead letters, for a test that fails.
func (s *stage) deadLetters(where string) string {
	var text string
	err := s.store.Pool().QueryRow(testkit.Context(s.t), `SELECT coalesce(string_agg(concat_ws(' ', id, message_type, reason, execution, decision, detail), E'\n'), 'none')
		FROM dead_letter WHERE `+where).Scan(&text)
	return fmt.Sprint(text, err)
}

// logged counts the log lines of all replicas with a text.
func (h *cluster) logged(text string) (times int) {
	for _, replica := range h.replicas {
		times += strings.Count(replica.log.String(), text)
	}
	return times
}

// scenario is a part of a cluster with its own actions and workers.
type scenario struct {
	*stage

	cluster *cluster
	label   string
	dir     string // where its actions write and wait
}

func (h *cluster) scenario(t *testing.T, name string) *scenario {
	own := *h.stage
	own.t, own.asked = t, nil
	return &scenario{stage: &own, cluster: h, label: strings.ToLower(name), dir: t.TempDir()}
}

// disturb causes the fault in the scenario.
func (c *scenario) disturb() {
	c.cluster.entering.Lock()
	defer c.cluster.entering.Unlock()
	c.cluster.disturb(c.t)
}

// undisturbed calls do without faults of other scenarios.
func (c *scenario) undisturbed(do func()) {
	c.cluster.entering.RLock()
	defer c.cluster.entering.RUnlock()
	do()
}

// connectionsOf returns the broker's names of the connections of a worker.
func (c *scenario) connectionsOf(worker string) (names []string) {
	c.t.Helper()
	for _, connection := range c.connections(c.t) {
		if strings.HasPrefix(connection.Properties.Name, "w-"+c.label+"-"+worker) {
			names = append(names, connection.Name)
		}
	}
	return names
}

// awaitReconnect waits until a worker with cut connections consumes with new ones and placement accepts it.
func (c *scenario) awaitReconnect(worker string, cut []string) {
	c.t.Helper()
	name := "w-" + c.label + "-" + worker
	c.await(func() bool {
		now := c.connectionsOf(worker)
		return len(now) > 0 && !slices.ContainsFunc(now, func(name string) bool { return slices.Contains(cut, name) })
	}, "%s is connected anew", name)
	id := c.count(`SELECT id FROM worker WHERE name = $1`, name)
	c.await(func() bool {
		state, err := c.wire.QueueState(testkit.Context(c.t), message.WorkerExecutionsQueue(int64(id)))
		return err == nil && state.Consumers == 1
	}, "%s consumes", name)
	heard := time.Now()
	c.await(func() bool {
		return c.count(`SELECT count(*) FROM worker WHERE id = $1 AND status = 'active' AND heartbeat_seen > $2`, id,
			heard) == 1
	}, "%s sends a heartbeat", name)
	c.await(func() bool { // the cut may have been long enough for a suspicion
		return c.count(`SELECT count(*) FROM worker w JOIN worker_probe p ON p.worker = w.id
			WHERE w.id = $1 AND w.suspect_since IS NULL AND p.failures = 0 AND p.at > $2`, id, heard) == 1
	}, "%s is not suspected", name)
}

// action inserts an action with a process: it records its start and ends after open. Its executions may wait long at
// a worker.
func (c *scenario) action(name string, options ...func(*testkit.ActionRow)) testkit.ActionRow {
	c.t.Helper()
	path := filepath.Join(c.dir, "run.sh")
	text := fmt.Sprintf("#!/bin/sh\ncd '%s' && echo \"$ATTUNE_EXEC_ID\" >> starts\nwhile [ -e run.sh ] && [ ! -e open ]; do sleep 0.1; done\n", c.dir)
	require.NoError(c.t, os.WriteFile(path, []byte(text), 0o700))
	return testkit.Action(c.t, c.store, c.label+"."+name, append([]func(*testkit.ActionRow){func(a *testkit.ActionRow) {
		a.Entrypoint, a.WorkerSelector = path, map[string]string{"scene": c.label}
		unhurried(a)
	}}, options...)...)
}

// open lets the processes of the scenario end.
func (c *scenario) open() {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(filepath.Join(c.dir, "open"), nil, 0o600))
}

// starts counts the processes of an execution.
func (c *scenario) starts(id int64) int { return c.allStarts()[id] }

func (c *scenario) allStarts() map[int64]int {
	c.t.Helper()
	return startsIn(c.t, filepath.Join(c.dir, "starts"))
}

// begun waits until the processes of these executions run, which is shortly after the update of their rows.
func (c *scenario) begun(ids ...int64) {
	c.t.Helper()
	c.reach(lifecycle.StatusRunning, ids...)
	path := filepath.Join(c.dir, "starts")
	c.await(func() bool {
		if _, err := os.Stat(path); err != nil {
			return false
		}
		return !slices.ContainsFunc(ids, func(id int64) bool { return c.starts(id) == 0 })
	}, "the processes of %d run", ids)
}

// retries sets the retries of an action.
func retries(n int32) func(*testkit.ActionRow) {
	return func(a *testkit.ActionRow) { a.MaxRetries = n }
}

// unhurried lets executions of an action wait long at a worker.
func unhurried(a *testkit.ActionRow) { a.ScheduledTimeoutSeconds = new(int32(120)) }

// hurried has the engine take executions from a worker that does not start them within the setting's two seconds.
func hurried(a *testkit.ActionRow) { a.ScheduledTimeoutSeconds = nil }

// fake starts a foreign worker of the scenario. With fences it announces that it fences attempts.
func (c *scenario) fake(fences bool, cfg testkit.FakeWorkerConfig) *testkit.FakeWorker {
	c.t.Helper()
	cfg.AMQPURL, cfg.DatabaseURL, cfg.HeartbeatInterval = c.AMQP, c.Database, 200*time.Millisecond
	cfg.Concurrency = max(cfg.Concurrency, 5)
	cfg.Capabilities = testkit.DefaultCapabilities(cfg.Concurrency)
	cfg.Capabilities["labels"] = map[string]string{"scene": c.label}
	cfg.Capabilities["attempt_fence"] = fences
	return testkit.StartFakeWorker(c.t, cfg)
}

// startWorker starts a worker of the scenario in this process.
func (c *scenario) startWorker(name string) *worker.Worker {
	c.t.Helper()
	c.cluster.entering.RLock()
	defer c.cluster.entering.RUnlock()
	name = "w-" + c.label + "-" + name
	return c.startWorkerWith(worker.Config{
		Name: name, MaxConcurrent: 4, HeartbeatInterval: 200 * time.Millisecond,
		Labels: map[string]string{"scene": c.label},
	})
}

// startWorkerProcess starts a worker of the scenario as a process.
func (c *scenario) startWorkerProcess(name string, settings ...string) *process {
	c.t.Helper()
	c.cluster.entering.RLock()
	defer c.cluster.entering.RUnlock()
	return c.process("w-"+c.label+"-"+name, append(settings, "ATTUNE__WORKER__LABELS__SCENE="+c.label,
		"ATTUNE__MESSAGE_QUEUE__RABBITMQ__RECONNECT_DELAY_SECS=1")...)
}

// await waits for a condition.
func (c *scenario) await(condition func() bool, what string, args ...any) {
	c.t.Helper()
	testkit.Eventually(c.t, condition, 60*time.Second, "%s",
		lazily(func() string { return fmt.Sprintf(what, args...) + "\n" + c.describe() }))
}

// describe describes the executions of the scenario.
func (c *scenario) describe() string {
	var text string
	err := c.store.Pool().QueryRow(testkit.Context(c.t), `
		SELECT coalesce(string_agg(concat_ws(' ', id, original_execution, status, attempt, worker, result::text), E'\n' ORDER BY id), 'none')
		FROM execution WHERE action_ref LIKE $1 || '.%'`, c.label).Scan(&text)
	return fmt.Sprint(text, err)
}

// reach waits until all executions have a status.
func (c *scenario) reach(status lifecycle.Status, ids ...int64) {
	c.t.Helper()
	c.await(func() bool {
		return c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = $2`, ids,
			string(status)) == len(ids)
	}, "all of %d are %s", ids, status)
}

// oneOf waits until an execution has one of the statuses, and returns it.
func (c *scenario) oneOf(id int64, statuses ...lifecycle.Status) (status lifecycle.Status) {
	c.t.Helper()
	c.await(func() bool {
		status = testkit.StatusOf(c.t, c.store, id)
		return slices.Contains(statuses, status)
	}, "execution %d is one of %v", id, statuses)
	return status
}

// among returns the executions with a status.
func (c *scenario) among(ids []int64, status lifecycle.Status) (some []int64) {
	c.t.Helper()
	for _, id := range ids {
		if testkit.StatusOf(c.t, c.store, id) == status {
			some = append(some, id)
		}
	}
	return some
}

// settled waits until all executions of the scenario have ended and released their slots.
func (c *scenario) settled() {
	c.t.Helper()
	c.await(func() bool {
		return c.count(`SELECT count(*) FROM execution e WHERE action_ref LIKE $1 || '.%' AND (e.finished_status IS NULL OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id))`, c.label) == 0 &&
			c.count(`SELECT count(*) FROM execution_retry r JOIN execution e ON e.id = r.execution
				WHERE r.waiting AND e.action_ref LIKE $1 || '.%'`, c.label) == 0
	}, "L2, L3: all executions of %s end and release their slots", c.label)
}

// attempts returns the status and the attempt of an execution and of its retries.
func (c *scenario) attempts(id int64) (text string) {
	c.t.Helper()
	require.NoError(c.t, c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT string_agg(status || ' ' || attempt, ', ' ORDER BY id)
		FROM execution WHERE coalesce(original_execution, id) = $1`, id).Scan(&text))
	return text
}

// retry returns the newest retry of an execution.
func (c *scenario) retry(id int64) int64 {
	c.t.Helper()
	return int64(c.count(`SELECT max(id) FROM execution WHERE original_execution = $1`, id))
}

// lost returns the decisions about a lost execution.
func (c *scenario) lost(id int64) (text string) {
	c.t.Helper()
	require.NoError(c.t, c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT coalesce(string_agg(cause || ' ' || outcome, ', ' ORDER BY id), 'nothing')
		FROM lost_work WHERE execution = $1`, id).Scan(&text))
	return text
}

// result returns the result of an execution.
func (c *scenario) result(id int64) map[string]any {
	c.t.Helper()
	var raw []byte
	require.NoError(c.t,
		c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT result FROM execution WHERE id = $1`, id).Scan(&raw))
	var result map[string]any
	require.NoError(c.t, json.Unmarshal(raw, &result))
	return result
}

// late returns the refused late writes of an execution.
func (c *scenario) late(id int64) (text string) {
	c.t.Helper()
	require.NoError(c.t, c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT coalesce(string_agg(old_status || ' stays, not ' || refused_status, ', ' ORDER BY id), 'none')
		FROM late_write WHERE execution = $1`, id).Scan(&text))
	return text
}

// until makes jobs of fake workers wait for the gate.
func until(gate <-chan struct{}) func(context.Context, testkit.Job) testkit.Answer {
	return func(ctx context.Context, _ testkit.Job) testkit.Answer {
		select {
		case <-ctx.Done():
		case <-gate:
		}
		return testkit.Answer{}
	}
}
