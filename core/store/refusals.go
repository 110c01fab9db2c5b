package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// mostRefused bounds the remembered refused statements.
const mostRefused = 16

// refusals traces the outcome of every statement of a pool. After an error of class Installation it
// makes the pool replace its connections: they hold prepared statements, and type numbers, of a
// schema that an operator is changing. After a refused write too, unless the pool is read only: the
// server has become a standby, and a new connection finds the primary. Connections in use are closed
// when they are returned. It remembers refused statements, so that Refuses can check them again.
type refusals struct {
	readOnly bool
	pool     atomic.Pointer[pgxpool.Pool]

	mu   sync.Mutex
	last []refusal
}

// refusal is an error, and the statements of which one caused it.
type refusal struct {
	err        *pgconn.PgError
	statements []query
}

type query struct {
	sql  string
	args []any
}

var (
	_ pgx.QueryTracer = (*refusals)(nil)
	_ pgx.BatchTracer = (*refusals)(nil)
)

// sent is the context key of the sent statements.
type sent struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (r *refusals) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, sent{}, []query{{data.SQL, data.Args}})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (r *refusals) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	r.record(ctx, data.Err)
}

// TraceBatchStart implements pgx.BatchTracer.
func (r *refusals) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, sent{}, data.Batch)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (r *refusals) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.record(ctx, data.Err)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (r *refusals) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	r.record(ctx, data.Err)
}

func (r *refusals) record(ctx context.Context, err error) {
	var server *pgconn.PgError
	refused := ClassOf(err) == ClassInstallation
	demoted := !r.readOnly && errors.As(err, &server) && server.Code == readOnlyCode
	if !refused && !demoted {
		return
	}
	if pool := r.pool.Load(); pool != nil {
		pool.Reset()
	}
	if demoted || !errors.As(err, &server) {
		return
	}
	one := refusal{err: server}
	switch what := ctx.Value(sent{}).(type) {
	case []query:
		one.statements = what
	case *pgx.Batch:
		for _, q := range what.QueuedQueries {
			one.statements = append(one.statements, query{q.SQL, q.Arguments})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) == mostRefused {
		r.last = append(r.last[:0], r.last[1:]...)
	}
	r.last = append(r.last, one)
}

// of returns the statements of an error.
func (r *refusals) of(err *pgconn.PgError) []query {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.last {
		if one.err == err {
			return one.statements
		}
	}
	return nil
}

// Refuses checks whether the database still refuses the statement that failed with err, an error of
// class Installation of this store. The database plans the statement again, which checks names,
// types and privileges and changes nothing. Refuses returns nil if the statement is accepted, if
// err is unknown or forgotten, and for statements that cannot be planned. It does not see errors
// inside of functions.
func (s *Store) Refuses(ctx context.Context, err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return nil
	}
	for _, q := range s.refusals.of(server) {
		if !plannable(q.sql) {
			continue
		}
		rows, err := s.pool.Query(ctx, "EXPLAIN "+q.sql, q.args...)
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		if err != nil {
			return fmt.Errorf("plan %s again: %w", nameOf(q.sql), err)
		}
	}
	return nil
}

// plannable reports whether EXPLAIN takes a statement.
func plannable(sql string) bool {
	for strings.HasPrefix(strings.TrimSpace(sql), "--") {
		_, sql, _ = strings.Cut(sql, "\n")
	}
	verb, _, _ := strings.Cut(strings.TrimSpace(strings.ToLower(sql)), " ")
	switch strings.TrimSpace(verb) {
	case "select", "insert", "update", "delete", "with", "merge", "values":
		return true
	}
	return false
}
