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

// Scope is a limit that queues share: slots of a pack or of everything, or a
// rate or quota of starts.
type Scope struct {
	ID int64 `json:"id"`
	// Kind is pack, global, rate or quota.
	Kind string `json:"kind"`
	// Name says in words what is counted, such as "pack demo".
	Name      string `json:"name"`
	Group     string `json:"group,omitempty"`
	PolicyID  *int64 `json:"policy_id"`
	PolicyRef string `json:"policy_ref"`
	// Limit is how many may run at once, or start within Window.
	Limit int64 `json:"limit"`
	// Active counts the slots that are taken; rates and quotas have none.
	Active int64         `json:"active"`
	Window time.Duration `json:"window_ns,omitempty"`
	Burst  int64         `json:"burst,omitempty"`
	// Used is how many started in the running period of a quota, and Resets when
	// the next one begins.
	Used   *int64     `json:"used,omitempty"`
	Resets *time.Time `json:"resets,omitempty"`
	// NextStart is when a rate or a used up quota allows the next start; nil
	// when it does now.
	NextStart *time.Time `json:"next_start,omitempty"`
	// Blocking counts the queues whose head this limit keeps, up to a thousand.
	Blocking Count `json:"blocking"`

	key string
	Due time.Time `json:"-"` // of a rate: when the next evenly spaced start is due
}

// Scopes is the list of shared limits.
type Scopes struct {
	Reading
	List []Scope `json:"list"`
	More bool    `json:"more"`
}

// Full reports whether the limit lets nobody start now.
func (s Scope) Full() bool {
	if policy.WideKind(s.Kind).Slots() {
		return s.Active >= s.Limit
	}
	return s.NextStart != nil
}

// State says in words how much of the limit is used.
func (s Scope) State(at time.Time) string {
	switch {
	case policy.WideKind(s.Kind).Slots():
		return fmt.Sprintf("%d of %d in %s", s.Active, s.Limit, s.Name)
	case s.Kind == string(policy.WideQuota) && s.Used != nil:
		return fmt.Sprintf("%d of %s used in this period of %s, the next begins %s", *s.Used, phrase.Plural(s.Limit, "start", "starts"), phrase.Span(s.Window), phrase.Clock(*s.Resets, at))
	case s.NextStart != nil:
		return "next start " + phrase.Clock(*s.NextStart, at)
	default:
		return "a start is allowed now"
	}
}

// Scopes reads the shared limits that are in force or still hold something, with
// a text those that apply to actions whose ref contains it. Where the schema has
// none the list is empty.
func (m *Monitor) Scopes(ctx context.Context, action string) (*Scopes, error) {
	out := &Scopes{}
	err := m.Read(ctx, "shared limits", &out.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Shared {
			return nil
		}
		ids, err := tx.ViewScopeIDs(ctx, pattern(action, true), ScopeLimit+1)
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
	rows, err := tx.ViewScopes(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d shared limits: %w", len(ids), err)
	}
	list := make([]Scope, len(rows))
	for i, r := range rows {
		list[i] = scopeOf(r, at)
	}
	return list, nil
}

func scopeOf(r store.ViewScopesRow, at time.Time) Scope {
	s := Scope{
		ID: r.ID, Kind: r.Kind, PolicyID: r.PolicyID, PolicyRef: r.PolicyRef, Limit: int64(r.MaxConcurrent),
		Active: int64(r.ActiveCount), Blocking: Count{Value: r.Blocking, AtLeast: r.Blocking >= 1000}, key: r.ScopeKey,
	}
	base, group, _ := strings.Cut(r.ScopeKey, " ")
	s.Group = group
	if r.WindowSeconds != nil {
		s.Window = time.Duration(*r.WindowSeconds) * time.Second
	}
	switch policy.WideKind(r.Kind) {
	case policy.WidePack:
		s.Name = "pack " + cmp.Or(r.PackRef, base)
	case policy.WideGlobal:
		s.Name = "all actions"
	case policy.WideRate:
		s.Name = "rate " + cmp.Or(r.PolicyRef, base)
		readRate(&s, r, at)
	case policy.WideQuota:
		s.Name = "quota " + cmp.Or(r.PolicyRef, base)
		readQuota(&s, r, at)
	}
	if group != "" {
		s.Name += " " + group
	}
	return s
}

func readRate(s *Scope, r store.ViewScopesRow, at time.Time) {
	s.Burst = 1
	if r.Burst != nil {
		s.Burst = int64(*r.Burst)
	}
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

func readQuota(s *Scope, r store.ViewScopesRow, at time.Time) {
	quota := policy.Quota{Max: int(s.Limit), Window: s.Window}
	used, reset := int64(0), quota.Reset(at)
	if r.PeriodStart != nil && !quota.Period(at).After(*r.PeriodStart) {
		used = int64(r.Used)
	}
	s.Used, s.Resets = &used, &reset
	if used >= s.Limit {
		s.NextStart = &reset
	}
}
