package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

type sessionState int

const (
	stateNew        sessionState = iota // BEGIN not sent yet
	stateOpen                           // in a transaction
	stateCommitted                      // COMMIT was answered
	stateRolledBack                     // the transaction is undone
	stateUnknown                        // COMMIT was sent and its answer was lost
)

// session is a transaction on one connection that begins with its first
// statement, so that BEGIN shares that statement's round trip where it can.
type session struct {
	conn    *pgxpool.Conn
	begin   string
	state   sessionState
	failure error // the cause of the unknown state
}

// open sends BEGIN on its own, for a single statement outside a pipeline.
func (w *session) open(ctx context.Context) error {
	if w.state == stateOpen {
		return nil
	}
	if w.state != stateNew {
		return pgx.ErrTxClosed
	}
	if _, err := w.conn.Exec(ctx, w.begin); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	w.state = stateOpen
	return nil
}

// commit ends the transaction. One without a statement has nothing to commit.
func (w *session) commit(ctx context.Context) error {
	switch w.state {
	case stateNew:
		w.state = stateCommitted
		return nil
	case stateOpen:
	default:
		return pgx.ErrTxClosed
	}
	tag, err := w.conn.Exec(ctx, "commit")
	return w.committed(tag, err)
}

// committed classifies the answer to COMMIT.
func (w *session) committed(tag pgconn.CommandTag, err error) error {
	var pgErr *pgconn.PgError
	switch {
	case err == nil && tag.String() == "ROLLBACK":
		w.state = stateRolledBack
		return pgx.ErrTxCommitRollback
	case err == nil:
		w.state = stateCommitted
		return nil
	case errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "ERROR":
		// The server refused (a deferred constraint, a serialization failure).
		w.state = stateRolledBack
		return fmt.Errorf("commit: %w", err)
	case pgconn.SafeToRetry(err):
		w.state = stateRolledBack // not a byte was sent
		return fmt.Errorf("commit: %w", err)
	default:
		w.state, w.failure = stateUnknown, err
		return &OutcomeUnknownError{Err: err}
	}
}

// rollback undoes the transaction. After the end it does nothing.
func (w *session) rollback(ctx context.Context) error {
	if w.state != stateOpen {
		return nil
	}
	w.state = stateRolledBack
	if w.conn.Conn().IsClosed() {
		return nil
	}
	if _, err := w.conn.Exec(ctx, "rollback"); err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	return nil
}

// Exec runs one statement.
func (w *session) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := w.open(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return w.conn.Exec(ctx, sql, args...)
}

// Query runs one statement that returns rows.
func (w *session) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	return w.conn.Query(ctx, sql, args...)
}

// QueryRow runs one statement that returns one row.
func (w *session) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := w.open(ctx); err != nil {
		return failedRow{err}
	}
	return w.conn.QueryRow(ctx, sql, args...)
}

// Conn is the connection below.
func (w *session) Conn() *pgx.Conn { return w.conn.Conn() }

// failedRow is the result of a query that could not be sent.
type failedRow struct{ err error }

// Scan returns the error.
func (r failedRow) Scan(...any) error { return r.err }
