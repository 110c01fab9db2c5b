package recovery

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// leaving finds executions that draining or departed workers have not started. It reads only
// workers that fence attempts: the others may still start them. It reads no executions unless such
// a worker holds some, which is rare.
func (s *Sweep) leaving(ctx context.Context, tx *store.Tx) ([]scheduler.Unstarted, error) {
	workers, err := tx.FindLeavingWorkers(ctx)
	if err != nil {
		return nil, fmt.Errorf("find workers that leave: %w", err)
	}
	if len(workers) == 0 {
		s.afterLeft = 0
		return nil, nil
	}
	ids, err := tx.FindUnstartedAt(ctx, workers, s.afterLeft, maxPerQueue)
	if err != nil {
		return nil, fmt.Errorf("find what %d workers that leave have not begun: %w", len(workers), err)
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
