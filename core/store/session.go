package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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
	conn       *pgxpool.Conn
	begin      string
	state      sessionState
	failure    error // the cause of the unknown state
	savepoints int
}

var _ pgx.Tx = (*session)(nil)

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

// Commit ends the transaction. One without a statement has nothing to commit.
func (w *session) Commit(ctx context.Context) error {
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
	case errors.As(err, &pgErr) && pgErr.Severity == "ERROR":
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

// Rollback undoes the transaction. After the end it does nothing.
func (w *session) Rollback(ctx context.Context) error {
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

// CopyFrom loads rows into a table.
func (w *session) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string,
	rows pgx.CopyFromSource) (int64, error) {
	if err := w.open(ctx); err != nil {
		return 0, err
	}
	return w.conn.CopyFrom(ctx, table, columns, rows)
}

// SendBatch sends statements together.
func (w *session) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	if err := w.open(ctx); err != nil {
		return failedBatch{err}
	}
	return w.conn.SendBatch(ctx, batch)
}

// Prepare is not needed: every statement is prepared by its text.
func (w *session) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return w.conn.Conn().Prepare(ctx, name, sql)
}

// LargeObjects is not supported; using what it returns panics, so it refuses
// loudly by returning the zero value.
func (w *session) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Conn is the connection below.
func (w *session) Conn() *pgx.Conn { return w.conn.Conn() }

// Begin starts a nested transaction as a savepoint.
func (w *session) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	w.savepoints++
	name := "attune_" + strconv.Itoa(w.savepoints)
	if _, err := w.conn.Exec(ctx, "savepoint "+name); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	return &savepoint{session: w, name: name}, nil
}

// savepoint is a part of a transaction that can be undone alone.
type savepoint struct {
	*session
	name   string
	closed bool
}

// Commit keeps what was done since the savepoint.
func (p *savepoint) Commit(ctx context.Context) error { return p.end(ctx, "release savepoint ") }

// Rollback undoes the changes since the savepoint.
func (p *savepoint) Rollback(ctx context.Context) error {
	if p.closed {
		return pgx.ErrTxClosed
	}
	return p.end(ctx, "rollback to savepoint ")
}

func (p *savepoint) end(ctx context.Context, verb string) error {
	if p.closed {
		return pgx.ErrTxClosed
	}
	p.closed = true
	_, err := p.conn.Exec(ctx, verb+p.name)
	return err
}

// failedRow is the result of a query that could not be sent.
type failedRow struct{ err error }

// Scan returns the error.
func (r failedRow) Scan(...any) error { return r.err }

// failedBatch is the result of statements that could not be sent.
type failedBatch struct{ err error }

// Exec returns the error.
func (b failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, b.err }

// Query returns the error.
func (b failedBatch) Query() (pgx.Rows, error) { return nil, b.err }

// QueryRow returns the error.
func (b failedBatch) QueryRow() pgx.Row { return failedRow(b) }

// Close returns the error.
func (b failedBatch) Close() error { return b.err }

// Tx is the transaction begun by the batch: none.
func (b failedBatch) Tx() pgx.Tx { return nil }
