package datapath

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/attune-go/attune/core/doctor"
)

// Faults count forbidden outcomes. Every one of them makes the measurement fail.
type Faults struct {
	AboveLimit int   `json:"above_limit"`
	OutOfOrder int   `json:"out_of_order"`
	Lost       int   `json:"lost"`
	Double     int   `json:"double"`
	LeftOver   int   `json:"left_over"`
	Deadlocks  int64 `json:"deadlocks"`
}

// ErrFaulty reports a measurement with faults.
var ErrFaulty = errors.New("the measurement broke its promises")

// endState counts rows after the end of all executions.
type endState struct {
	executions, incomplete, repeated, holding, entries, counters, loads, blocked, scopes, late, messages int
}

// check checks the end of a measurement of n executions.
func (w *world) check(ctx context.Context, pool *pgxpool.Pool, n int) (f Faults, err error) {
	var e endState
	err = pool.QueryRow(ctx, endStateSQL).Scan(&e.executions, &e.incomplete, &e.repeated, &e.holding, &e.entries,
		&e.counters, &e.loads, &e.blocked, &e.scopes, &e.late, &e.messages)
	if err != nil {
		return f, fmt.Errorf("read the end of the measurement: %w", err)
	}
	var details []string
	f.LeftOver = e.holding + e.entries + e.counters + e.loads + e.blocked + e.scopes + e.late + e.messages
	if f.LeftOver > 0 {
		details = append(details, fmt.Sprintf("%+v", e))
	}
	f.AboveLimit, _ = w.running.violations()
	f.Lost = n - (e.executions - e.incomplete)
	w.wire.mu.Lock()
	f.Double = e.repeated + len(w.wire.twice)
	w.wire.mu.Unlock()
	if w.scenario.Aborts > 0 {
		order, above, err := w.orderFaults(ctx, pool, n)
		if err != nil {
			return f, err
		}
		f.OutOfOrder, f.AboveLimit = order, f.AboveLimit+above
	}
	if w.scenario.Rate > 0 {
		var above int
		most := w.scenario.Rate + w.scenario.burst() - 1 // starts in one second (invariant S22)
		if err := pool.QueryRow(ctx, rateSQL, most).Scan(&above); err != nil {
			return f, fmt.Errorf("find starts above the rate: %w", err)
		}
		f.AboveLimit += above
	}
	violations, err := doctor.Invariants(ctx, pool)
	if err != nil {
		return f, fmt.Errorf("check the invariants: %w", err)
	}
	for _, v := range violations {
		f.LeftOver++
		details = append(details, v.String())
	}
	if f != (Faults{}) {
		return f, fmt.Errorf("%w: %+v %s", ErrFaulty, f, strings.Join(details, "; "))
	}
	return f, nil
}
