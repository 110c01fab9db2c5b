package recovery

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// leaving finds what workers that drain or have left were handed and have not
// begun. Only of workers that refuse outdated hand-overs: the others may begin it
// yet. Where no such worker holds anything, which is nearly always, no execution
// is looked at.
func (s *Sweep) leaving(ctx context.Context, tx *store.Tx) ([]scheduler.Unstarted, error) {
	workers, err := tx.FindLeavingWorkers(ctx)
	if err != nil {
		return nil, fmt.Errorf("find workers that leave: %w", err)
	}
	if len(workers) == 0 {
		s.afterLeft = 0
		return nil, nil
	}
	ids, err := tx.FindHandedBack(ctx, workers, s.afterLeft, waitersPerLine)
	if err != nil {
		return nil, fmt.Errorf("find what %d workers that leave have not begun: %w", len(workers), err)
	}
	if s.afterLeft = 0; len(ids) == waitersPerLine { // some of these may have to stay where they are
		s.afterLeft = ids[len(ids)-1]
	}
	unstarted := make([]scheduler.Unstarted, len(ids))
	for i, id := range ids {
		unstarted[i] = scheduler.Unstarted{Execution: id, Leaving: true}
	}
	return unstarted, nil
}
