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

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/worker"
)

// house is a stage with three replicas that decide soon, on which scenes are
// played side by side: each has actions that only its own workers may run.
type house struct {
	*stage

	replicas []*process
	entering sync.RWMutex     // held for reading while a worker starts, which ends if it is disturbed then
	disturb  func(testing.TB) // what happens in the middle of every scene
}

// soon are the settings of a replica that misses a worker after four seconds and
// looks for what is late several times a second.
func soon() []string {
	return []string{
		"ATTUNE__EXECUTOR__NO_WORKERS=wait",
		"ATTUNE__EXECUTOR__HEARTBEAT_INTERVAL=1s", "ATTUNE__EXECUTOR__HEARTBEAT_STALENESS_MULTIPLIER=4",
		"ATTUNE__EXECUTOR__HEARTBEAT_CHECK_INTERVAL=300ms", "ATTUNE__EXECUTOR__HEALTH_CHECK_INTERVAL=500ms",
		"ATTUNE__EXECUTOR__TIMEOUT_CHECK_INTERVAL=200ms", "ATTUNE__EXECUTOR__SCHEDULED_TIMEOUT=2s",
		"ATTUNE__EXECUTOR__TIMEOUT_GRACE=1s",
		"ATTUNE__MESSAGE_QUEUE__RABBITMQ__RECONNECT_DELAY_SECS=1",
	}
}

// staleness is after how long these replicas miss a worker.
const staleness = 4 * time.Second

func newHouse(s *stage) *house {
	h := &house{stage: s}
	for range 3 {
		h.replicas = append(h.replicas, s.serve(soon()...))
	}
	h.disturb = func(t testing.TB) { s.closeConnections(t) }
	return h
}

// play plays all scenes at once, and asks that nothing is left of them.
func (h *house) play(t *testing.T, scenes map[string]func(*scene)) {
	t.Helper()
	t.Run("Scenes", func(t *testing.T) { //nolint:paralleltest // it waits for those in it
		for name, act := range scenes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				act(h.scene(t, name))
			})
		}
	})
	if t.Failed() {
		return // what is left then is no news
	}
	h.close()
}

// close asks that everything has ended once, is told and given back, that each
// loss was decided by one replica and once, and that no letter is left (L2, L3,
// L5, S8, S9).
func (h *house) close() {
	h.t.Helper()
	testkit.Eventually(h.t, func() bool { return h.left() == "0 executions, 0 in lines, 0 unpublished" },
		40*time.Second, "%s", lazily(h.left))
	h.over()
	require.Zero(h.t,
		h.count(`SELECT count(*) FROM (SELECT FROM lost_work GROUP BY execution, attempt HAVING count(*) > 1) twice`),
		"S9: one decision for each execution and attempt")
	require.Zero(h.t, h.count(`SELECT count(*) FROM dead_letter WHERE decision IS NULL`),
		"L5: no letter waits for a person: %s",
		lazily(func() string { return h.letters(`decision IS NULL`) }))
	for _, replica := range h.replicas {
		require.Zero(h.t, replica.stop(h.t))
	}
	letters, err := h.wire.QueueState(testkit.Context(h.t), message.QueueDeadLetter)
	require.NoError(h.t, err)
	require.Zero(h.t, letters.Ready, "L5: the queue of dead letters is empty")
}

// left says what is not over yet.
func (h *house) left() (text string) {
	h.t.Helper()
	require.NoError(h.t, h.store.Pool().QueryRow(testkit.Context(h.t), `SELECT concat_ws(', ',
		(SELECT count(*) || ' executions' || coalesce(string_agg(format(E'\n%s %s attempt %s worker %s %s', id, status, attempt, worker, action_ref), ''), '')
		 FROM execution e WHERE e.finished_status IS NULL OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id)),
		(SELECT count(*) FROM execution_admission_entry) || ' in lines',
		(SELECT count(*) || ' unpublished' || coalesce(string_agg(format(E'\n%s attempts %s claimed %s %s', routing_keys, attempts, claimed_at, last_error), ''), '') FROM outbox))`).Scan(&text))
	return text
}

// letters describes dead letters, for a test that fails.
func (s *stage) letters(where string) string {
	var text string
	err := s.store.Pool().QueryRow(testkit.Context(s.t), `SELECT coalesce(string_agg(concat_ws(' ', id, message_type, reason, execution, decision, detail), E'\n'), 'none')
		FROM dead_letter WHERE `+where).Scan(&text)
	return fmt.Sprint(text, err)
}

// said is how often the replicas have said something, all together.
func (h *house) said(text string) (times int) {
	for _, replica := range h.replicas {
		times += strings.Count(replica.log.String(), text)
	}
	return times
}

// scene is a part of a house with actions and workers of its own.
type scene struct {
	*stage

	house *house
	label string
	dir   string // where its actions write and wait
}

func (h *house) scene(t *testing.T, name string) *scene {
	own := *h.stage
	own.t, own.asked = t, nil
	return &scene{stage: &own, house: h, label: strings.ToLower(name), dir: t.TempDir()}
}

// disturb is what happens in the middle of every scene.
func (c *scene) disturb() {
	c.house.entering.Lock()
	defer c.house.entering.Unlock()
	c.house.disturb(c.t)
}

// undisturbed does what no scene may disturb meanwhile.
func (c *scene) undisturbed(do func()) {
	c.house.entering.RLock()
	defer c.house.entering.RUnlock()
	do()
}

// connectionsOf are the broker's names for the connections of a worker of the scene.
func (c *scene) connectionsOf(worker string) (names []string) {
	c.t.Helper()
	for _, connection := range c.connections(c.t) {
		if strings.HasPrefix(connection.Properties.Name, "w-"+c.label+"-"+worker) {
			names = append(names, connection.Name)
		}
	}
	return names
}

// hearsAgain waits until a worker whose connections were cut consumes with others and
// has said so, as placement wants it.
func (c *scene) hearsAgain(worker string, cut []string) {
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
	}, "%s says that it hears", name)
	c.await(func() bool { // it may have been cut off for long enough to be suspected
		return c.count(`SELECT count(*) FROM worker w JOIN worker_probe p ON p.worker = w.id
			WHERE w.id = $1 AND w.suspect_since IS NULL AND p.failures = 0 AND p.at > $2`, id, heard) == 1
	}, "%s is not suspected", name)
}

// action makes an action that is a process of its own: it writes down that it was
// started, and ends when the scene lets it.
func (c *scene) action(name string, options ...func(*testkit.ActionRow)) testkit.ActionRow {
	c.t.Helper()
	path := filepath.Join(c.dir, "run.sh")
	text := fmt.Sprintf("#!/bin/sh\ncd '%s' && echo \"$ATTUNE_EXEC_ID\" >> starts\nwhile [ -e run.sh ] && [ ! -e open ]; do sleep 0.1; done\n", c.dir)
	require.NoError(c.t, os.WriteFile(path, []byte(text), 0o700))
	return testkit.Action(c.t, c.store, c.label+"."+name, append([]func(*testkit.ActionRow){func(a *testkit.ActionRow) {
		a.Entrypoint, a.WorkerSelector = path, map[string]string{"scene": c.label}
	}}, options...)...)
}

// open lets the processes of the scene end.
func (c *scene) open() {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(filepath.Join(c.dir, "open"), nil, 0o600))
}

// starts is how often a process was started for an execution.
func (c *scene) starts(id int64) int { return c.allStarts()[id] }

func (c *scene) allStarts() map[int64]int {
	c.t.Helper()
	return startsIn(c.t, filepath.Join(c.dir, "starts"))
}

// begun waits until the processes of all of these run, which is a moment after their
// rows say so.
func (c *scene) begun(ids ...int64) {
	c.t.Helper()
	c.reach(attune.StatusRunning, ids...)
	path := filepath.Join(c.dir, "starts")
	c.await(func() bool {
		if _, err := os.Stat(path); err != nil {
			return false
		}
		return !slices.ContainsFunc(ids, func(id int64) bool { return c.starts(id) == 0 })
	}, "the processes of %d run", ids)
}

// retries has an action repeated so many times.
func retries(n int32) func(*testkit.ActionRow) {
	return func(a *testkit.ActionRow) { a.MaxRetries = n }
}

// unhurried has an action lie at a worker for as long as that likes.
func unhurried(a *testkit.ActionRow) {
	seconds := int32(120)
	a.ScheduledTimeoutSeconds = &seconds
}

// fake starts a worker of the scene as a stranger would write one; one that fences
// says that it refuses what was moved away from it.
func (c *scene) fake(fences bool, cfg testkit.FakeWorkerConfig) *testkit.FakeWorker {
	c.t.Helper()
	cfg.AMQPURL, cfg.DatabaseURL, cfg.HeartbeatInterval = c.AMQP, c.Database, 200*time.Millisecond
	cfg.Concurrency = max(cfg.Concurrency, 5)
	cfg.Capabilities = testkit.DefaultCapabilities(cfg.Concurrency)
	cfg.Capabilities["labels"] = map[string]string{"scene": c.label}
	cfg.Capabilities["attempt_fence"] = fences
	return testkit.StartFakeWorker(c.t, cfg)
}

// hire starts a worker of the scene in this process.
func (c *scene) hire(name string) *worker.Worker {
	c.t.Helper()
	c.house.entering.RLock()
	defer c.house.entering.RUnlock()
	name = "w-" + c.label + "-" + name
	w, err := worker.New(worker.Config{
		Name: name, MaxConcurrent: 4, HeartbeatInterval: 200 * time.Millisecond,
		Labels: map[string]string{"scene": c.label},
	}, worker.Deps{Store: c.store, Broker: c.connect(name), Logger: testkit.Logger(c.t)})
	require.NoError(c.t, err)
	require.NoError(c.t, w.Start(testkit.Context(c.t)))
	c.t.Cleanup(w.Stop)
	return w
}

// employ starts a worker of the scene as a process.
func (c *scene) employ(name string, settings ...string) *process {
	c.t.Helper()
	c.house.entering.RLock()
	defer c.house.entering.RUnlock()
	return c.process("w-"+c.label+"-"+name, append(settings, "ATTUNE__WORKER__LABELS__SCENE="+c.label,
		"ATTUNE__MESSAGE_QUEUE__RABBITMQ__RECONNECT_DELAY_SECS=1")...)
}

// await waits for what has to happen.
func (c *scene) await(condition func() bool, what string, args ...any) {
	c.t.Helper()
	testkit.Eventually(c.t, condition, 60*time.Second, "%s",
		lazily(func() string { return fmt.Sprintf(what, args...) + "\n" + c.tell() }))
}

// tell describes the executions of the scene, for a test that fails.
func (c *scene) tell() string {
	var text string
	err := c.store.Pool().QueryRow(testkit.Context(c.t), `
		SELECT coalesce(string_agg(concat_ws(' ', id, original_execution, status, attempt, worker, result::text), E'\n' ORDER BY id), 'none')
		FROM execution WHERE action_ref LIKE $1 || '.%'`, c.label).Scan(&text)
	return fmt.Sprint(text, err)
}

// reach waits until all of these have a status.
func (c *scene) reach(status attune.Status, ids ...int64) {
	c.t.Helper()
	c.await(func() bool {
		return c.count(`SELECT count(*) FROM execution WHERE id = ANY ($1) AND status = $2`, ids,
			string(status)) == len(ids)
	}, "all of %d are %s", ids, status)
}

// oneOf waits until an execution has one of these statuses, and returns which.
func (c *scene) oneOf(id int64, statuses ...attune.Status) (status attune.Status) {
	c.t.Helper()
	c.await(func() bool {
		status = testkit.StatusOf(c.t, c.store, id)
		return slices.Contains(statuses, status)
	}, "execution %d is one of %v", id, statuses)
	return status
}

// among lists those of some executions that have a status.
func (c *scene) among(ids []int64, status attune.Status) (some []int64) {
	c.t.Helper()
	for _, id := range ids {
		if testkit.StatusOf(c.t, c.store, id) == status {
			some = append(some, id)
		}
	}
	return some
}

// settled waits until everything of the scene has ended and been given back, and
// asks that it is told as the rows have it (S14).
func (c *scene) settled() {
	c.t.Helper()
	c.await(func() bool {
		return c.count(`SELECT count(*) FROM execution e WHERE action_ref LIKE $1 || '.%' AND (e.finished_status IS NULL OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id))`, c.label) == 0 &&
			c.count(`SELECT count(*) FROM execution_retry r JOIN execution e ON e.id = r.execution
				WHERE r.waiting AND e.action_ref LIKE $1 || '.%'`, c.label) == 0
	}, "L2, L3: everything of %s ends and is given back", c.label)
}

// requireTold asks that the end of an execution was told as its row has it.
func (c *scene) requireTold(ids ...int64) {
	c.t.Helper()
	for _, id := range ids {
		testkit.Eventually(c.t, func() bool { return len(c.told.of(id)) > 0 }, 20*time.Second,
			"S14: the end of execution %d is told", id)
		require.Equal(c.t, []string{string(testkit.StatusOf(c.t, c.store, id))}, c.told.of(id),
			"S14: what is told of execution %d", id)
	}
}

// course is how an execution and its repetitions went: the status and the attempt
// of each.
func (c *scene) course(id int64) (text string) {
	c.t.Helper()
	require.NoError(c.t, c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT string_agg(status || ' ' || attempt, ', ' ORDER BY id)
		FROM execution WHERE coalesce(original_execution, id) = $1`, id).Scan(&text))
	return text
}

// repetition is the newest repetition of an execution.
func (c *scene) repetition(id int64) int64 {
	c.t.Helper()
	return int64(c.count(`SELECT max(id) FROM execution WHERE original_execution = $1`, id))
}

// lost is what was decided about an execution that its worker did not do.
func (c *scene) lost(id int64) (text string) {
	c.t.Helper()
	require.NoError(c.t, c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT coalesce(string_agg(cause || ' ' || outcome, ', ' ORDER BY id), 'nothing')
		FROM lost_work WHERE execution = $1`, id).Scan(&text))
	return text
}

// result is what the row of an execution says.
func (c *scene) result(id int64) map[string]any {
	c.t.Helper()
	var raw []byte
	require.NoError(c.t,
		c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT result FROM execution WHERE id = $1`, id).Scan(&raw))
	var result map[string]any
	require.NoError(c.t, json.Unmarshal(raw, &result))
	return result
}

// late are the writes about an execution that were refused and kept.
func (c *scene) late(id int64) (text string) {
	c.t.Helper()
	require.NoError(c.t, c.store.Pool().QueryRow(testkit.Context(c.t), `SELECT coalesce(string_agg(old_status || ' stays, not ' || refused_status, ', ' ORDER BY id), 'none')
		FROM late_write WHERE execution = $1`, id).Scan(&text))
	return text
}

// until is a wait that ends with the job, for what fake workers do.
func until(gate <-chan struct{}) func(context.Context, testkit.Job) testkit.Answer {
	return func(ctx context.Context, _ testkit.Job) testkit.Answer {
		select {
		case <-ctx.Done():
		case <-gate:
		}
		return testkit.Answer{}
	}
}
