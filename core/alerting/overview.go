package alerting

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
)

// Overview reads the state of the whole installation from the database. Broker reads the other half,
// so that neither waits for the other.
func (m *Reader) Overview(ctx context.Context) (*Overview, error) {
	o := &Overview{StaleAfter: m.Config().StaleAfter, rules: m.rules}
	err := m.Read(ctx, "overview", &o.Reading, func(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
		counts, err := monitor.ReadCounts(ctx, tx, s)
		if err != nil {
			return err
		}
		o.Live, o.Recent = counts.Live, counts.Recent
		queues, totals, _, err := m.ReadQueues(ctx, tx, s, monitor.QueueFilter{}, monitor.TopRows)
		if err != nil {
			return err
		}
		o.Top, o.Queues = queues, totals
		if o.Live.Requested.AtLeast {
			o.Live.Requested.Value = max(o.Live.Requested.Value, totals.Queued)
		}
		workers, _, err := monitor.ReadWorkers(ctx, tx, s)
		if err != nil {
			return err
		}
		o.everyWorker = workers
		o.Workers, o.WorkerList = monitor.SumWorkers(workers, m.JudgeAt(o.At)),
			monitor.UnwellFirst(workers, m.JudgeAt(o.At))
		if o.Replicas, err = m.ReadReplicas(ctx, tx, s, o.At); o.Replicas != nil {
			o.Replicas.At = o.At
		}
		if err != nil {
			return err
		}
		if o.Alerts, err = m.readAlerts(ctx, tx, s, o.At, alertOverview); err != nil {
			return err
		}
		if o.Flows, err = monitor.ReadFlows(ctx, tx, s); err != nil {
			return err
		}
		o.WorkQueues, err = monitor.ReadWorkQueues(ctx, tx, s)
		return err
	})
	return o, err
}

// Overview is the state of the whole installation on one page.
type Overview struct {
	monitor.Reading
	// Live counts unfinished executions by status.
	Live monitor.Live `json:"live"`
	// Recent counts executions requested within Window by how they ended.
	Recent monitor.Recent      `json:"recent"`
	Queues monitor.QueueTotals `json:"queues"`
	// Top are the queues with the most waiting executions.
	Top        []monitor.Queue      `json:"top"`
	Workers    monitor.WorkerTotals `json:"workers"`
	StaleAfter time.Duration        `json:"stale_after_ns"`
	// WorkerList are the workers, unwell ones first.
	WorkerList []monitor.Worker `json:"worker_list"`
	// Replicas are nil where the schema has none.
	Replicas *monitor.Replicas `json:"replicas"`
	// Alerts are nil where the schema has none.
	Alerts *Alerts `json:"alerts,omitempty"`
	// Flows are nil where the schema does not record them.
	Flows *monitor.Flows `json:"flows,omitempty"`
	// WorkQueues are those with waiting items, which the engine does not dispatch.
	WorkQueues []monitor.WorkQueue `json:"work_queues,omitempty"`

	rules Rules // for Attention

	everyWorker []monitor.Worker // for Assessed
}

// Assessed evaluates the workers by the database and by the broker's view of their queues; b is nil
// without an answer.
func (o *Overview) Assessed(b *monitor.Broker) (monitor.WorkerTotals, []monitor.Worker) {
	all := o.everyWorker
	if all == nil {
		all = o.WorkerList
	}
	if b == nil || int64(len(all)) != o.Workers.Total {
		return o.Workers, o.WorkerList
	}
	queues := b.WorkerQueues()
	assess := func(w *monitor.Worker) monitor.WorkerHealth { return w.Assess(o.At, o.StaleAfter, queues[w.ID]).Health }
	return monitor.SumWorkers(all, assess), monitor.UnwellFirst(all, assess)
}
