package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/tracing"
)

// EnforcementStep handles enforcement.created: it creates the execution of the rule's action in the
// batch that admits it. It serves one batch.
//
// A created enforcement becomes processed together with its one execution, or disabled with the
// reason in enforcement.error. This happens once, in one transaction, however often and to however
// many replicas its message is delivered (invariants S10, S13). Enforcements of any other status
// are left alone. The execution runs as the rule's owner, or as the system if the rule has none,
// with the permission sets of the rule or else of its action. Secrets in its parameters are copied
// encrypted.
//
// A rule that was deleted or disabled, or lost its action or trigger, disables the enforcement; it
// is never an error that returns. An enforcement without a row is reported to the caller, because
// its message may precede its commit.
type EnforcementStep struct {
	ids           []int64
	newExecutions []*NewExecution
	// decided and reasons are parallel; an empty reason means processed.
	decided []int64
	reasons []string
	outcome EnforcementOutcome
}

// EnforcementOutcome is the result of a batch. It is valid after the batch.
type EnforcementOutcome struct {
	Processed int // have their execution
	Disabled  []DisabledEnforcement
	// Missing lists enforcements without a row.
	Missing []int64
}

// DisabledEnforcement is an enforcement that gets no execution.
type DisabledEnforcement struct {
	ID      int64
	RuleRef string
	Reason  string
}

// NewEnforcementStep makes the step for these enforcements.
func NewEnforcementStep(ids []int64) *EnforcementStep {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return &EnforcementStep{ids: slices.Compact(ids)}
}

// Executions implements Step. It is empty: the executions do not exist yet.
func (s *EnforcementStep) Executions() []int64 { return nil }

// Optimistic implements Optimistic.
func (*EnforcementStep) Optimistic() bool { return true }

// Outcome returns the result of the batch.
func (s *EnforcementStep) Outcome() EnforcementOutcome { return s.outcome }

// Plan implements Step: it decides about every enforcement and plans the executions.
func (s *EnforcementStep) Plan(ctx context.Context, plan *Plan) error {
	s.newExecutions, s.decided, s.reasons, s.outcome = nil, nil, nil, EnforcementOutcome{}
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
	return s.planNewExecutions(ctx, plan)
}

func (s *EnforcementStep) decide(row store.ReadEnforcementsRow) {
	if row.Status != store.EnforcementStatusEnumCreated {
		return
	}
	reason := refusal(row)
	s.decided, s.reasons = append(s.decided, row.ID), append(s.reasons, reason)
	if reason != "" {
		s.outcome.Disabled = append(s.outcome.Disabled, DisabledEnforcement{row.ID, row.RuleRef, reason})
		return
	}
	s.outcome.Processed++
	if row.Execution != 0 {
		return // another program created it and did not mark the enforcement
	}
	s.newExecutions = append(s.newExecutions, &NewExecution{
		ActionID: *row.Action, ActionRef: row.ActionRef, Config: parameters(row.Config), Enforcement: row.ID,
		Executor: row.Executor, PermissionSets: row.PermissionSetRefs, Requested: row.Created,
	})
}

// refusal is the reason why an enforcement gets no execution, empty if it gets one.
func refusal(row store.ReadEnforcementsRow) string {
	switch {
	case row.Rule == 0:
		return fmt.Sprintf("rule %s does not exist any more", row.RuleRef)
	case !row.Enabled:
		return fmt.Sprintf("rule %s was disabled before its execution was made", row.RuleRef)
	case row.Action == nil:
		return fmt.Sprintf("action %s of rule %s does not exist any more: apply the pack of the rule again",
			row.ActionRef, row.RuleRef)
	case !row.HasTrigger:
		return fmt.Sprintf("trigger %s of rule %s does not exist any more: apply the pack of the rule again",
			row.TriggerRef, row.RuleRef)
	}
	return ""
}

// parameters returns the parameters of an enforcement's execution: nil for none.
func parameters(config []byte) []byte {
	switch strings.TrimSpace(string(config)) {
	case "", "null", "{}":
		return nil
	}
	return config
}

func (s *EnforcementStep) planNewExecutions(ctx context.Context, plan *Plan) error {
	if len(s.newExecutions) == 0 {
		return nil
	}
	actions := make([]int64, len(s.newExecutions))
	for i, e := range s.newExecutions {
		actions[i] = e.ActionID
	}
	slices.Sort(actions)
	if err := plan.LoadRules(ctx, slices.Compact(actions), nil); err != nil {
		return err
	}
	ids, err := plan.NewIDs(ctx, len(s.newExecutions))
	if err != nil {
		return err
	}
	for i, e := range s.newExecutions {
		e.ID = ids[i]
		plan.NeedNewExecution(e)
	}
	return nil
}

// Apply implements Step.
func (s *EnforcementStep) Apply(batch *Batch) {
	if len(s.decided) == 0 {
		return
	}
	enforcements, executions := make([]int64, len(s.newExecutions)), make([]int64, len(s.newExecutions))
	for i, e := range s.newExecutions {
		batch.Create(e)
		enforcements[i], executions[i] = e.Enforcement, e.ID
	}
	if len(s.newExecutions) > 0 {
		batch.Also(store.CopyEnforcementSecrets, enforcements, executions)
	}
	batch.Also(store.ResolveEnforcements, s.decided, s.reasons)
	if batch.Traced() {
		batch.Also(store.AddTracePending, string(tracing.Enforcement), s.decided)
	}
}

var _ Step = (*EnforcementStep)(nil)

// EnforcementMetrics counts what becomes of enforcements. A nil *EnforcementMetrics counts nothing.
type EnforcementMetrics struct{ resolved *prometheus.CounterVec }

// NewEnforcementMetrics registers the metrics of enforcements.
func NewEnforcementMetrics(reg prometheus.Registerer) *EnforcementMetrics {
	m := &EnforcementMetrics{resolved: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "attune_enforcements_total", Help: "Processed enforcements, by outcome.",
	}, []string{"outcome"})}
	for _, outcome := range []string{"processed", "disabled"} {
		m.resolved.WithLabelValues(outcome)
	}
	return m
}

// Observe counts the outcome of a committed batch.
func (m *EnforcementMetrics) Observe(outcome EnforcementOutcome) {
	m.resolved.WithLabelValues("processed").Add(float64(outcome.Processed))
	m.resolved.WithLabelValues("disabled").Add(float64(len(outcome.Disabled)))
}
