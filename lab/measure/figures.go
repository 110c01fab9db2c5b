package measure

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/lab/query"
)

//go:embed *.sql
var statements embed.FS

var sql = query.Statements[struct {
	Counters, Ended, Latency, Limit, Newest, Next, Pace, Seed, Workflow string
}](statements)

// queryRow reads one row. what names the operation in an error.
func (m *measurement) queryRow(ctx context.Context, what, sql string, args []any, into ...any) error {
	if err := m.store.Pool().QueryRow(ctx, sql, args...).Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// seed inserts the actions and limits of the measurement.
func (m *measurement) seed(ctx context.Context) error {
	limit := m.cfg.Limit
	if m.cfg.Workflow != "" {
		limit = 0 // the limit of a list is its concurrency, not a policy
	}
	if _, err := m.store.Pool().Exec(ctx, sql.Seed, limit, m.cfg.Actions); err != nil {
		return fmt.Errorf("insert the actions: %w", err)
	}
	if limit > 0 {
		if _, err := m.store.Pool().Exec(ctx, sql.Limit, limit); err != nil {
			return fmt.Errorf("insert the limits: %w", err)
		}
	}
	return m.queryRow(ctx, "read the newest execution", sql.Newest, nil, &m.after)
}

// counters are the database's counters.
type counters struct {
	commits, walBytes, updates, hot int64
}

func (m *measurement) counters(ctx context.Context) (c counters, err error) {
	err = m.queryRow(ctx, "read the counters of the database", sql.Counters, nil, &c.commits, &c.walBytes, &c.updates,
		&c.hot)
	return c, err
}

func (m *measurement) latencies(ctx context.Context, r *Report) error {
	err := m.queryRow(ctx, "read the latencies", sql.Latency, []any{m.after}, &r.Completed, &r.StartP50, &r.StartP95,
		&r.StartP99)
	if err != nil || m.cfg.Limit == 0 {
		return err
	}
	return m.queryRow(ctx, "read the idle times of slots", sql.Next, []any{m.after, m.cfg.Limit}, &r.NextP50,
		&r.NextP95, &r.NextP99)
}

func (m *measurement) machine(ctx context.Context) Machine {
	machine := Machine{CPUs: runtime.NumCPU(), GoVersion: runtime.Version()}
	_ = m.store.Pool().QueryRow(ctx, "SHOW server_version").Scan(&machine.PostgreSQL) // informative only
	return machine
}

// Tick is the unit of CPU time in /proc.
const Tick = 10 * time.Millisecond

// ProcessTime reads the CPU time of a process and of its ended children, and its parent. Zero for an ended process.
func ProcessTime(pid int) (own, reaped time.Duration, parent int) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, 0
	}
	// The name in parentheses may contain any character.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 15 {
		return 0, 0, 0
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(fields[i], 10, 64) // always a number
		return n
	}
	return time.Duration(number(11)+number(12)) * Tick, time.Duration(number(13)+number(14)) * Tick, int(number(1))
}

// TreeTime is the CPU time of a server: of its process and of its children, ended ones included.
func TreeTime(pid int) time.Duration {
	own, reaped, _ := ProcessTime(pid)
	total := own + reaped
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return total
	}
	for field := range strings.FieldsSeq(string(raw)) {
		if child, err := strconv.Atoi(field); err == nil {
			own, reaped, _ := ProcessTime(child)
			total += own + reaped
		}
	}
	return total
}

// MachineTime returns the CPU time of all processors since the start of the machine, 0 if unknown.
func MachineTime() time.Duration {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	fields := strings.Fields(first)
	var busy int64
	for i, field := range fields {
		n, _ := strconv.ParseInt(field, 10, 64) // always a number
		// cpu user nice system idle iowait irq softirq steal …
		if i == 1 || i == 2 || i == 3 || i == 6 || i == 7 || i == 8 {
			busy += n
		}
	}
	return time.Duration(busy) * Tick
}
