package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/supervise"
)

// readyTimeout is how long the workers, and then the replicas, may take to register.
const readyTimeout = 30 * time.Second

// startFleet starts the workers, then the replicas: without workers, replicas would raise an alert. It
// returns when all have registered.
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

// startAll starts processes, each by its name and arguments, and waits until the given numbers of
// workers and replicas are ready.
func (d *Demo) startAll(ctx context.Context, what string, commands [][]string, workers, replicas int) error {
	return d.withProgress(ctx, what, time.Second, func() error {
		for _, command := range commands {
			if err := d.fleet.start(command[0], command[1:]...); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		for {
			var w, r int
			err := d.queryRow(ctx, "count live workers and replicas", sql.Ready, nil, &w, &r)
			if err == nil && w >= workers && r >= replicas {
				return nil
			}
			if err := d.fleet.exited(); err != nil {
				return err
			}
			if !supervise.Sleep(ctx, 100*time.Millisecond) {
				return fmt.Errorf("%d of %d workers and %d of %d replicas registered within %s; see the logs", w,
					workers, r, replicas, readyTimeout)
			}
		}
	})
}
