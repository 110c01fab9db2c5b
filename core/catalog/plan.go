package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/pack"
	limit "github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// plan is the set of pending writes.
type plan struct {
	changes []Change
	wanted  []state // of the same policies
	scopes  scopes  // whose executions are affected
}

// planOf compares valid policies with the database.
func (w *writer) planOf(ctx context.Context) (*plan, error) {
	policies := w.request.Set.Policies
	rows, err := w.tx.CatalogPolicies(ctx, refsOf(policies))
	if err != nil {
		return nil, fmt.Errorf("read %d policies: %w", len(policies), err)
	}
	current := make(map[string]state, len(rows))
	for _, row := range rows {
		current[row.Ref] = state{row}
	}
	p := &plan{scopes: newScopes()}
	for i := range policies {
		p.add(&policies[i], w.policy(&policies[i]), current)
	}
	return p, nil
}

func (p *plan) add(policy *pack.Policy, wanted state, current map[string]state) {
	was, exists := current[policy.Ref]
	change := Change{
		Kind: pack.KindPolicy, Ref: policy.Ref, How: Added, Place: policy.Place, Folder: policy.Folder,
		Fields: difference(state{}, wanted),
	}
	if exists {
		change.How, change.Fields = Changed, difference(was, wanted)
		if len(change.Fields) == 0 {
			change.How = Unchanged
		}
	}
	if spaced := policy.Kind == limit.KindRate && policy.Threshold > 1 && policy.Burst <= 1; spaced &&
		change.How != Unchanged {
		change.Pace = (time.Duration(policy.WindowSeconds) * time.Second / time.Duration(policy.Threshold)).Round(
			time.Millisecond)
	}
	p.changes, p.wanted = append(p.changes, change), append(p.wanted, wanted)
	if !change.limits() {
		return
	}
	p.scopes.add(wanted.Action, wanted.Pack)
	if exists {
		p.scopes.add(was.Action, was.Pack)
	}
}

// supersede records the written policies without effect, because a newer concurrency policy has the same scope: authors
// of the second one rarely know the first. With strict they are mistakes.
func (p *plan) supersede(ctx context.Context, tx *store.Tx, request Request) error {
	rows, err := tx.SupersededPolicies(ctx, refsOf(request.Set.Policies))
	if err != nil {
		return fmt.Errorf("find the policies without effect: %w", err)
	}
	var mistakes []pack.Mistake
	for _, row := range rows {
		i := slices.IndexFunc(p.changes, func(c Change) bool { return c.Ref == row.Ref })
		p.changes[i].Superseded = row.Newest
		mistakes = append(mistakes, pack.Mistake{Place: p.changes[i].Place, Text: p.changes[i].NoEffect()})
	}
	if request.Strict && len(mistakes) > 0 {
		return &pack.MistakesError{Mistakes: pack.Sort(mistakes)}
	}
	return nil
}

// policy is the intended row of a policy. A policy of an action has the action's pack.
func (w *writer) policy(p *pack.Policy) state {
	row := store.CatalogPoliciesRow{
		Ref: p.Ref, Name: p.Name, Description: p.Description, Tags: p.Tags, Kind: string(p.Kind),
		Threshold: p.Threshold, WindowSeconds: p.WindowSeconds, Burst: p.Burst, Method: string(p.Method),
		Parameters: p.Parameters, MaxQueueLength: p.MaxQueueLength, QueueTimeoutSeconds: p.QueueTimeoutSeconds,
		RetryPlace: string(p.RetryPlace), AdaptiveMin: p.AdaptiveMin, AdaptiveLatencyMs: p.AdaptiveLatencyMS,
		PackRef: p.Pack, ActionRef: p.Action,
	}
	if p.Action != "" {
		row.Action, row.PackRef = new(w.ids[pack.KindAction][p.Action]), w.after.Has[pack.KindAction][p.Action].Pack
	}
	if row.PackRef != "" {
		row.Pack = new(w.ids[pack.KindPack][row.PackRef])
	}
	return state{row}
}
