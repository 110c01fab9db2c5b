package monitor

import (
	"cmp"
	"context"

	"github.com/attune-go/attune/core/store"
)

// WorkflowBoard is what a dashboard lists: the workflows that have not ended, the
// newest first, and below them those that have.
type WorkflowBoard struct {
	Reading
	Filter WorkflowFilter `json:"filter"`
	// From is the id that those which have ended were read from: theirs are smaller.
	// Zero means from the newest.
	From int64 `json:"from,omitempty"`
	// List holds at most as many of each kind as the filter's limit says, and of those
	// that have ended no more than DefaultPage; the first Open of it have not ended.
	List []Workflow `json:"list"`
	Open int        `json:"open"`
	// MoreOpen says that further ones match that have not ended; Next continues those
	// that have, and is zero at their end.
	MoreOpen bool  `json:"more_open,omitempty"`
	Next     int64 `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound before it had looked at
	// every row, so that older matches may exist.
	Bounded bool `json:"bounded,omitempty"`
}

// WorkflowBoard reads the workflows that match, those that have not ended first, and
// of those that have the ones that are older than an id; zero begins with the newest.
// The searches look at a bounded number of rows and say when they stopped there.
func (m *Monitor) WorkflowBoard(ctx context.Context, filter WorkflowFilter, below int64) (*WorkflowBoard, error) {
	b := &WorkflowBoard{Filter: filter, From: below, List: []Workflow{}}
	if err := filter.Check(); err != nil {
		return b, err
	}
	err := m.Read(ctx, "workflows", &b.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if err := RecordsWorkflows(ctx, tx, s); err != nil {
			return err
		}
		open := &Workflows{Filter: filter}
		if err := open.read(ctx, tx, part{open: true}); err != nil {
			return err
		}
		ended := &Workflows{Filter: filter, From: below}
		ended.Filter.Limit = min(cmp.Or(filter.Limit, DefaultPage), DefaultPage)
		if err := ended.read(ctx, tx, part{ended: true, past: ended.Filter.Limit}); err != nil {
			return err
		}
		b.List, b.Open, b.MoreOpen = list(append(open.List, ended.List...)), len(open.List), open.Next != 0
		b.Next, b.Bounded = ended.Next, ended.Bounded
		return nil
	})
	return b, err
}
