package monitor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// The bounds of what is read about the busiest actions.
const (
	// BusiestActions is how many actions are told of.
	BusiestActions = 200
	// AgedQueues is how many queues, the longest, have their waiters' ages read.
	AgedQueues = 20
	// SharedLimits is how many limits of packs and of everything are told of.
	SharedLimits = 200
	// headQueues is how many queues, the busiest, have their heads read.
	headQueues = 2_000
)

// ActionLoad is what all queues of one action hold together.
type ActionLoad struct {
	ActionRef string `json:"action_ref"`
	Queued    int64  `json:"queued"`
	Active    int64  `json:"active"`
	// Limit is the limit in force for each queue of the action, which is one for
	// each group where its policy has parameters; nil without a limit.
	Limit *int64 `json:"limit"`
	// Paused is true when one of the queues is, Blocked counts those whose head
	// waits for something wider than the queue.
	Paused    bool  `json:"paused"`
	Blocked   int64 `json:"blocked"`
	Enqueued  int64 `json:"enqueued"`
	Completed int64 `json:"completed"`
	// Oldest is since when the longest waiting head waits; nil when nobody does,
	// or no queue of the action is among the busiest.
	Oldest *time.Time `json:"oldest"`
	// Ages covers those queues of the action that are among the longest; nil
	// when none is.
	Ages *Ages `json:"ages"`
}

// Busiest is the list of the busiest actions.
type Busiest struct {
	Reading
	List []ActionLoad `json:"list"`
	// Shared holds the limits of packs and of everything that are in force.
	Shared []Scope `json:"shared"`
}

// Busiest reads the load of the busiest actions, the longest lines first. Where
// the schema does not record queues the list is empty.
func (m *Monitor) Busiest(ctx context.Context) (*Busiest, error) {
	out := &Busiest{}
	err := m.Read(ctx, "the busiest actions", &out.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		out.List = nil // the transaction may be repeated
		if !s.Shared {
			return nil
		}
		rows, err := tx.ViewBusiest(ctx, BusiestActions)
		if err != nil {
			return fmt.Errorf("sum up the queues of actions: %w", err)
		}
		at := make(map[int64]*ActionLoad, len(rows))
		out.List = make([]ActionLoad, len(rows))
		for i, r := range rows {
			out.List[i] = ActionLoad{
				ActionRef: r.Ref, Queued: r.Queued, Active: r.Active, Paused: r.Paused, Blocked: r.Blocked,
				Enqueued: r.Enqueued, Completed: r.Completed,
			}
			if r.MaxConcurrent >= 0 {
				out.List[i].Limit = &r.MaxConcurrent
			}
			at[r.ActionID] = &out.List[i]
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
	ids, err := tx.ViewScopeIDs(ctx, "", SharedLimits) // those that count slots come first
	if err != nil {
		return nil, fmt.Errorf("list shared limits: %w", err)
	}
	list, err := scopesByID(ctx, tx, ids, at)
	return slices.DeleteFunc(list,
		func(s Scope) bool { return s.PolicyID == nil || !policy.SharedKind(s.Kind).Slots() }), err
}

// readLoads adds the oldest heads and the ages of those who wait.
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
