package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/pack"
	limit "github.com/attune-go/attune/core/policy"
)

// policyColumns are the columns of a policy that a file sets, in the order in which their changes are shown.
var policyColumns = []string{
	"kind", "action_ref", "action", "pack_ref", "pack", "threshold", "window_seconds", "burst", "method", "parameters",
	"max_queue_length", "queue_timeout_seconds", "retry_place", "adaptive_min", "adaptive_latency_ms", "name",
	"description", "tags",
}

// policies writes the policies after the items, and adds the scopes whose executions they affect.
func (w *writer) policies(ctx context.Context, about *scopes) error {
	policies := w.request.Set.Policies
	for i := range policies {
		if err := w.policy(ctx, &policies[i], about); err != nil {
			return err
		}
	}
	return w.supersede(ctx)
}

func (w *writer) policy(ctx context.Context, p *pack.Policy, about *scopes) error {
	was, wanted := w.world.rows[pack.KindPolicy][p.Ref].doc, w.wantedPolicy(p)
	window := time.Duration(p.WindowSeconds) * time.Second
	change := Change{
		Kind: pack.KindPolicy, Ref: p.Ref, Place: p.Place, Folder: p.Folder,
		Fields: documentDifference(was, wanted, policyColumns, nil),
	}
	if spaced := p.Kind == limit.KindRate && p.Threshold > 1 && p.Burst <= 1; spaced && len(change.Fields) > 0 {
		change.Pace = (window / time.Duration(p.Threshold)).Round(time.Millisecond)
	}
	if change.limits() {
		about.add(idOf(wanted["action"]), idOf(wanted["pack"]))
		if was != nil {
			about.add(idOf(was["action"]), idOf(was["pack"]))
		}
	}
	_, err := w.put(ctx, change, wanted)
	return err
}

// wantedPolicy is the intended row of a policy. A policy of an action has the action's pack.
func (w *writer) wantedPolicy(p *pack.Policy) map[string]any {
	row := map[string]any{
		"name": p.Name, "description": orNull(p.Description), "tags": p.Tags, "kind": p.Kind, "threshold": p.Threshold,
		"window_seconds": orNull(p.WindowSeconds), "burst": orNull(p.Burst), "method": p.Method,
		"parameters": p.Parameters, "max_queue_length": orNull(p.MaxQueueLength),
		"queue_timeout_seconds": orNull(p.QueueTimeoutSeconds), "retry_place": orNull(p.RetryPlace),
		"adaptive_min": orNull(p.AdaptiveMin), "adaptive_latency_ms": orNull(p.AdaptiveLatencyMS),
		"action": nil, "action_ref": orNull(p.Action), "pack": nil, "pack_ref": orNull(p.Pack),
	}
	packRef := p.Pack
	if p.Action != "" {
		packRef = w.after.Has[pack.KindAction][p.Action].Pack
		row["action"], row["pack_ref"] = w.ids[pack.KindAction][p.Action], packRef
	}
	if packRef != "" {
		row["pack"] = w.ids[pack.KindPack][packRef]
	}
	return row
}

func orNull[T comparable](value T) any {
	var none T
	if value == none {
		return nil
	}
	return value
}

// supersede records the written policies without effect, because a newer concurrency policy has the same scope: authors
// of the second one rarely know the first. With strict they are mistakes.
func (w *writer) supersede(ctx context.Context) error {
	rows, err := w.tx.SupersededPolicies(ctx, refsOf(w.request.Set.Policies))
	if err != nil {
		return fmt.Errorf("find the policies without effect: %w", err)
	}
	var mistakes []pack.Mistake
	for _, row := range rows {
		i := slices.IndexFunc(w.changes, func(c Change) bool { return c.Kind == pack.KindPolicy && c.Ref == row.Ref })
		w.changes[i].Superseded = row.Newest
		mistakes = append(mistakes, pack.Mistake{Place: w.changes[i].Place, Text: w.changes[i].NoEffect()})
	}
	if w.request.Strict && len(mistakes) > 0 {
		return &pack.MistakesError{Mistakes: pack.Sort(mistakes)}
	}
	return nil
}
