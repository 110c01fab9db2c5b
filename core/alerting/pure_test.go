package alerting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
)

func TestAttentionPutsTheWorstFirst(t *testing.T) {
	t.Parallel()
	now := time.Now()
	long := now.Add(-time.Hour)
	growth := int64(3)
	o := &Overview{
		Reading: monitor.Reading{At: now}, StaleAfter: time.Minute, Queues: monitor.QueueTotals{Queued: 5},
		Top: []monitor.Queue{
			{ActionRef: "a.b", Queued: 5, Oldest: &long},
			{ActionRef: "c.d", Queued: 5, Oldest: &long, Paused: true},
		},
		WorkerList: []monitor.Worker{{Name: "w", Status: "active", Heartbeat: &long}},
		Live:       monitor.Live{Stuck: monitor.Count{Value: 2}, StuckAfter: 10 * time.Minute},
	}
	b := &monitor.Broker{
		Alarms: []string{"memory"},
		Queues: []monitor.BrokerQueue{{Name: monitor.DeadLetterQueue, Ready: 9}},
	}
	found := Attention(o, b, &growth)
	var rules []string
	for _, f := range found {
		rules = append(rules, string(f.Level)+" "+f.Rule)
		require.NotContains(t, f.Text+f.Hint, "{", "every placeholder is filled")
	}
	require.Equal(t, []string{
		"critical broker_alarm", "critical dlq_growth", "critical no_active_workers",
		"critical queue_head_wait_critical", "warning worker_heartbeat",
		"info dlq_waiting", "info exec_stuck", "info queue_paused",
	}, rules)
	require.Empty(t, Attention(nil, nil, nil), "nothing read is nothing found")
}

func TestAForgottenPauseNamesItsOperator(t *testing.T) {
	t.Parallel()
	now := time.Now()
	paused, oldest := now.Add(-2*time.Hour), now.Add(-5*time.Hour)
	o := &Overview{Reading: monitor.Reading{At: now}, Workers: monitor.WorkerTotals{Active: 1}, Top: []monitor.Queue{
		{
			ActionRef: "a.b", Queued: 300, Oldest: &oldest, Paused: true, PausedBy: "alice", PausedAt: &paused,
			PauseReason: "new disk",
		},
	}}
	found := Attention(o, nil, nil)
	require.Len(t, found, 1, "the remark that it is paused is behind it")
	require.Equal(t, "a.b is paused by alice for 2h, 300 wait: new disk", found[0].Text)
	require.Equal(t, LevelWarning, found[0].Level)
	require.Equal(t, paused, *found[0].Since, "the pause is newer than the oldest execution")
	soon := now.Add(-time.Minute)
	o.Top[0].Oldest, o.Top[0].PausedBy, o.Top[0].PauseReason = &soon, "", ""
	found = Attention(o, nil, nil)
	require.Equal(t, "a.b is paused with 300 waiting", found[0].Text, "no execution has waited long")
	require.Equal(t, "by an operator for 2h", found[0].Hint, "the text has the number")
	require.Equal(t, LevelInfo, found[0].Level)
}
