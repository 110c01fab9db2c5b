package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

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

// worldOf reads the rows of a set.
func worldOf(ctx context.Context, q *store.Queries, set *pack.Set) (*world, error) {
	w := &world{rows: map[pack.Kind]map[string]row{}, hints: map[pack.Kind][]string{}}
	if len(set.Items) == 0 {
		return w, nil
	}
	refs := set.Refs()
	for kind, read := range map[pack.Kind]func(context.Context, *store.Queries, []string) error{
		pack.KindPack: w.packs, pack.KindRuntime: w.readRuntimes, pack.KindWorkflow: w.workflows,
		pack.KindAction: w.actions, pack.KindTrigger: w.triggers, pack.KindRule: w.rules,
	} {
		w.rows[kind] = map[string]row{}
		if err := read(ctx, q, refs[kind]); err != nil {
			return nil, fmt.Errorf("look up what there is of kind %s: %w", kind, err)
		}
	}
	if err := w.readFormer(ctx, q); err != nil {
		return nil, err
	}
	return w, w.readHints(ctx, q, set)
}

func (w *world) put(kind pack.Kind, ref string, r row, doc []byte) error {
	var err error
	if r.doc, err = document(doc); err != nil {
		return fmt.Errorf("read the %s %s: %w", kind, ref, err)
	}
	w.rows[kind][ref] = r
	return nil
}

// document reads a row and keeps its numbers exact.
func document(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var doc map[string]any
	err := decoder.Decode(&doc)
	return doc, err
}

func (w *world) packs(ctx context.Context, q *store.Queries, refs []string) error {
	rows, err := q.CatalogPackRows(ctx, refs)
	for _, r := range rows {
		if err := w.put(pack.KindPack, r.Ref, row{id: r.ID, pack: r.Ref}, r.Doc); err != nil {
			return err
		}
	}
	return err
}

func (w *world) readRuntimes(ctx context.Context, q *store.Queries, _ []string) error {
	rows, err := q.CatalogRuntimes(ctx)
	for _, r := range rows {
		w.runtimes = append(w.runtimes, pack.Runtime{Ref: r.Ref, Name: r.Name, Aliases: r.Aliases})
		if err := w.put(pack.KindRuntime, r.Ref, row{id: r.ID, pack: r.PackRef}, r.Doc); err != nil {
			return err
		}
	}
	return err
}

func (w *world) workflows(ctx context.Context, q *store.Queries, refs []string) error {
	rows, err := q.CatalogWorkflows(ctx, refs)
	for _, r := range rows {
		if err := w.put(pack.KindWorkflow, r.Ref, row{id: r.ID, pack: r.PackRef}, r.Doc); err != nil {
			return err
		}
	}
	return err
}

func (w *world) actions(ctx context.Context, q *store.Queries, refs []string) error {
	rows, err := q.CatalogActionRows(ctx, refs)
	for _, r := range rows {
		if err := w.put(pack.KindAction, r.Ref, row{id: r.ID, pack: r.PackRef, adhoc: r.IsAdhoc}, r.Doc); err != nil {
			return err
		}
	}
	return err
}

func (w *world) triggers(ctx context.Context, q *store.Queries, refs []string) error {
	rows, err := q.CatalogTriggers(ctx, refs)
	for _, r := range rows {
		if err := w.put(pack.KindTrigger, r.Ref, row{id: r.ID, pack: r.PackRef, adhoc: r.IsAdhoc}, r.Doc); err != nil {
			return err
		}
	}
	return err
}

func (w *world) rules(ctx context.Context, q *store.Queries, refs []string) error {
	rows, err := q.CatalogRules(ctx, refs)
	for _, r := range rows {
		if err := w.put(pack.KindRule, r.Ref, row{id: r.ID, pack: r.PackRef, adhoc: r.IsAdhoc}, r.Doc); err != nil {
			return err
		}
	}
	return err
}

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
