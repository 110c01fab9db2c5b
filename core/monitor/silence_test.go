package monitor

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestTheStrictestOfHeartbeatBrokerAndStatusWins(t *testing.T) {
	t.Parallel()
	now := time.Now()
	fresh, old := now.Add(-time.Second), now.Add(-251*time.Second)
	none, one, no := int64(0), int64(1), false
	consumed, alone := &BrokerQueue{
		Name:      "worker.7.executions",
		Consumers: 1,
	}, &BrokerQueue{Name: "worker.7.executions"}
	for name, c := range map[string]struct {
		worker Worker
		queue  *BrokerQueue
		want   Assessment
	}{
		"all well": {
			Worker{Status: "active", Heartbeat: &fresh},
			consumed,
			Assessment{Health: WorkerActive},
		},
		"the broker is not known": {
			Worker{Status: "active", Heartbeat: &fresh},
			nil,
			Assessment{Health: WorkerActive},
		},
		"the broker has not counted": {
			Worker{Status: "active", Heartbeat: &fresh},
			&BrokerQueue{Uncounted: true},
			Assessment{Health: WorkerActive},
		},
		"silent, whoever consumes": {
			Worker{Status: "active", Heartbeat: &old},
			consumed,
			Assessment{WorkerStale, ByHeartbeat, "silent for 4m11s, limit 1m30s", "active"},
		},
		"no consumer": {
			Worker{Status: "active", Heartbeat: &fresh, Cordoned: true},
			alone,
			Assessment{
				WorkerDeaf, ByBroker, "last heartbeat 1s ago, but queue worker.7.executions has no consumer",
				"active",
			},
		},
		"no consumer when the engine looked": {
			Worker{ID: 7, Status: "active", Heartbeat: &fresh, Probe: &WorkerProbe{Valid: true, Consumers: &none}},
			nil,
			Assessment{
				WorkerDeaf, ByBroker, "last heartbeat 1s ago, but queue worker.7.executions has no consumer",
				"active",
			},
		},
		"counted before it consumed": {Worker{
			Status: "active", Heartbeat: &fresh,
			Registered: now.Add(-14 * time.Second),
		}, alone, Assessment{Health: WorkerActive}},
		"seen before it registered": {
			Worker{
				Status: "active", Heartbeat: &fresh, Registered: now.Add(-40 * time.Second),
				Probe: &WorkerProbe{At: now.Add(-41 * time.Second), Valid: true, Consumers: &none},
			},
			nil,
			Assessment{Health: WorkerActive},
		},
		"no consumer long after it registered": {
			Worker{Status: "active", Heartbeat: &fresh, Registered: now.Add(-15 * time.Second)},
			alone,
			Assessment{
				WorkerDeaf, ByBroker, "last heartbeat 1s ago, but queue worker.7.executions has no consumer",
				"active",
			},
		},
		"the broker knows newer than the engine": {
			Worker{ID: 7, Status: "active", Heartbeat: &fresh, Probe: &WorkerProbe{Valid: true, Consumers: &none}},
			consumed,
			Assessment{Health: WorkerActive},
		},
		"its queue is gone": {
			Worker{ID: 7, Status: "active", Heartbeat: &fresh, Probe: &WorkerProbe{Valid: true, QueueExists: &no}},
			nil,
			Assessment{WorkerDeaf, ByBroker, "last heartbeat 1s ago, but it has no queue worker.7.executions", "active"},
		},
		"what was seen long ago": {
			Worker{Status: "active", Heartbeat: &fresh, Probe: &WorkerProbe{Consumers: &none}},
			nil,
			Assessment{Health: WorkerActive},
		},
		"the row says that it has left": {
			Worker{Status: "inactive", Heartbeat: &fresh, Probe: &WorkerProbe{Valid: true, Consumers: &one}},
			consumed,
			Assessment{Health: WorkerInactive, By: ByStatus, Why: "status inactive"},
		},
		"one that drains need not consume": {
			Worker{Status: "active", Heartbeat: &fresh, Draining: true},
			alone,
			Assessment{Health: WorkerDraining, By: ByStatus},
		},
	} {
		require.Equal(t, c.want, c.worker.Assess(now, 90*time.Second, c.queue), name)
	}
}

// TestRegisteredIsOfTheNewestProcess: by the database's clock, and whatever a worker of
// another make announces.
func TestRegisteredIsOfTheNewestProcess(t *testing.T) {
	b := setup(t, nil)
	ctx := testkit.Context(t)
	for _, name := range []string{"again", "foreign"} {
		_, err := b.Store.EnrolWorker(ctx, store.EnrolWorkerParams{
			Name: name, WorkerType: store.WorkerTypeEnumLocal, Capabilities: []byte("{}"), Incarnation: uuid.New(),
		})
		require.NoError(t, err)
	}
	testkit.Exec(t, b.Store, "update worker set created = now() - interval '1 hour'")
	testkit.Exec(t, b.Store, `update worker set capabilities = '{"registered_at": "soon"}' where name = 'foreign'`)
	all, err := b.Workers(ctx)
	require.NoError(t, err)
	since := map[string]float64{}
	for _, w := range all.List {
		since[w.Name] = all.At.Sub(w.Registered).Seconds()
	}
	require.InDelta(t, 0, since["again"], 60)
	require.InDelta(t, 3600, since["foreign"], 60)
}

func TestEveryWorkerIsInOneCount(t *testing.T) {
	t.Parallel()
	var list []Worker
	for id := range int64(len(healthOrder)) * 2 {
		list = append(list, Worker{ID: id, Assigned: new(int64(1)), Capacity: new(int64(2))})
	}
	totals := SumWorkers(list, func(w *Worker) WorkerHealth { return healthOrder[w.ID%int64(len(healthOrder))] })
	counts := totals.Active + totals.Busy + totals.Cordoned + totals.Suspect + totals.Deaf + totals.Unhealthy +
		totals.Degraded + totals.Stale + totals.Inactive
	require.Equal(t, totals.Total, counts)
	require.Equal(t, int64(6), totals.Working())
	require.Equal(t, int64(12), totals.Capacity, "of the workers that get work")
}
