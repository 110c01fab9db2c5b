package engine

import (
	"context"

	"github.com/attune-go/attune/core/eventing"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/supervise"
)

// maxEvents bounds the events of one batch of rule matching.
const maxEvents = 200

// addEvents adds the path from events to executions: rule matching, the creation of executions, and
// the sweep for lost messages.
func (e *Engine) addEvents(metrics *supervise.Metrics) {
	measured := eventing.NewMetrics(e.registry)
	matcher := eventing.New(eventing.Config{
		Keys: e.keys, MaxDepth: e.cfg.Executor.RuleDepth, Traced: e.cfg.Telemetry.OTLPEndpoint != "",
	}, e.query, e.relay,
		e.logger, measured)
	events := e.newInbox(&inbox{
		queue: message.QueueEvents, kind: message.TypeEventCreated, what: "event", source: "events", most: maxEvents,
		read: func(body []byte) (int64, error) {
			envelope, err := message.Decode[message.EventCreated](body)
			return envelope.Payload.EventID, err
		},
		work: func(ctx context.Context, items []item) ([]int64, error) {
			result, err := matcher.Match(ctx, idsOf(items))
			return result.Missing, err
		},
		deleted: e.deletedFrom("event"),
	})
	enforcements := e.newEnforcements()
	sweep := eventing.NewSweep(eventing.SweepConfig{Horizon: e.cfg.Executor.MaxEventAge}, e.query, events.Submit,
		enforcements.Submit, e.logger, measured, metrics)
	e.loops["events"] = sweep
	e.services.Add("enforcement consumer", enforcements.consumer)
	e.services.Add("enforcements", enforcements)
	e.services.Add("event consumer", events.consumer)
	e.services.Add("events", events)
	e.services.Add("event sweep", sweep)
}

// deletedFrom returns a function that finds the deleted ones among ids of a table.
func (e *Engine) deletedFrom(table string) func(context.Context, []int64) ([]int64, error) {
	return func(ctx context.Context, ids []int64) ([]int64, error) { return e.query.DeletedIDs(ctx, ids, table) }
}

// maxEnforcements bounds the enforcements of one batch.
const maxEnforcements = 100

// newEnforcements makes the loop that creates executions for enforcements. It runs batches of its
// own, beside the lanes, which wait for each other in the database. It passes the rest of its work
// to the lanes.
func (e *Engine) newEnforcements() *inbox {
	b := &inbox{
		queue: message.QueueEnforcements, kind: message.TypeEnforcementCreated, what: "enforcement",
		source: "enforcements", most: maxEnforcements, deleted: e.deletedFrom("enforcement"),
	}
	measured := scheduler.NewEnforcementMetrics(e.registry)
	b.read = func(body []byte) (int64, error) {
		envelope, err := message.Decode[message.EnforcementCreated](body)
		return envelope.Payload.EnforcementID, err
	}
	b.work = func(ctx context.Context, items []item) ([]int64, error) {
		step := scheduler.NewEnforcementStep(idsOf(items))
		result, err := e.hot.scheduler.Run(ctx, step)
		if err != nil {
			return nil, err
		}
		outcome := step.Outcome()
		measured.Observe(outcome)
		for _, one := range outcome.Disabled {
			e.logger.WarnContext(ctx, "Enforcement gets no execution", "enforcement_id", one.ID, "rule_ref",
				one.RuleRef, "reason", one.Reason)
		}
		e.handleResult(ctx, result)
		return outcome.Missing, nil
	}
	return e.newInbox(b)
}
