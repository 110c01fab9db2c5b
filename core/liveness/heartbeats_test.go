package liveness

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

const stale = 90 * time.Second

// journal keeps log lines of the form: LEVEL message.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) logger() *slog.Logger { return slog.New(&journalHandler{journal: j}) }

type journalHandler struct {
	slog.Handler
	journal *journal
}

func (h *journalHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *journalHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }

func (h *journalHandler) Handle(_ context.Context, r slog.Record) error {
	h.journal.mu.Lock()
	defer h.journal.mu.Unlock()
	h.journal.lines = append(h.journal.lines, r.Level.String()+" "+r.Message)
	return nil
}

func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// silent sets the age of the last heartbeat of a worker.
func silent(t *testing.T, st *store.Store, id int64, age time.Duration) {
	t.Helper()
	testkit.Exec(t, st, `UPDATE worker SET heartbeat_seen = now() - make_interval(secs => $2) WHERE id = $1`, id,
		age.Seconds())
}

func beat(t *testing.T, st *store.Store, id int64) {
	t.Helper()
	testkit.Exec(t, st, `UPDATE worker SET last_heartbeat = clock_timestamp() WHERE id = $1`, id)
}

func statusOf(t *testing.T, st *store.Store, id int64) (status string, deactivated bool) {
	t.Helper()
	require.NoError(t, st.Pool().QueryRow(testkit.Context(t),
		`SELECT status, deactivated_at IS NOT NULL FROM worker WHERE id = $1`, id).Scan(&status, &deactivated))
	return status, deactivated
}

// observed returns the count and the sum of a histogram.
func observed(t *testing.T, histogram prometheus.Collector) (count uint64, sum float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(histogram)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	h := families[0].GetMetric()[0].GetHistogram()
	return h.GetSampleCount(), h.GetSampleSum()
}

func newHeartbeats(t *testing.T, st *store.Store) (*Heartbeats, *journal, *Metrics) {
	t.Helper()
	j, m := &journal{}, NewMetrics(prometheus.NewRegistry())
	return NewHeartbeats(HeartbeatsConfig{Interval: time.Hour, StaleAfter: stale}, st, j.logger(), m, nil), j, m
}

// Workers of any role whose heartbeats have ended, or never began, are marked
// inactive with the documented lines. Other workers stay unchanged.
func TestWorkersWithoutHeartbeatsAreMarkedInactive(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `INSERT INTO trigger (ref, label) VALUES ('core.alert', 'Alert')`)
	status := func(s string) func(*testkit.WorkerRow) { return func(w *testkit.WorkerRow) { w.Status = s } }
	ids := map[string]int64{}
	for name, c := range map[string]struct {
		age    time.Duration
		option func(*testkit.WorkerRow)
	}{
		"never":    {0, func(w *testkit.WorkerRow) { w.NoHeartbeat = true }},
		"stale":    {1289 * time.Second, func(*testkit.WorkerRow) {}},
		"sensor":   {91 * time.Second, func(w *testkit.WorkerRow) { w.Role = "sensor" }},
		"busy":     {92 * time.Second, status("busy")},
		"error":    {93 * time.Second, status("error")},
		"fresh":    {30 * time.Second, func(*testkit.WorkerRow) {}},
		"drains":   {30 * time.Second, func(w *testkit.WorkerRow) { w.Draining = true }},
		"inactive": {time.Hour, status("inactive")},
		"cordoned": {30 * time.Second, func(w *testkit.WorkerRow) { w.Cordoned = true }},
	} {
		ids[name] = testkit.Worker(t, st, name, c.option).ID
		if c.age > 0 {
			silent(t, st, ids[name], c.age)
		}
	}
	h, j, m := newHeartbeats(t, st)
	require.NoError(t, h.tick(testkit.Context(t)))
	for name, want := range map[string]string{
		"never": "inactive true", "stale": "inactive true", "sensor": "inactive true", "busy": "inactive true",
		"error": "inactive true",
		"fresh": "active false", "drains": "active false", "inactive": "inactive false", "cordoned": "active false",
	} {
		status, deactivated := statusOf(t, st, ids[name])
		require.Equal(t, want, fmt.Sprint(status, " ", deactivated), name)
	}
	lines := j.take()
	requireStale(t, lines, "stale", ids["stale"], 1289)
	require.Contains(t, lines,
		fmt.Sprintf("WARN Worker never (ID: %d) has no heartbeat, marking as inactive", ids["never"]))
	require.Equal(t, "INFO Deactivated 5 worker(s) with stale heartbeats", lines[len(lines)-1])
	require.Len(t, lines, 6)
	require.InDelta(t, 5, testutil.ToFloat64(m.deactivated), 0)
	count, sum := observed(t, m.downtime)
	require.EqualValues(t, 4, count, "one of the five never sent a heartbeat")
	require.InDelta(t, 1289+91+92+93, sum, 240)
	require.InDelta(t, 6, testutil.ToFloat64(m.workers.WithLabelValues("inactive")), 0)
	require.InDelta(t, 1, testutil.ToFloat64(m.workers.WithLabelValues("active")), 0)
	require.InDelta(t, 1, testutil.ToFloat64(m.workers.WithLabelValues("draining")), 0)

	alerts := func(what, name string) int {
		return testkit.Count(t, st, `SELECT count(*) FROM event WHERE trigger_ref = 'core.alert' AND payload->>'failure_type' = $1
			AND payload->>'component_ref' = $2 AND payload->>'correlation_id' = 'worker:' || (payload->>'component_id') || ':' || substr($1, 8)
			AND payload->>'severity' = 'error' AND payload->>'category' = 'worker_health' AND payload->'details'->>'reason' = substr($1, 8)
			AND (SELECT count(*) FROM jsonb_object_keys(payload)) = 11`, what, name)
	}
	for name := range ids {
		require.Equal(t, name == "never", alerts("worker_missing_heartbeat", name) == 1, name)
		require.Equal(t, slices.Contains([]string{"stale", "sensor", "busy", "error"}, name),
			alerts("worker_stale_heartbeat", name) == 1, name)
	}
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM event WHERE payload->>'component_type' = 'sensor_worker'
		AND payload->>'worker_role' = 'sensor' AND (payload->'details'->>'heartbeat_age_seconds')::int BETWEEN 91 AND 150
		AND (payload->'details'->>'staleness_threshold_seconds')::int = $1`, int(stale.Seconds())))

	require.NoError(t, h.tick(testkit.Context(t)))
	require.Empty(t, j.take(), "no line is logged twice")
	require.Equal(t, 5, testkit.Count(t, st, `SELECT count(*) FROM event`), "once")
	require.InDelta(t, 30, testutil.ToFloat64(m.age), 60, "of the workers that are not inactive")

	gone, cancel := context.WithCancel(testkit.Context(t))
	cancel()
	require.Error(t, h.tick(gone))
	require.Zero(t, testutil.CollectAndCount(m.workers), "unknown values are not shown")
	require.Zero(t, testutil.CollectAndCount(m.age))
}

// A worker that cannot be marked has the published line, and delays no other.
func TestAWorkerThatCannotBeMarkedDelaysNoOther(t *testing.T) {
	st := testkit.Store(t)
	odd, other := testkit.Worker(t, st, "odd").ID, testkit.Worker(t, st, "other").ID
	silent(t, st, odd, time.Hour)
	silent(t, st, other, time.Hour)
	testkit.Exec(t, st, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'it is odd'; END $$`)
	testkit.Exec(t, st, `CREATE TRIGGER refuse BEFORE UPDATE OF deactivated_at ON worker FOR EACH ROW
		WHEN (OLD.name = 'odd') EXECUTE FUNCTION refuse()`)
	h, j, _ := newHeartbeats(t, st)
	require.NoError(t, h.tick(testkit.Context(t)))
	status, _ := statusOf(t, st, other)
	require.Equal(t, "inactive", status)
	status, _ = statusOf(t, st, odd)
	require.Equal(t, "active", status)
	lines := j.take()
	require.True(t, slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "ERROR Failed to deactivate worker odd (stale heartbeat): ") &&
			strings.Contains(line, "it is odd")
	}), "%v", lines)
}

// requireStale requires the line about a worker whose heartbeat has this age, or is older by what the test took since.
func requireStale(t *testing.T, lines []string, name string, id int64, seconds int) {
	t.Helper()
	before := fmt.Sprintf("WARN Worker %s (ID: %d) heartbeat is stale (", name, id)
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, before) })
	require.GreaterOrEqual(t, at, 0, "%s in %v", before, lines)
	var age int
	_, err := fmt.Sscanf(strings.TrimPrefix(lines[at], before), "%ds old), marking as inactive", &age)
	require.NoError(t, err, lines[at])
	require.InDelta(t, seconds+60, age, 60, lines[at])
}

func TestTheMonitorLogsItsSettings(t *testing.T) {
	j := &journal{}
	h := NewHeartbeats(HeartbeatsConfig{Interval: time.Minute, StaleAfter: stale}, testkit.Store(t), j.logger(), nil,
		nil)
	require.NoError(t, h.Start(testkit.Context(t)))
	t.Cleanup(h.Stop)
	require.Equal(t, []string{
		"INFO Starting worker heartbeat monitor...",
		"INFO Worker heartbeat monitor started (check interval: 60s, staleness threshold: 90s)",
	}, j.take()[:2])
}

// Upstream 30: a worker that was marked inactive stayed inactive although it sent heartbeats again. Here it becomes
// active, unless it has stopped by itself.
func TestUpstream30AWorkerThatBeatsAgainIsActiveAgain(t *testing.T) {
	st := testkit.Store(t)
	h, j, m := newHeartbeats(t, st)
	ctx := testkit.Context(t)
	back := testkit.Worker(t, st, "back").ID
	self := testkit.Worker(t, st, "self").ID
	again := testkit.Worker(t, st, "again").ID
	drains := testkit.Worker(t, st, "drains").ID
	stopped := testkit.Worker(t, st, "stopped", func(w *testkit.WorkerRow) { w.Status = "inactive" }).ID
	for _, id := range []int64{back, self, again, drains} {
		silent(t, st, id, 10*time.Minute)
	}
	require.NoError(t, h.tick(ctx))
	for _, id := range []int64{back, self, again, drains} {
		status, deactivated := statusOf(t, st, id)
		require.Equal(t, "inactive", status)
		require.True(t, deactivated)
	}
	j.take()
	require.NoError(t, h.tick(ctx))
	require.Empty(t, j.take(), "it sends no heartbeat yet")

	beat(t, st, back)
	beat(t, st, stopped)
	testkit.Exec(t, st, `UPDATE worker SET draining = true WHERE id = $1`, drains)
	beat(t, st, drains)
	testkit.Exec(t, st, `UPDATE worker SET status = 'active', last_heartbeat = now() WHERE id = $1`, self)
	require.NoError(t, h.tick(ctx))
	for id, want := range map[int64]string{
		back: "active false", self: "active false", again: "inactive true", drains: "inactive true",
		stopped: "inactive false",
	} {
		status, deactivated := statusOf(t, st, id)
		require.Equal(t, want, fmt.Sprint(status, " ", deactivated), id)
	}
	require.Equal(t, []string{
		fmt.Sprintf("INFO Worker back (ID: %d) sends heartbeats again, marking as active", back),
		fmt.Sprintf("INFO Worker self (ID: %d) sends heartbeats again and has marked itself active", self),
	}, j.take())
	require.InDelta(t, 2, testutil.ToFloat64(m.reactivated), 0)
	count, sum := observed(t, m.outage)
	require.EqualValues(t, 2, count)
	require.InDelta(t, 1200, sum, 240, "since the last heartbeat before")
	require.Equal(t, 2, testkit.Count(t, st, `SELECT count(*) FROM worker_probe WHERE NOT details ? 'silent_since'`))
}

// Upstream 17 (F20): a worker's clock may be off, or step; the time of the database counts. Each clock is off by an
// hour, and the worker sends heartbeats.
func TestUpstream17ClocksOfWorkersDoNotMatter(t *testing.T) {
	st := testkit.Store(t)
	h, j, _ := newHeartbeats(t, st)
	ctx := testkit.Context(t)
	tell := func(id int64, offset time.Duration) {
		testkit.Exec(t, st,
			`UPDATE worker SET last_heartbeat = clock_timestamp() + make_interval(secs => $2) WHERE id = $1`, id,
			offset.Seconds())
	}
	for name, offsets := range map[string][]time.Duration{
		"ahead":         {time.Hour},
		"behind":        {-time.Hour},
		"steps ahead":   {0, time.Hour},
		"steps back":    {0, -time.Hour},
		"there and off": {-time.Hour, time.Hour, 0},
	} {
		id := testkit.Worker(t, st, name, func(w *testkit.WorkerRow) { w.NoHeartbeat = true }).ID
		for _, offset := range offsets {
			tell(id, offset)
			require.NoError(t, h.tick(ctx))
			status, deactivated := statusOf(t, st, id)
			require.Equal(t, "active false", fmt.Sprint(status, " ", deactivated), "%s, %s off", name, offset)
		}
	}
	require.Empty(t, j.take())

	dead := testkit.Worker(t, st, "dead, and its clock was ahead").ID
	tell(dead, time.Hour)
	silent(t, st, dead, 2*time.Minute)
	require.NoError(t, h.tick(ctx))
	status, _ := statusOf(t, st, dead)
	require.Equal(t, "inactive", status, "its heartbeats end although the last is in the future")
}

// A worker that dies while it drains, by itself or for an operator, is marked like any other. A worker with
// heartbeats is never marked, and a cordon always stays.
func TestAWorkerThatDiesWhileItDrainsIsMarkedInactive(t *testing.T) {
	st := testkit.Store(t)
	ids := map[string]int64{}
	for name, c := range map[string]struct {
		status string
		age    time.Duration
	}{
		"killed while it stopped": {"inactive", time.Hour}, "drained and died": {"active", time.Hour},
		"stops": {"inactive", 30 * time.Second}, "drains": {"active", 30 * time.Second},
	} {
		ids[name] = testkit.Worker(t, st, name,
			func(w *testkit.WorkerRow) { w.Status, w.Draining, w.Cordoned = c.status, true, true }).ID
		silent(t, st, ids[name], c.age)
	}
	h, j, _ := newHeartbeats(t, st)
	require.NoError(t, h.tick(testkit.Context(t)))
	for name, want := range map[string]string{
		"killed while it stopped": "inactive true draining=false cordoned=true",
		"drained and died":        "inactive true draining=false cordoned=true",
		"stops":                   "inactive false draining=true cordoned=true",
		"drains":                  "active false draining=true cordoned=true",
	} {
		var got string
		require.NoError(t, st.Pool().QueryRow(testkit.Context(t), `SELECT concat(status, CASE WHEN deactivated_at IS NULL THEN ' false' ELSE ' true' END,
			CASE WHEN draining THEN ' draining=true' ELSE ' draining=false' END, CASE WHEN cordoned THEN ' cordoned=true' ELSE ' cordoned=false' END)
			FROM worker WHERE id = $1`, ids[name]).Scan(&got))
		require.Equal(t, want, got, name)
	}
	lines := j.take()
	require.Len(t, lines, 3)
	for _, name := range []string{"killed while it stopped", "drained and died"} {
		requireStale(t, lines, name, ids[name], 3600)
	}
	require.Equal(t, "INFO Deactivated 2 worker(s) with stale heartbeats", lines[2])
	require.NoError(t, h.tick(testkit.Context(t)))
	require.Empty(t, j.take(), "once")

	beat(t, st, ids["drained and died"])
	require.NoError(t, h.tick(testkit.Context(t)))
	status, deactivated := statusOf(t, st, ids["drained and died"])
	require.Equal(t, "active false", fmt.Sprint(status, " ", deactivated),
		"it was only cut off; the cordon keeps work from it")
}

// Three replicas check at once: one transition and one log line for each worker.
func TestManyReplicasMarkAWorkerOnce(t *testing.T) {
	st := testkit.Store(t)
	const workers, rounds = 20, 5
	var ids []int64
	for i := range workers {
		ids = append(ids, testkit.Worker(t, st, fmt.Sprintf("w%d", i)).ID)
	}
	j, m := &journal{}, NewMetrics(nil)
	ctx := testkit.Context(t)
	all := func() {
		var group sync.WaitGroup
		for range 3 {
			h := NewHeartbeats(HeartbeatsConfig{StaleAfter: stale}, st, j.logger(), m, nil)
			group.Go(func() {
				for range 3 {
					if err := h.mark(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
	for round := range rounds {
		for _, id := range ids {
			silent(t, st, id, time.Hour)
		}
		all()
		require.InDelta(t, (round+1)*workers, testutil.ToFloat64(m.deactivated), 0)
		for _, id := range ids {
			beat(t, st, id)
		}
		all()
		require.InDelta(t, (round+1)*workers, testutil.ToFloat64(m.reactivated), 0)
	}
	text := j.String()
	require.Equal(t, rounds*workers, strings.Count(text, "heartbeat is stale"))
	require.Equal(t, rounds*workers, strings.Count(text, "sends heartbeats again, marking as active"))
	require.Equal(t, workers,
		testkit.Count(t, st, `SELECT count(*) FROM worker WHERE status = 'active' AND deactivated_at IS NULL`))
	require.Equal(t, 2*rounds*workers, testkit.Count(t, st,
		`SELECT count(*) FROM worker_history WHERE changed_fields = '{status}'`), "each transition is recorded once")
}
