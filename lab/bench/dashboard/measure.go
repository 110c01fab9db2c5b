package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/migrations"
)

// Budget is the database time of one poll of everything.
const Budget = 50 * time.Millisecond

// roundsDefault is the number of readings. A session plans a statement five times and then keeps a plan; the
// measurement covers both.
const roundsDefault = 20

// Options is one measurement.
type Options struct {
	Size   Size
	Rounds int
	// Progress prints the progress; may be nil.
	Progress func(format string, args ...any)
}

// Cost is the cost of one reading in the database.
type Cost struct {
	Name string `json:"name"`
	// Statements includes BEGIN and COMMIT.
	Statements float64 `json:"statements"`
	// Milliseconds is the time in the server with planning: the mean of all rounds, and the worst.
	Milliseconds float64 `json:"milliseconds"`
	Worst        float64 `json:"worst_milliseconds"`
	// Rows is the number of rows that the server read.
	Rows int64 `json:"rows"`
	// Scanned lists the tables with sequential scans.
	Scanned []string `json:"scanned"`
}

// Report is the result of a measurement.
type Report struct {
	Size   Size   `json:"size"`
	Rounds int    `json:"rounds"`
	Polls  []Cost `json:"polls"`
	Looks  []Cost `json:"looks"`
	// Poll is the sum of the polls' means in milliseconds.
	Poll       float64 `json:"poll_milliseconds"`
	Budget     float64 `json:"budget_milliseconds"`
	PostgreSQL string  `json:"postgresql"`
	CPUs       int     `json:"cpus"`
}

// Prepare makes the server measure statements from its next start. A server without the extension is an
// error.
func Prepare(ctx context.Context, databaseURL string) error {
	return session(ctx, databaseURL, func(conn *pgx.Conn) error {
		const availableSQL = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_stat_statements')"
		var available bool
		if err := conn.QueryRow(ctx, availableSQL).Scan(&available); err != nil {
			return fmt.Errorf("find the extension pg_stat_statements: %w", err)
		}
		if !available {
			return errors.New("the server lacks the extension pg_stat_statements, which measures statements")
		}
		return execute(ctx, conn, "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
	})
}

// Run fills the empty database and measures. The server must have restarted since Prepare.
func Run(ctx context.Context, o Options, databaseURL string, logger *slog.Logger) (Report, error) {
	if o.Rounds <= 0 {
		o.Rounds = roundsDefault
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	report := Report{Size: o.Size, Rounds: o.Rounds, Budget: Budget.Seconds() * 1000, CPUs: runtime.NumCPU()}
	if _, err := migrations.Up(ctx,
		migrations.Options{URL: databaseURL, Schema: migrations.DefaultSchema, Logger: logger}); err != nil {
		return report, fmt.Errorf("migrate the database: %w", err)
	}
	err := session(ctx, databaseURL, func(conn *pgx.Conn) error {
		if err := execute(ctx, conn, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public",
			"ALTER SYSTEM SET pg_stat_statements.track_planning = on", "SELECT pg_reload_conf()"); err != nil {
			return err
		}
		return conn.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&report.PostgreSQL)
	})
	if err != nil {
		return report, err
	}
	observer, err := open(ctx, databaseURL, false, logger)
	if err != nil {
		return report, err
	}
	defer observer.Close()
	o.Progress("inserting %d executions, %d of them queued", o.Size.Executions, o.Size.Queued)
	if err := Fill(ctx, observer, o.Size); err != nil {
		return report, err
	}
	st, err := open(ctx, databaseURL, true, logger)
	if err != nil {
		return report, err
	}
	defer st.Close()
	m := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil)
	if report.Polls, err = costs(ctx, o, observer, st, Polls(m)); err != nil {
		return report, err
	}
	if report.Looks, err = costs(ctx, o, observer, st, Looks(m, o.Size)); err != nil {
		return report, err
	}
	for _, c := range report.Polls {
		report.Poll += c.Milliseconds
	}
	return report, nil
}

func costs(ctx context.Context, o Options, observer, st *store.Store, readings []Reading) ([]Cost, error) {
	var out []Cost
	for _, reading := range readings {
		o.Progress("reading %s", reading.Name)
		c := Cost{Name: reading.Name}
		u, err := Spend(ctx, observer, st, func(ctx context.Context) error {
			for range o.Rounds {
				if err := c.read(ctx, observer, reading); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return out, fmt.Errorf("measure the reading of %s: %w", reading.Name, err)
		}
		c.Milliseconds /= float64(o.Rounds)
		c.Statements /= float64(o.Rounds)
		c.Rows, c.Scanned = u.Rows/int64(o.Rounds), u.Scanned()
		out = append(out, c)
	}
	return out, nil
}

// read reads once and adds the cost.
func (c *Cost) read(ctx context.Context, observer *store.Store, reading Reading) error {
	if _, err := observer.Pool().Exec(ctx, "SELECT public.pg_stat_statements_reset()"); err != nil {
		return fmt.Errorf("reset the statement statistics: %w", err)
	}
	if err := reading.Read(ctx); err != nil {
		return err
	}
	var spent, statements float64
	err := observer.Pool().QueryRow(ctx, `SELECT coalesce(sum(total_exec_time + total_plan_time), 0)::float8, coalesce(sum(calls), 0)::float8
		FROM public.pg_stat_statements WHERE query NOT LIKE '%pg\_stat%'`).Scan(&spent, &statements)
	if err != nil {
		return fmt.Errorf("read the statement statistics: %w", err)
	}
	c.Milliseconds += spent
	c.Worst = max(c.Worst, spent)
	c.Statements += statements
	return nil
}

// open opens a store. For reading it has a single session, as Spend requires.
func open(ctx context.Context, databaseURL string, reads bool, logger *slog.Logger) (*store.Store, error) {
	cfg := store.Config{
		URL: databaseURL, Schema: migrations.DefaultSchema, MaxConnections: 2,
		ApplicationName: "attune-bench",
	}
	if reads {
		cfg.MaxConnections, cfg.ReadOnly = 1, true
	}
	st, err := store.Open(ctx, cfg, logger)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return st, nil
}

// session runs fn on a connection of its own.
func session(ctx context.Context, databaseURL string, fn func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is pending on it
	return fn(conn)
}

func execute(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}
