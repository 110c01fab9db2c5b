// Command river measures what River, a queue of jobs in PostgreSQL, does with jobs that
// do nothing: inserted, worked and completed, with the settings of River's own benchmark.
// It is a module of its own, so that nothing of the product depends on it.
//
//	river -database postgres://… -jobs 20000
//
// It makes River's tables in the database, and prints how many jobs a second it completed,
// as a JSON object with jobs, seconds and per_second. A job that is not completed is an error.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// burst is how many jobs are inserted at once: as many as the other side requests at once.
const burst = 250

// warmUp is how many jobs run before the measurement, so that statements are prepared.
const warmUp = 200

// connections is the size of the pool, as in River's own benchmark command by default.
const connections = 10

type noop struct{}

func (noop) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[noop]
	done atomic.Int64
	all  chan struct{} // receives when target jobs were worked
	want atomic.Int64
}

func (w *worker) Work(context.Context, *river.Job[noop]) error {
	if w.done.Add(1) == w.want.Load() {
		w.all <- struct{}{}
	}
	return nil
}

// expect begins to count anew.
func (w *worker) expect(jobs int) {
	w.done.Store(0)
	w.want.Store(int64(jobs))
}

type measured struct {
	Jobs      int     `json:"jobs"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
}

func main() {
	database := flag.String("database", "", "address of a database of its own")
	jobs := flag.Int("jobs", 20_000, "jobs to run")
	flag.Parse()
	result, err := run(context.Background(), *database, *jobs)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, database string, jobs int) (measured, error) {
	cfg, err := pgxpool.ParseConfig(database)
	if err != nil {
		return measured{}, fmt.Errorf("read the address of the database: %w", err)
	}
	cfg.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return measured{}, fmt.Errorf("connect to the database: %w", err)
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return measured{}, fmt.Errorf("prepare River's tables: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return measured{}, fmt.Errorf("make River's tables: %w", err)
	}
	w := &worker{all: make(chan struct{}, 1)}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		// Those of River's own benchmark, which say that they decide about the result.
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2_000}},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Workers: workers,
	})
	if err != nil {
		return measured{}, fmt.Errorf("make a client: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		return measured{}, fmt.Errorf("start the client: %w", err)
	}
	if err := w.work(ctx, client, warmUp); err != nil {
		return measured{}, err
	}
	begun := time.Now()
	if err := w.work(ctx, client, jobs); err != nil {
		return measured{}, err
	}
	if err := client.Stop(ctx); err != nil { // what was worked is stored as completed
		return measured{}, fmt.Errorf("stop the client: %w", err)
	}
	took := time.Since(begun).Seconds()
	var completed int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&completed); err != nil {
		return measured{}, fmt.Errorf("count the jobs: %w", err)
	}
	if completed != warmUp+jobs {
		return measured{}, fmt.Errorf("%d of %d jobs are completed", completed, warmUp+jobs)
	}
	return measured{Jobs: jobs, Seconds: took, PerSecond: float64(jobs) / took}, nil
}

// work inserts jobs, while they are worked, and waits until all were.
func (w *worker) work(ctx context.Context, client *river.Client[pgx.Tx], jobs int) error {
	w.expect(jobs)
	for sent := 0; sent < jobs; sent += burst {
		batch := make([]river.InsertManyParams, min(burst, jobs-sent))
		for i := range batch {
			batch[i].Args = noop{}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return fmt.Errorf("insert %d jobs: %w", len(batch), err)
		}
	}
	select {
	case <-w.all:
		return nil
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("%d of %d jobs were worked within two minutes", w.done.Load(), jobs)
	}
}
