package alerting

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// noReplica is the finding that no replica runs; nil if there is none.
func noReplica(found []Finding) *Finding {
	for i := range found {
		if found[i].Rule == "no_replica" {
			return &found[i]
		}
	}
	return nil
}

// Without a replica the stored alerts are shown with their age, below the finding that none is alive.
func TestStoredAlertsAreShownWithTheirAgeWhileNoReplicaIsAlive(t *testing.T) {
	b := setup(t, nil)
	b.evaluator(t, "first", 45*time.Second)
	b.evaluator(t, "second", 31*time.Second)
	testkit.Exec(t, b.Store, `insert into alert (rule, target, severity, summary, value, since, fired)
		values ('dlq_growth', '', 'critical', 'an alert of the past', 1, now() - interval '5 minutes', now() - interval '5 minutes')`)
	o, err := b.Overview(testkit.Context(t))
	require.NoError(t, err)
	require.False(t, o.Alerts.Evaluated)
	found := Attention(o, nil)
	require.Len(t, found, 2)
	gone := &found[0]
	require.Equal(t, "no_replica", gone.Rule)
	require.Equal(t, LevelCritical, gone.Level)
	require.Equal(t, "an alert of the past", found[1].Text)
	require.Equal(t, LevelWarning, found[1].Level, "it may have ended")
	require.Regexp(t, `^not evaluated since \d\d:\d\d:\d\dZ, \S+ ago; `, found[1].Hint)
	require.WithinDuration(t, b.lastSeen(t), *gone.Since, time.Millisecond)

	a, err := b.Alerts(testkit.Context(t))
	require.NoError(t, err)
	require.False(t, a.Evaluated)
	require.Regexp(t, `the stored ones, as of (3[4-9]|[45]\d)`, a.Note)
	require.Len(t, a.Open, 2)
	require.Equal(t, "no_replica", a.Open[0].Rule)
	require.WithinDuration(t, b.lastSeen(t), a.Open[0].Since, time.Millisecond)
	require.False(t, a.Open[0].NotEvaluated)
	require.True(t, a.Open[1].NotEvaluated)
	require.Equal(t, LevelCritical, a.Open[1].Severity, "as it was stored")
	require.Equal(t, RuleUnwatched, a.Rules[slices.IndexFunc(a.Rules,
		func(r AlertRule) bool { return r.Name == "leaked_slot" })].State)

	b.evaluator(t, "alive", time.Second)
	o, err = b.Overview(testkit.Context(t))
	require.NoError(t, err)
	require.True(t, o.Alerts.Evaluated)
	require.Contains(t, findingTexts(Attention(o, nil)), "an alert of the past")
}

// A replica that just started evaluates within seconds. Until then unknown values raise no alert.
func TestAReplicaThatHasJustStartedIsTrusted(t *testing.T) {
	none := 0 // as the broker counted before the replica consumed
	w := &broker.Wiring{Queues: []broker.QueueInfo{{Name: monitor.DeadLetterQueue, Consumers: &none}}}
	b := setup(t, fakeBroker{wiring: w})
	ctx := testkit.Context(t)
	b.replicaRow(t, "new", "connected", 0, nil, monitor.ReplicaDetails{})
	dlq := func(started time.Duration) monitor.Check {
		testkit.Exec(t, b.Store,
			"update engine_replica set started = now() - make_interval(secs => $1), last_seen = now()",
			started.Seconds())
		checks, err := b.Checks(ctx)
		require.NoError(t, err)
		return checks.List[slices.IndexFunc(checks.List,
			func(c monitor.Check) bool { return c.Name == monitor.CheckDeadLetterQueue })]
	}
	require.Equal(t, monitor.CheckUnknown, dlq(0).Status)
	a, err := b.Alerts(ctx)
	require.NoError(t, err)
	require.True(t, a.Evaluated)
	require.Empty(t, a.Open)
	require.Empty(t, a.Note)
	o, err := b.Overview(ctx)
	require.NoError(t, err)
	require.Empty(t, Attention(o, nil), "no worker takes work yet")

	require.Equal(t, monitor.CheckProblem, dlq(time.Minute).Status)
	a, err = b.Alerts(ctx)
	require.NoError(t, err)
	require.False(t, a.Evaluated)
	require.Empty(t, a.Open)
	require.Contains(t, a.Note, "No replica of the engine evaluates the alerts")
}

func TestTheLastSignOfLifeIsKnownLongAfterwards(t *testing.T) {
	b := setup(t, nil)
	b.evaluator(t, "first", 3*time.Hour)
	b.evaluator(t, "last", 2*time.Hour)
	o, err := b.Overview(testkit.Context(t))
	require.NoError(t, err)
	require.Empty(t, o.Replicas.List, "too long ago for the list")
	gone := noReplica(Attention(o, nil))
	require.NotNil(t, gone)
	require.WithinDuration(t, b.lastSeen(t), *gone.Since, time.Millisecond)
}

func TestNoWorkerTakesWorkBecauseTheBrokerDoesNotAnswer(t *testing.T) {
	b := setup(t, nil)
	hint := func() string {
		m, err := b.Measure(testkit.Context(t))
		require.NoError(t, err)
		for _, c := range EvaluateAll(b.rules, m) {
			if c.Rule == "no_active_workers" {
				return c.Hint
			}
		}
		return ""
	}
	b.replicaRow(t, "cut off", "disconnected", time.Second, nil, monitor.ReplicaDetails{})
	require.Equal(t, "because the broker does not answer", hint())
	o, err := b.Overview(testkit.Context(t))
	require.NoError(t, err)
	require.True(t, o.CutOff())
	b.replicaRow(t, "connected", "connected", time.Second, nil, monitor.ReplicaDetails{})
	require.Equal(t, "start or uncordon a worker", hint())
}

// `alerts list` has every finding of the dashboard, also ones without a rule, such as a failed workflow.
func TestTheAlertsAndTheOverviewHaveTheSameFindings(t *testing.T) {
	b := setup(t, nil)
	b.evaluator(t, "alive", time.Second)
	deaf := testkit.Worker(t, b.Store, "deaf")
	testkit.Exec(t, b.Store, `update worker set created = now() - interval '1 hour'`)
	testkit.Exec(t, b.Store, `insert into worker_probe (worker, verdict, queue_exists, consumers, at, details)
		values ($1, 'fresh', true, 0, now(), '{"valid_seconds": 60}')`, deaf.ID)
	action := testkit.Action(t, b.Store, "demo.sleep")
	for range 2 {
		testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusRunning),
			func(r *testkit.ExecutionRow) { r.Worker = &deaf.ID })
	}
	w := b.AddWorkflow(t, "shop.order", monitortest.Deliver,
		&workflow.State{Status: lifecycle.StatusRunning, Tasks: map[string]*workflow.TaskState{}})
	testkit.Exec(t, b.Store, `update execution set status = 'failed', result = '{}' where id = $1`, w.Execution)
	testkit.Exec(t, b.Store, `update workflow_execution set status = 'failed', open = false where id = $1`, w.ID)
	record(t, b.Store)

	a, err := b.Alerts(testkit.Context(t))
	require.NoError(t, err)
	require.True(t, a.Evaluated)
	o, err := b.Overview(testkit.Context(t))
	require.NoError(t, err)
	var listed, shown []string
	for i := range a.Open {
		listed = append(listed, a.Open[i].Summary)
	}
	for _, f := range a.Others {
		listed = append(listed, f.Text)
	}
	for _, f := range Attention(o, nil) {
		shown = append(shown, f.Text)
	}
	require.ElementsMatch(t, shown, listed)
	require.Contains(t, listed, "1 workflow has failed")
	require.Contains(t, listed, "deaf is deaf")
}

// lastSeen is the newest report of a replica.
func (b *testBundle) lastSeen(t *testing.T) (at time.Time) {
	t.Helper()
	require.NoError(t, b.Store.Pool().QueryRow(t.Context(), `select max(last_seen) from engine_replica`).Scan(&at))
	return at
}

// evaluator puts a replica into the table that reported itself some time ago and
// evaluated the alerts three seconds before that.
func (b *testBundle) evaluator(t *testing.T, host string, age time.Duration) {
	t.Helper()
	b.replicaRow(t, host, "connected", age, map[string]time.Duration{AlertLoop: 3 * time.Second},
		monitor.ReplicaDetails{Loops: map[string]monitor.ReplicaLoop{AlertLoop: {Timeout: time.Minute}}})
}
