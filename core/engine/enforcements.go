package engine

import (
	"context"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
)

// maxEnforcements is how many executions are made for enforcements in one batch.
const maxEnforcements = 100

// newEnforcements makes the loop that makes executions for enforcements. Its batches
// are its own, beside those of the hot loop, and wait for them in the database; what
// they leave undone is handed to the hot loop.
func (e *Engine) newEnforcements() *inbox {
	b := &inbox{queue: message.QueueEnforcements, kind: message.TypeEnforcementCreated, what: "enforcement", most: maxEnforcements}
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
			e.logger.WarnContext(ctx, "Enforcement gets no execution", "enforcement_id", one.ID, "rule_ref", one.RuleRef, "reason", one.Reason)
		}
		e.besides(ctx, result)
		return outcome.Missing, nil
	}
	return e.newInbox(b)
}
