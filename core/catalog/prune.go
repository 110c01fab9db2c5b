package catalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
)

// countedBusy bounds the count of live executions.
const countedBusy = 1000

// BusyError reports that an item cannot be deleted because it has live executions.
type BusyError struct {
	Kind pack.Kind
	Ref  string
	// Executions is the number of live executions, counted up to a thousand.
	Executions int
}

// Error names the item.
func (e *BusyError) Error() string {
	some := strconv.Itoa(e.Executions)
	if e.Executions >= countedBusy {
		some = "at least " + some
	}
	return fmt.Sprintf("the %s %s is not deleted: %s of its executions have not ended", e.Kind, e.Ref, some)
}

// readDoomed finds the items that completely read packs no longer describe. Files with mistakes may
// describe them.
func (w *world) readDoomed(ctx context.Context, q *store.Queries, request Request) error {
	set := request.Set
	if !request.Prune || len(set.Whole) == 0 || len(request.Mistakes) > 0 {
		return nil
	}
	rows, err := q.PrunableRows(ctx, store.PrunableRowsParams{
		Packs: set.Whole, Rules: names(set, pack.KindRule), Triggers: names(set, pack.KindTrigger),
		Actions: names(set, pack.KindAction), Workflows: names(set, pack.KindWorkflow),
	})
	if err != nil {
		return fmt.Errorf("find the items that the packs %s no longer have: %w", strings.Join(set.Whole, ", "), err)
	}
	w.doomed = slices.DeleteFunc(rows, func(row store.PrunableRowsRow) bool {
		name := Name{Kind: pack.Kind(row.Kind), Ref: row.Ref}
		return request.PruneOnly != nil && !slices.Contains(request.PruneOnly, name)
	})
	return nil
}

// notPruned warns once for each pack that was not pruned although it was requested.
func notPruned(request Request) []pack.Mistake {
	if !request.Prune {
		return nil
	}
	set := request.Set
	var warnings []pack.Mistake
	said := map[string]bool{"": true}
	for _, item := range set.Items {
		if said[item.Pack] || slices.Contains(set.Whole, item.Pack) {
			continue
		}
		said[item.Pack] = true
		warnings = append(warnings, pack.Mistake{
			Place: item.Place,
			Text:  fmt.Sprintf("nothing of the pack %s is pruned: its folder was not read as a whole", item.Pack),
		})
	}
	if len(set.Items) == 0 && len(set.Policies) > 0 {
		warnings = append(warnings,
			pack.Mistake{Place: set.Policies[0].Place, Text: "nothing is pruned for policies"})
	}
	return warnings
}

// prune deletes the doomed items.
func (w *writer) prune(ctx context.Context) error {
	ids := map[pack.Kind][]int64{}
	for _, row := range w.world.doomed {
		kind := pack.Kind(row.Kind)
		if row.Busy > 0 {
			return &BusyError{Kind: kind, Ref: row.Ref, Executions: int(row.Busy)}
		}
		ids[kind] = append(ids[kind], row.ID)
		change := Change{Kind: kind, Ref: row.Ref, How: Deleted, Fields: []FieldChange{}}
		w.changes = append(w.changes, change)
		if err := audit(ctx, w.tx, w.request, change, row.ID); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		kind   pack.Kind
		delete func(context.Context, []int64) error
	}{
		{pack.KindRule, w.tx.PruneRules},
		{pack.KindTrigger, w.tx.PruneTriggers},
		{pack.KindAction, w.tx.PruneActions},
		{pack.KindWorkflow, w.tx.PruneWorkflows},
	} {
		if len(ids[step.kind]) == 0 {
			continue
		}
		if err := step.delete(ctx, ids[step.kind]); err != nil {
			return fmt.Errorf("delete %d of kind %s: %w", len(ids[step.kind]), step.kind, err)
		}
	}
	return nil
}
