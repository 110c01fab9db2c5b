package store

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// statementLog logs every statement at level debug, without its values: they may be secret.
type statementLog struct{ logger *slog.Logger }

// begun is the context key of a statement and its start.
type begun struct{}

type loggedStatement struct {
	sql string
	at  time.Time
}

// TraceQueryStart implements pgx.QueryTracer.
func (l statementLog) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, begun{}, loggedStatement{sql: data.SQL, at: time.Now()})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l statementLog) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	one, _ := ctx.Value(begun{}).(loggedStatement)
	l.log(ctx, one, data.CommandTag.RowsAffected(), data.Err)
}

// TraceBatchStart implements pgx.BatchTracer.
func (l statementLog) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, begun{}, loggedStatement{at: time.Now()})
}

// TraceBatchQuery implements pgx.BatchTracer.
func (l statementLog) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	one, _ := ctx.Value(begun{}).(loggedStatement)
	one.sql = data.SQL
	l.log(ctx, one, data.CommandTag.RowsAffected(), data.Err)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (statementLog) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (l statementLog) log(ctx context.Context, one loggedStatement, rows int64, err error) {
	args := []any{"statement", strings.Join(strings.Fields(one.sql), " "), "took", time.Since(one.at), "rows", rows}
	if err != nil {
		args = append(args, "error", err)
	}
	l.logger.DebugContext(ctx, "Statement executed", args...)
}
