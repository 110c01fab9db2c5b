package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// maxAttempts bounds the attempts of one chain, the newest first.
const maxAttempts = 500

// Attempt is one execution of a chain of retries.
type Attempt struct {
	ID int64 `json:"id"`
	// Number counts from 1.
	Number int64  `json:"attempt"`
	Status string `json:"status"`
	// Repeats is the previous attempt; nil for the first.
	Repeats *int64 `json:"repeats"`
	// RepeatedBy is the next attempt; nil for the last.
	RepeatedBy *int64 `json:"repeated_by"`
	Reason     string `json:"reason,omitempty"`
	// RequestedBy is the operator who retried; empty for the engine.
	RequestedBy string    `json:"requested_by,omitempty"`
	WorkerID    *int64    `json:"worker_id"`
	WorkerName  string    `json:"worker_name,omitempty"`
	Created     time.Time `json:"created"`
	// Due is set while a retry waits for its time, in no queue and without a slot.
	Due        *time.Time `json:"due"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	// Error is the error of the result, cut short.
	Error string `json:"error,omitempty"`
}

// Attempts lists all attempts of the chain of any of them, the first one first. An execution without
// retries is a chain of one; a missing one is ErrNotFound. Of a long chain the newest 500 are
// listed.
func (m *Monitor) Attempts(ctx context.Context, id int64) ([]Attempt, error) {
	var list []Attempt
	err := m.Read(ctx, "attempts of execution "+strconv.FormatInt(id, 10), &Reading{},
		func(ctx context.Context, tx *store.Tx, s Shape) (err error) {
			list, err = readAttempts(ctx, tx, s, id)
			return err
		})
	return list, err
}

func readAttempts(ctx context.Context, tx *store.Tx, s Shape, id int64) ([]Attempt, error) {
	list, err := store.Rows[Attempt](ctx, tx, s.query(store.ViewAttempts, store.ViewPublishedAttempts), maxAttempts, id)
	if err != nil {
		return nil, fmt.Errorf("read the attempts of execution %d: %w", id, err)
	}
	if len(list) == 0 {
		return nil, ErrNotFound
	}
	rows, err := ReadExecutions(ctx, tx, s, each(list, func(a Attempt) int64 { return a.ID }))
	if err != nil {
		return nil, err
	}
	of := make(map[int64]*Execution, len(rows))
	for i := range rows {
		of[rows[i].ID] = &rows[i]
	}
	for i := range list {
		a, e := &list[i], of[list[i].ID]
		a.Status, a.WorkerID, a.WorkerName, a.Error = e.Status, e.WorkerID, e.WorkerName, e.Reason
		a.Created, a.StartedAt, a.FinishedAt = e.Created, e.StartedAt, e.FinishedAt
	}
	return link(list), nil
}

// link orders attempts and links each to the next. Where retries are not recorded, each repeats the
// one before, and the numbers are made to grow.
func link(list []Attempt) []Attempt {
	slices.SortFunc(list,
		func(a, b Attempt) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID)) })
	byID := make(map[int64]*Attempt, len(list))
	for i := range list {
		a := &list[i]
		byID[a.ID] = a
		if i == 0 {
			continue
		}
		before := &list[i-1]
		a.Number = max(a.Number, before.Number+1)
		if a.Repeats == nil {
			a.Repeats = &before.ID
		}
	}
	for i := range list {
		if a := &list[i]; a.Repeats != nil && byID[*a.Repeats] != nil {
			byID[*a.Repeats].RepeatedBy = &a.ID
		}
	}
	return list
}

// NextRetry reports whether an ended execution is retried.
type NextRetry struct {
	Reading
	// By is the attempt that repeats it; nil if there is none yet.
	By *int64 `json:"repeated_by"`
	// Expected is true when the engine will make one after it processes the end.
	Expected bool `json:"expected"`
	// Why says why there will be none.
	Why string `json:"why,omitempty"`
}

// NextRetry reports whether an execution was retried, or will be by an engine with this policy. A
// missing one is ErrNotFound.
func (m *Monitor) NextRetry(ctx context.Context, id int64, policy lifecycle.RetryPolicy) (*NextRetry, error) {
	answer := &NextRetry{}
	err := m.Read(ctx, "retry of execution "+strconv.FormatInt(id, 10), &answer.Reading,
		func(ctx context.Context, tx *store.Tx, s Shape) error {
			if !s.Ours {
				answer.Why = "retries are not recorded in this database"
				return nil
			}
			row, err := tx.ViewNextRetry(ctx, id)
			if errors.Is(err, sql.ErrNoRows) {
				return ErrNotFound
			}
			if err != nil {
				return fmt.Errorf("read what execution %d ended with: %w", id, err)
			}
			answer.assess(row, policy)
			return nil
		})
	return answer, err
}

func (r *NextRetry) assess(row store.ViewNextRetryRow, policy lifecycle.RetryPolicy) {
	if row.RepeatedBy != 0 {
		r.By = &row.RepeatedBy
		return
	}
	verdict := policy.Decide(lifecycle.Ended{
		Status: row.Status, Error: row.Error, EndedBy: row.EndedBy, Started: row.Started, Retries: int(row.RetryCount),
		MaxRetries: int(row.Allowed), ByAction: row.ActionAllows, Adopted: row.Adopted, CancelAsked: row.CancelAsked,
	}, 0)
	r.Expected, r.Why = verdict.Retry, verdict.Why
	if row.WorkflowTask && verdict.Retry {
		r.Expected, r.Why = false, "it is a task of a workflow: its workflow repeats it"
	}
}
