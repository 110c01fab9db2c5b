package enforcement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// Step takes up a batch of enforcements. It serves one round.
type Step struct {
	ids    []int64
	births []*scheduler.Birth
	// What becomes of the enforcements; an empty reason is processed.
	decided []int64
	reasons []string
	outcome Outcome
}

// Outcome says what became of a batch. It is valid after the round.
type Outcome struct {
	Processed int // have their execution
	Disabled  []Disabled
	// Missing lists enforcements without a row.
	Missing []int64
}

// Disabled is an enforcement that gets no execution.
type Disabled struct {
	ID      int64
	RuleRef string
	Reason  string
}

// New makes the step for these enforcements.
func New(ids []int64) *Step {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return &Step{ids: slices.Compact(ids)}
}

// Executions implements scheduler.Step: there are none yet.
func (s *Step) Executions() []int64 { return nil }

// Outcome is what became of the batch.
func (s *Step) Outcome() Outcome { return s.outcome }

// Plan implements scheduler.Step: it decides about every enforcement and plans for
// the executions.
func (s *Step) Plan(ctx context.Context, plan *scheduler.Plan) error {
	s.births, s.decided, s.reasons, s.outcome = nil, nil, nil, Outcome{}
	rows, err := plan.Queries().ReadEnforcements(ctx, s.ids)
	if err != nil {
		return fmt.Errorf("read %d enforcements: %w", len(s.ids), err)
	}
	seen := make(map[int64]bool, len(rows))
	for _, row := range rows {
		seen[row.ID] = true
		s.decide(row)
	}
	for _, id := range s.ids {
		if !seen[id] {
			s.outcome.Missing = append(s.outcome.Missing, id)
		}
	}
	return s.planBirths(ctx, plan)
}

// decide finds out what becomes of one enforcement.
func (s *Step) decide(row store.ReadEnforcementsRow) {
	if row.Status != store.EnforcementStatusEnumCreated {
		return
	}
	reason := refusal(row)
	s.decided, s.reasons = append(s.decided, row.ID), append(s.reasons, reason)
	if reason != "" {
		s.outcome.Disabled = append(s.outcome.Disabled, Disabled{row.ID, row.RuleRef, reason})
		return
	}
	s.outcome.Processed++
	if row.Execution != 0 {
		return // made by somebody who did not come to say so
	}
	s.births = append(s.births, &scheduler.Birth{
		ActionID: *row.Action, ActionRef: row.ActionRef, Config: parameters(row.Config), Enforcement: row.ID,
		Executor: row.Executor, PermissionSets: row.PermissionSetRefs,
	})
}

// refusal is why an enforcement gets no execution, empty if it does.
func refusal(row store.ReadEnforcementsRow) string {
	switch {
	case row.Rule == 0:
		return fmt.Sprintf("rule %s does not exist any more", row.RuleRef)
	case !row.Enabled:
		return fmt.Sprintf("rule %s was disabled before its execution was made", row.RuleRef)
	case row.Action == nil:
		return fmt.Sprintf("action %s of rule %s does not exist any more: apply the pack of the rule again", row.ActionRef, row.RuleRef)
	case !row.HasTrigger:
		return fmt.Sprintf("trigger %s of rule %s does not exist any more: apply the pack of the rule again", row.TriggerRef, row.RuleRef)
	}
	return ""
}

// parameters are what an execution has of those of its enforcement: none is null.
func parameters(config []byte) []byte {
	switch strings.TrimSpace(string(config)) {
	case "", "null", "{}":
		return nil
	}
	return config
}

func (s *Step) planBirths(ctx context.Context, plan *scheduler.Plan) error {
	if len(s.births) == 0 {
		return nil
	}
	actions := make([]int64, len(s.births))
	for i, b := range s.births {
		actions[i] = b.ActionID
	}
	slices.Sort(actions)
	if err := plan.LoadRules(ctx, slices.Compact(actions), nil); err != nil {
		return err
	}
	ids, err := plan.NewIDs(ctx, len(s.births))
	if err != nil {
		return err
	}
	for i, b := range s.births {
		b.ID = ids[i]
		plan.NeedBirth(b)
	}
	return nil
}

// Apply implements scheduler.Step.
func (s *Step) Apply(round *scheduler.Round) {
	if len(s.decided) == 0 {
		return
	}
	enforcements, executions := make([]int64, len(s.births)), make([]int64, len(s.births))
	for i, b := range s.births {
		round.Create(b)
		enforcements[i], executions[i] = b.Enforcement, b.ID
	}
	if len(s.births) > 0 {
		round.Also(store.CopyEnforcementSecrets, enforcements, executions)
	}
	round.Also(store.ResolveEnforcements, s.decided, s.reasons)
}

var _ scheduler.Step = (*Step)(nil)
