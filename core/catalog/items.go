package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
)

// writer writes the items of a set in the order of their references.
type writer struct {
	tx      *store.Tx
	request Request
	world   *world
	after   pack.World
	ids     map[pack.Kind]map[string]int64
	changes []Change
	written []written
}

type written struct {
	item     *pack.Item
	id       int64
	was, now map[string]any // was is nil for a new item
}

func newWriter(tx *store.Tx, request Request, w *world) *writer {
	ids := map[pack.Kind]map[string]int64{}
	for kind, rows := range w.rows {
		ids[kind] = map[string]int64{}
		for ref, r := range rows {
			ids[kind][ref] = r.id
		}
	}
	return &writer{tx: tx, request: request, world: w, ids: ids, after: w.known().With(request.Set)}
}

func (w *writer) item(ctx context.Context, item *pack.Item) error {
	was := w.world.rows[item.Kind][item.Ref].doc
	wanted := w.wanted(item, was)
	doc, err := w.put(ctx, Change{
		Kind: item.Kind, Ref: item.Ref, Place: item.Place,
		Fields: documentDifference(was, wanted, slices.Sorted(maps.Keys(wanted)), w.redactionsOf(item, was, wanted)),
	}, wanted)
	if doc != nil {
		w.written = append(w.written, written{item: item, id: w.ids[item.Kind][item.Ref], was: was, now: doc})
	}
	return err
}

// put writes a row if it changes, with its audit, and returns it; nil if it does not change.
func (w *writer) put(ctx context.Context, change Change, wanted map[string]any) (map[string]any, error) {
	was, exists := w.world.rows[change.Kind][change.Ref]
	switch {
	case !exists:
		change.How = Added
	case len(change.Fields) == 0:
		change.How = Unchanged
	default:
		change.How = Changed
	}
	w.changes = append(w.changes, change)
	if change.How == Unchanged {
		return nil, nil
	}
	row := maps.Clone(wanted)
	maps.DeleteFunc(row, func(column string, _ any) bool { return column == "runtime_ref" || column == "workflow_ref" })
	raw, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("encode the %s %s: %w", change.Kind, change.Ref, err)
	}
	id, err := w.tx.PutItem(ctx, tables[change.Kind], change.Ref, raw)
	if err != nil {
		return nil, fmt.Errorf("write the %s %s: %w", change.Kind, change.Ref, err)
	}
	w.ids[change.Kind][change.Ref] = id
	doc := maps.Clone(was.doc)
	if doc == nil {
		doc = map[string]any{}
	}
	maps.Copy(doc, wanted)
	return doc, audit(ctx, w.tx, w.request, change, id)
}

var tables = map[pack.Kind]string{
	pack.KindPack: "pack", pack.KindRuntime: "runtime", pack.KindWorkflow: "workflow_definition",
	pack.KindAction: "action", pack.KindTrigger: "trigger", pack.KindRule: "rule", pack.KindPolicy: "policy",
}

// wanted is the intended row: the file's content, its owner and its references. Columns that keep
// their value are omitted for an existing row.
func (w *writer) wanted(item *pack.Item, was map[string]any) map[string]any {
	wanted := maps.Clone(item.Columns)
	if was != nil {
		for _, column := range item.Keep {
			delete(wanted, column)
		}
	}
	if item.Kind != pack.KindPack && item.Pack != "" {
		wanted["pack"], wanted["pack_ref"] = w.ids[pack.KindPack][item.Pack], item.Pack
	}
	switch item.Kind {
	case pack.KindWorkflow:
		if was != nil && sameDefinition(was["definition"], wanted["definition"]) {
			delete(wanted, "definition")
		}
	case pack.KindAction:
		wanted["runtime"], wanted["runtime_ref"], wanted["workflow_def"], wanted["workflow_ref"] = nil, nil, nil, nil
		if runtime := w.after.FindRuntime(item.Runtime); item.Runtime != "" && runtime != nil {
			wanted["runtime"], wanted["runtime_ref"] = w.ids[pack.KindRuntime][runtime.Ref], runtime.Ref
		}
		if item.Workflow != "" {
			wanted["workflow_def"], wanted["workflow_ref"] = w.ids[pack.KindWorkflow][item.Workflow], item.Workflow
		}
	case pack.KindRule:
		wanted["action"], wanted["trigger"] = w.ids[pack.KindAction][item.Action], w.ids[pack.KindTrigger][item.Trigger]
		if isEmpty(wanted["conditions"]) && was != nil && isEmpty(was["conditions"]) {
			delete(wanted, "conditions") // {} and [] mean the same
		}
	default:
	}
	return wanted
}

// sameDefinition reports whether two definitions are equivalent: other loaders store defaults, or
// another form.
func sameDefinition(was, wanted any) bool {
	a, okA := definitionOf(was)
	b, okB := definitionOf(wanted)
	return okA && okB && bytes.Equal(a, b)
}

func definitionOf(value any) ([]byte, bool) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	definition, err := workflow.ParseJSON(raw)
	if err != nil {
		return nil, false
	}
	plain, err := definition.JSON()
	return plain, err == nil
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

// audit records the author of a change.
func audit(ctx context.Context, tx *store.Tx, request Request, change Change, id int64) error {
	details, err := json.Marshal(auditEntry{
		How: change.How, File: change.Place.String(), Pack: change.Folder,
		Fields: change.Fields,
	})
	if err != nil {
		return fmt.Errorf("encode the audit of the %s %s: %w", change.Kind, change.Ref, err)
	}
	_, err = tx.InsertAudit(ctx, store.InsertAuditParams{
		Actor: request.Actor, Source: request.Source, Action: string(change.Kind) + ".apply",
		TargetType: string(change.Kind), TargetID: &id, Target: change.Ref, Request: details, Outcome: "done",
	})
	if err != nil {
		return fmt.Errorf("audit the %s %s: %w", change.Kind, change.Ref, err)
	}
	return nil
}

func names(set *pack.Set, kind pack.Kind) []string {
	refs := []string{}
	for _, item := range set.Of(kind) {
		refs = append(refs, item.Ref)
	}
	slices.Sort(refs)
	return refs
}
