package alerting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// TestGrowthIsKnownAfterSomeMinutes: a replica that has just begun does not say that
// nothing grows.
func TestGrowthIsKnownAfterSomeMinutes(t *testing.T) {
	t.Parallel()
	var d depths
	now := time.Now()
	for minute := range 4 {
		_, known := d.record(now.Add(time.Duration(minute)*time.Minute), map[string]int64{"": 10 + int64(minute)})
		require.False(t, known)
	}
	before, known := d.record(now.Add(5*time.Minute), map[string]int64{"": 17})
	require.True(t, known)
	require.EqualValues(t, 10, before[""], "five minutes ago")
	before, known = d.record(now.Add(10*time.Minute), map[string]int64{"": 12})
	require.True(t, known)
	require.EqualValues(t, 17, before[""])
	_, known = d.record(now.Add(time.Hour), map[string]int64{"": 50})
	require.False(t, known, "old values are forgotten")
}

// TestQueuesGrow: by name, without paused queues, and without new queues of a list that was cut.
func TestQueuesGrow(t *testing.T) {
	t.Parallel()
	m, now := watching(monitor.Config{}, monitor.Deps{}), time.Now()
	grown := func(at time.Duration, queues ...monitor.Queue) []Sample {
		all := newMeasures()
		all.At = now.Add(at)
		m.measureGrowth(queues, all)
		return all.Samples["queue_growth"]
	}
	limit := int64(2)
	require.Nil(t, grown(0, monitor.Queue{ActionRef: "a.b", Queued: 10}, monitor.Queue{ActionRef: "a.c", Queued: 5}))
	found := grown(5*time.Minute, monitor.Queue{ActionRef: "a.b", Queued: 1511, Active: 1, Limit: &limit},
		monitor.Queue{ActionRef: "a.c", Queued: 900, Paused: true},
		monitor.Queue{ActionRef: "a.d", Queued: 3})
	require.Equal(t, []Sample{
		{Target: "a.b", Value: 1501, Detail: "1511 wait, 10 did; 1 of 2 slots used"},
		{Target: "a.d", Value: 3, Detail: "3 wait, 0 did; 0 slots used"},
	}, found)
	cut := make([]monitor.Queue, measureQueues)
	for i := range cut {
		cut[i] = monitor.Queue{ActionRef: fmt.Sprintf("cut.a%d", i), Queued: 1000}
	}
	grown(20*time.Minute, cut...)
	require.Empty(t, grown(25*time.Minute, monitor.Queue{ActionRef: "a.new", Queued: 1001}),
		"it may have waited there, uncounted")
}

// TestWithoutADatabaseEverythingIsUnknown: and nothing is zero.
func TestWithoutADatabaseEverythingIsUnknown(t *testing.T) {
	t.Parallel()
	m := watching(monitor.Config{}, monitor.Deps{})
	all, err := m.Measure(t.Context())
	require.Error(t, err)
	for _, name := range config.MeasuresFrom(config.FromDatabase) {
		require.False(t, all.Known(name), name)
		require.NotEmpty(t, all.Unknown[name], name)
	}
	for _, c := range EvaluateAll(config.Default().Alerts, all) {
		require.Equal(t, "unmeasured", c.Rule, "nothing else is known to hold")
	}
	for _, name := range config.MeasuresFrom(config.FromDatabase) {
		_, ok := config.MeasureNamed(name)
		require.True(t, ok, name)
	}
}

func TestAnActionWhoseExecutionsFailIsNamedWithItsCommonestError(t *testing.T) {
	st := testkit.Store(t)
	bad, good := testkit.Action(t, st, "ops.deploy"), testkit.Action(t, st, "ops.sync")
	insert := func(action testkit.ActionRow, status string, n int, result string) {
		testkit.Exec(t, st, `insert into execution (action, action_ref, status, result)
			select $1, $2, $3::execution_status_enum, $4::jsonb from generate_series(1, $5::int)`, action.ID, action.Ref, status, result, n)
	}
	insert(bad, "failed", 9, `{"error": "Traceback:\n  deploy.py\nno route to host 10.0.0.7\n"}`)
	insert(bad, "failed", 3, `{"error": "disk full"}`)
	insert(bad, "completed", 4, `{}`)
	insert(good, "failed", 11, `{"error": "late"}`)
	insert(good, "completed", 30, `{}`)
	testkit.Exec(t, st, `update execution set finished_at = now()`)
	record(t, st)
	all, err := watching(monitor.Config{}, monitor.Deps{Store: st}).Measure(t.Context())
	require.NoError(t, err)
	var found []Condition
	for _, c := range EvaluateAll(config.Default().Alerts, all) {
		if c.Rule == "action_failing" {
			found = append(found, c)
		}
	}
	require.Len(t, found, 1)
	require.Equal(t, "ops.deploy", found[0].Target)
	require.Equal(t, "ops.deploy fails: 75 % of its executions", found[0].Summary)
	require.Equal(t, "12 failed in 5m, most with: no route to host 10.0.0.7", found[0].Hint)
	require.Equal(t, "action:ops.deploy status:failed,timeout,abandoned", found[0].filter)
}

// The measures of the database are known while the broker hangs.
func TestAHangingBrokerDelaysNoMeasure(t *testing.T) {
	st := testkit.Store(t)
	testkit.Worker(t, st, "w1")
	var longest time.Duration
	m := NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, silentProbe{longest: &longest})
	all, err := m.Measure(t.Context())
	require.NoError(t, err)
	require.NotZero(t, longest)
	require.LessOrEqual(t, longest, 4*callTimeout, "the calls together")
	require.True(t, all.Known("heartbeat_age"))
	for _, name := range []string{
		"dead_letter_depth", "worker_queue_depth", "topology_problems",
		"dead_letter_routes_lost",
	} {
		require.Contains(t, all.Unknown, name)
	}
	require.NotContains(t, all.Unknown, "broker_alarms", "no rule asked for it")
}

// TestMeasuresOfAPublishedSchema measures an installation without our tables.
func TestMeasuresOfAPublishedSchema(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `drop table alert, lost_work, engine_replica`)
	all, err := watching(monitor.Config{}, monitor.Deps{Store: st}).Measure(t.Context())
	require.NoError(t, err)
	require.True(t, all.Known("head_wait"))
	require.False(t, all.Known("scheduled_overdue"))
	require.Empty(t, all.Unknown)
	read, err := watching(monitor.Config{}, monitor.Deps{Store: st}).Alerts(t.Context())
	require.NoError(t, err)
	require.False(t, read.Evaluated)
}

// TestTheQueriesOfAlertsUseTheirIndexes: none of them reads a table of executions
// from end to end.
func TestTheQueriesOfAlertsUseTheirIndexes(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "demo.sleep")
	testkit.Exec(t, st, `insert into execution (action, action_ref, status, created, updated)
		select $1, 'demo.sleep', (array['completed', 'failed', 'requested'])[1 + (g % 3)]::execution_status_enum, now(), now() from generate_series(1, 30000) g`, action.ID)
	testkit.Exec(t, st, `insert into lost_work (at, cause, outcome, execution, attempt, action_ref)
		select now() - make_interval(mins => g), 'scheduled_timeout', 'failed', g, 1, 'a.b' from generate_series(1, 20000) g`)
	testkit.Exec(t, st, `insert into dead_letter (fingerprint, decision, created) select 'f' || g, 'failed', now() - make_interval(mins => g) from generate_series(1, 20000) g`)
	for _, table := range []string{"execution", "lost_work", "dead_letter"} {
		testkit.Exec(t, st, `vacuum analyze `+table)
	}
	const bound = 100
	for name, query := range map[string]struct {
		sql  string
		args []any
	}{
		"AlertLive":   {store.AlertLive, []any{bound, 300.0}},
		"RepairEnded": {store.RepairEnded, []any{false, 60.0, 0, bound}},
		"AlertEnds":   {store.AlertEnds, nil}, "CountActivity": {store.CountActivity, []any{0.0}},
		"AlertRetries":          {store.AlertRetries, []any{bound}},
		"ViewDeadLetterNumbers": {store.ViewDeadLetterNumbers, []any{bound, 300.0}},
		"AlertLostWork":         {store.AlertLostWork, nil},
		"CountLostWorkSince":    {store.CountLostWorkSince, []any{19_000, bound}},
	} {
		plan := strings.Join(testkit.Column[string](t, st.Pool(), "explain "+query.sql, query.args...), "\n")
		for _, table := range []string{"execution", "lost_work", "dead_letter"} {
			require.NotRegexp(t, `Seq Scan on `+table+`\b`, plan, "%s:\n%s", name, plan)
		}
	}
	m := watching(monitor.Config{}, monitor.Deps{Store: st})
	_, err := m.Measure(t.Context())
	require.NoError(t, err)
	begin := time.Now()
	_, err = m.Measure(t.Context())
	require.NoError(t, err)
	t.Logf("measured in %s", time.Since(begin))
}

// silentProbe is a broker that does not answer. It adds up how long its calls may take.
type silentProbe struct{ longest *time.Duration }

func (p silentProbe) QueueDepth(ctx context.Context, _ string) (int64, error) {
	if deadline, ok := ctx.Deadline(); ok {
		*p.longest += time.Until(deadline)
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

func (silentProbe) LostRoutes(context.Context) ([]string, error) { return nil, errors.New("away") }

func (silentProbe) OtherExecutors(context.Context) ([]string, error) { return nil, nil }

func (silentProbe) Missing(context.Context) ([]string, error) { return nil, errors.New("away") }

func (silentProbe) Alarms(context.Context) ([]string, bool, error) {
	return nil, false, nil
}
