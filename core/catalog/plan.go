package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/pack"
	limit "github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// hintRefs bounds how many refs are read to find the nearest one.
const hintRefs = 5000

// plan is the set of pending writes.
type plan struct {
	changes []Change
	wanted  []state // of the same policies
	scopes  scopes  // whose executions are affected
}

// planOf compares valid policies with the database.
func planOf(ctx context.Context, q *store.Queries, policies []pack.Policy) (*plan, error) {
	f, err := lookUp(ctx, q, policies)
	if err != nil {
		return nil, err
	}
	rows, err := q.CatalogPolicies(ctx, refsOf(policies))
	if err != nil {
		return nil, fmt.Errorf("read %d policies: %w", len(policies), err)
	}
	current := make(map[string]state, len(rows))
	for _, row := range rows {
		current[row.Ref] = state{row}
	}
	p := &plan{scopes: newScopes()}
	for i := range policies {
		p.add(&policies[i], f.wanted(&policies[i]), current)
	}
	return p, p.supersede(ctx, q)
}

func (p *plan) add(policy *pack.Policy, wanted state, current map[string]state) {
	was, exists := current[policy.Ref]
	change := Change{
		Kind: pack.KindPolicy, Ref: policy.Ref, How: Added, Place: policy.Place, Folder: policy.Folder,
		Fields: difference(state{}, wanted),
	}
	if exists {
		wanted.ID, wanted.Created = was.ID, was.Created
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

// facts are the actions and packs that policies name.
type facts struct {
	known   pack.Known
	actions map[string]store.CatalogActionsRow
	packs   map[string]int64
}

func lookUp(ctx context.Context, q *store.Queries, policies []pack.Policy) (*facts, error) {
	needs := pack.NeedsOf(policies)
	actions, err := q.CatalogActions(ctx, needs.Actions, needs.ScopePacks, needs.ScopeAll)
	if err != nil {
		return nil, fmt.Errorf("read the actions of policies: %w", err)
	}
	packs, err := q.CatalogPackRows(ctx, needs.Packs)
	if err != nil {
		return nil, fmt.Errorf("read the packs of policies: %w", err)
	}
	f := &facts{
		actions: make(map[string]store.CatalogActionsRow, len(actions)),
		packs:   make(map[string]int64, len(packs)),
	}
	for _, row := range actions {
		f.actions[row.Ref] = row
		f.known.Actions = append(f.known.Actions,
			pack.Action{Ref: row.Ref, Pack: row.PackRef, ParamSchema: row.ParamSchema})
	}
	for _, row := range packs {
		f.packs[row.Ref] = row.ID
		f.known.Packs = append(f.known.Packs, row.Ref)
	}
	return f, f.hints(ctx, q, needs)
}

// with adds the items of a set, and removes the items that are deleted with it.
func (f *facts) with(set *pack.Set, doomed map[string]bool) pack.Known {
	known := f.known
	known.Doomed, known.Files = doomed, set
	known.Actions = slices.DeleteFunc(slices.Clone(known.Actions), func(a pack.Action) bool { return doomed[a.Ref] })
	known.ActionRefs = slices.DeleteFunc(slices.Clone(known.ActionRefs), func(ref string) bool { return doomed[ref] })
	for _, item := range set.Of(pack.KindAction) {
		if item.Ref == "" {
			continue
		}
		schema, err := json.Marshal(item.Columns["param_schema"])
		if err != nil || item.Columns["param_schema"] == nil {
			schema = nil
		}
		known.Actions = slices.DeleteFunc(known.Actions, func(a pack.Action) bool { return a.Ref == item.Ref })
		known.Actions = append(known.Actions, pack.Action{
			Ref: item.Ref, Pack: item.Pack, ParamSchema: schema, Broken: item.Broken["parameters"],
		})
		known.ActionRefs = append(known.ActionRefs, item.Ref)
	}
	for _, item := range set.Of(pack.KindPack) {
		known.Packs, known.PackRefs = append(known.Packs, item.Ref), append(known.PackRefs, item.Ref)
	}
	return known
}

// hints reads similar names for missing ones.
func (f *facts) hints(ctx context.Context, q *store.Queries, needs pack.Needs) (err error) {
	actions, packs := f.known.Unknown(needs)
	if actions {
		if f.known.ActionRefs, err = q.ActionRefs(ctx, hintRefs); err != nil {
			return fmt.Errorf("list actions: %w", err)
		}
	}
	if packs {
		if f.known.PackRefs, err = q.PackRefs(ctx, hintRefs); err != nil {
			return fmt.Errorf("list packs: %w", err)
		}
	}
	return nil
}

// wanted is the intended row of a policy. A policy of an action has the action's pack.
func (f *facts) wanted(p *pack.Policy) state {
	row := store.CatalogPoliciesRow{
		Ref: p.Ref, Name: p.Name, Description: p.Description, Tags: p.Tags, Kind: string(p.Kind),
		Threshold: p.Threshold, WindowSeconds: p.WindowSeconds, Burst: p.Burst, Method: string(p.Method),
		Parameters: p.Parameters, MaxQueueLength: p.MaxQueueLength, QueueTimeoutSeconds: p.QueueTimeoutSeconds,
		RetryPlace: string(p.RetryPlace), AdaptiveMin: p.AdaptiveMin, AdaptiveLatencyMs: p.AdaptiveLatencyMS,
	}
	switch {
	case p.Action != "":
		action := f.actions[p.Action]
		row.Action, row.ActionRef, row.Pack, row.PackRef = &action.ID, action.Ref, &action.Pack, action.PackRef
	case p.Pack != "":
		id := f.packs[p.Pack]
		row.Pack, row.PackRef = &id, p.Pack
	}
	return state{row}
}
