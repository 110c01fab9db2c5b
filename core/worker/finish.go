package worker

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// Limits of one statement that ends executions.
const (
	finishMax        = 500
	finishMaxBytes   = 16 << 20
	statementTimeout = 15 * time.Second
	retryFirst       = 50 * time.Millisecond
	retryLongest     = 3 * time.Second
)

// finisher writes the ends of executions: every end during one statement goes into the next one.
type finisher struct {
	store     *store.Store
	worker    int64
	roster    *roster
	announcer *announcer
	logger    *slog.Logger
	metrics   *Metrics
	vitals    *vitals

	mu      sync.Mutex
	pending []ending // guarded by mu
	wake    chan struct{}
}

// add queues an end. The job leaves the roster when the end is written.
func (f *finisher) add(e ending) {
	f.mu.Lock()
	f.pending = append(f.pending, e)
	f.mu.Unlock()
	signal(f.wake)
}

// dequeue returns the ends of the next statement.
func (f *finisher) dequeue() []ending {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, bytes := 0, 0
	for n < len(f.pending) && n < finishMax && (n == 0 || bytes < finishMaxBytes) {
		bytes += len(f.pending[n].result)
		for _, one := range f.pending[n].secrets {
			bytes += len(one.Value)
		}
		n++
	}
	batch := f.pending[:n:n]
	f.pending = f.pending[n:]
	return batch
}

func (f *finisher) run(ctx context.Context) {
	for {
		batch := f.dequeue()
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-f.wake:
			}
			continue
		}
		if !f.write(ctx, batch, false) {
			return
		}
	}
}

type ends struct {
	list []ending
	// uncertain says that the database may have executed an earlier try.
	uncertain bool
}

// write repeats until the ends are written or refused; false means that the context ended before.
// Ends that the database refuses are tried one by one, so that one of them does not block the
// others.
func (f *finisher) write(ctx context.Context, list []ending, uncertain bool) bool {
	return batch.Run(ctx, nil, "", f, &ends{list: list, uncertain: uncertain}) == nil
}

// Try writes ends.
func (f *finisher) Try(ctx context.Context, e *ends) error {
	err := f.once(ctx, e)
	if err == nil {
		f.forget(e.list)
	}
	return err
}

// Failed counts and logs a failure.
func (f *finisher) Failed(ctx context.Context, e *ends, failure batch.Failure) batch.Verdict {
	f.metrics.failed.WithLabelValues("finish").Inc()
	f.logger.WarnContext(ctx, "Ends not written, retrying", "executions", len(e.list), "error", failure.Err)
	if store.Divisible(failure.Err) {
		return batch.Suspect
	}
	e.uncertain = true
	return batch.Again
}

// Split separates all ends.
func (*finisher) Split(e *ends, _ batch.Failure) (parts []*ends) {
	for _, one := range batch.Singles(e.list) {
		parts = append(parts, &ends{list: one, uncertain: e.uncertain})
	}
	return parts
}

// Alone takes the result from an end that the database refuses.
func (*finisher) Alone(_ context.Context, e *ends, _ batch.Failure) bool {
	e.list[0].status = lifecycle.StatusFailed
	e.list[0].result = `{"succeeded":false,"exit_code":-1,"error":"the result could not be stored"}`
	e.list[0].secrets = nil
	return true
}

func (f *finisher) forget(batch []ending) {
	for i, e := range batch {
		f.roster.remove(e.job)
		if batch[i] = (ending{}); e.written != nil { // results are large, and the list is reused
			e.written()
		}
	}
}

// end ends executions that still run, most of them by one plain statement. Another one is for executions with secrets
// in their results, and for executions that are about to be cancelled. With an error, rows are the ends that are
// written nevertheless.
func (f *finisher) end(ctx context.Context, batch []ending) (rows []store.SettleEndsRow, err error) {
	batch = slices.SortedFunc(slices.Values(batch), func(a, b ending) int { return cmp.Compare(a.job.id, b.job.id) })
	params := store.FinishExecutionsParams{Worker: &f.worker}
	for _, e := range batch {
		if e.status != lifecycle.StatusCancelled && len(e.secrets) == 0 {
			params.Ids, params.Attempts = append(params.Ids, e.job.id), append(params.Attempts, e.job.attempt)
			params.Statuses = append(params.Statuses, string(e.status))
			params.Results = append(params.Results, e.result)
		}
	}
	if len(params.Ids) > 0 {
		finished, err := f.store.FinishExecutions(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, row := range finished {
			rows = append(rows, store.SettleEndsRow(row))
		}
	}
	if len(rows) == len(batch) {
		return rows, nil
	}
	ended := make(map[int64]bool, len(rows))
	for _, row := range rows {
		ended[row.ID] = true
	}
	left := store.SettleEndsParams{Worker: &f.worker}
	for _, e := range batch {
		if !ended[e.job.id] {
			addEnding(&left, e)
		}
	}
	settled, err := f.store.SettleEnds(ctx, left)
	return append(rows, settled...), err
}

// addEnding adds an end with the secrets of its result.
func addEnding(params *store.SettleEndsParams, e ending) {
	params.Ids = append(params.Ids, e.job.id)
	params.Attempts = append(params.Attempts, e.job.attempt)
	params.Statuses = append(params.Statuses, string(e.status))
	params.Results = append(params.Results, e.result)
	for _, one := range e.secrets {
		params.SecretOf = append(params.SecretOf, e.job.id)
		params.SecretPaths = append(params.SecretPaths, one.Path)
		params.SecretKinds = append(params.SecretKinds, one.Kind)
		params.SecretRefs = append(params.SecretRefs, one.Ref)
		params.SecretValues = append(params.SecretValues, string(one.Value))
	}
}

// once writes the ends and announces the ones that it wrote.
func (f *finisher) once(ctx context.Context, e *ends) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	open := make(map[int64]ending, len(e.list))
	for _, one := range e.list {
		open[one.job.id] = one
	}
	rows, err := f.end(ctx, e.list)
	if err != nil {
		e.uncertain = e.uncertain || len(rows) > 0
		return fmt.Errorf("finish %d executions: %w", len(e.list), err)
	}
	crashpoint.Reach("worker:ended")
	ended := make([]announcement, 0, len(rows))
	for _, row := range rows {
		ended = append(ended, announcement{
			execution: row.ID, action: row.Action, ref: row.ActionRef, status: row.Status,
			previous: row.Previous, result: stored(open[row.ID], row.Words), at: at(row.FinishedAt),
		})
		f.metrics.ended.WithLabelValues(string(row.Status)).Inc()
		f.vitals.end(row.Status, row.ActionRef, open[row.ID].took)
		delete(open, row.ID)
	}
	if len(open) > 0 && e.uncertain {
		again, err := f.wonBefore(ctx, open)
		if err != nil {
			return err
		}
		ended = append(ended, again...)
	}
	for id := range open {
		f.metrics.lost.WithLabelValues("finish").Inc()
		f.logger.DebugContext(ctx, "Execution was already ended by another program", "execution_id", id)
	}
	f.announcer.add(ctx, ended)
	return nil
}

// wonBefore finds the ends that an earlier try wrote although its answer was lost, and removes them
// from open.
func (f *finisher) wonBefore(ctx context.Context, open map[int64]ending) ([]announcement, error) {
	ids := make([]int64, 0, len(open))
	for id := range open {
		ids = append(ids, id)
	}
	rows, err := f.store.ReadRunStates(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the results of %d executions: %w", len(ids), err)
	}
	var ended []announcement
	for _, row := range rows {
		e := open[row.ID]
		if row.Status != e.status || row.Attempt != e.job.attempt || row.Worker == nil || *row.Worker != f.worker {
			continue
		}
		ended = append(ended, announcement{
			execution: row.ID, action: row.Action, ref: row.ActionRef, status: row.Status,
			previous: lifecycle.StatusRunning, result: stored(e, row.Words), at: at(row.FinishedAt),
		})
		delete(open, row.ID)
	}
	return ended, nil
}

// stored is the result in the row, which for cancelled executions includes the author and the
// reason.
func stored(e ending, words []byte) string {
	if words != nil {
		return string(words)
	}
	return e.result
}

// at is the database's time of the end, or now on a schema that does not record it.
func at(t *time.Time) time.Time {
	if t == nil {
		return time.Now().UTC()
	}
	return t.UTC()
}

// signal sends a note unless one is pending.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
