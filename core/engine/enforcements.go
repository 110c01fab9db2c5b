package engine

import (
	"context"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
)

// maxEnforcements bounds the enforcements of one batch.
const maxEnforcements = 100

// newEnforcements makes the loop that creates executions for enforcements. It runs batches of its
// own, beside the lanes, which wait for each other in the database. It passes the rest of its work
// to the lanes.
func (e *Engine) newEnforcements() *inbox {
	b := &inbox{queue: message.QueueEnforcements, kind: message.TypeEnforcementCreated, what: "enforcement",
		most: maxEnforcements}
	measured := scheduler.NewEnforcementMetrics(e.registry)
	b.read = func(body []byte) (int64, error) {
		envelope, err := message.Decode[message.EnforcementCreated](body)
		return envelope.Payload.EnforcementID, err
	}
	b.work = func(ctx context.Context, ids []int64) ([]int64, error) {
		step := scheduler.NewEnforcementStep(ids)
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
