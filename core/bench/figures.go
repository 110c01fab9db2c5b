package bench

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
)

var (
	//go:embed ended.sql
	endedSQL string
	//go:embed seed.sql
	seedSQL string
	//go:embed latency.sql
	latencySQL string
	//go:embed next.sql
	nextSQL string
	//go:embed counters.sql
	countersSQL string
)

// seed makes the actions and limits of the measurement.
func (m *measurement) seed(ctx context.Context) error {
	limit := m.cfg.Limit
	if m.cfg.Workflow != "" {
		limit = 0 // that of a list is its concurrency, not a policy
	}
	if _, err := m.store.Pool().Exec(ctx, seedSQL, limit, m.cfg.Actions); err != nil {
		return fmt.Errorf("make the actions to measure: %w", err)
	}
	if limit > 0 {
		if _, err := m.store.Pool().Exec(ctx, limitSQL, limit); err != nil {
			return fmt.Errorf("make the limits to measure: %w", err)
		}
	}
	if err := m.store.Pool().QueryRow(ctx, newestSQL).Scan(&m.after); err != nil {
		return fmt.Errorf("read the newest execution: %w", err)
	}
	return nil
}

var (
	//go:embed limit.sql
	limitSQL string
	//go:embed newest.sql
	newestSQL string
)

// counters are the database's own, at one moment.
type counters struct {
	commits, walBytes, updates, hot int64
}

func (m *measurement) counters(ctx context.Context) (c counters, err error) {
	if err := m.store.Pool().QueryRow(ctx, countersSQL).Scan(&c.commits, &c.walBytes, &c.updates, &c.hot); err != nil {
		return c, fmt.Errorf("read the counters of the database: %w", err)
	}
	return c, nil
}

func (r *Report) perExecution(before, after counters) {
	n := float64(max(r.Completed, 1))
	r.CommitsPerExecution = float64(after.commits-before.commits) / n
	r.WALBytesPerExecution = float64(after.walBytes-before.walBytes) / n
	if updates := after.updates - before.updates; updates > 0 {
		r.HotRatio = float64(after.hot-before.hot) / float64(updates)
	}
}

func (m *measurement) latencies(ctx context.Context, r *Report) error {
	err := m.store.Pool().QueryRow(ctx, latencySQL, m.after).Scan(&r.Completed, &r.StartP50, &r.StartP95, &r.StartP99)
	if err != nil {
		return fmt.Errorf("read the latencies: %w", err)
	}
	if m.cfg.Limit == 0 {
		return nil
	}
	err = m.store.Pool().QueryRow(ctx, nextSQL, m.after, m.cfg.Limit).Scan(&r.NextP50, &r.NextP95, &r.NextP99)
	if err != nil {
		return fmt.Errorf("read how long slots were idle: %w", err)
	}
	return nil
}

func (m *measurement) machine(ctx context.Context) Machine {
	machine := Machine{CPUs: runtime.NumCPU(), GoVersion: runtime.Version()}
	_ = m.store.Pool().QueryRow(ctx, "SHOW server_version").Scan(&machine.PostgreSQL) // for the reader only
	return machine
}
