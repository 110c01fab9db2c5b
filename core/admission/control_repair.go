package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/store"
)

// Corrected is what one transaction of a repair corrected.
type Corrected struct {
	Drifts []Drift
	Queues []int64 // queues that may admit an execution now

	scopes  []int64 // shared limits that have more free slots now
	workers bool    // a worker has more capacity now
}

// Heads reads the executions to request again: the heads of the queues that may admit an execution,
// and the head of the first queue that waited for each shared limit or worker with new capacity.
func (c *Corrected) Heads(ctx context.Context, queries *store.Queries) ([]Head, error) {
	queues := slices.Clone(c.Queues)
	if len(c.scopes) > 0 || c.workers {
		blocked, err := queries.ControlFirstBlocked(ctx, c.scopes, c.workers)
		if err != nil {
			return nil, fmt.Errorf("find the queues that wait for %d shared limits: %w", len(c.scopes), err)
		}
		queues = append(queues, blocked...)
	}
	slices.Sort(queues)
	return Heads(ctx, queries, slices.Compact(queues))
}

// Correct locks the next page of the findings, counts again under the locks and corrects the
// counters. more is false when nothing was left.
func (f *Findings) Correct(ctx context.Context, tx *store.Tx, page int,
	config RepairConfig,
) (done *Corrected, more bool, err error) {
	part, more := f.fix.page(page)
	if !more {
		return nil, false, nil
	}
	if err := part.lock(ctx, tx); err != nil {
		return nil, false, err
	}
	done = &Corrected{}
	for _, step := range []func(context.Context, *store.Tx, *Corrected) error{
		part.correctScopes, part.correctQueues, part.correctLoads,
	} {
		if err := step(ctx, tx, done); err != nil {
			return nil, false, err
		}
	}
	if config.WithoutStats {
		return done, true, nil
	}
	return done, true, part.correctStats(ctx, tx, done)
}

// page is the nth part of a correction. Notes and the rows they name cannot be split, so all of
// them go with the first part.
func (c *correction) page(n int) (part correction, more bool) {
	cut := func(ids []int64) []int64 {
		slices.Sort(ids)
		ids = slices.Compact(ids)
		if len(c.notes) > 0 && n == 0 {
			return ids
		}
		if len(c.notes) > 0 {
			return nil
		}
		begin := min(n*maxCorrected, len(ids))
		return ids[begin:min(begin+maxCorrected, len(ids))]
	}
	part = correction{queues: cut(c.queues), workers: cut(c.workers), scopes: cut(c.scopes), actions: cut(c.actions)}
	if n == 0 {
		part.notes = c.notes
	}
	return part, len(part.queues)+len(part.workers)+len(part.scopes)+len(part.actions)+len(part.notes) > 0
}

// lock takes the locks of a batch in its order. It deletes the notes last: from then on the counts
// include them.
func (c *correction) lock(ctx context.Context, tx *store.Tx) error {
	if _, err := tx.RepairLockScopes(ctx, c.scopes); err != nil {
		return fmt.Errorf("lock shared limits: %w", err)
	}
	if _, err := tx.RepairLockQueues(ctx, c.queues); err != nil {
		return fmt.Errorf("lock queues: %w", err)
	}
	if _, err := tx.RepairLockLoads(ctx, c.workers); err != nil {
		return fmt.Errorf("lock the load of workers: %w", err)
	}
	if len(c.notes) == 0 {
		return nil
	}
	if err := tx.DeleteLostHolders(ctx, c.notes); err != nil {
		return fmt.Errorf("take the notes of deleted executions: %w", err)
	}
	return nil
}

func (c *correction) correctScopes(ctx context.Context, tx *store.Tx, done *Corrected) error {
	if len(c.scopes) == 0 {
		return nil
	}
	rows, err := tx.RepairScopes(ctx, c.scopes)
	if err != nil || len(rows) == 0 {
		return err
	}
	var ids []int64
	var active []int32
	for _, row := range rows {
		ids, active = append(ids, row.ID), append(active, row.Taken)
		done.Drifts = append(done.Drifts, scopeDrift(row))
		if row.Taken < row.ActiveCount {
			done.scopes = append(done.scopes, row.ID)
		}
	}
	return tx.RepairSetScopes(ctx, ids, active)
}

func (c *correction) correctQueues(ctx context.Context, tx *store.Tx, done *Corrected) error {
	if len(c.queues) == 0 {
		return nil
	}
	rows, err := tx.RepairQueues(ctx, c.queues, 0, true)
	if err != nil || len(rows) == 0 {
		return err
	}
	var arg store.RepairSetQueuesParams
	for _, row := range rows {
		arg.Ids, arg.Active = append(arg.Ids, row.ID), append(arg.Active, row.Active)
		arg.Queued, arg.High, arg.Low = append(arg.Queued, row.Queued), append(arg.High, row.High), append(arg.Low,
			row.Low)
		arg.Head, arg.FirstHigh = append(arg.Head, row.Head), append(arg.FirstHigh, row.FirstHigh)
		arg.FirstLow, arg.NextOrder = append(arg.FirstLow, row.FirstLow), append(arg.NextOrder, row.NextOrder)
		done.Drifts = append(done.Drifts, queueDrifts(row)...)
		c.actions = append(c.actions, row.ActionID)
	}
	done.Queues = arg.Ids
	return tx.RepairSetQueues(ctx, arg)
}

func (c *correction) correctLoads(ctx context.Context, tx *store.Tx, done *Corrected) error {
	if len(c.workers) == 0 {
		return nil
	}
	rows, err := tx.RepairLoads(ctx, c.workers)
	if err != nil || len(rows) == 0 {
		return err
	}
	var ids []int64
	var assigned []int32
	for _, row := range rows {
		ids, assigned = append(ids, row.Worker), append(assigned, row.Held)
		done.Drifts = append(done.Drifts, loadDrift(row))
		done.workers = done.workers || row.Held < row.Assigned
	}
	return tx.RepairSetLoads(ctx, ids, assigned)
}

// correctStats sets the statistics to the sum of the queues. Every transaction that changes a queue
// also changes its statistics, so under their lock the committed sum is exact.
func (c *correction) correctStats(ctx context.Context, tx *store.Tx, done *Corrected) error {
	if len(c.actions) == 0 {
		return nil
	}
	if _, err := tx.RepairLockStats(ctx, c.actions); err != nil {
		return fmt.Errorf("lock statistics: %w", err)
	}
	rows, err := tx.RepairStats(ctx, c.actions)
	if err != nil || len(rows) == 0 {
		return err
	}
	var ids []int64
	var queued, active []int32
	for _, row := range rows {
		ids, queued, active = append(ids, row.ActionID), append(queued, row.Queued), append(active, row.Active)
		done.Drifts = append(done.Drifts, statsDrifts(row)...)
	}
	return tx.RepairSetStats(ctx, ids, queued, active)
}

// Release releases, through a ledger, what the next page of ended executions hold, and removes them
// from their queues. The caller sends the pipeline. more is false when none was left.
func (f *Findings) Release(ctx context.Context, tx *store.Tx, page int,
	config RepairConfig,
) (p *store.Pipeline, done *Corrected, more bool, err error) {
	begin := min(page*maxReleased, len(f.ended))
	rows := f.ended[begin:min(begin+maxReleased, len(f.ended))]
	if len(rows) == 0 {
		return nil, nil, false, nil
	}
	ledger, err := Lock(ctx, tx, releaseWant(rows, config))
	if err != nil {
		return nil, nil, false, err
	}
	done = &Corrected{}
	touched := map[int64]bool{}
	for _, row := range rows {
		released, withdrawn := ledger.Release(row.ID), ledger.Withdraw(row.ID)
		if released {
			touched[row.StateID] = true
			done.scopes, done.workers = append(done.scopes, row.Scopes...), done.workers || row.Worker != 0
		}
		if withdrawn {
			touched[row.Waits] = true
		}
		if released || withdrawn {
			done.Drifts = append(done.Drifts,
				Drift{Kind: DriftEnded, ID: row.ID, Name: row.ActionRef, Note: row.Status + ", given back"})
		}
	}
	if ledger.Unplanned() {
		return nil, nil, false, fmt.Errorf("release %d executions: %w", len(rows), ErrConflict)
	}
	done.Queues = slices.Sorted(maps.Keys(touched))
	p = tx.Pipeline()
	ledger.Write(p)
	return p, done, true, nil
}

// releaseWant names the locks that the release of these executions needs.
func releaseWant(rows []store.RepairEndedRow, config RepairConfig) Want {
	want := Want{
		Queues: make(map[int64]int), Scopes: make(map[int64]ScopeWant), Workers: []int64{}, MaxHeads: 1,
		StaleAfter: config.StaleAfter, WithoutStats: config.WithoutStats,
	}
	for _, row := range rows {
		want.Executions = append(want.Executions, row.ID)
		if row.StateID != 0 {
			want.Queues[row.StateID]++
		}
		if row.Waits != 0 {
			want.Queues[row.Waits] += 0
		}
		if row.Worker != 0 && !slices.Contains(want.Workers, row.Worker) {
			want.Workers = append(want.Workers, row.Worker)
		}
		for _, id := range row.Scopes {
			scope := want.Scopes[id]
			scope.Releases++
			want.Scopes[id] = scope
		}
	}
	return want
}
