package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
)

// linkedAgain marks a reference of a rule to an item that was deleted and exists again.
const linkedAgain = " (linked again)"

// relink gives the set's actions and triggers back to the rules that name them and lost them by
// their deletion. Rules in the set have them already; the others are changed where the action or
// the trigger is described.
func (w *writer) relink(ctx context.Context) error {
	set := w.request.Set
	actions, triggers := names(set, pack.KindAction), names(set, pack.KindTrigger)
	if len(actions)+len(triggers) == 0 {
		return nil
	}
	rows, err := w.tx.RelinkRules(ctx, actions, triggers)
	if err != nil {
		return fmt.Errorf("link rules to %d actions and %d triggers again: %w", len(actions), len(triggers), err)
	}
	slices.SortFunc(rows, func(a, b store.RelinkRulesRow) int { return cmp.Compare(a.Ref, b.Ref) })
	for _, row := range rows {
		if err := w.relinked(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) relinked(ctx context.Context, row store.RelinkRulesRow) error {
	now, err := document(row.Doc)
	if err != nil {
		return fmt.Errorf("read the rule %s: %w", row.Ref, err)
	}
	was := maps.Clone(now)
	change := Change{Kind: pack.KindRule, Ref: row.Ref, How: Changed, Fields: []FieldChange{}}
	for _, link := range []struct {
		kind   pack.Kind
		ref    string
		linked bool
	}{{pack.KindAction, row.ActionRef, row.ActionLinked}, {pack.KindTrigger, row.TriggerRef, row.TriggerLinked}} {
		if !link.linked {
			continue
		}
		was[string(link.kind)] = nil
		change.Fields = append(change.Fields, FieldChange{Key: string(link.kind), New: link.ref + linkedAgain})
		for _, item := range w.request.Set.Of(link.kind) {
			if item.Ref == link.ref {
				change.Place = item.Place
			}
		}
	}
	w.changes = append(w.changes, change)
	w.written = append(w.written, written{
		item: &pack.Item{
			Kind: pack.KindRule, Ref: row.Ref, Pack: row.PackRef, Action: row.ActionRef,
			Trigger: row.TriggerRef,
		},
		id: row.ID, was: was, now: now,
	})
	return audit(ctx, w.tx, w.request, change, row.ID)
}
