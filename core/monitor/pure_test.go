package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorkerHealthTakesTheStricterWord(t *testing.T) {
	t.Parallel()
	now := time.Now()
	fresh, old, n := now.Add(-time.Second), now.Add(-2*time.Minute), int64(8)
	for want, w := range map[WorkerHealth]Worker{
		WorkerActive:   {Status: "active", Heartbeat: &fresh},
		WorkerStale:    {Status: "active", Heartbeat: &old, Cordoned: true, SuspectSince: &fresh},
		WorkerSuspect:  {Status: "active", Heartbeat: &fresh, Cordoned: true, SuspectSince: &old},
		WorkerInactive: {Status: "inactive", Heartbeat: &fresh},
		WorkerCordoned: {Status: "active", Heartbeat: &fresh, Cordoned: true},
		WorkerDraining: {Status: "active", Heartbeat: &fresh, Cordoned: true, Draining: true},
		WorkerBusy:     {Status: "active", Heartbeat: &fresh, Assigned: &n, Capacity: &n},
	} {
		require.Equal(t, want, w.Health(now, 90*time.Second))
	}
	require.Equal(t, WorkerStale, Worker{Status: "active"}.Health(now, time.Hour), "no heartbeat ever")
}

func TestAttentionPutsTheWorstFirst(t *testing.T) {
	t.Parallel()
	now := time.Now()
	long := now.Add(-time.Hour)
	growth := int64(3)
	o := &Overview{
		Reading: Reading{At: now}, StaleAfter: time.Minute, Queues: QueueTotals{Queued: 5},
		Top:        []Queue{{ActionRef: "a.b", Queued: 5, Oldest: &long}, {ActionRef: "c.d", Queued: 5, Oldest: &long, Paused: true}},
		WorkerList: []Worker{{Name: "w", Status: "active", Heartbeat: &long}},
		Live:       Live{Stuck: Count{Value: 2}, StuckAfter: 10 * time.Minute},
	}
	b := &Broker{Alarms: []string{"memory"}, Queues: []BrokerQueue{{Name: DeadLetterQueue, Ready: 9}}}
	found := Attention(o, b, &growth)
	var rules []string
	for _, f := range found {
		rules = append(rules, string(f.Level)+" "+f.Rule)
		require.NotContains(t, f.Text+f.Hint, "{", "every placeholder is filled")
	}
	require.Equal(t, []string{
		"critical broker_alarm", "critical dlq_growth", "critical no_active_workers", "critical queue_head_wait_critical", "warning worker_heartbeat",
		"info dlq_waiting", "info exec_stuck", "info queue_paused",
	}, rules)
	require.Empty(t, Attention(nil, nil, nil), "nothing read is nothing found")
}

func TestWorkerQueueNames(t *testing.T) {
	t.Parallel()
	id, ok := WorkerOfQueue(WorkerQueue(7))
	require.True(t, ok)
	require.Equal(t, int64(7), id)
	for _, name := range []string{"worker.x.executions", "worker.7.cancel", "attune.dlx.queue", "worker.7.executions.old"} {
		_, ok := WorkerOfQueue(name)
		require.False(t, ok, name)
	}
}

func TestAPauseThatIsForgottenSaysWhoseItIs(t *testing.T) {
	t.Parallel()
	now := time.Now()
	paused, oldest := now.Add(-2*time.Hour), now.Add(-5*time.Hour)
	o := &Overview{Reading: Reading{At: now}, Workers: WorkerTotals{Active: 1}, Top: []Queue{
		{ActionRef: "a.b", Queued: 300, Oldest: &oldest, Paused: true, PausedBy: "alice", PausedAt: &paused, PauseReason: "new disk"},
	}}
	found := Attention(o, nil, nil)
	require.Len(t, found, 1, "the remark that it is paused is behind it")
	require.Equal(t, "a.b is paused by alice for 2h, 300 wait: new disk", found[0].Text)
	require.Equal(t, LevelWarning, found[0].Level)
	require.Equal(t, paused, *found[0].Since, "what waited before the pause did not wait for its end")
	soon := now.Add(-time.Minute)
	o.Top[0].Oldest, o.Top[0].PausedBy, o.Top[0].PauseReason = &soon, "", ""
	found = Attention(o, nil, nil)
	require.Equal(t, "a.b is paused with 300 waiting", found[0].Text, "nobody has waited long")
	require.Equal(t, "by somebody for 2h, 300 wait", found[0].Hint)
	require.Equal(t, LevelInfo, found[0].Level)
}

// The dashboard's TRY counts as ATTEMPT of the command line does: the first is 1.
func TestTriesCountFromOne(t *testing.T) {
	t.Parallel()
	require.Equal(t, "2/-", Tries(1, nil))
	require.Equal(t, "1/4", Tries(0, new(int64(3))))
	require.Equal(t, int64(2), (&Execution{RetryCount: 1}).Try())
}
