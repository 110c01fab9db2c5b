package alerting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
)

func TestAForgottenPauseNamesItsOperator(t *testing.T) {
	t.Parallel()
	now := time.Now()
	paused, oldest := now.Add(-2*time.Hour), now.Add(-5*time.Hour)
	q := monitor.Queue{
		ActionRef: "a.b", Queued: 300, Oldest: &oldest, Paused: true, PausedBy: "alice", PausedAt: &paused,
		PauseReason: "new disk",
	}
	judged := func() []Finding {
		m := newMeasures()
		m.queues([]monitor.Queue{q}, now)
		return findings(worstFirst(EvaluateAll(config.Default().Alerts, m)))
	}
	require.Empty(t, Attention(nil, nil), "nothing read is nothing found")
	found := judged()
	require.Len(t, found, 1, "the remark that it is paused is behind it")
	require.Equal(t, "a.b is paused by alice for 2h, 300 wait: new disk", found[0].Text)
	require.Equal(t, LevelWarning, found[0].Level)
	require.Equal(t, paused, *found[0].Since, "the pause is newer than the oldest execution")
	soon := now.Add(-time.Minute)
	q.Oldest, q.PausedBy, q.PauseReason = &soon, "", ""
	found = judged()
	require.Equal(t, "a.b is paused with 300 waiting", found[0].Text, "no execution has waited long")
	require.Equal(t, "by an operator for 2h", found[0].Hint, "the text has the number")
	require.Equal(t, LevelInfo, found[0].Level)
}
