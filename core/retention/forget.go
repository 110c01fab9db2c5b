package retention

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// Broker deletes queues and the routes of dead letters; *broker.Broker is one.
type Broker interface {
	QueueState(ctx context.Context, name string) (broker.QueueState, error)
	DeleteQueueIfIdle(ctx context.Context, name string) (deleted bool, reason string, err error)
	DeleteQueueIfUnused(ctx context.Context, name string) (deleted bool, discarded int, reason string, err error)
	UnbindWorkerDeadLetters(ctx context.Context, id int64) error
}

// ForgetRequest names the workers to forget, and the conditions for each.
type ForgetRequest struct {
	Workers []int64
	// Silent is the minimum age of a worker's last heartbeat.
	Silent time.Duration
	// Settled is the minimum age of its row's last write, so that a returning worker is left alone.
	Settled time.Duration
	// Cordoned includes cordoned workers.
	Cordoned bool
}

// Forgotten is the result for one worker.
type Forgotten struct {
	ID   int64
	Name string
	// Done reports that its row and its queues are deleted; otherwise Reason explains why not.
	Done   bool
	Reason string
	// Discarded is the number of pack notices and cancels deleted with its queues. Dispatches are never
	// discarded.
	Discarded int
}

// releaseWindow is the number of executions that one transaction reads.
const releaseWindow = 2000

// forgetTimeout is the timeout of the transaction that deletes one worker. The foreign key of
// executions needs a scan of the whole table, which blocks no other transaction.
const forgetTimeout = 2 * time.Minute

// ForgetWorkers deletes unused workers: their rows and, through the broker, their queues. `workers forget`
// and the retention of inactive workers share it. A worker must be inactive, not draining, hold nothing, and
// have no live execution; otherwise it stays, and the result has the reason.
//
// First it removes the worker from its ended executions, a window of ids per transaction (their history
// keeps it). The queue of its dispatches must be empty; unread pack notices and cancels are deleted with
// their queues. Then it deletes the row under locks and rolls back, deletes the queues and the routes of
// dead letters outside a transaction, and deletes the row unless another transaction has written it. The
// same call completes an interrupted one.
func ForgetWorkers(ctx context.Context, st *store.Store, queues Broker, order ForgetRequest,
	logger *slog.Logger,
) ([]Forgotten, error) {
	workers := slices.Sorted(slices.Values(order.Workers))
	workers = slices.Compact(workers)
	referred, err := st.ReferredWorkers(ctx, workers)
	if err != nil {
		return nil, fmt.Errorf("find executions of workers %v: %w", workers, err)
	}
	all, free := make([]Forgotten, len(workers)), make([]int64, 0, len(workers))
	for i, worker := range workers {
		one, err := examine(ctx, st, queues, order, worker)
		if err != nil {
			return nil, err
		}
		if one.Reason == "" && slices.Contains(referred, worker) {
			one.Reason = reasonReferred
		}
		if all[i] = one; one.Reason == "" {
			free = append(free, worker)
		}
	}
	if len(free) == 0 {
		return all, nil
	}
	held, err := releaseWorkers(ctx, st, free, logger)
	if err != nil {
		return nil, err
	}
	for i := range all {
		switch {
		case all[i].Reason != "":
		case held[all[i].ID]:
			all[i].Reason = reasonReferred
		default:
			if all[i], err = forgetWorker(ctx, st, queues, order, all[i].ID); err != nil {
				return all[:i], err
			}
		}
	}
	return all, nil
}

const reasonReferred = "executions that have not ended refer to it"

// examine returns why a worker must stay, before any change. An empty reason means that it may be deleted.
func examine(ctx context.Context, st *store.Store, queues Broker, order ForgetRequest, worker int64) (Forgotten,
	error,
) {
	one := Forgotten{ID: worker}
	err := page(ctx, st, "check a worker", func(ctx context.Context, tx *store.Tx) error {
		row, reason, err := assess(ctx, tx, order, worker)
		one.Name, one.Reason = row.Name, reason
		return err
	})
	if err != nil || one.Reason != "" {
		return one, wrapped(err, fmt.Sprintf("check worker %d", worker))
	}
	queue := message.WorkerExecutionsQueue(worker)
	state, err := queues.QueueState(ctx, queue)
	switch {
	case err != nil:
		return one, fmt.Errorf("check worker %d: %w", worker, err)
	case state.Consumers > 0:
		one.Reason = "queue " + queue + " is in use: it has " + phrase.Plural(state.Consumers, "consumer", "consumers")
	case state.Ready > 0:
		one.Reason = "queue " + queue + " is not empty: " +
			phrase.Plural(state.Ready, "message waits", "messages wait") + " in it"
	}
	return one, nil
}

// releaseWorkers removes workers from their ended executions, and returns the workers with other ones.
func releaseWorkers(ctx context.Context, st *store.Store, workers []int64,
	logger *slog.Logger,
) (held map[int64]bool, err error) {
	held = make(map[int64]bool)
	released, logged := 0, time.Now()
	for after := int64(0); ; {
		free := slices.DeleteFunc(slices.Clone(workers), func(id int64) bool { return held[id] })
		if len(free) == 0 {
			return held, nil
		}
		var window store.ReleaseWorkerWindowRow
		err := page(ctx, st, "release executions of workers", func(ctx context.Context, tx *store.Tx) (err error) {
			window, err = tx.ReleaseWorkerWindow(ctx, free, after, releaseWindow)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("remove workers %v from executions after %d: %w", free, after, err)
		}
		for _, worker := range window.Held {
			held[worker] = true
		}
		released += int(window.Released)
		if time.Since(logged) > logEvery {
			logged = time.Now()
			logger.InfoContext(ctx, "Removing forgotten workers from executions", "rows", released, "up_to",
				window.Last)
		}
		if window.Scanned < releaseWindow {
			return held, nil
		}
		after = window.Last
	}
}

// errRolledBack rolls back a trial deletion.
var errRolledBack = errors.New("the deletion was only a trial")

// forgetWorker deletes one worker. It calls the broker between two transactions: the first deletes
// the row and rolls back, so that a row that must stay keeps its queues. The second deletes the row
// unless it was written in between.
func forgetWorker(ctx context.Context, st *store.Store, queues Broker, order ForgetRequest,
	worker int64,
) (Forgotten, error) {
	one, written, err := deleteWorker(ctx, st, order, worker, nil)
	if err == nil && one.Reason == "" {
		one.Discarded, one.Reason, err = deleteQueues(ctx, queues, worker)
	}
	if err != nil || one.Reason != "" {
		return one, wrapped(err, fmt.Sprintf("forget worker %d", worker))
	}
	discarded := one.Discarded
	one, _, err = deleteWorker(ctx, st, order, worker, &written)
	one.Discarded, one.Done = discarded, err == nil && one.Reason == ""
	return one, wrapped(err, fmt.Sprintf("forget worker %d", worker))
}

// deleteWorker deletes the row of a worker under its locks, and returns the time of its last write.
// Without unwritten, the expected time, it rolls the deletion back.
func deleteWorker(ctx context.Context, st *store.Store, order ForgetRequest, worker int64, unwritten *time.Time) (
	one Forgotten, written time.Time, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	err = st.Tx(ctx, "forget a worker", func(ctx context.Context, tx *store.Tx) error {
		one = Forgotten{ID: worker}
		if err := bound(ctx, tx, forgetTimeout); err != nil {
			return err
		}
		row, reason, err := assess(ctx, tx, order, worker)
		if one.Name, one.Reason, written = row.Name, reason, row.Updated; err != nil || reason != "" {
			return err
		}
		if unwritten != nil && !written.Equal(*unwritten) {
			one.Reason = "it returned during the deletion of its queues"
			return nil
		}
		referred, err := tx.ReferredWorkers(ctx, []int64{worker})
		if err != nil {
			return err
		}
		if len(referred) > 0 {
			one.Reason = reasonReferred
			return nil
		}
		if _, err := tx.DeleteWorker(ctx, worker); err != nil {
			return err
		}
		if unwritten == nil {
			return errRolledBack
		}
		return nil
	})
	switch class := store.ClassOf(err); {
	case err == nil, errors.Is(err, errRolledBack):
		return one, written, nil
	case class == store.ClassRefused, class == store.ClassConflict:
		one.Reason = err.Error() // another table refers to it
		return one, written, nil
	default:
		return one, written, err
	}
}

// assess locks the worker's rows and returns why it must stay. An empty reason means that it may be deleted.
func assess(ctx context.Context, tx *store.Tx, order ForgetRequest,
	worker int64,
) (row store.LockForgottenWorkerRow, reason string, err error) {
	assigned, err := tx.LockWorkerLoad(ctx, worker)
	if err != nil {
		return row, "", err
	}
	row, err = tx.LockForgottenWorker(ctx, order.Silent.Seconds(), order.Settled.Seconds(), worker)
	if errors.Is(err, sql.ErrNoRows) {
		return row, "there is no such worker", nil
	}
	if err != nil {
		return row, "", err
	}
	switch {
	case row.Status != "inactive":
		reason = "it is " + row.Status
	case row.Draining:
		reason = "it drains"
	case row.Cordoned && !order.Cordoned:
		reason = "an operator has cordoned it"
	case !row.Silent:
		reason = "its last heartbeat or write is recent"
	case assigned > 0:
		reason = "it holds " + phrase.Plural(int64(assigned), "execution", "executions")
	}
	return row, reason, nil
}

// queueTimeout is the timeout of the deletion of one worker's queues.
const queueTimeout = 10 * time.Second

// deleteQueues deletes the queues of a worker, the one with its dispatches first, and then the
// routes of their dead letters.
func deleteQueues(ctx context.Context, queues Broker, worker int64) (discarded int, reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	deleted, reason, err := queues.DeleteQueueIfIdle(ctx, message.WorkerExecutionsQueue(worker))
	if err != nil || !deleted {
		return 0, strings.TrimPrefix(reason, "PRECONDITION_FAILED - "), err
	}
	for _, queue := range []string{message.WorkerCancelQueue(worker), message.WorkerPacksQueue(worker)} {
		deleted, n, reason, err := queues.DeleteQueueIfUnused(ctx, queue)
		if err != nil || !deleted {
			return discarded, strings.TrimPrefix(reason, "PRECONDITION_FAILED - "), err
		}
		discarded += n
	}
	return discarded, "", queues.UnbindWorkerDeadLetters(ctx, worker)
}
