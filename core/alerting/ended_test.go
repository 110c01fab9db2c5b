package alerting_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// ended puts n executions into the table that were requested in this order and ended so long ago.
func (b *bundle) ended(ref, status string, n int, ago time.Duration) {
	b.t.Helper()
	b.exec(`insert into execution (action_ref, status, created, updated, finished_at)
		select $1, $2::text::execution_status_enum, now() - interval '1 hour', now(), now() - make_interval(secs => $3)
		from generate_series(1, $4::int)`, ref, status, ago.Seconds(), n)
}

// TestTimeoutsBehindABacklogFire: the executions of one action time out in its queue, while thousands of another that
// were requested later end well.
func TestTimeoutsBehindABacklogFire(t *testing.T) {
	b := setup(t, shortened())
	b.ended("shop.slow", "timeout", 293, 0)
	b.ended("shop.slow", "completed", 7, 0)
	b.ended("shop.slow", "cancelled", 50, 0)
	b.ended("shop.fast", "completed", 6500, 0)
	b.tick()
	require.Equal(t, alerting.AlertFiring, b.state("action_failing", "shop.slow"))
	require.Empty(t, b.state("action_failing", "shop.fast"))
	require.Equal(t, alerting.AlertFiring, b.state("high_execution_timeout_rate", ""))
	m, err := b.view.Measure(t.Context())
	require.NoError(t, err)
	ratio, known := m.Value("failure_ratio")
	require.True(t, known)
	require.InDelta(t, 293.0/6800, ratio, 1e-9)
	timeouts, _ := m.Value("execution_timeouts")
	require.InDelta(t, 293, timeouts, 0)
	require.Len(t, m.Samples["action_failures"], 1)
	require.InDelta(t, 293.0/300, m.Samples["action_failures"][0].Value, 1e-9)

	// The overview tells the same numbers as the alerts.
	o, err := b.view.Overview(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{6507, 0, 293, 50, 0}, []int64{
		o.Recent.Completed.Value, o.Recent.Failed.Value, o.Recent.Timeout.Value, o.Recent.Cancelled.Value,
		o.Recent.Abandoned.Value,
	})
	require.Equal(t, &monitor.Count{Value: 293}, o.Recent.FailedLastMinute)
}

// TestEndsAreCountedOnceAndInTheirMinute: a count is repeated until no transaction can change it, by one replica at a
// time, and an old end counts for nothing.
func TestEndsAreCountedOnceAndInTheirMinute(t *testing.T) {
	b := setup(t, shortened())
	count := func(pause time.Duration) {
		_, err := alerting.RecordActivity(t.Context(), b.store, pause)
		require.NoError(t, err)
	}
	rows := func() string {
		var text string
		require.NoError(t, b.store.Pool().QueryRow(t.Context(), `select coalesce(string_agg(format('%s %s %s %s',
			extract(epoch from date_trunc('minute', now()) - minute)::int / 60, action_ref, completed, failed), ', '
			order by minute desc, action_ref), '') from activity_minute where action_ref <> ''`).Scan(&text))
		return text
	}
	b.ended("a.b", "completed", 3, 10*time.Second)
	b.ended("a.b", "failed", 2, 5*time.Minute)
	b.ended("a.c", "failed", 1, 2*time.Hour) // before the engine counted
	count(0)
	require.Regexp(t, `^[01] a\.b 3 0, [56] a\.b 0 2$`, rows())

	b.exec(`insert into execution (action_ref, status, finished_at) select action_ref, status, finished_at
		from execution where status = 'completed'`) // by a transaction that committed late
	count(time.Hour)
	require.Regexp(t, `^[01] a\.b 3 0, [56] a\.b 0 2$`, rows(), "another replica has just counted")
	count(0)
	require.Regexp(t, `^[01] a\.b 6 0, [56] a\.b 0 2$`, rows())
	b.ended("a.b", "failed", 1, 5*time.Minute)
	count(0)
	require.Regexp(t, `[56] a\.b 0 2$`, rows(), "that minute is closed")
}

// TestEndsAreCountedAfterTheClockWasSetBack: what was counted before, later than now, stops no count.
func TestEndsAreCountedAfterTheClockWasSetBack(t *testing.T) {
	b := setup(t, shortened())
	b.exec(`insert into activity_minute (minute, action_ref, completed, failed, timeout, cancelled, abandoned, counted)
		select date_trunc('minute', now()) + make_interval(mins => g), 'a.b', 0, 0, 0, 0, 0, now() + interval '1 hour'
		from generate_series(-1, 10) g`)
	b.ended("a.b", "completed", 3, 0)
	_, err := alerting.RecordActivity(t.Context(), b.store, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 3, testkit.Count(t, b.store, "select sum(completed)::int from activity_minute"))
	require.Zero(t, testkit.Count(t, b.store, "select count(*) from activity_minute where minute > now()"))
}

// TestCountingReadsOnlyTheLastMinutes: neither waiting executions nor old ends make a count dearer.
func TestCountingReadsOnlyTheLastMinutes(t *testing.T) {
	b := setup(t, shortened())
	waiting := 30_000
	if testkit.Slow() {
		waiting = 1_000_000
	}
	b.exec(`alter table execution disable trigger user`)
	b.exec(`insert into execution (action_ref, status, created, updated)
		select 'demo.sleep', 'requested', now() - interval '1 hour', now() from generate_series(1, $1::int)`, waiting)
	b.exec(`insert into execution (action_ref, status, created, updated, finished_at)
		select 'demo.sleep', 'completed', now() - interval '1 hour', now(), now() - make_interval(mins => 30 + g % 10000)
		from generate_series(1, $1::int) g`, waiting)
	b.exec(`alter table execution enable trigger user`)
	b.ended("shop.slow", "timeout", 293, 0)
	b.exec(`vacuum analyze execution`)
	for _, counted := range []string{"first", "again"} {
		tx, err := b.store.Pool().Begin(t.Context())
		require.NoError(t, err)
		const explain = "explain (analyze, buffers) " + store.CountActivity
		plan := strings.Join(testkit.Column[string](t, tx, explain, 0.0), "\n")
		require.NoError(t, tx.Commit(t.Context()))
		require.Contains(t, plan, "attune_execution_ended", "%s:\n%s", counted, plan)
		require.NotContains(t, plan, "Seq Scan on execution", "%s:\n%s", counted, plan)
		read := 0
		for _, line := range strings.Split(plan, "\n") {
			if strings.Contains(line, "attune_execution_ended") {
				_, err := fmt.Sscanf(line[strings.LastIndex(line, "rows="):], "rows=%d", &read)
				require.NoError(t, err)
			}
		}
		require.Equal(t, 293, read, "%s:\n%s", counted, plan)
	}
}
