package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/migrations"
)

// check refuses to start on an unreachable database, or on a schema that is too old or too new for this
// program, and says what to do.
func (e *Engine) check(ctx context.Context) error {
	if err := e.query.Check(ctx); err != nil {
		return store.Trouble(err).Because(err)
	}
	version, err := migrations.Fits(ctx, e.query.Pool(), e.cfg.Database.Schema)
	if err != nil {
		return err
	}
	if version > migrations.Latest() {
		e.logger.InfoContext(ctx, "Schema is newer than this program, which can run on it", "version", version,
			"known", migrations.Latest())
	}
	return e.nameUnrepeated(ctx)
}

// namedActions bounds how many actions a log line names.
const namedActions = 20

// nameUnrepeated logs the actions of an existing installation whose max_retries has no effect
// because the setting is missing.
func (e *Engine) nameUnrepeated(ctx context.Context) error {
	if lifecycle.ActionRetries(e.cfg.Executor.Retry.HonourActionMaxRetries) != lifecycle.RetriesByOrigin {
		return nil
	}
	rows, err := e.query.AdoptedActionsWithRetries(ctx, namedActions)
	if err != nil {
		return fmt.Errorf("read which actions allow retries: %w", err)
	}
	var refs []string
	for _, row := range rows {
		refs = append(refs, row.Ref)
	}
	if len(refs) > 0 {
		e.logger.WarnContext(ctx, "Actions run once although they have max_retries, as in the existing installation",
			"actions", refs, "setting", "executor.retry.honour_action_max_retries")
	}
	return nil
}

// takeOver takes over the queues if another engine has run on the database since the last replica
// of this engine.
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
		e.logger.WarnContext(ctx, "Queues of another engine taken over", "running", holders)
		return nil
	})
}

// Ready runs the readiness checks: the database answers, its schema fits, the installation has no fault,
// the broker is connected and takes messages, every queue has our consumer, every loop ticks, and the running
// batch is not stuck.
func (e *Engine) Ready(ctx context.Context) []api.Check {
	checks := []api.Check{e.databaseReady(ctx), e.schemaReady(), e.installationReady(), e.brokerReady()}
	for _, name := range slices.Sorted(maps.Keys(e.consumers)) {
		check := api.Check{Name: "consumer " + name, OK: e.consumers[name].Subscribed()}
		if !check.OK {
			check.Detail = "not subscribed"
			if e.gate.Holding() {
				check.Detail = "gave back its deliveries until the installation is mended"
			}
		}
		checks = append(checks, check)
	}
	for _, name := range slices.Sorted(maps.Keys(e.loops)) {
		checks = append(checks, e.loopReady(name))
	}
	return append(checks, e.schedulerReady())
}

// pingTimeout is shorter than the usual timeout of an orchestrator's probe.
const pingTimeout = 2 * time.Second

func (e *Engine) databaseReady(ctx context.Context) api.Check {
	bounded, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := e.query.Check(bounded)
	if ctx.Err() == nil { // the client may have disconnected
		e.report.away.note(err)
	}
	if err == nil {
		return api.Check{Name: "database", OK: true}
	}
	return api.Check{
		Name: "database", Detail: store.Trouble(err).String() + " (since " + moment(e.report.away.began()) + ")",
	}
}

// schemaReady reports whether this program can run on the schema, as the last report found it: a migration
// may have changed it meanwhile.
func (e *Engine) schemaReady() api.Check {
	if unfit := e.report.unfit.Load(); unfit != nil {
		return api.Check{Name: "schema", Detail: unfit.Error()}
	}
	return api.Check{Name: "schema", OK: true}
}

// installationReady names the faults that an operator must mend.
func (e *Engine) installationReady() api.Check {
	faults := e.gate.Faults()
	check := api.Check{Name: "installation", OK: len(faults) == 0}
	var lines []string
	for _, f := range faults {
		lines = append(lines, fmt.Sprintf("since %s %s", moment(f.Since), f))
	}
	check.Detail = strings.Join(lines, "; ")
	return check
}

func (e *Engine) brokerReady() api.Check {
	state := e.broker.State()
	check := api.Check{Name: "broker", OK: state == broker.StateConnected, Detail: state.String()}
	for _, link := range e.broker.Links() {
		if link.Trouble.Fact != "" && !link.Since.IsZero() {
			check.OK = false
			check.Detail = link.Trouble.String() + " (since " + moment(link.Since) + ")"
		}
	}
	return check
}

// loopReady reports whether a loop succeeds. One that ticks and fails is not ready, but for a moment.
func (e *Engine) loopReady(name string) api.Check {
	l := e.loops[name]
	last, err := l.LastSuccess(), l.LastError()
	check := api.Check{Name: "loop " + name, Detail: "has not succeeded yet"}
	if !last.IsZero() {
		check.Detail = "last success " + moment(last)
	}
	if err != nil {
		check.Detail += ", the last tick failed: " + err.Error()
	}
	check.OK = !last.IsZero() && time.Since(last) < l.SuccessTimeout()
	return check
}

// schedulerReady reports whether batches commit. Without work they are idle, which is fine; a batch
// that runs for long is stuck. The oldest batch of all lanes counts.
func (e *Engine) schedulerReady() api.Check {
	check := api.Check{Name: "rounds", OK: true, Detail: "idle"}
	if done := e.hot.lastDone(); !done.IsZero() {
		check.Detail = "last batch " + moment(done)
	}
	if since, executions := e.hot.underWay(); !since.IsZero() {
		check.OK = time.Since(since) < monitor.BatchTimeout || e.gate.Holding() // that has a check of its own
		check.Detail = phrase.Plural(executions, "execution", "executions") + " under way since " + moment(since)
	}
	return check
}

func moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }
