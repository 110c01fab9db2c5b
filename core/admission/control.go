package admission

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Act is a change that an operator makes to queues.
type Act string

// The acts.
const (
	ActPause  Act = "pause"  // admit nothing; a second pause only changes the reason, if it has one
	ActResume Act = "resume" // admit again
	ActLimit  Act = "limit"  // replace the policy's limit
	ActReset  Act = "reset"  // restore the policy's limit
)

// Override is an operator's change to queues.
type Override struct {
	Act    Act
	Limit  int    // of ActLimit
	Reason string // of ActPause
	By     string // the operator
}

// QueueState is the part of a queue that an override can change, and the limit in force.
type QueueState struct {
	Paused      bool       `json:"paused"`
	PausedBy    string     `json:"paused_by,omitempty"`
	PausedAt    *time.Time `json:"paused_at,omitempty"`
	PauseReason string     `json:"pause_reason,omitempty"`
	Limit       *int       `json:"limit"`                    // in force; nil: none
	Override    *int       `json:"limit_override,omitempty"` // an operator's limit
}

// QueueChange is a queue before and after an override.
type QueueChange struct {
	ID      int64      `json:"id"`
	Group   string     `json:"group,omitempty"`
	Active  int        `json:"active"`
	Waiting int        `json:"waiting"`
	Changed bool       `json:"changed"`
	Before  QueueState `json:"before"`
	After   QueueState `json:"after"`
}

// ReasonChanged reports whether the queue was paused before and only its reason changed.
func (q QueueChange) ReasonChanged() bool {
	return q.Changed && q.Before.Paused && q.After.Paused && q.Before.PauseReason != q.After.PauseReason
}

// kept reports whether the override alone holds back the waiting executions.
func (q QueueChange) kept() bool {
	return q.After.Paused || (q.After.Limit != nil && q.Active >= *q.After.Limit)
}

// Applied is what an override changed.
type Applied struct {
	Queues []QueueChange // in order of id
	Heads  []Head        // the heads of queues that may now admit
}

// Head is the execution at the head of a queue.
type Head struct {
	Queue       int64
	ExecutionID int64
	ActionID    *int64
	ActionRef   string
	Parent      *int64
	Enforcement *int64
	Config      []byte
}

// Preview returns what an override would change, without locks.
func Preview(ctx context.Context, queries *store.Queries, target Target, override Override) ([]QueueChange, error) {
	rows, err := queries.ControlReadQueues(ctx, target.ActionID, target.groups())
	if err != nil {
		return nil, fmt.Errorf("read the queues of %s: %w", target, err)
	}
	changes := make([]QueueChange, len(rows))
	for i, row := range rows {
		changes[i] = evaluate(target, store.ControlLockQueuesRow(row), override)
	}
	if len(changes) == 0 && target.Group != "" {
		return changes, target.Fits()
	}
	return changes, nil
}

// Apply applies an override to the target's queues, in the caller's transaction. It takes effect
// with the commit: a batch that holds a queue's lock finishes first, and every later batch reads
// the override from the row. A repeated override changes nothing. An override that only removes an
// override creates no queue.
func Apply(ctx context.Context, tx *store.Tx, target Target, override Override) (*Applied, error) {
	rows, err := lockQueues(ctx, tx, target, override)
	if err != nil {
		return nil, err
	}
	applied := &Applied{Queues: make([]QueueChange, len(rows))}
	var changed, kept, opened []int64
	for i, row := range rows {
		q := evaluate(target, row, override)
		applied.Queues[i] = q
		if !q.Changed {
			continue
		}
		changed = append(changed, q.ID)
		switch {
		case q.kept():
			kept = append(kept, q.ID)
		case q.Waiting > 0: // it may now admit an execution that it held back
			opened = append(opened, q.ID)
		}
	}
	if len(changed) == 0 {
		return applied, nil
	}
	if err := storeOverride(ctx, tx, target, override, applied.Queues); err != nil {
		return nil, fmt.Errorf("%s the queues of %s: %w", override.Act, target, err)
	}
	// A queue that an override holds back must not be among the blocked queues, which batches try
	// when capacity returns. After a resume it is nudged.
	if len(kept) > 0 {
		if err := tx.ControlUnblockQueues(ctx, kept); err != nil {
			return nil, fmt.Errorf("unblock the queues of %s: %w", target, err)
		}
	}
	applied.Heads, err = Heads(ctx, tx.Queries, opened)
	return applied, err
}

// lockQueues locks the target's queues in order of id. For a whole action these are all its queues.
// The plain queue holds the override for future groups, so it is created if missing. The second
// read finds a group that another transaction created while the first read waited for the plain
// queue.
func lockQueues(ctx context.Context, tx *store.Tx, target Target,
	override Override,
) ([]store.ControlLockQueuesRow, error) {
	groups := target.groups()
	rows, err := tx.ControlLockQueues(ctx, target.ActionID, groups)
	found := slices.ContainsFunc(rows,
		func(row store.ControlLockQueuesRow) bool { return row.GroupKey == target.Group })
	if err == nil && !found && (override.Act == ActPause || override.Act == ActLimit) {
		// The missing queue must hold the override for future executions.
		if target.Group != "" {
			if err := target.Fits(); err != nil {
				return nil, err
			}
			// Under the plain queue's lock, so that the new group starts with its override.
			_, err = tx.ControlLockQueues(ctx, target.ActionID, []string{""})
		}
		if err == nil {
			maximum, limited := target.PolicyLimit()
			err = tx.ControlEnsureQueue(ctx, store.ControlEnsureQueueParams{
				GroupKey: target.Group, MaxConcurrent: int32(maximum), Unlimited: !limited, Action: target.ActionID,
			})
		}
	}
	if err == nil {
		rows, err = tx.ControlLockQueues(ctx, target.ActionID, groups)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the queues of %s: %w", target, err)
	}
	if len(rows) == 0 && target.Group != "" {
		return nil, target.Fits()
	}
	return rows, nil
}

// evaluate computes what an override changes in one queue.
func evaluate(target Target, row store.ControlLockQueuesRow, override Override) QueueChange {
	before := QueueState{
		Paused: row.Paused, PausedBy: value(row.PausedBy), PausedAt: row.PausedAt,
		PauseReason: value(row.PauseReason), Override: intOf(row.LimitOverride),
	}
	if !row.Unlimited {
		before.Limit = intOf(&row.MaxConcurrent)
	}
	q := QueueChange{
		ID: row.ID, Group: row.GroupKey, Active: int(row.ActiveCount), Waiting: int(row.QueuedCount), Before: before,
		After: before,
	}
	switch override.Act {
	case ActPause:
		switch {
		case !row.Paused:
			q.Changed = true
			q.After.Paused, q.After.PausedBy, q.After.PauseReason = true, override.By, override.Reason
		case override.Reason != "" && override.Reason != before.PauseReason: // a better reason for the same pause
			q.Changed, q.After.PauseReason = true, override.Reason
		}
	case ActResume:
		q.Changed = row.Paused
		q.After.Paused, q.After.PausedBy, q.After.PausedAt, q.After.PauseReason = false, "", nil, ""
	case ActLimit:
		limit := adapted(override.Limit, row.AdaptiveLimit)
		q.After.Limit, q.After.Override = &limit, &override.Limit
		q.Changed = !sameLimit(before.Override, q.After.Override) || !sameLimit(before.Limit, q.After.Limit)
	case ActReset:
		q.Changed = row.LimitOverride != nil
		if q.Changed {
			q.After.Override, q.After.Limit = nil, nil
			if maximum, limited := target.PolicyLimit(); limited {
				q.After.Limit = new(adapted(maximum, row.AdaptiveLimit))
			}
		}
	}
	return q
}

// adapted lowers a limit to the queue's adaptive limit.
func adapted(limit int, adaptive *float64) int {
	if adaptive == nil {
		return limit
	}
	return max(1, min(limit, int(math.Floor(*adaptive))))
}

// storeOverride stores the changes that evaluate computed.
func storeOverride(ctx context.Context, tx *store.Tx, target Target, override Override, queues []QueueChange) error {
	var ids []int64
	var maxima []int32
	var unlimited []bool
	for _, q := range queues {
		if !q.Changed {
			continue
		}
		maximum := int32(Unlimited)
		if q.After.Limit != nil {
			maximum = int32(*q.After.Limit)
		}
		ids, maxima, unlimited = append(ids, q.ID), append(maxima, maximum), append(unlimited, q.After.Limit == nil)
	}
	switch override.Act {
	case ActPause:
		return tx.ControlPauseQueues(ctx, override.Reason, override.By, ids)
	case ActResume:
		return tx.ControlResumeQueues(ctx, ids)
	case ActLimit, ActReset:
		limit := int32(0)
		if override.Act == ActLimit {
			limit = int32(override.Limit)
		}
		err := tx.ControlLimitQueues(ctx, store.ControlLimitQueuesParams{
			Override: limit, Ids: ids, MaxConcurrent: maxima, Unlimited: unlimited,
		})
		if err != nil || target.Group != "" {
			return err
		}
		return tx.ControlStatsLimit(ctx, maxima[0], target.ActionID)
	}
	return fmt.Errorf("unknown act %q", override.Act)
}

// Heads reads the executions at the heads of queues. Requesting one of them again is harmless: the
// batch that takes the request fills its queue.
func Heads(ctx context.Context, queries *store.Queries, queues []int64) ([]Head, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	rows, err := queries.ControlHeads(ctx, queues)
	if err != nil {
		return nil, fmt.Errorf("read the heads of %d queues: %w", len(queues), err)
	}
	heads := make([]Head, len(rows))
	for i, row := range rows {
		heads[i] = Head{
			Queue: row.StateID, ExecutionID: row.ID, ActionID: row.Action, ActionRef: row.ActionRef,
			Parent: row.Parent, Enforcement: row.Enforcement, Config: row.Config,
		}
	}
	return heads, nil
}

func intOf(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

func sameLimit(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
