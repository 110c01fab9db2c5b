package datapath

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/core/supervise"
)

// observe writes down the order of everything in the database itself and has
// a share of the rounds aborted.
func (w *world) observe(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, orderLogSQL); err != nil {
		return fmt.Errorf("prepare to observe the order: %w", err)
	}
	database := pgx.Identifier{conn.Config().Database}.Sanitize()
	if _, err := conn.Exec(ctx,
		fmt.Sprintf("ALTER DATABASE %s SET bench.aborts = '%g'", database, w.scenario.Aborts)); err != nil {
		return fmt.Errorf("set the share of aborted rounds: %w", err)
	}
	w.parts = append(w.parts, w.inspect, w.intrude)
	return nil
}

// inspections is the pause between two looks at a running measurement.
const inspections = 200 * time.Millisecond

// inspect looks at the invariants while everything runs: each look is one
// snapshot, in which counters and holders must agree.
func (w *world) inspect(ctx context.Context) error {
	for supervise.Sleep(ctx, inspections) {
		violations, err := doctor.Invariants(ctx, w.query.Pool())
		if err != nil {
			return over(ctx, err)
		}
		if len(violations) > 0 {
			return fmt.Errorf("%w: while it ran: %s", ErrFaulty, violations[0])
		}
	}
	return nil
}

// Pauses of intrude, and how long it holds a queue.
const (
	intrusionEvery = 40 * time.Millisecond
	intrusionLasts = 25 * time.Millisecond
)

// intrude holds one queue after the other for a while, as operators and other programs do.
func (w *world) intrude(ctx context.Context) error {
	for supervise.Sleep(ctx, intrusionEvery) {
		err := pgx.BeginFunc(ctx, w.query.Pool(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, intrudeSQL); err != nil {
				return fmt.Errorf("hold a queue: %w", err)
			}
			supervise.Sleep(ctx, intrusionLasts)
			return nil
		})
		if err != nil {
			return over(ctx, err)
		}
	}
	return nil
}

var errUnobserved = errors.New("the observed order is incomplete")

// orderFaults reads what observe has written down: hand-overs out of order,
// and counters that left their bounds.
func (w *world) orderFaults(ctx context.Context, pool *pgxpool.Pool, executions int) (order, above int, err error) {
	var waited, went int
	if err := pool.QueryRow(ctx, orderFaultsSQL).Scan(&order, &above, &waited, &went); err != nil {
		return 0, 0, fmt.Errorf("read the observed order: %w", err)
	}
	if went != executions || (waited == 0) != (w.scenario.Limit == 0) {
		return 0, 0, fmt.Errorf("%w: %d of %d hand-overs, %d waits", errUnobserved, went, executions, waited)
	}
	return order, above, nil
}
