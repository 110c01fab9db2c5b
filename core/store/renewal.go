package store

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// renewal traces the outcome of every statement of a pool. After an error of class Installation, or of a stale plan, it
// makes the pool replace its connections: they hold prepared statements, and type numbers, of a
// schema that an operator is changing. After a refused write too, unless the pool is read only: the
// server has become a standby, and a new connection finds the primary. Connections in use are closed
// when they are returned.
type renewal struct {
	readOnly bool
	pool     atomic.Pointer[pgxpool.Pool]
}

var (
	_ pgx.QueryTracer = (*renewal)(nil)
	_ pgx.BatchTracer = (*renewal)(nil)
)

// TraceQueryStart implements pgx.QueryTracer.
func (*renewal) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (r *renewal) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	r.after(data.Err)
}

// TraceBatchStart implements pgx.BatchTracer.
func (*renewal) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (r *renewal) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.after(data.Err)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (r *renewal) TraceBatchEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	r.after(data.Err)
}

func (r *renewal) after(err error) {
	demoted := !r.readOnly && codeOf(err) == readOnlyState
	if !demoted && ClassOf(err) != ClassInstallation && !isStalePlan(err) {
		return
	}
	if pool := r.pool.Load(); pool != nil {
		pool.Reset()
	}
}
