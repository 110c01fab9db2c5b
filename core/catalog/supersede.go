package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// rival is a concurrency policy among those of its scope.
type rival struct {
	ref     string
	scope   scope
	created time.Time
	id      int64
}

// scope is where a policy applies; 0 stands for none.
type scope struct{ action, pack int64 }

func scopeOf(action, packID *int64) scope {
	switch {
	case action != nil:
		return scope{action: *action}
	case packID != nil:
		return scope{pack: *packID}
	}
	return scope{}
}

// superseded are the policies without effect, as mistakes.
func (p *plan) superseded() []pack.Mistake {
	var list []pack.Mistake
	for _, change := range p.changes {
		if change.Superseded != "" {
			list = append(list, pack.Mistake{Place: change.Place, Text: change.NoEffect()})
		}
	}
	return pack.Sort(list)
}

// supersede records policies without effect, because a newer concurrency policy has the same scope:
// authors of the second one rarely know the first.
func (p *plan) supersede(ctx context.Context, q *store.Queries) error {
	rivals := map[string]rival{}
	of := newScopes()
	for i, w := range p.wanted {
		if w.Kind != string(policy.KindConcurrency) {
			continue
		}
		of.add(w.Action, w.Pack)
		r := rival{ref: w.Ref, scope: scopeOf(w.Action, w.Pack), created: w.Created, id: w.ID}
		if p.changes[i].How == Added { // newer than all existing and earlier ones
			r.created, r.id = time.Unix(1<<40, 0), int64(i)
		}
		rivals[w.Ref] = r
	}
	if of.empty() {
		return nil
	}
	rows, err := q.CatalogRivals(ctx, slices.Sorted(maps.Keys(of.actions)), slices.Sorted(maps.Keys(of.packs)),
		of.everything)
	if err != nil {
		return fmt.Errorf("read the other policies of the same scopes: %w", err)
	}
	for _, row := range rows {
		if !slices.ContainsFunc(p.wanted, func(w state) bool { return w.Ref == row.Ref }) {
			rivals[row.Ref] = rival{
				ref: row.Ref, scope: scopeOf(row.Action, row.Pack), created: row.Created,
				id: row.ID,
			}
		}
	}
	newest := map[scope]rival{}
	for _, r := range rivals {
		if best, ok := newest[r.scope]; !ok || cmp.Or(r.created.Compare(best.created), cmp.Compare(r.id, best.id)) > 0 {
			newest[r.scope] = r
		}
	}
	for i := range p.changes {
		change := &p.changes[i]
		if r, ok := rivals[change.Ref]; ok && newest[r.scope].ref != change.Ref {
			change.Superseded = newest[r.scope].ref
		}
	}
	return nil
}
