package alerting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
)

func TestTheOverviewCountsWorkersAsTheBrokerSeesThem(t *testing.T) {
	t.Parallel()
	now := time.Now()
	fresh := now.Add(-time.Second)
	o := &Overview{Reading: monitor.Reading{At: now}, StaleAfter: time.Minute}
	for id := range int64(monitor.TopRows + 3) {
		o.everyWorker = append(o.everyWorker, monitor.Worker{ID: id + 1, Status: "active", Heartbeat: &fresh})
	}
	o.Workers = monitor.SumWorkers(o.everyWorker,
		func(*monitor.Worker) monitor.WorkerHealth { return monitor.WorkerActive })
	b := &monitor.Broker{Queues: []monitor.BrokerQueue{
		{Name: monitor.WorkerQueue(monitor.TopRows + 2)},
		{Name: monitor.WorkerQueue(1), Consumers: 1},
	}}
	totals, list := o.Assessed(b)
	require.Equal(t, monitor.WorkerTotals{Total: monitor.TopRows + 3, Active: monitor.TopRows + 2, Deaf: 1}, totals)
	require.Equal(t, int64(monitor.TopRows+2), list[0].ID,
		"unhealthy ones come first, also ones that the database alone would not show")
	totals, _ = o.Assessed(nil)
	require.Equal(t, int64(monitor.TopRows+3), totals.Active)
}
