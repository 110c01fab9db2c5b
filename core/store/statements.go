package store

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// watch traces every statement of a pool. After an error of class Installation, or of a stale plan, it
// makes the pool replace its connections: they hold prepared statements, and type numbers, of a
// schema that an operator is changing. After a refused write too, unless the pool is read only: the
// server has become a standby, and a new connection finds the primary. Connections in use are closed
// when they are returned.
type watch struct {
	readOnly bool
	pool     atomic.Pointer[pgxpool.Pool]
	// log receives every statement at level debug, without its values: they may be secret. May be nil.
	log *slog.Logger
}

var (
	_ pgx.QueryTracer = (*watch)(nil)
	_ pgx.BatchTracer = (*watch)(nil)
)

// begun is the context key of a statement and its start.
type begun struct{}

type loggedStatement struct {
	sql string
	at  time.Time
}

func (w *watch) begin(ctx context.Context, sql string) context.Context {
	if w.log == nil {
		return ctx
	}
	return context.WithValue(ctx, begun{}, loggedStatement{sql: sql, at: time.Now()})
}

// TraceQueryStart implements pgx.QueryTracer.
func (w *watch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return w.begin(ctx, data.SQL)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (w *watch) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	w.end(ctx, "", data.CommandTag.RowsAffected(), data.Err)
}

// TraceBatchStart implements pgx.BatchTracer.
func (w *watch) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return w.begin(ctx, "")
}

// TraceBatchQuery implements pgx.BatchTracer.
func (w *watch) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	w.end(ctx, data.SQL, data.CommandTag.RowsAffected(), data.Err)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (w *watch) TraceBatchEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	w.renew(data.Err)
}

// end handles the end of a statement; sql is empty if begin has it.
func (w *watch) end(ctx context.Context, sql string, rows int64, err error) {
	w.renew(err)
	if w.log == nil {
		return
	}
	one, _ := ctx.Value(begun{}).(loggedStatement)
	args := []any{
		"statement", strings.Join(strings.Fields(one.sql+sql), " "), "took", time.Since(one.at), "rows", rows,
	}
	if err != nil {
		args = append(args, "error", err)
	}
	w.log.DebugContext(ctx, "Statement executed", args...)
}

func (w *watch) renew(err error) {
	demoted := !w.readOnly && codeOf(err) == readOnlyState
	if !demoted && ClassOf(err) != ClassInstallation && !isStalePlan(err) {
		return
	}
	if pool := w.pool.Load(); pool != nil {
		pool.Reset()
	}
}
