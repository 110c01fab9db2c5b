package monitor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// The bounds of a read of the busiest actions.
const (
	// BusiestActions bounds the list of actions.
	BusiestActions = 200
	// AgedQueues is how many of the longest queues have their ages read.
	AgedQueues = 20
	// SharedLimits bounds the list of pack and global limits.
	SharedLimits = 200
	// headQueues is how many of the busiest queues have their heads read.
	headQueues = 2_000
)

// ActionLoad sums up all queues of one action.
type ActionLoad struct {
	ActionID  int64  `json:"action_id"`
	ActionRef string `json:"action_ref"`
	Queued    int64  `json:"queued"`
	Active    int64  `json:"active"`
	// Limit is the limit of each queue of the action; nil without one.
	Limit *int64 `json:"limit"`
	// Paused is true if one queue is. Blocked counts queues with a blocked head.
	Paused    bool  `json:"paused"`
	Blocked   int64 `json:"blocked"`
	Enqueued  int64 `json:"enqueued"`
	Completed int64 `json:"completed"`
	// Oldest is since when the longest waiting head waits; nil if none of the busiest queues waits.
	Oldest *time.Time `json:"oldest"`
	// Ages covers the queues of the action among the longest; nil if none is.
	Ages *Ages `json:"ages"`
}

// Busiest is the list of the busiest actions.
type Busiest struct {
	Reading
	List []ActionLoad `json:"list"`
	// Shared lists the pack and global limits in force.
	Shared []Scope `json:"shared"`
}

// Busiest reads the busiest actions, the longest queues first. The list is empty where the schema
// records no queues.
func (m *Monitor) Busiest(ctx context.Context) (*Busiest, error) {
	out := &Busiest{}
	err := m.Read(ctx, "the busiest actions", &out.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		out.List = nil // the transaction may be repeated
		if !s.Ours {
			return nil
		}
		var err error
		if out.List, err = store.Rows[ActionLoad](ctx, tx, store.ViewBusiest, BusiestActions); err != nil {
			return fmt.Errorf("sum up the queues of actions: %w", err)
		}
		at := make(map[int64]*ActionLoad, len(out.List))
		for i := range out.List {
			at[out.List[i].ActionID] = &out.List[i]
		}
		queues, err := m.listQueues(ctx, tx, QueueFilter{All: true}, headQueues)
		if err != nil {
			return fmt.Errorf("list the busiest queues: %w", err)
		}
		if err := readLoads(ctx, tx, queues, at); err != nil {
			return err
		}
		out.Shared, err = sharedLimits(ctx, tx, out.At)
		return err
	})
	return out, err
}

// sharedLimits reads the shared limits that count slots and have a policy.
func sharedLimits(ctx context.Context, tx *store.Tx, at time.Time) ([]Scope, error) {
	ids, err := tx.ViewScopeIDs(ctx, "", SharedLimits) // limits that count slots come first
	if err != nil {
		return nil, fmt.Errorf("list shared limits: %w", err)
	}
	list, err := scopesByID(ctx, tx, ids, at)
	return slices.DeleteFunc(list,
		func(s Scope) bool { return s.PolicyID == nil || !policy.SharedKind(s.Kind).Slots() }), err
}

// readLoads adds the oldest heads and the ages.
func readLoads(ctx context.Context, tx *store.Tx, queues []Queue, at map[int64]*ActionLoad) error {
	for i := range queues {
		q := &queues[i]
		load := at[q.ActionID]
		if load == nil {
			continue
		}
		if q.Oldest != nil && (load.Oldest == nil || q.Oldest.Before(*load.Oldest)) {
			load.Oldest = q.Oldest
		}
		if i >= AgedQueues || q.Queued == 0 {
			continue
		}
		ages, err := ReadAges(ctx, tx, q)
		if err != nil {
			return err
		}
		if load.Ages == nil {
			load.Ages = newAges()
		}
		load.Ages.add(ages)
	}
	return nil
}

func (a *Ages) add(other *Ages) {
	for i, n := range other.Classes {
		a.Classes[i] += n
	}
	a.Estimated = a.Estimated || other.Estimated
	a.Probes += other.Probes
}
