package monitor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// holderCount bounds the holders that are read, holderRows the holders that are shown.
const (
	holderCount = 1_000
	holderRows  = 20
)

// Holder is an execution that holds a slot.
type Holder struct {
	ID         int64     `json:"id"`
	ActionRef  string    `json:"action_ref"`
	Status     string    `json:"status"`
	Since      time.Time `json:"since"`
	WorkerID   *int64    `json:"worker_id"`
	WorkerName string    `json:"worker_name,omitempty"`
	// Health and HeartbeatAge are of the worker, if there is one.
	Health       WorkerHealth   `json:"worker_health,omitempty"`
	HeartbeatAge *time.Duration `json:"heartbeat_age_ns"`
}

// Holders are the holders of a queue or a shared limit.
type Holders struct {
	// Active is the counter of the queue or limit.
	Active int64 `json:"active"`
	// List are the oldest.
	List []Holder `json:"list"`
	// Found is how many were read. Incomplete is true when Active is more.
	Found      int64 `json:"found"`
	Incomplete bool  `json:"incomplete,omitempty"`
}

// QueueHolders reads the oldest holders of a queue.
func (m *Monitor) QueueHolders(ctx context.Context, tx *store.Tx, q *Queue, at time.Time) (*Holders, error) {
	rows, err := tx.ViewQueueHolders(ctx, q.ID, holderCount)
	if err != nil {
		return nil, fmt.Errorf("read the holders of queue %d: %w", q.ID, err)
	}
	return m.Holders(ctx, tx, q.Active, rows, at)
}

// anchors are the heads of the lanes: admitted executions have smaller ids. With end, or with no
// head, the end of the table is added.
func anchors(q *Queue, end bool) []int64 {
	var ids []int64
	for _, l := range q.lanes {
		if l.first != 0 {
			ids = append(ids, l.first)
		}
	}
	if end || len(ids) == 0 {
		ids = append(ids, math.MaxInt64)
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Compare(b, a) })
	return ids
}

// Holders reads the details of the oldest holders.
func (m *Monitor) Holders(
	ctx context.Context, tx *store.Tx, active int64, found []store.ViewQueueHoldersRow, at time.Time,
) (*Holders, error) {
	h := &Holders{Active: active, Found: int64(len(found)), Incomplete: int64(len(found)) < active}
	slices.SortFunc(found, func(a, b store.ViewQueueHoldersRow) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	found = found[:min(len(found), holderRows)]
	if len(found) == 0 {
		return h, nil
	}
	rows, err := store.Rows[holderRow](ctx, tx, store.ViewHolders,
		each(found, func(r store.ViewQueueHoldersRow) int64 { return r.ID }))
	if err != nil {
		return nil, fmt.Errorf("read %d holders: %w", len(found), err)
	}
	for _, one := range found {
		if place := slices.IndexFunc(rows, func(r holderRow) bool { return r.ID == one.ID }); place >= 0 {
			h.List = append(h.List, m.holderOf(&rows[place], one.Since, at))
		}
	}
	return h, nil
}

type holderRow struct {
	Holder
	WorkerStatus       string
	Heartbeat          *time.Time
	Cordoned, Draining bool
	SuspectSince       *time.Time
}

func (m *Monitor) holderOf(r *holderRow, since, at time.Time) Holder {
	h := r.Holder
	h.Since = since
	if r.WorkerName == "" {
		return h
	}
	w := Worker{
		Status: r.WorkerStatus, Heartbeat: r.Heartbeat, Cordoned: r.Cordoned, Draining: r.Draining,
		SuspectSince: r.SuspectSince,
	}
	h.Health = w.Health(at, m.cfg.StaleAfter)
	if r.Heartbeat != nil {
		h.HeartbeatAge = new(max(at.Sub(*r.Heartbeat), 0))
	}
	return h
}

// Lasted is how long the slot has been held.
func (h Holder) Lasted(at time.Time) time.Duration { return max(at.Sub(h.Since), 0) }

// Keeper reads the shared limit that blocks the head of a queue, and its holders.
func (m *Monitor) Keeper(ctx context.Context, tx *store.Tx, q *Queue, at time.Time) (*Scope, *Holders, error) {
	if q.BlockedScope == nil {
		return nil, nil, nil
	}
	list, err := scopesByID(ctx, tx, []int64{*q.BlockedScope}, at)
	if err != nil || len(list) == 0 {
		return nil, nil, err
	}
	scope := &list[0]
	if !policy.SharedKind(scope.Kind).Slots() {
		return scope, nil, nil
	}
	rows, err := tx.ViewScopeHolders(ctx, scope.ID, holderCount)
	if err != nil {
		return nil, nil, fmt.Errorf("read the holders of shared limit %d: %w", scope.ID, err)
	}
	found := each(rows,
		func(r store.ViewScopeHoldersRow) store.ViewQueueHoldersRow { return store.ViewQueueHoldersRow(r) })
	holders, err := m.Holders(ctx, tx, scope.Active, found, at)
	return scope, holders, err
}
