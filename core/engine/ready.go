package engine

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/migrations"
)

// check refuses to start on a database that is away or not migrated, with
// what to do about it.
func (e *Engine) check(ctx context.Context) error {
	if err := e.query.Ping(ctx); err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	status, err := migrations.Status(ctx, migrations.Options{
		URL: e.cfg.Database.URL, Schema: e.cfg.Database.Schema, Logger: e.logger,
	})
	if err != nil {
		return fmt.Errorf("read the state of the schema: %w", err)
	}
	if !status.Current() {
		return fmt.Errorf("the schema %q is at version %d of %d: run attune-executor migrate up",
			e.cfg.Database.Schema, status.Version, status.Latest)
	}
	return e.takeOver(ctx)
}

// takeOver makes the queues ours when another engine has run on the database
// since the last of ours did.
func (e *Engine) takeOver(ctx context.Context) error {
	left, err := e.query.LeftByAnotherEngine(ctx)
	if err != nil || !left {
		return err
	}
	return e.query.Tx(ctx, "take over", func(ctx context.Context, tx *store.Tx) error {
		holders, err := tx.TakeOver(ctx)
		if err != nil {
			return fmt.Errorf("take over the queues of another engine: %w", err)
		}
		e.logger.WarnContext(ctx, "Queues that another engine has left are taken over", "running", holders)
		return nil
	})
}

// Ready runs the readiness checks: the database answers, the broker is
// connected, every queue has our consumer, every loop ticks.
func (e *Engine) Ready(ctx context.Context) []api.Check {
	checks := []api.Check{e.databaseReady(ctx), e.brokerReady()}
	var names []string
	for name := range e.consumers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		checks = append(checks, api.Check{Name: "consumer " + name, OK: e.consumers[name].Subscribed()})
	}
	names = names[:0]
	for name := range e.loops {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		checks = append(checks, e.loopReady(name))
	}
	return checks
}

func (e *Engine) databaseReady(ctx context.Context) api.Check {
	if err := e.query.Ping(ctx); err != nil {
		return api.Check{Name: "database", Detail: err.Error()}
	}
	return api.Check{Name: "database", OK: true}
}

func (e *Engine) brokerReady() api.Check {
	state := e.broker.State()
	return api.Check{Name: "broker", OK: state == broker.StateConnected, Detail: state.String()}
}

// loopSilence is how long a loop may go without a tick before the replica
// counts as not ready; every loop's interval and deadline are well below it.
const loopSilence = 90 * time.Second

func (e *Engine) loopReady(name string) api.Check {
	last := e.loops[name].LastTick()
	check := api.Check{Name: "loop " + name, OK: !last.IsZero() && time.Since(last) < loopSilence}
	if !last.IsZero() {
		check.Detail = "last tick " + last.UTC().Format(time.RFC3339)
	}
	return check
}
