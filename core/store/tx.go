package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/supervise"
)

const (
	txAttempts  = 6
	txFirstWait = 10 * time.Millisecond
	txMaxWait   = 500 * time.Millisecond
	// rollbackTimeout bounds the rollback of a transaction whose context has ended.
	rollbackTimeout = 5 * time.Second
)

// Tx is one transaction, for one goroutine, with the generated queries. BEGIN is sent with the
// first statement.
type Tx struct {
	*session
	*Queries
	hooks []func()
	ends  []func(committed bool)
}

// Rows runs a query of the folder queries and reads its rows into structures, whose fields are named as the columns. A
// column without a field is an error; a field without a column stays empty.
func Rows[T any](ctx context.Context, tx *Tx, sql string, args ...any) ([]T, error) {
	rows, err := tx.session.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByNameLax[T])
}

// AfterCommit registers a function to run once after the commit. It does not run after a rollback,
// when the attempt is repeated, or when the outcome is unknown.
func (tx *Tx) AfterCommit(fn func()) { tx.hooks = append(tx.hooks, fn) }

// AfterEnd registers a function to run once after this attempt. committed is false also when the
// outcome is unknown.
func (tx *Tx) AfterEnd(fn func(committed bool)) { tx.ends = append(tx.ends, fn) }

// Tx runs fn in a transaction and commits it unless fn returns an error. It repeats the transaction
// a few times, after a growing, jittered wait, if it lost to another one, lost its connection
// before COMMIT was sent, or met changed columns. So fn may run several times and must leave
// effects to AfterCommit. name names the transaction in errors and logs. Work that batch.Run repeats
// uses Once.
func (s *Store) Tx(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx) error) error {
	return s.repeat(ctx, name, "begin", txAttempts, fn)
}

// Once is Tx without a repetition, for callers that repeat all their work.
func (s *Store) Once(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx) error) error {
	return s.repeat(ctx, name, "begin", 1, fn)
}

// ReadTx is Tx for reading only: all its statements see one snapshot.
func (s *Store) ReadTx(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx) error) error {
	return s.repeat(ctx, name, "begin isolation level repeatable read read only", txAttempts, fn)
}

func (s *Store) repeat(
	ctx context.Context, name, begin string, attempts int, fn func(context.Context, *Tx) error,
) error {
	wait := txFirstWait
	for attempt := 1; ; attempt++ {
		again, err := s.once(ctx, begin, fn)
		if err == nil {
			return nil
		}
		if !again || attempt == attempts || ctx.Err() != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.logger.DebugContext(ctx, "Transaction repeated", "transaction", name, "attempt", attempt,
			"class", ClassOf(err).String(), "error", err.Error())
		if !supervise.Sleep(ctx, wait/2+rand.N(wait)) { //nolint:gosec // jitter needs no secrecy
			return fmt.Errorf("%s: wait to repeat: %w", name, ctx.Err())
		}
		wait = min(2*wait, txMaxWait)
	}
}

// once runs one attempt and says whether it may be repeated. AfterCommit functions run when the
// connection is back in the pool.
func (s *Store) once(ctx context.Context, begin string, fn func(context.Context, *Tx) error) (again bool, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		// Not repeated: without a connection, waiting is the caller's choice.
		return false, fmt.Errorf("acquire connection: %w", classified(err))
	}
	work := &session{conn: conn, begin: begin}
	tx := &Tx{session: work, Queries: New(work)}
	again, err = attempt(ctx, tx, fn)
	for _, end := range tx.ends {
		end(work.state == stateCommitted)
	}
	if work.state == stateCommitted {
		for _, hook := range tx.hooks {
			hook()
		}
	}
	return again, err
}

func attempt(ctx context.Context, tx *Tx, fn func(context.Context, *Tx) error) (again bool, err error) {
	work := tx.session
	defer work.release(ctx)
	err = guarded(ctx, tx, fn)
	if err == nil && work.state != stateCommitted {
		err = work.commit(ctx)
	}
	switch work.state {
	case stateCommitted:
		return false, err
	case stateUnknown:
		if !isOutcomeUnknown(err) {
			err = &OutcomeUnknownError{Err: errors.Join(work.failure, err)}
		}
		return false, err
	}
	lost := work.conn.Conn().IsClosed()
	if lost && ClassOf(err) == ClassFatal {
		err = &lostError{err: err}
	}
	class := ClassOf(err)
	return class == ClassRetryable || (lost && class == ClassUnreachable), err
}

// guarded makes a panic an error: it is rolled back like any other, and the message that caused it is
// isolated like any other, instead of ending one replica after the other.
func guarded(ctx context.Context, tx *Tx, fn func(context.Context, *Tx) error) (err error) {
	defer func() {
		if defect := recover(); defect != nil {
			err = fmt.Errorf("a defect of this program: %v\n%s", defect, debug.Stack())
		}
	}()
	return fn(ctx, tx)
}

// release rolls back an open transaction and returns the connection.
func (w *session) release(ctx context.Context) {
	if w.state == stateOpen {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		// A rollback that fails closes the connection, and with it the transaction.
		if err := w.rollback(ctx); err != nil {
			_ = w.conn.Conn().Close(ctx)
		}
	}
	w.conn.Release()
}
