package dispatch

import (
	"context"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/handover"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// Step admits a batch of requested executions.
type Step struct {
	ids  []int64
	keys map[int64]admission.Key // the queue of each execution that may enter one
}

// New makes the step for these executions, in the order they were requested.
func New(ids []int64) *Step { return &Step{ids: ids} }

// Executions implements handover.Step.
func (s *Step) Executions() []int64 { return s.ids }

// Plan implements handover.Step: it finds every execution's action, limit and
// group, and so its queue.
func (s *Step) Plan(ctx context.Context, plan *handover.Plan) error {
	s.keys = make(map[int64]admission.Key, len(s.ids))
	var actions []int64
	var refs []string
	for _, id := range s.ids {
		row, ok := plan.Row(id)
		if !ok {
			continue
		}
		if row.Action != nil {
			actions = append(actions, *row.Action)
		} else {
			refs = append(refs, row.ActionRef)
		}
	}
	if err := plan.LoadRules(ctx, actions, refs); err != nil {
		return err
	}
	for _, id := range s.ids {
		if row, ok := plan.Row(id); ok {
			s.planOne(plan, row)
		}
	}
	return nil
}

func (s *Step) planOne(plan *handover.Plan, row store.ReadRoundExecutionsRow) {
	if row.Waits != 0 {
		plan.NeedQueue(row.Waits) // it may have to leave the line
		return
	}
	rule, ok := plan.Rule(row.Action, row.ActionRef)
	if !ok || rule.Workflow || row.Status != attune.StatusRequested {
		return
	}
	key := admission.Key{ActionID: rule.ActionID}
	if len(rule.Limit.Parameters) > 0 {
		key.Group, _ = policy.GroupKey(rule.Limit.Parameters, policy.WithDefaults(row.Config, rule.ParamSchema))
	}
	s.keys[row.ID] = key
	plan.NeedKey(key, rule.Limit)
}

// Apply implements handover.Step.
func (s *Step) Apply(round *handover.Round) {
	for _, id := range s.ids {
		fact, ok := round.Ledger.Fact(id)
		switch {
		case !ok:
			// No row: the caller learns it from the round's result.
		case fact.Status != attune.StatusRequested:
			round.Ledger.Withdraw(id) // cancelled while it waited; otherwise nothing
		case fact.Waits == nil && fact.Holds == nil:
			s.admit(round, id, fact)
		}
	}
}

func (s *Step) admit(round *handover.Round, id int64, fact admission.Fact) {
	row, _ := round.Row(id)
	rule, ok := round.Rule(row.Action, row.ActionRef)
	if !ok {
		round.Fail(id, deref(row.Action), row.ActionRef, "action not found", "the action of the execution does not exist")
		return
	}
	if rule.Workflow {
		round.Fail(id, rule.ActionID, row.ActionRef, "workflows are not supported", "this engine does not run workflow actions")
		return
	}
	key, planned := s.keys[id]
	if !planned {
		round.Replan() // it stood in a line when it was read
		return
	}
	queue, ok := round.Queue(key)
	if !ok {
		round.Fail(id, rule.ActionID, row.ActionRef, "action not found", "the action was deleted while the execution was admitted")
		return
	}
	waiter := admission.Waiter{
		ExecutionID: id, Status: fact.Status, ActionID: rule.ActionID, ActionRef: row.ActionRef,
		Config: row.Config, Updated: fact.Updated, Attempt: fact.Attempt,
	}
	how := admission.Terms{
		Queue: queue, MayWait: rule.Limit.Method != policy.MethodCancel, MaxQueued: round.MaxQueued(),
	}
	switch round.Ledger.Admit(waiter, how, round.Gate) {
	case admission.Refused:
		round.Refuse(id, rule.ActionID, row.ActionRef, "policy violation",
			"policy "+rule.Limit.PolicyRef+" allows no more executions at once and does not let them wait")
	case admission.Full:
		round.Refuse(id, rule.ActionID, row.ActionRef, "Queue full",
			"the queue of the action is at its maximum length")
	case admission.Admitted, admission.Queued, admission.Ended:
	}
}

func deref(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

var _ handover.Step = (*Step)(nil)
