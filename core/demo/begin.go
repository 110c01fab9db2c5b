package demo

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/supervise"
)

//go:embed ready.sql
var readySQL string

// readyTimeout is how long the workers, and then the replicas, may take to register.
const readyTimeout = 30 * time.Second

// startFleet starts the workers and, when they are there, the replicas, so that none
// raises an alert about workers that are missing. It returns when all have registered.
func (d *Demo) startFleet(ctx context.Context, logs string) error {
	var commands [][]string
	for i := range d.cfg.Workers {
		commands = append(commands,
			[]string{workerName(i), "worker", "--name", workerName(i), "--concurrency", "10", "--packs", d.packsDir()})
	}
	starting := fmt.Sprintf("starting %d workers, logs in %s", d.cfg.Workers, logs)
	if err := d.startAll(ctx, starting, commands, d.cfg.Workers, 0); err != nil {
		return err
	}
	commands = nil
	for i := range d.cfg.Replicas {
		commands = append(commands, []string{replicaName(i), "serve"})
	}
	return d.startAll(ctx, fmt.Sprintf("starting %d engine replicas", d.cfg.Replicas), commands, d.cfg.Workers,
		d.cfg.Replicas)
}

// startAll starts processes, each by its name and arguments, and waits until so many
// workers and replicas are ready.
func (d *Demo) startAll(ctx context.Context, what string, commands [][]string, workers, replicas int) error {
	return d.patiently(ctx, what, time.Second, func() error {
		for _, command := range commands {
			if err := d.fleet.start(command[0], command[1:]...); err != nil {
				return err
			}
		}
		return d.awaitReady(ctx, workers, replicas)
	})
}

func (d *Demo) awaitReady(ctx context.Context, workers, replicas int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		w, r, err := d.ready(ctx)
		if err == nil && w >= workers && r >= replicas {
			return nil
		}
		if err := d.fleet.exited(); err != nil {
			return err
		}
		if !supervise.Sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%d of %d workers and %d of %d replicas registered within %s; see the logs", w, workers,
				r, replicas, readyTimeout)
		}
	}
}

// ready counts the demo's workers that may be given work, and the replicas that live.
func (d *Demo) ready(ctx context.Context) (workers, replicas int, err error) {
	if err := d.store.Pool().QueryRow(ctx, readySQL).Scan(&workers, &replicas); err != nil {
		return 0, 0, fmt.Errorf("count live workers and replicas: %w", err)
	}
	return workers, replicas, nil
}
