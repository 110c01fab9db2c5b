package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorkerHealthIsTheStricterVerdict(t *testing.T) {
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

func TestWorkerQueueNames(t *testing.T) {
	t.Parallel()
	id, ok := WorkerOfQueue(WorkerQueue(7))
	require.True(t, ok)
	require.Equal(t, int64(7), id)
	for _, name := range []string{
		"worker.x.executions", "worker.7.cancel", "attune.dlx.queue",
		"worker.7.executions.old",
	} {
		_, ok := WorkerOfQueue(name)
		require.False(t, ok, name)
	}
}

// The dashboard's TRY counts as ATTEMPT of the command line does: the first is 1.
func TestTriesCountFromOne(t *testing.T) {
	t.Parallel()
	require.Equal(t, "2/-", Tries(1, nil))
	require.Equal(t, "1/4", Tries(0, new(int64(3))))
	require.Equal(t, "2/-", (&Execution{RetryCount: 1}).Try())
}
