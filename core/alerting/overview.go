package alerting

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
)

// Overview reads the state of the whole installation from the database. The
// broker's half comes from Broker, so that neither waits for the other.
func (m *Reader) Overview(ctx context.Context) (*Overview, error) {
	o := &Overview{StaleAfter: m.Config().StaleAfter, rules: m.rules}
	err := m.Read(ctx, "overview", &o.Reading, func(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
		counts, err := monitor.ReadCounts(ctx, tx, s)
		if err != nil {
			return err
		}
		o.Live, o.Recent, o.floor = counts.Live, counts.Recent, counts.Floor
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
		if o.Flows, err = monitor.ReadFlows(ctx, tx, s, o.floor); err != nil {
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
	// Top holds the queues with the most waiting executions.
	Top     []monitor.Queue      `json:"top"`
	Workers monitor.WorkerTotals `json:"workers"`
	// StaleAfter is the heartbeat age beyond which a worker counts as stale.
	StaleAfter time.Duration `json:"stale_after_ns"`
	// WorkerList holds the workers, the unwell first.
	WorkerList []monitor.Worker `json:"worker_list"`
	// Replicas are the engine's; nil where the schema has none.
	Replicas *monitor.Replicas `json:"replicas"`
	// Alerts are the open alerts; nil where the schema has none.
	Alerts *Alerts `json:"alerts,omitempty"`
	// Flows is what of workflows and questions somebody has to look at; nil where the
	// schema does not record it.
	Flows *monitor.Flows `json:"flows,omitempty"`
	// WorkQueues are those in which items wait, which the engine does not dispatch.
	WorkQueues []monitor.WorkQueue `json:"work_queues,omitempty"`

	rules Rules // what Attention judges by
	floor int64 // the smallest id requested within the recent window

	everyWorker []monitor.Worker // what Judged judges
}

// Judged is the state of the workers by all that is known of them: what the database
// says, and b, what the broker says of their queues; nil where it does not answer.
func (o *Overview) Judged(b *monitor.Broker) (monitor.WorkerTotals, []monitor.Worker) {
	all := o.everyWorker
	if all == nil {
		all = o.WorkerList
	}
	if b == nil || int64(len(all)) != o.Workers.Total {
		return o.Workers, o.WorkerList
	}
	queues := b.WorkerQueues()
	judge := func(w *monitor.Worker) monitor.WorkerHealth { return w.Judge(o.At, o.StaleAfter, queues[w.ID]).Health }
	return monitor.SumWorkers(all, judge), monitor.UnwellFirst(all, judge)
}
