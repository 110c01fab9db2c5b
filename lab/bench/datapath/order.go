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

// observe installs triggers that log the order of everything and abort a share of the batches.
func (w *world) observe(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, orderLogSQL); err != nil {
		return fmt.Errorf("install the triggers that log the order: %w", err)
	}
	database := pgx.Identifier{conn.Config().Database}.Sanitize()
	if _, err := conn.Exec(ctx,
		fmt.Sprintf("ALTER DATABASE %s SET bench.aborts = '%g'", database, w.scenario.Aborts)); err != nil {
		return fmt.Errorf("set the share of aborted batches: %w", err)
	}
	w.parts = append(w.parts, w.checkWhileRunning, w.holdQueues)
	return nil
}

// checkEvery is the pause between two checks of a running measurement.
const checkEvery = 200 * time.Millisecond

// checkWhileRunning checks the invariants: in each snapshot, counters and holders must agree.
func (w *world) checkWhileRunning(ctx context.Context) error {
	for supervise.Sleep(ctx, checkEvery) {
		violations, err := doctor.Invariants(ctx, w.query.Pool())
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		if len(violations) > 0 {
			return fmt.Errorf("%w: while it ran: %s", ErrFaulty, violations[0])
		}
	}
	return nil
}

// Pauses of holdQueues, and how long it holds a queue.
const (
	holdEvery = 40 * time.Millisecond
	holdFor   = 25 * time.Millisecond
)

// holdQueues locks one queue after the other, as operators and other programs do.
func (w *world) holdQueues(ctx context.Context) error {
	for supervise.Sleep(ctx, holdEvery) {
		err := pgx.BeginFunc(ctx, w.query.Pool(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, holdQueueSQL); err != nil {
				return fmt.Errorf("hold a queue: %w", err)
			}
			supervise.Sleep(ctx, holdFor)
			return nil
		})
		if err != nil {
			return ignoreEnd(ctx, err)
		}
	}
	return nil
}

var errUnobserved = errors.New("the observed order is incomplete")

// orderFaults reads the log of observe: dispatches out of order, and counters outside their bounds.
func (w *world) orderFaults(ctx context.Context, pool *pgxpool.Pool, executions int) (order, above int, err error) {
	var waited, went int
	if err := pool.QueryRow(ctx, orderFaultsSQL).Scan(&order, &above, &waited, &went); err != nil {
		return 0, 0, fmt.Errorf("read the observed order: %w", err)
	}
	if went != executions || (waited == 0) != (w.scenario.Limit == 0) {
		return 0, 0, fmt.Errorf("%w: %d of %d dispatches, %d waits", errUnobserved, went, executions, waited)
	}
	return order, above, nil
}
