package store

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// staleness sees the outcome of every statement of a pool. After an error of class
// Installation it has the pool replace its connections: they hold prepared
// statements, and the numbers of types, of a schema that an operator is changing.
// Connections in use are closed when they come back.
type staleness struct{ pool atomic.Pointer[pgxpool.Pool] }

var (
	_ pgx.QueryTracer = (*staleness)(nil)
	_ pgx.BatchTracer = (*staleness)(nil)
)

// TraceQueryStart implements pgx.QueryTracer.
func (s *staleness) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *staleness) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	s.see(data.Err)
}

// TraceBatchStart implements pgx.BatchTracer.
func (s *staleness) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (s *staleness) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.see(data.Err)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (s *staleness) TraceBatchEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	s.see(data.Err)
}

func (s *staleness) see(err error) {
	if err == nil || ClassOf(err) != ClassInstallation {
		return
	}
	if pool := s.pool.Load(); pool != nil {
		pool.Reset()
	}
}
