package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/nearest"
	"github.com/attune-go/attune/core/store"
)

// hintRefs bounds how many refs are read to find the nearest one.
const hintRefs = 5_000

// UnknownActionError says that no action has the ref.
type UnknownActionError struct {
	Ref     string
	Nearest string // empty when none is alike
}

// Error names the ref and the nearest one.
func (e *UnknownActionError) Error() string {
	if e.Nearest == "" {
		return "there is no action " + e.Ref
	}
	return "there is no action " + e.Ref + "; the nearest is " + e.Nearest
}

// ErrUnmigrated says that the database lacks what the question is about.
var ErrUnmigrated = errors.New("this database has not been migrated by this engine, which alone records that: run `attune-executor migrate up`")

// action finds an action by ref or id.
func FindAction(ctx context.Context, tx *store.Tx, ref string, id int64) (store.ViewActionRow, error) {
	rows, err := tx.ViewAction(ctx, ref, id)
	if err != nil {
		return store.ViewActionRow{}, fmt.Errorf("read action %s: %w", ref, err)
	}
	if len(rows) > 0 {
		return rows[0], nil
	}
	refs, err := tx.ViewActionRefs(ctx, hintRefs)
	if err != nil {
		refs = nil // the hint is not worth a second error
	}
	return store.ViewActionRow{}, &UnknownActionError{Ref: ref, Nearest: nearest.Of(ref, refs)}
}

// QueueStats is what the published table of queue statistics says of an action.
type QueueStats struct {
	ActionID    int64  `json:"action_id"`
	ActionRef   string `json:"action_ref"`
	QueueLength int64  `json:"queue_length"`
	ActiveCount int64  `json:"active_count"`
	// MaxConcurrent is the limit of the action's queues; nil when nothing limits them,
	// which the table writes as admission.Unlimited.
	MaxConcurrent    *int64     `json:"max_concurrent"`
	OldestEnqueuedAt *time.Time `json:"oldest_enqueued_at"`
	TotalEnqueued    int64      `json:"total_enqueued"`
	TotalCompleted   int64      `json:"total_completed"`
	LastUpdated      time.Time  `json:"last_updated"`
}

// QueueStats reads the published statistics of an action's queues. An action
// that does not exist is an *UnknownActionError; one without statistics, since
// none of its executions was requested yet, is ErrNotFound.
func (m *Monitor) QueueStats(ctx context.Context, ref string) (*QueueStats, error) {
	var out *QueueStats
	err := m.Read(ctx, "queue statistics of "+ref, &Reading{}, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		a, err := FindAction(ctx, tx, ref, 0)
		if err != nil {
			return err
		}
		rows, err := tx.ViewQueueStats(ctx, a.ID)
		if err != nil {
			return fmt.Errorf("read the queue statistics of action %s: %w", ref, err)
		}
		if len(rows) == 0 {
			return fmt.Errorf("queue statistics of action %s: %w", ref, ErrNotFound)
		}
		r := rows[0]
		out = &QueueStats{
			ActionID: r.ActionID, ActionRef: r.ActionRef, QueueLength: int64(r.QueueLength), ActiveCount: int64(r.ActiveCount),
			OldestEnqueuedAt: r.OldestEnqueuedAt, TotalEnqueued: r.TotalEnqueued, TotalCompleted: r.TotalCompleted, LastUpdated: r.LastUpdated,
		}
		if r.MaxConcurrent < admission.Unlimited {
			out.MaxConcurrent = wide(&r.MaxConcurrent)
		}
		return nil
	})
	return out, err
}
