package catalog

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
)

// row is an item's row.
type row struct {
	id    int64
	pack  string // ref
	adhoc bool
	doc   map[string]any
}

// world is the database's state of everything that a set describes and names.
type world struct {
	rows     map[pack.Kind]map[string]row
	runtimes []pack.Runtime
	hints    map[pack.Kind][]string
	// doomed are the rows to delete, in a possible order.
	doomed []store.PrunableRowsRow
}

// known is the world as package pack needs it.
func (w *world) known() pack.World {
	known := pack.World{
		Has: map[pack.Kind]map[string]pack.Found{}, Runtimes: w.runtimes, Hints: w.hints,
		Doomed: map[pack.Kind]map[string]bool{},
	}
	for _, one := range w.doomed {
		kind := pack.Kind(one.Kind)
		if known.Doomed[kind] == nil {
			known.Doomed[kind] = map[string]bool{}
		}
		known.Doomed[kind][one.Ref] = true
	}
	for kind, rows := range w.rows {
		known.Has[kind] = make(map[string]pack.Found, len(rows))
		for ref, r := range rows {
			known.Has[kind][ref] = pack.Found{
				Pack: r.pack, Adhoc: r.adhoc, ParamSchema: r.doc["param_schema"], OutSchema: r.doc["out_schema"],
				Prints: kind == pack.KindAction && r.doc["workflow_def"] == nil && r.doc["output_format"] == "json",
			}
		}
	}
	return known
}

func worldOf(ctx context.Context, q *store.Queries, set *pack.Set) (*world, error) {
	w := &world{rows: map[pack.Kind]map[string]row{}, hints: map[pack.Kind][]string{}}
	if len(set.Items)+len(set.Policies) == 0 {
		return w, nil
	}
	refs := set.Refs()
	for _, kind := range pack.Kinds {
		read := store.CatalogRowsParams{Kind: string(kind), Refs: refs[kind]}
		read.Packs, read.Everything = set.Scopes()
		if err := w.read(ctx, q, read); err != nil {
			return nil, err
		}
	}
	var packs []string // of the actions that policies name
	for i := range set.Policies {
		packs = append(packs, w.rows[pack.KindAction][set.Policies[i].Action].pack)
	}
	if err := w.read(ctx, q, store.CatalogRowsParams{Kind: string(pack.KindPack), Refs: packs}); err != nil {
		return nil, err
	}
	policies := store.CatalogRowsParams{Kind: string(pack.KindPolicy), Refs: refsOf(set.Policies)}
	if err := w.read(ctx, q, policies); err != nil {
		return nil, err
	}
	if err := w.readFormer(ctx, q); err != nil {
		return nil, err
	}
	return w, w.readHints(ctx, q, set)
}

func (w *world) read(ctx context.Context, q *store.Queries, items store.CatalogRowsParams) error {
	kind := pack.Kind(items.Kind)
	if w.rows[kind] == nil {
		w.rows[kind] = map[string]row{}
	}
	rows, err := q.CatalogRows(ctx, items)
	if err != nil {
		return fmt.Errorf("read the rows of kind %s: %w", kind, err)
	}
	for _, r := range rows {
		doc, err := document(r.Doc)
		if err != nil {
			return fmt.Errorf("read the %s %s: %w", kind, r.Ref, err)
		}
		w.rows[kind][r.Ref] = row{id: r.ID, pack: r.PackRef, adhoc: r.IsAdhoc, doc: doc}
		if kind == pack.KindRuntime {
			w.runtimes = append(w.runtimes, pack.RuntimeOf(r.Ref, doc))
		}
	}
	return nil
}

// document reads a row and keeps its numbers exact.
func document(raw []byte) (doc map[string]any, err error) {
	err = jsonvalue.Decode(raw, &doc)
	return doc, err
}

// hintRefs bounds how many refs are read to find the nearest one.
const hintRefs = 5000

// readHints reads similar names for missing ones.
func (w *world) readHints(ctx context.Context, q *store.Queries, set *pack.Set) error {
	for _, kind := range set.Missing(w.known()) {
		var err error
		switch kind {
		case pack.KindPack:
			w.hints[kind], err = q.PackRefs(ctx, hintRefs)
		case pack.KindAction:
			w.hints[kind], err = q.ActionRefs(ctx, hintRefs)
		case pack.KindTrigger:
			w.hints[kind], err = q.TriggerRefs(ctx, hintRefs)
		default:
		}
		if err != nil {
			return fmt.Errorf("list what there is of kind %s: %w", kind, err)
		}
	}
	return nil
}
