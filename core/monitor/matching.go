package monitor

import (
	"context"

	"github.com/attune-go/attune/core/store"
)

// MatchBound is how many executions are counted at most.
const MatchBound = 10_000

// Matching is how many executions a filter matches.
type Matching struct {
	Reading
	Count Count `json:"count"`
}

// Matching counts the executions that match a filter, by the same search that lists
// them, up to MatchBound. Where the search stops at its bound there are at least as many.
func (m *Monitor) Matching(ctx context.Context, filter ExecutionFilter) (*Matching, error) {
	n := &Matching{}
	err := m.Read(ctx, "executions", &n.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		filter.Limit = MatchBound
		page, err := findExecutions(ctx, tx, s, filter, 0)
		if err != nil {
			return err
		}
		n.Count = Count{Value: int64(len(page.ids)), AtLeast: page.bounded || page.next != 0}
		return nil
	})
	return n, err
}
