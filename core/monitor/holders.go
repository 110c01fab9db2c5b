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

// holderCount bounds how many holders are read, holderRows how many are shown.
const (
	holderCount = 1_000
	holderRows  = 20
)

// Holder is an execution that holds a slot.
type Holder struct {
	ID        int64  `json:"id"`
	ActionRef string `json:"action_ref"`
	Status    string `json:"status"`
	// Since is when it took its slot.
	Since      time.Time `json:"since"`
	WorkerID   *int64    `json:"worker_id"`
	WorkerName string    `json:"worker_name,omitempty"`
	// Health is the verdict on the worker, and HeartbeatAge the age of its last
	// sign of life; empty and nil where there is no worker or no heartbeat.
	Health       WorkerHealth   `json:"worker_health,omitempty"`
	HeartbeatAge *time.Duration `json:"heartbeat_age_ns"`
}

// Holders are the holders of a queue's or a shared limit's slots.
type Holders struct {
	// Active is how many hold a slot, by the counter that decides.
	Active int64 `json:"active"`
	// List holds the oldest.
	List []Holder `json:"list"`
	// Found is how many were read, at most a thousand. Incomplete is true when that is
	// not all.
	Found      int64 `json:"found"`
	Incomplete bool  `json:"incomplete,omitempty"`
}

// Found is a holder before its details are read.
type Found struct {
	Id    int64
	Since time.Time
}

// QueueHolders reads the oldest holders of a queue.
func (m *Monitor) QueueHolders(ctx context.Context, tx *store.Tx, q *Queue, at time.Time) (*Holders, error) {
	h := &Holders{Active: q.Active}
	rows, err := tx.ViewQueueHolders(ctx, q.ID, holderCount)
	if err != nil {
		return nil, fmt.Errorf("read the holders of queue %d: %w", q.ID, err)
	}
	list := make([]Found, len(rows))
	for i, r := range rows {
		list[i] = Found{Id: r.ID, Since: r.Since}
	}
	return h, m.FillHolders(ctx, tx, h, list, at)
}

// anchors lists the executions at the heads of a queue's lanes: before them
// stand those that were admitted. With end, and where nobody waits, the end of
// the table is one more.
func anchors(q *Queue, end bool) []int64 {
	var ids []int64
	for _, l := range q.lanes {
		if l.first != 0 {
			ids = append(ids, l.first)
		}
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Compare(b, a) })
	if end || len(ids) == 0 {
		ids = append([]int64{math.MaxInt64}, ids...)
	}
	return ids
}

// scopeHolders reads who holds the slots of a shared limit.
func (m *Monitor) scopeHolders(ctx context.Context, tx *store.Tx, scope *Scope, at time.Time) (*Holders, error) {
	rows, err := tx.ViewScopeHolders(ctx, scope.ID, holderCount)
	if err != nil {
		return nil, fmt.Errorf("read the holders of shared limit %d: %w", scope.ID, err)
	}
	list := make([]Found, len(rows))
	for i, r := range rows {
		list[i] = Found{Id: r.ID, Since: r.Since}
	}
	h := &Holders{Active: scope.Active}
	return h, m.FillHolders(ctx, tx, h, list, at)
}

// FillHolders reads the details of the oldest holders.
func (m *Monitor) FillHolders(ctx context.Context, tx *store.Tx, h *Holders, list []Found, at time.Time) error {
	h.Found = int64(len(list))
	h.Incomplete = h.Found < h.Active
	slices.SortFunc(list, func(a, b Found) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Id, b.Id)) })
	list = list[:min(len(list), holderRows)]
	ids := make([]int64, len(list))
	for i, one := range list {
		ids[i] = one.Id
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.ViewHolders(ctx, ids)
	if err != nil {
		return fmt.Errorf("read %d holders: %w", len(ids), err)
	}
	byID := make(map[int64]store.ViewHoldersRow, len(rows))
	for _, r := range rows {
		byID[r.ID] = r
	}
	for _, one := range list {
		if r, ok := byID[one.Id]; ok {
			h.List = append(h.List, m.holderOf(r, one.Since, at))
		}
	}
	return nil
}

func (m *Monitor) holderOf(r store.ViewHoldersRow, since, at time.Time) Holder {
	h := Holder{
		ID: r.ID, ActionRef: r.ActionRef, Status: string(r.Status), Since: since,
		WorkerID: r.Worker, WorkerName: text(r.WorkerName),
	}
	if r.WorkerName == nil {
		return h
	}
	w := Worker{Status: r.WorkerStatus, Heartbeat: r.LastHeartbeat, Cordoned: yes(r.Cordoned), Draining: yes(r.Draining), SuspectSince: moment(r.SuspectSince)}
	h.Health = w.Health(at, m.cfg.StaleAfter)
	if r.LastHeartbeat != nil {
		age := max(at.Sub(*r.LastHeartbeat), 0)
		h.HeartbeatAge = &age
	}
	return h
}

func yes(b *bool) bool { return b != nil && *b }

// Lasted says for how long the slot has been held.
func (h Holder) Lasted(at time.Time) time.Duration { return max(at.Sub(h.Since), 0) }

// Keeper reads the shared limit that keeps the head of a queue and who holds
// its slots, if one does.
func (m *Monitor) Keeper(ctx context.Context, tx *store.Tx, q *Queue, at time.Time) (*Scope, *Holders, error) {
	if q.BlockedScope == nil {
		return nil, nil, nil
	}
	list, err := scopesByID(ctx, tx, []int64{*q.BlockedScope}, at)
	if err != nil || len(list) == 0 {
		return nil, nil, err
	}
	scope := &list[0]
	if !policy.WideKind(scope.Kind).Slots() {
		return scope, nil, nil
	}
	holders, err := m.scopeHolders(ctx, tx, scope, at)
	return scope, holders, err
}
