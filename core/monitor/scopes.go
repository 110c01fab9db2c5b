package monitor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// ScopeLimit bounds the list of shared limits.
const ScopeLimit = 1_000

// Scope is a shared limit: the slots of a pack or of everything, or a rate or quota of starts.
type Scope struct {
	ID int64 `json:"id"`
	// Kind is pack, global, rate or quota.
	Kind string `json:"kind"`
	// Name says what is counted, such as "pack demo".
	Name      string `json:"name"`
	Group     string `json:"group,omitempty"`
	PolicyID  *int64 `json:"policy_id"`
	PolicyRef string `json:"policy_ref"`
	// Limit is how many may run at once, or start within Window.
	Limit int64 `json:"limit"`
	// Active counts taken slots; rates and quotas have none.
	Active int64         `json:"active"`
	Window time.Duration `json:"window_ns,omitempty"`
	Burst  int64         `json:"burst,omitempty"`
	// Used counts the starts in the present period of a quota, Resets is its end.
	Used   *int64     `json:"used,omitempty"`
	Resets *time.Time `json:"resets,omitempty"`
	// NextStart is the next allowed start of a rate or a used-up quota; nil means now.
	NextStart *time.Time `json:"next_start,omitempty"`
	// Blocking counts the queues whose head waits for it, up to a thousand.
	Blocking Count `json:"blocking"`

	key string
	Due time.Time `json:"-"` // when the next evenly spaced start of a rate is due
}

// Scopes is a list of shared limits.
type Scopes struct {
	Reading
	List []Scope `json:"list"`
	More bool    `json:"more"`
}

// Full reports whether no execution can start now.
func (s Scope) Full() bool {
	if policy.SharedKind(s.Kind).Slots() {
		return s.Active >= s.Limit
	}
	return s.NextStart != nil
}

// State says how much of the limit is used.
func (s Scope) State(at time.Time) string {
	switch {
	case policy.SharedKind(s.Kind).Slots():
		return fmt.Sprintf("%d of %d in %s", s.Active, s.Limit, s.Name)
	case s.Kind == string(policy.SharedQuota) && s.Used != nil:
		return fmt.Sprintf("%d of %s used in this period of %s, the next begins %s", *s.Used,
			phrase.Plural(s.Limit, "start", "starts"), phrase.Span(s.Window), phrase.Clock(*s.Resets, at))
	case s.NextStart != nil:
		return "next start " + phrase.Clock(*s.NextStart, at)
	default:
		return "a start is allowed now"
	}
}

// Scopes reads the shared limits in force or in use, with a text only those of matching actions. The
// list is empty where the schema has none.
func (m *Monitor) Scopes(ctx context.Context, action string) (*Scopes, error) {
	out := &Scopes{}
	err := m.Read(ctx, "shared limits", &out.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return nil
		}
		ids, err := tx.ViewScopeIDs(ctx, Pattern(action, true), ScopeLimit+1)
		if err != nil {
			return fmt.Errorf("list shared limits: %w", err)
		}
		out.More = len(ids) > ScopeLimit
		out.List, err = scopesByID(ctx, tx, ids[:min(len(ids), ScopeLimit)], out.At)
		return err
	})
	return out, err
}

func scopesByID(ctx context.Context, tx *store.Tx, ids []int64, at time.Time) ([]Scope, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := store.Rows[scopeRow](ctx, tx, store.ViewScopes, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d shared limits: %w", len(ids), err)
	}
	return each(rows, func(r scopeRow) Scope { return scopeOf(r, at) }), nil
}

type scopeRow struct {
	Scope
	ScopeKey, PackRef   string
	NextAt, PeriodStart *time.Time
	Starts, Blocked     int64
}

func scopeOf(r scopeRow, at time.Time) Scope {
	s := r.Scope
	s.Blocking, s.key = upTo(r.Blocked, 1_000), r.ScopeKey
	base, group, _ := strings.Cut(r.ScopeKey, " ")
	s.Group = group
	switch policy.SharedKind(r.Kind) {
	case policy.SharedPack:
		s.Name = "pack " + cmp.Or(r.PackRef, base)
	case policy.SharedGlobal:
		s.Name = "all actions"
	case policy.SharedRate:
		s.Name = "rate " + cmp.Or(r.PolicyRef, base)
		readRate(&s, r, at)
	case policy.SharedQuota:
		s.Name = "quota " + cmp.Or(r.PolicyRef, base)
		readQuota(&s, r, at)
	}
	if group != "" {
		s.Name += " " + group
	}
	return s
}

func readRate(s *Scope, r scopeRow, at time.Time) {
	s.Burst = cmp.Or(s.Burst, 1)
	if r.NextAt == nil {
		return
	}
	rate := policy.Rate{Max: int(s.Limit), Window: s.Window, Burst: int(s.Burst)}
	s.Due = rate.Due(at, *r.NextAt)
	ready := rate.Ready(s.Due)
	if ready.After(at) {
		s.NextStart = &ready
	}
}

func readQuota(s *Scope, r scopeRow, at time.Time) {
	quota := policy.Quota{Max: int(s.Limit), Window: s.Window}
	used, reset := int64(0), quota.Reset(at)
	if r.PeriodStart != nil && !quota.Period(at).After(*r.PeriodStart) {
		used = r.Starts
	}
	s.Used, s.Resets = &used, &reset
	if used >= s.Limit {
		s.NextStart = &reset
	}
}

// policyBound bounds the policies of one action, its pack and everything.
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
	// Group is the group made by the parameters; empty if there are none, or if the queue does not
	// name it.
	Group string `json:"group,omitempty"`
	// Limit is the limit in force if it is not the threshold.
	Limit *int64 `json:"limit,omitempty"`
	// Used counts taken slots, or starts in the period; nil if unknown.
	Used *int64 `json:"used"`
	// NextStart is the next allowed start of a rate or a used-up quota.
	NextStart *time.Time `json:"next_start,omitempty"`
	// Full is true when no execution can start now.
	Full bool `json:"full"`
	// Text is the state in words.
	Text string `json:"text"`

	Counter *Scope `json:"-"` // of a shared limit with a known group
}

// Shared reports whether executions of other queues count as well.
func (l PolicyLine) Shared(q *Queue) bool {
	return l.Scope != policy.ScopeAction.String() || l.Group != q.Group
}

// Policies are all limits of the executions of one action.
type Policies struct {
	Limits  policy.Limits
	rows    map[int64]store.ViewPoliciesRow
	packRef string
	schema  []byte
	Changed time.Time // when one of them last changed
}

// ReadPolicies reads all limits of the executions of an action.
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

// Lines describes every limit in force and its use. params include their defaults; nil means that
// the group is unknown, and limits with groups then show no use. q is nil while the action has no
// queue.
func (p *Policies) Lines(ctx context.Context, tx *store.Tx, q *Queue, params map[string]any,
	at time.Time,
) ([]PolicyLine, error) {
	var out []PolicyLine
	if p.Limits.Queue.PolicyRef != "" || (q != nil && q.LimitFrom.Kind == LimitOverride) {
		out = append(out, p.queueLine(q))
	}
	scopes, err := p.scopes(ctx, tx, params, at)
	if err != nil {
		return nil, err
	}
	for _, w := range p.Limits.Shared {
		out = append(out, p.wideLine(w, params, scopes, at))
	}
	return out, nil
}

// scopes reads the counters of shared limits by kind and key.
func (p *Policies) scopes(ctx context.Context, tx *store.Tx, params map[string]any,
	at time.Time,
) (map[[2]string]Scope, error) {
	var kinds, keys []string
	for _, w := range p.Limits.Shared {
		if len(w.Parameters) == 0 || params != nil {
			kinds, keys = append(kinds, string(w.Kind)), append(keys, w.Key(params))
		}
	}
	if len(kinds) == 0 {
		return nil, nil
	}
	ids, err := tx.ViewScopesByKey(ctx, kinds, keys)
	if err != nil {
		return nil, fmt.Errorf("find %d shared limits: %w", len(kinds), err)
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

func (p *Policies) wideLine(w policy.SharedLimit, params map[string]any, scopes map[[2]string]Scope,
	at time.Time,
) PolicyLine {
	r := p.rows[w.PolicyID]
	line := PolicyLine{
		Ref: w.PolicyRef, Kind: r.Kind, Scope: r.Scope, Threshold: int64(w.Max), Method: string(w.Method),
		Window: w.Window, Parameters: w.Parameters,
	}
	if w.Kind == policy.SharedRate {
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
	if !ok { // no execution was counted yet
		scope = scopeOf(scopeRow{
			Scope: Scope{
				Kind: string(w.Kind), PolicyRef: w.PolicyRef, Window: w.Window, Burst: line.Burst, Limit: int64(w.Max),
			}, ScopeKey: w.Key(params), PackRef: p.packRef,
		}, at)
	}
	line.Counter = &scope
	line.Full, line.NextStart, line.Text = scope.Full(), scope.NextStart, scope.State(at)
	switch {
	case w.Kind.Slots():
		line.Used = &scope.Active
	case w.Kind == policy.SharedQuota:
		line.Used = scope.Used
	}
	if ok && scope.Limit != line.Threshold {
		line.Limit = &scope.Limit
	}
	return line
}

// Title is the limit in words, without its use.
func (l PolicyLine) Title() string {
	text := fmt.Sprintf("at most %d at once", l.Threshold)
	switch policy.Kind(l.Kind) {
	case policy.KindRate:
		text = fmt.Sprintf("at most %s every %s", phrase.Plural(l.Threshold, "start", "starts"), phrase.Span(l.Window))
		if l.Burst > 1 {
			text += fmt.Sprintf(", %d together", l.Burst)
		}
	case policy.KindQuota:
		text = fmt.Sprintf("at most %s per period of %s", phrase.Plural(l.Threshold, "start", "starts"),
			phrase.Span(l.Window))
	}
	if len(l.Parameters) > 0 {
		text += " for each " + strings.Join(l.Parameters, ", ")
	}
	if l.Method == string(policy.MethodCancel) {
		text += ", refuses instead of waiting"
	}
	return text
}
