package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/store"
)

// started is a started execution with its action.
type started struct {
	execution
	action // zero without one
}

type (
	execution = store.StartExecutionsRow
	action    = store.ReadRunnableActionsRow
)

// starter starts executions. It caches actions until any action changes: the row of a started execution
// has the version.
type starter struct {
	store       *store.Store
	worker      int64
	incarnation uuid.UUID
	// actionTimeouts is Config.ActionTimeouts.
	actionTimeouts string

	mu    sync.Mutex
	known map[int64]action // guarded by mu
}

// maxActions bounds the cached actions.
const maxActions = 1000

// start starts the executions of the jobs whose dispatch is still valid, and returns them and the executions that were
// cancelled before. With again, it also returns what an earlier call whose answer was lost has started.
func (s *starter) start(ctx context.Context, jobs []*job, again bool) ([]started, error) {
	jobs = slices.SortedFunc(slices.Values(jobs), func(a, b *job) int { return cmp.Compare(a.id, b.id) })
	params := store.StartExecutionsParams{Worker: &s.worker, Incarnation: s.incarnation}
	for _, j := range jobs {
		params.Ids, params.Attempts = append(params.Ids, j.id), append(params.Attempts, j.attempt)
	}
	rows, err := s.store.StartExecutions(ctx, params)
	if err != nil {
		return nil, err
	}
	if len(rows) < len(jobs) {
		settled, err := s.store.SettleStarts(ctx, store.SettleStartsParams{
			Ids: params.Ids, Attempts: params.Attempts, Worker: &s.worker, Incarnation: s.incarnation,
			CancelledResult: beforeStart, Again: again,
		})
		if err != nil {
			return nil, err
		}
		for _, row := range settled {
			if !slices.ContainsFunc(rows, func(r execution) bool { return r.ID == row.ID }) {
				rows = append(rows, execution(row))
			}
		}
	}
	return s.withActions(ctx, rows)
}

// withActions adds the actions, at the version of the rows or a later one.
func (s *starter) withActions(ctx context.Context, rows []execution) ([]started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unknown []int64
	for _, row := range rows {
		if row.Action != nil && s.known[*row.Action].ReadEpoch < row.Epoch && !slices.Contains(unknown, *row.Action) {
			unknown = append(unknown, *row.Action)
		}
	}
	if len(unknown) > 0 {
		read, err := s.store.ReadRunnableActions(ctx, s.actionTimeouts, unknown)
		if err != nil {
			return nil, fmt.Errorf("read %d actions: %w", len(unknown), err)
		}
		if s.known == nil || len(s.known) > maxActions {
			s.known = make(map[int64]action)
		}
		for _, one := range read {
			s.known[one.ActionID] = one
		}
	}
	all := make([]started, len(rows))
	for i, row := range rows {
		all[i].execution = row
		if row.Action != nil {
			all[i].action = s.known[*row.Action]
		}
	}
	return all, nil
}
