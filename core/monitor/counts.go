package monitor

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
)

// Counts is how many executions there are by status.
type Counts struct {
	Live   Live
	Recent Recent
	Floor  int64 // the smallest id requested within the recent window
}

// ReadCounts counts unfinished executions and those that ended lately.
func ReadCounts(ctx context.Context, tx *store.Tx, s Shape) (*Counts, error) {
	o := &Counts{Live: Live{StuckAfter: StuckAfter}, Recent: Recent{Window: RecentWindow}}

	floor, err := tx.MonitorFloor(ctx, RecentWindow.Seconds())
	if err != nil {
		return nil, fmt.Errorf("find where the recent executions begin: %w", err)
	}
	o.Floor = floor
	if !s.Ours {
		return o, publishedCounts(ctx, tx, floor, o)
	}
	live, err := tx.MonitorLive(ctx, StuckAfter.Seconds(), sampleBound)
	if err != nil {
		return nil, fmt.Errorf("count unfinished executions: %w", err)
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
	return o, recentEnds(ctx, tx, floor, o)
}

func recentEnds(ctx context.Context, tx *store.Tx, floor int64, o *Counts) error {
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
	o.Recent.Reasons, err = readFailReasons(ctx, tx, floor)
	return err
}

func publishedCounts(ctx context.Context, tx *store.Tx, floor int64, o *Counts) error {
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
func (o *Counts) set(status string, c Count) {
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
