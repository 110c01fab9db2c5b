package monitor

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
)

// Overview reads the state of the whole installation from the database. The
// broker's half comes from Broker, so that neither waits for the other.
func (m *Monitor) Overview(ctx context.Context) (*Overview, error) {
	o := &Overview{StaleAfter: m.cfg.StaleAfter, rules: m.rules()}
	err := m.database(ctx, "overview", &o.Reading, func(ctx context.Context, tx *store.Tx, s shape) error {
		if err := m.executionCounts(ctx, tx, s, o); err != nil {
			return err
		}
		queues, totals, _, err := m.readQueues(ctx, tx, s, QueueFilter{}, topRows)
		if err != nil {
			return err
		}
		o.Top, o.Queues = queues, totals
		if o.Live.Requested.AtLeast {
			o.Live.Requested.Value = max(o.Live.Requested.Value, totals.Queued)
		}
		workers, _, err := readWorkers(ctx, tx, s)
		if err != nil {
			return err
		}
		o.everyWorker = workers
		o.Workers, o.WorkerList = sumWorkers(workers, m.judgeAt(o.At)), unwellFirst(workers, m.judgeAt(o.At))
		if o.Replicas, err = m.readReplicas(ctx, tx, s, o.At); o.Replicas != nil {
			o.Replicas.At = o.At
		}
		if err != nil {
			return err
		}
		if o.Alerts, err = m.readAlerts(ctx, tx, s, o.At, alertOverview); err != nil {
			return err
		}
		if o.Flows, err = readFlows(ctx, tx, s, o.floor); err != nil {
			return err
		}
		o.WorkQueues, err = readWorkQueues(ctx, tx, s)
		return err
	})
	return o, err
}

func (m *Monitor) executionCounts(ctx context.Context, tx *store.Tx, s shape, o *Overview) error {
	o.Recent.Window, o.Live.StuckAfter = RecentWindow, StuckAfter
	floor, err := tx.MonitorFloor(ctx, RecentWindow.Seconds())
	if err != nil {
		return fmt.Errorf("find where the recent executions begin: %w", err)
	}
	o.floor = floor
	if !s.ours {
		return publishedCounts(ctx, tx, floor, o)
	}
	live, err := tx.MonitorLive(ctx, StuckAfter.Seconds(), sampleBound)
	if err != nil {
		return fmt.Errorf("count unfinished executions: %w", err)
	}
	total := int64(0)
	for _, row := range live {
		total += row.N
	}
	cut := total >= sampleBound
	for _, row := range live {
		o.set(string(row.Status), Count{Value: row.N, AtLeast: cut})
		o.Live.Stuck.Value += row.Stuck
	}
	o.Live.Stuck.AtLeast = cut && o.Live.Stuck.Value > 0
	if cut {
		o.Live.Requested.AtLeast = true
	}
	return recentEnds(ctx, tx, floor, o)
}

func recentEnds(ctx context.Context, tx *store.Tx, floor int64, o *Overview) error {
	ends, err := tx.MonitorEnds(ctx, countBound, floor)
	if err != nil {
		return fmt.Errorf("count recently ended executions: %w", err)
	}
	for _, row := range ends {
		o.set(row.Status, Count{Value: row.N, AtLeast: row.N >= countBound})
	}
	const lookBack = 500
	failed, err := tx.MonitorFailedLastMinute(ctx, lookBack)
	if err != nil {
		return fmt.Errorf("count the failures of the last minute: %w", err)
	}
	o.Recent.FailedLastMinute = &Count{Value: failed, AtLeast: failed >= lookBack}
	return readFailReasons(ctx, tx, floor, o)
}

func publishedCounts(ctx context.Context, tx *store.Tx, floor int64, o *Overview) error {
	counts, err := tx.MonitorPublishedCounts(ctx, countBound, floor)
	if err != nil {
		return fmt.Errorf("count executions by status: %w", err)
	}
	for _, row := range counts {
		o.set(row.Status, Count{Value: row.N, AtLeast: row.N >= countBound})
	}
	stuck, err := tx.MonitorPublishedStuck(ctx, StuckAfter.Seconds(), countBound)
	if err != nil {
		return fmt.Errorf("count stuck executions: %w", err)
	}
	o.Live.Stuck = Count{Value: stuck, AtLeast: stuck >= countBound}
	return nil
}

// set puts the count of a status where it belongs.
func (o *Overview) set(status string, c Count) {
	field := map[attune.Status]*Count{
		attune.StatusRequested: &o.Live.Requested, attune.StatusScheduling: &o.Live.Scheduling,
		attune.StatusScheduled: &o.Live.Scheduled, attune.StatusRunning: &o.Live.Running,
		attune.StatusCanceling: &o.Live.Canceling, attune.StatusCompleted: &o.Recent.Completed,
		attune.StatusFailed: &o.Recent.Failed, attune.StatusCancelled: &o.Recent.Cancelled,
		attune.StatusTimeout: &o.Recent.Timeout, attune.StatusAbandoned: &o.Recent.Abandoned,
	}[attune.Status(status)]
	if field != nil {
		*field = c
	}
}
