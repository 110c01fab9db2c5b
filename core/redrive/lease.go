package redrive

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/store"
)

// Lease is an item of work that an execution was given and another holds by now.
type Lease struct {
	Item int64 `json:"item"`
	// Holder is the execution that holds it; 0 if that is not known.
	Holder int64 `json:"holder"`
}

// leases adds to rows what was leased to others since, where items of work are.
func leases(ctx context.Context, q *store.Queries, rows map[int64]*Row, ids []int64) error {
	shape, err := q.RedriveShape(ctx)
	if err != nil {
		return fmt.Errorf("look at the schema: %w", err)
	}
	if !shape.Leases {
		return nil
	}
	list, err := q.RedriveLeases(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the items of work of %d executions: %w", len(ids), err)
	}
	for _, l := range list {
		if row := rows[l.Execution]; row != nil {
			row.Lease = &Lease{Item: l.Item, Holder: l.Holder}
		}
	}
	return nil
}

// text says who has the item.
func (l *Lease) text() string {
	if l.Holder == 0 {
		return fmt.Sprintf("its item of work %d is leased elsewhere", l.Item)
	}
	return fmt.Sprintf("its item of work %d is leased to execution %d", l.Item, l.Holder)
}
