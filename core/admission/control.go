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

// Override is an operator's change to queues, kept as an override.
type Override struct {
	Act    Act
	Limit  int    // of ActLimit
	Reason string // of ActPause
	By     string // the operator
}

// QueueState is the part of a queue that a Word can change, and the limit in force.
type QueueState struct {
	Paused      bool       `json:"paused"`
	PausedBy    string     `json:"paused_by,omitempty"`
	PausedAt    *time.Time `json:"paused_at,omitempty"`
	PauseReason string     `json:"pause_reason,omitempty"`
	Limit       *int       `json:"limit"`                    // in force; nil: none
	Override    *int       `json:"limit_override,omitempty"` // an operator's limit
}

// QueueChange is a queue before and after a Word.
type QueueChange struct {
	ID      int64      `json:"id"`
	Group   string     `json:"group,omitempty"`
	Active  int        `json:"active"`
	Waiting int        `json:"waiting"`
	Changed bool       `json:"changed"`
	Before  QueueState `json:"before"`
	After   QueueState `json:"after"`
}

// mayAdmit reports whether a changed queue may now admit an execution that it held back.
func (q QueueChange) mayAdmit() bool {
	return q.Changed && q.Waiting > 0 && !q.After.Paused && (q.After.Limit == nil || q.Active < *q.After.Limit)
}

// ReasonChanged reports whether the queue was paused before and only its reason changed.
func (q QueueChange) ReasonChanged() bool {
	return q.Changed && q.Before.Paused && q.After.Paused && q.Before.PauseReason != q.After.PauseReason
}

// kept reports whether the override alone holds back the waiting executions.
func (q QueueChange) kept() bool {
	return q.After.Paused || (q.After.Limit != nil && q.Active >= *q.After.Limit)
}

// Applied is what a Word changed.
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

// Preview returns what a Word would change, without locks.
func Preview(ctx context.Context, queries *store.Queries, target Target, word Override) ([]QueueChange, error) {
	rows, err := queries.ControlReadQueues(ctx, target.ActionID, target.groups())
	if err != nil {
		return nil, fmt.Errorf("read the queues of %s: %w", target, err)
	}
	words := make([]QueueChange, len(rows))
	for i, row := range rows {
		words[i] = evaluate(target, store.ControlLockQueuesRow(row), word)
	}
	if len(words) == 0 && target.Group != "" {
		return words, target.Fits()
	}
	return words, nil
}

// makes reports whether the override must create a missing queue, so that it holds for future
// executions.
func (w Override) makes() bool { return w.Act == ActPause || w.Act == ActLimit }

// Apply applies a Word to the target's queues, in the caller's transaction. It takes effect with the
// commit: a batch that holds a queue's lock finishes first, and every later batch reads the
// override from the row. A repeated Word changes nothing. A Word that only removes an override
// creates no queue.
func Apply(ctx context.Context, tx *store.Tx, target Target, word Override) (*Applied, error) {
	rows, err := lockQueues(ctx, tx, target, word)
	if err != nil {
		return nil, err
	}
	said := &Applied{Queues: make([]QueueChange, len(rows))}
	var changed, kept, opened []int64
	for i, row := range rows {
		q := evaluate(target, row, word)
		said.Queues[i] = q
		if !q.Changed {
			continue
		}
		changed = append(changed, q.ID)
		if q.kept() {
			kept = append(kept, q.ID)
		}
		if q.mayAdmit() {
			opened = append(opened, q.ID)
		}
	}
	if len(changed) == 0 {
		return said, nil
	}
	if err := storeOverride(ctx, tx, target, word, said.Queues); err != nil {
		return nil, fmt.Errorf("%s the queues of %s: %w", word.Act, target, err)
	}
	// A queue that an override holds back must not be among the blocked queues, which batches try
	// when capacity returns. After a resume it is nudged.
	if len(kept) > 0 {
		if err := tx.ControlUnblockQueues(ctx, kept); err != nil {
			return nil, fmt.Errorf("unblock the queues of %s: %w", target, err)
		}
	}
	said.Heads, err = Heads(ctx, tx.Queries, opened)
	return said, err
}

// lockQueues locks the target's queues in order of id. For a whole action these are all its queues.
// The plain queue holds the override for future groups, so it is created if missing. The second
// read finds a group that another transaction created while the first read waited for the plain
// queue.
func lockQueues(ctx context.Context, tx *store.Tx, target Target, word Override) ([]store.ControlLockQueuesRow, error) {
	groups := target.groups()
	rows, err := tx.ControlLockQueues(ctx, target.ActionID, groups)
	found := slices.ContainsFunc(rows,
		func(row store.ControlLockQueuesRow) bool { return row.GroupKey == target.Group })
	if err == nil && !found && word.makes() {
		if target.Group != "" {
			if err := target.Fits(); err != nil {
				return nil, err
			}
			// Under the plain queue's lock, so that the new group starts with its override.
			_, err = tx.ControlLockQueues(ctx, target.ActionID, []string{""})
		}
		if err == nil {
			err = target.ensure(ctx, tx.Queries)
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

// evaluate computes what a Word changes in one queue.
func evaluate(target Target, row store.ControlLockQueuesRow, word Override) QueueChange {
	before := QueueState{
		Paused: row.Paused, PausedBy: textOf(row.PausedBy), PausedAt: row.PausedAt,
		PauseReason: textOf(row.PauseReason),
		Limit:       limitOf(row.MaxConcurrent, row.Unlimited), Override: intOf(row.LimitOverride),
	}
	q := QueueChange{
		ID: row.ID, Group: row.GroupKey, Active: int(row.ActiveCount), Waiting: int(row.QueuedCount), Before: before,
		After: before,
	}
	switch word.Act {
	case ActPause:
		switch {
		case !row.Paused:
			q.Changed = true
			q.After.Paused, q.After.PausedBy, q.After.PauseReason = true, word.By, word.Reason
		case word.Reason != "" && word.Reason != before.PauseReason: // a better reason for the same pause
			q.Changed, q.After.PauseReason = true, word.Reason
		}
	case ActResume:
		q.Changed = row.Paused
		q.After.Paused, q.After.PausedBy, q.After.PausedAt, q.After.PauseReason = false, "", nil, ""
	case ActLimit:
		limit := adapted(word.Limit, row.AdaptiveLimit)
		q.After.Limit, q.After.Override = &limit, &word.Limit
		q.Changed = !sameLimit(before.Override, q.After.Override) || !sameLimit(before.Limit, q.After.Limit)
	case ActReset:
		q.Changed = row.LimitOverride != nil
		if q.Changed {
			q.After.Override, q.After.Limit = nil, nil
			if maximum, unlimited := target.policyLimit(); !unlimited {
				maximum = adapted(maximum, row.AdaptiveLimit)
				q.After.Limit = &maximum
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

// storeOverride stores the changes that judge computed.
func storeOverride(ctx context.Context, tx *store.Tx, target Target, word Override, queues []QueueChange) error {
	var ids []int64
	var maxima []int32
	var unlimited []bool
	for _, q := range queues {
		if !q.Changed {
			continue
		}
		ids, unlimited = append(ids, q.ID), append(unlimited, q.After.Limit == nil)
		maxima = append(maxima, maximumOf(q.After.Limit))
	}
	switch word.Act {
	case ActPause:
		return tx.ControlPauseQueues(ctx, word.Reason, word.By, ids)
	case ActResume:
		return tx.ControlResumeQueues(ctx, ids)
	case ActLimit, ActReset:
		override := int32(0)
		if word.Act == ActLimit {
			override = int32(word.Limit)
		}
		err := tx.ControlLimitQueues(ctx, store.ControlLimitQueuesParams{
			Override: override, Ids: ids, MaxConcurrent: maxima, Unlimited: unlimited,
		})
		if err != nil || target.Group != "" {
			return err
		}
		return tx.ControlStatsLimit(ctx, maxima[0], target.ActionID)
	}
	return fmt.Errorf("unknown act %q", word.Act)
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

func limitOf(maximum int32, unlimited bool) *int {
	if unlimited {
		return nil
	}
	return intOf(&maximum)
}

func maximumOf(limit *int) int32 {
	if limit == nil {
		return Unlimited
	}
	return int32(*limit)
}

func intOf(n *int32) *int {
	if n == nil {
		return nil
	}
	wide := int(*n)
	return &wide
}

func sameLimit(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
