package monitor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// policyBound is how many policies of one action, its pack and everything are
// read.
const policyBound = 1_000

// PolicyLine is one limit in force for an execution or a queue.
type PolicyLine struct {
	Ref string `json:"ref"`
	// Kind is concurrency, rate or quota; Scope is action, pack or global.
	Kind       string        `json:"kind"`
	Scope      string        `json:"scope"`
	Threshold  int64         `json:"threshold"`
	Method     string        `json:"method"`
	Window     time.Duration `json:"window_ns,omitempty"`
	Burst      int64         `json:"burst,omitempty"`
	Parameters []string      `json:"parameters,omitempty"`
	// Group is the group that the parameters make; empty when there are none,
	// and for a queue that does not say which.
	Group string `json:"group,omitempty"`
	// Limit is what is in force where that is not the threshold.
	Limit *int64 `json:"limit,omitempty"`
	// Used is how many slots are taken, or starts used in the period; nil when
	// it is not known.
	Used *int64 `json:"used"`
	// NextStart is when a rate or a used up quota allows the next start.
	NextStart *time.Time `json:"next_start,omitempty"`
	// Full is true when this limit lets nobody start now.
	Full bool `json:"full"`
	// Text says the same in words.
	Text string `json:"text"`

	Counter *Scope `json:"-"` // of a shared limit, where its group is known
}

// Shared reports whether executions of other queues count here as well.
func (l PolicyLine) Shared(q *Queue) bool {
	return l.Scope != policy.ScopeAction.String() || l.Group != q.Group
}

// Policies is everything that limits the executions of one action.
type Policies struct {
	Limits  policy.Limits
	rows    map[int64]store.ViewPoliciesRow
	packRef string
	schema  []byte
	Changed time.Time // when one of them changed last
}

func ReadPolicies(ctx context.Context, tx *store.Tx, actionID, packID int64, schema []byte) (*Policies, error) {
	rows, err := tx.ViewPolicies(ctx, packID, actionID, policyBound)
	if err != nil {
		return nil, fmt.Errorf("read the policies of action %d: %w", actionID, err)
	}
	p := &Policies{rows: make(map[int64]store.ViewPoliciesRow, len(rows)), schema: schema}
	list := make([]policy.Policy, len(rows))
	for i, r := range rows {
		p.rows[r.ID], p.packRef = r, r.PackRef
		if r.Updated.After(p.Changed) {
			p.Changed = r.Updated
		}
		list[i] = policyOf(r)
	}
	p.Limits = policy.Compose(packID, list)
	return p, nil
}

func policyOf(r store.ViewPoliciesRow) policy.Policy {
	p := policy.Policy{
		ID: r.ID, Ref: r.Ref, Kind: policy.Kind(r.Kind), Threshold: int(r.Threshold), Method: policy.Method(r.Method),
		Parameters: r.Parameters, Created: r.Created,
	}
	switch r.Scope {
	case "pack":
		p.Scope = policy.ScopePack
	case "global":
		p.Scope = policy.ScopeGlobal
	}
	if r.WindowSeconds != nil {
		p.Window = time.Duration(*r.WindowSeconds) * time.Second
	}
	if r.Burst != nil {
		p.Burst = int(*r.Burst)
	}
	return p
}

// Lines describes every limit in force with what is used of it now. params are
// the parameters with their defaults; nil when the group is not known, and then
// limits with groups show no use. q is nil where the action has no queue yet.
func (p *Policies) Lines(ctx context.Context, tx *store.Tx, q *Queue, params map[string]any, at time.Time) ([]PolicyLine, error) {
	var out []PolicyLine
	if p.Limits.Queue.PolicyRef != "" || (q != nil && q.LimitFrom.Kind == LimitOverride) {
		out = append(out, p.queueLine(q))
	}
	scopes, err := p.scopes(ctx, tx, params, at)
	if err != nil {
		return nil, err
	}
	for _, w := range p.Limits.Wide {
		out = append(out, p.wideLine(w, params, scopes, at))
	}
	return out, nil
}

// scopes reads the counters of the shared limits, by kind and key.
func (p *Policies) scopes(ctx context.Context, tx *store.Tx, params map[string]any, at time.Time) (map[[2]string]Scope, error) {
	var kinds, keys []string
	for _, w := range p.Limits.Wide {
		if len(w.Parameters) == 0 || params != nil {
			kinds, keys = append(kinds, string(w.Kind)), append(keys, w.Key(params))
		}
	}
	if len(kinds) == 0 {
		return nil, nil
	}
	rows, err := tx.ViewScopesByKey(ctx, kinds, keys)
	if err != nil {
		return nil, fmt.Errorf("find %d shared limits: %w", len(kinds), err)
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	list, err := scopesByID(ctx, tx, ids, at)
	if err != nil {
		return nil, err
	}
	out := make(map[[2]string]Scope, len(list))
	for _, s := range list {
		out[[2]string{s.Kind, s.key}] = s
	}
	return out, nil
}

func (p *Policies) queueLine(q *Queue) PolicyLine {
	limit := p.Limits.Queue
	line := PolicyLine{
		Ref: limit.PolicyRef, Kind: string(policy.KindConcurrency), Scope: policy.ScopeAction.String(),
		Threshold: int64(limit.Max), Method: string(limit.Method), Parameters: limit.Parameters,
	}
	if q == nil {
		zero := int64(0)
		line.Used = &zero
		line.Text = fmt.Sprintf("none of %d in this queue", line.Threshold)
		return line
	}
	line.Group, line.Used, line.Full = q.Group, &q.Active, q.Full()
	if q.Limit == nil {
		line.Text = fmt.Sprintf("%d of %d in this queue, from its next change on", q.Active, line.Threshold)
		return line
	}
	line.Text = fmt.Sprintf("%d of %d in this queue", q.Active, *q.Limit)
	if *q.Limit != line.Threshold {
		line.Limit = q.Limit
	}
	switch q.LimitFrom.Kind {
	case LimitOverride:
		line.Text += ", set by an operator"
	case LimitAdaptive:
		line.Text += ", adapted to failures and slow runs"
	}
	return line
}

func (p *Policies) wideLine(w policy.Wide, params map[string]any, scopes map[[2]string]Scope, at time.Time) PolicyLine {
	r := p.rows[w.PolicyID]
	line := PolicyLine{
		Ref: w.PolicyRef, Kind: r.Kind, Scope: r.Scope, Threshold: int64(w.Max), Method: string(w.Method), Window: w.Window,
		Parameters: w.Parameters,
	}
	if w.Kind == policy.WideRate {
		line.Burst = int64(w.Burst)
	}
	if len(w.Parameters) > 0 {
		if params == nil {
			line.Text = "counted for each group of " + strings.Join(w.Parameters, ", ")
			return line
		}
		line.Group, _ = policy.GroupKey(w.Parameters, params)
	}
	scope, ok := scopes[[2]string{string(w.Kind), w.Key(params)}]
	if !ok { // nothing was counted yet
		scope = scopeOf(store.ViewScopesRow{
			Kind: string(w.Kind), ScopeKey: w.Key(params), PolicyRef: w.PolicyRef, PackRef: p.packRef,
			WindowSeconds: r.WindowSeconds, Burst: r.Burst, MaxConcurrent: int32(min(w.Max, 1<<31-1)),
		}, at)
	}
	line.Counter = &scope
	line.Full, line.NextStart, line.Text = scope.Full(), scope.NextStart, scope.State(at)
	switch {
	case w.Kind.Slots():
		line.Used = &scope.Active
	case w.Kind == policy.WideQuota:
		line.Used = scope.Used
	}
	if ok && scope.Limit != line.Threshold {
		line.Limit = &scope.Limit
	}
	return line
}

// Title is the limit in words, without what is used of it.
func (l PolicyLine) Title() string {
	text := fmt.Sprintf("at most %d at once", l.Threshold)
	switch policy.Kind(l.Kind) {
	case policy.KindRate:
		text = fmt.Sprintf("at most %s every %s", phrase.Plural(l.Threshold, "start", "starts"), phrase.Span(l.Window))
		if l.Burst > 1 {
			text += fmt.Sprintf(", %d together", l.Burst)
		}
	case policy.KindQuota:
		text = fmt.Sprintf("at most %s per period of %s", phrase.Plural(l.Threshold, "start", "starts"), phrase.Span(l.Window))
	}
	if len(l.Parameters) > 0 {
		text += " for each " + strings.Join(l.Parameters, ", ")
	}
	if l.Method == string(policy.MethodCancel) {
		text += ", refuses instead of waiting"
	}
	return text
}
