package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Pipeline collects statements and sends them in one network round trip. They run in order; the
// first that fails ends the transaction, and none after it has run. (A statement that a connection
// meets for the first time is prepared first, once, in a round trip of its own.)
type Pipeline struct {
	tx         *Tx
	statements []statement
}

type statement struct {
	sql  string
	args []any
	read func(rows pgx.Rows) error // nil when only the tag counts
	tag  *Affected
}

// Affected is how many rows a statement changed, known after Send or Commit.
type Affected struct{ rows int64 }

// Rows is the number of rows.
func (a *Affected) Rows() int64 { return a.rows }

// Result is the rows of a statement, known after Send or Commit.
type Result[T any] struct{ rows []T }

// Rows are the rows in the order the server sent them; nil when there are none
// or when the pipeline has not been sent.
func (r *Result[T]) Rows() []T { return r.rows }

// Pipeline starts an empty pipeline. It may be used again after Send.
func (tx *Tx) Pipeline() *Pipeline { return &Pipeline{tx: tx} }

// Len is the number of statements that wait to be sent.
func (p *Pipeline) Len() int { return len(p.statements) }

// Exec queues a statement whose rows, if any, do not matter.
func (p *Pipeline) Exec(sql string, args ...any) *Affected {
	tag := &Affected{}
	p.statements = append(p.statements, statement{sql: sql, args: args, tag: tag})
	return tag
}

// Many queues a statement that returns rows. T is a struct whose fields are the columns in order,
// such as a generated row type, or a plain type for a statement with one column.
func Many[T any](p *Pipeline, sql string, args ...any) *Result[T] {
	result := &Result[T]{}
	scan := pgx.RowTo[T]
	if kind := reflect.TypeFor[T](); kind.Kind() == reflect.Struct && kind != reflect.TypeFor[time.Time]() {
		scan = pgx.RowToStructByPos[T]
	}
	p.statements = append(p.statements, statement{sql: sql, args: args, read: func(rows pgx.Rows) error {
		collected, err := pgx.CollectRows(rows, scan)
		if err != nil {
			return err
		}
		result.rows = collected
		return nil
	}})
	return result
}

// Send sends what is queued, with BEGIN in front when it is the first of its
// transaction, and reads all results.
func (p *Pipeline) Send(ctx context.Context) error { return p.send(ctx, false) }

// Commit sends what is queued together with COMMIT. After it the transaction
// is over: nothing more may be done in it.
func (p *Pipeline) Commit(ctx context.Context) error { return p.send(ctx, true) }

func (p *Pipeline) send(ctx context.Context, commit bool) error {
	queued := p.statements
	p.statements = nil
	work := p.tx.session
	if work.state != stateNew && work.state != stateOpen {
		return pgx.ErrTxClosed
	}
	if len(queued) == 0 {
		if commit {
			return work.commit(ctx)
		}
		return nil
	}
	batch := &pgx.Batch{}
	opening := work.state == stateNew
	if opening {
		batch.Queue(work.begin)
		// From here on there may be a transaction to roll back.
		work.state = stateOpen
	}
	for _, s := range queued {
		batch.Queue(s.sql, s.args...)
	}
	if commit {
		batch.Queue("commit")
	}
	results := work.conn.SendBatch(ctx, batch)
	err := readAll(results, opening, queued)
	if err == nil && commit {
		err = work.committed(results.Exec())
	} else if err != nil && commit {
		err = work.interrupted(err)
	}
	if closeErr := results.Close(); err == nil && work.state != stateCommitted {
		err = closeErr
	}
	return err
}

func readAll(results pgx.BatchResults, opening bool, queued []statement) error {
	if opening {
		if _, err := results.Exec(); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	for i, s := range queued {
		if err := readOne(results, s); err != nil {
			return fmt.Errorf("statement %d of %d (%s): %w", i+1, len(queued), nameOf(s.sql), err)
		}
	}
	return nil
}

func readOne(results pgx.BatchResults, s statement) error {
	if s.read == nil {
		tag, err := results.Exec()
		s.tag.rows = tag.RowsAffected()
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	return s.read(rows)
}

// interrupted classifies a failure before the answer to a COMMIT in the same pipeline. If the
// server answered with an error, it did not commit. After a lost connection, or unreadable rows,
// the outcome is unknown.
func (w *session) interrupted(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) || pgconn.SafeToRetry(err) {
		return err
	}
	w.state, w.failure = stateUnknown, err
	return &OutcomeUnknownError{Err: err}
}

// nameOf is the name of a generated query, or the beginning of any other.
func nameOf(sql string) string {
	if rest, ok := strings.CutPrefix(sql, "-- name: "); ok {
		name, _, _ := strings.Cut(rest, " ")
		return name
	}
	const enough = 40
	sql = strings.Join(strings.Fields(sql), " ")
	if len(sql) > enough {
		sql = strings.ToValidUTF8(sql[:enough], "") + "…"
	}
	return sql
}
