// Package river measures River, a job queue in PostgreSQL, with empty jobs and the settings of River's own
// benchmark.
package river

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	burst       = 250 // jobs inserted at once: as many as the engine's scenarios request at once
	warmUp      = 200 // jobs before the measurement, so that statements are prepared
	connections = 10  // the default of River's own benchmark command
)

type noop struct{}

// Kind names the job.
func (noop) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[noop]
	done atomic.Int64
	all  chan struct{} // receives after the wanted number of jobs
	want atomic.Int64
}

// Work counts the job.
func (w *worker) Work(context.Context, *river.Job[noop]) error {
	if w.done.Add(1) == w.want.Load() {
		w.all <- struct{}{}
	}
	return nil
}

// PerSecond creates River's tables in a database of its own, runs the jobs, and returns the completions a
// second. An uncompleted job is an error.
func PerSecond(ctx context.Context, databaseURL string, jobs int, logger *slog.Logger) (perSecond float64, err error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return 0, fmt.Errorf("read the address of the database: %w", err)
	}
	cfg.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return 0, fmt.Errorf("connect to the database: %w", err)
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: logger})
	if err != nil {
		return 0, fmt.Errorf("prepare River's tables: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, fmt.Errorf("create River's tables: %w", err)
	}
	w := &worker{all: make(chan struct{}, 1)}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		// The settings of River's own benchmark, whose comments call them decisive.
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2_000}},
		Logger:  logger,
		Workers: workers,
	})
	if err != nil {
		return 0, fmt.Errorf("create a client: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		return 0, fmt.Errorf("start the client: %w", err)
	}
	defer func() {
		if err != nil {
			_ = client.StopAndCancel(context.WithoutCancel(ctx)) // the earlier error is the cause
		}
	}()
	if err := w.work(ctx, client, warmUp); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := w.work(ctx, client, jobs); err != nil {
		return 0, err
	}
	if err := client.Stop(ctx); err != nil { // stores the completions
		return 0, fmt.Errorf("stop the client: %w", err)
	}
	took := time.Since(begun)
	var completed int
	if err := pool.QueryRow(ctx,
		"SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&completed); err != nil {
		return 0, fmt.Errorf("count the jobs: %w", err)
	}
	if completed != warmUp+jobs {
		return 0, fmt.Errorf("%d of %d jobs are completed", completed, warmUp+jobs)
	}
	return float64(jobs) / took.Seconds(), nil
}

// work inserts jobs and waits until all are worked.
func (w *worker) work(ctx context.Context, client *river.Client[pgx.Tx], jobs int) error {
	w.done.Store(0)
	w.want.Store(int64(jobs))
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
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("%d of %d jobs were worked within two minutes", w.done.Load(), jobs)
	}
}
