package recovery

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// lostRequests reads one window of live rows; after the last window it starts from the beginning.
// It turns unfinished claims back into requests.
func (s *Sweep) lostRequests(ctx context.Context, tx *store.Tx) ([]int64, error) {
	age := s.cfg.RequestAge
	if time.Now().UnixNano() < s.hurryUntil.Load() {
		age = min(age, hurryAge)
	}
	arg := store.FindLostRequestsParams{
		OlderThan: age.Seconds(), ClaimAge: s.cfg.ClaimAge.Seconds(), After: s.afterLost, WindowSize: rowsPerSweep,
		ByStatus: s.adopted,
	}
	row, err := tx.FindLostRequests(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("find lost requests: %w", err)
	}
	s.afterLost = next(row.Last, row.Scanned, rowsPerSweep)
	if len(row.Claims) == 0 {
		return row.Ids, nil
	}
	reclaimed, err := s.reclaim(ctx, tx.Queries, row.Claims)
	return append(row.Ids, reclaimed...), err
}

// Reclaim puts back claims that stayed unfinished for too long, and returns them.
func (s *Sweep) Reclaim(ctx context.Context, claims []int64) ([]int64, error) {
	return s.reclaim(ctx, s.store.Queries, claims)
}

func (s *Sweep) reclaim(ctx context.Context, q *store.Queries, claims []int64) ([]int64, error) {
	reclaimed, err := q.ReclaimClaims(ctx, claims, s.cfg.ClaimAge.Seconds())
	if err != nil {
		return nil, fmt.Errorf("put %d unfinished claims back: %w", len(claims), err)
	}
	if len(reclaimed) > 0 {
		s.logger.WarnContext(ctx, "Unfinished claims put back", "execution_ids", reclaimed)
	}
	return reclaimed, nil
}

// undelivered reads the dispatches that the broker returned.
func (s *Sweep) undelivered(ctx context.Context, tx *store.Tx) ([]scheduler.Unstarted, error) {
	rows, err := tx.FindUndelivered(ctx, s.afterNote, maxPerQueue)
	if err != nil {
		return nil, fmt.Errorf("find returned dispatches: %w", err)
	}
	s.afterNote = 0
	if len(rows) == maxPerQueue {
		s.afterNote = rows[len(rows)-1].ID
	}
	unstarted := make([]scheduler.Unstarted, len(rows))
	for i, row := range rows {
		unstarted[i] = scheduler.Unstarted{
			Execution: row.Execution, Note: row.ID, Worker: row.Worker,
			Attempt: row.Attempt,
		}
	}
	return unstarted, nil
}

// leaving finds executions that draining or departed workers have not started. It reads only
// workers that fence attempts: the others may still start them. It reads no executions unless such
// a worker holds some, which is rare.
func (s *Sweep) leaving(ctx context.Context, tx *store.Tx) ([]scheduler.Unstarted, error) {
	workers, err := tx.FindLeavingWorkers(ctx)
	if err != nil {
		return nil, fmt.Errorf("find leaving workers: %w", err)
	}
	if len(workers) == 0 {
		s.afterLeft = 0
		return nil, nil
	}
	ids, err := tx.FindUnstartedAt(ctx, workers, s.afterLeft, maxPerQueue)
	if err != nil {
		return nil, fmt.Errorf("find the unstarted executions of %d leaving workers: %w", len(workers), err)
	}
	if s.afterLeft = 0; len(ids) == maxPerQueue { // some of these may have to stay at their worker
		s.afterLeft = ids[len(ids)-1]
	}
	unstarted := make([]scheduler.Unstarted, len(ids))
	for i, id := range ids {
		unstarted[i] = scheduler.Unstarted{Execution: id, Leaving: true}
	}
	return unstarted, nil
}
