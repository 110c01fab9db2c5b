package catalog

import (
	"context"
	"errors"
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
	// former are the parameter schemas of rules' former targets, by kind and ref; nil: unspecified.
	former map[pack.Kind]map[string]any
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
		if err := w.read(ctx, q, kind, refs[kind]); err != nil {
			return nil, err
		}
	}
	if err := w.readScopes(ctx, q, set); err != nil {
		return nil, err
	}
	if err := w.readFormer(ctx, q); err != nil {
		return nil, err
	}
	return w, w.readHints(ctx, q, set)
}

// read reads the rows of a kind with these refs; of runtimes it reads all.
func (w *world) read(ctx context.Context, q *store.Queries, kind pack.Kind, refs []string) (err error) {
	if w.rows[kind] == nil {
		w.rows[kind] = map[string]row{}
	}
	put := func(ref string, r row, doc []byte) {
		var unreadable error
		if r.doc, unreadable = document(doc); unreadable != nil {
			err = errors.Join(err, fmt.Errorf("read the %s %s: %w", kind, ref, unreadable))
		}
		w.rows[kind][ref] = r
	}
	var failed error
	switch kind {
	case pack.KindPack:
		var rows []store.CatalogPackRowsRow
		rows, failed = q.CatalogPackRows(ctx, refs)
		for _, r := range rows {
			put(r.Ref, row{id: r.ID, pack: r.Ref}, r.Doc)
		}
	case pack.KindRuntime:
		var rows []store.CatalogRuntimesRow
		rows, failed = q.CatalogRuntimes(ctx)
		for _, r := range rows {
			w.runtimes = append(w.runtimes, pack.Runtime{Ref: r.Ref, Name: r.Name, Aliases: r.Aliases})
			put(r.Ref, row{id: r.ID, pack: r.PackRef}, r.Doc)
		}
	case pack.KindWorkflow:
		var rows []store.CatalogWorkflowsRow
		rows, failed = q.CatalogWorkflows(ctx, refs)
		for _, r := range rows {
			put(r.Ref, row{id: r.ID, pack: r.PackRef}, r.Doc)
		}
	case pack.KindAction:
		var rows []store.CatalogActionRowsRow
		rows, failed = q.CatalogActionRows(ctx, refs)
		for _, r := range rows {
			put(r.Ref, row{id: r.ID, pack: r.PackRef, adhoc: r.IsAdhoc}, r.Doc)
		}
	case pack.KindTrigger:
		var rows []store.CatalogTriggersRow
		rows, failed = q.CatalogTriggers(ctx, refs)
		for _, r := range rows {
			put(r.Ref, row{id: r.ID, pack: r.PackRef, adhoc: r.IsAdhoc}, r.Doc)
		}
	case pack.KindRule:
		var rows []store.CatalogRulesRow
		rows, failed = q.CatalogRules(ctx, refs)
		for _, r := range rows {
			put(r.Ref, row{id: r.ID, pack: r.PackRef, adhoc: r.IsAdhoc}, r.Doc)
		}
	default:
	}
	if failed != nil {
		return fmt.Errorf("read the rows of kind %s: %w", kind, failed)
	}
	return err
}

// readScopes reads the packs of the actions that policies name, and the parameters of all actions whose pack has a
// policy that names some.
func (w *world) readScopes(ctx context.Context, q *store.Queries, set *pack.Set) error {
	var packs []string
	for i := range set.Policies {
		packs = append(packs, w.rows[pack.KindAction][set.Policies[i].Action].pack)
	}
	if err := w.read(ctx, q, pack.KindPack, packs); err != nil {
		return err
	}
	packs, all := set.Scopes()
	if len(packs) == 0 && !all {
		return nil
	}
	rows, err := q.CatalogActions(ctx, packs, all)
	if err != nil {
		return fmt.Errorf("read the actions under policies: %w", err)
	}
	for _, r := range rows {
		if _, read := w.rows[pack.KindAction][r.Ref]; read {
			continue
		}
		doc, err := document(r.Doc)
		if err != nil {
			return fmt.Errorf("read the parameters of %s: %w", r.Ref, err)
		}
		w.rows[pack.KindAction][r.Ref] = row{id: r.ID, pack: r.PackRef, doc: doc}
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
