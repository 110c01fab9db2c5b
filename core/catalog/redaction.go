package catalog

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// redaction has the secret parts of a column: all that a schema before or after the application marks. A value does not
// become public because the same application removes its mark.
type redaction struct {
	schemas []*schema.Schema
	// unknown says that a schema is unreadable or missing, so that every part may be secret.
	unknown bool
	// templates may be shown: they name a secret and contain none.
	templates bool
}

// redactions are those of columns, by name.
type redactions map[string]*redaction

// redactionsOf returns the secret parts of an item.
func (w *writer) redactionsOf(item *pack.Item, was, wanted map[string]any) redactions {
	switch item.Kind {
	case pack.KindPack:
		config := &redaction{}
		config.add(was["conf_schema"])
		config.add(wanted["conf_schema"])
		return redactions{"config": config}
	case pack.KindRule:
		return redactions{
			"action_params":  w.params(pack.KindAction, was["action_ref"], item.Action),
			"trigger_params": w.params(pack.KindTrigger, was["trigger_ref"], item.Trigger),
		}
	default:
		return nil
	}
}

// params returns the secret parts of parameters for the item named by ref.
func (w *writer) params(kind pack.Kind, was any, wanted string) *redaction {
	v := &redaction{templates: true}
	refs := []string{wanted}
	if before, ok := was.(string); ok && before != wanted {
		refs = append(refs, before)
	}
	for _, ref := range refs {
		after, described := w.after.Has[kind][ref]
		before, exists := w.world.rows[kind][ref]
		v.unknown = v.unknown || !described && !exists
		v.add(after.ParamSchema)
		v.add(before.doc["param_schema"])
	}
	return v
}

func (v *redaction) add(column any) {
	if column == nil {
		return
	}
	raw, err := json.Marshal(column)
	if err != nil {
		v.unknown = true
		return
	}
	known, err := schema.Parse(raw)
	if err != nil {
		v.unknown = true
		return
	}
	v.schemas = append(v.schemas, known)
}

// onlyTemplate matches a text that is nothing but a template.
var onlyTemplate = regexp.MustCompile(`^\s*\{\{[^{}]*\}\}\s*$`)

// hide replaces secret parts by markers.
func (v *redaction) hide(value any) any {
	if v == nil || value == nil {
		return value
	}
	if v.unknown {
		return secret.Marker()
	}
	for _, known := range v.schemas {
		var paths []string
		for _, path := range known.SecretPaths(value) {
			found, _ := secret.At(value, path)
			if text, ok := found.(string); !ok || !v.templates || !onlyTemplate.MatchString(text) {
				paths = append(paths, path)
			}
		}
		value, _ = secret.Take(value, paths)
	}
	return value
}

// readFormer reads the former actions and triggers of rules for which the files name others now.
func (w *world) readFormer(ctx context.Context, q *store.Queries) error {
	for kind, column := range map[pack.Kind]string{pack.KindAction: "action_ref", pack.KindTrigger: "trigger_ref"} {
		var refs []string
		for _, rule := range w.rows[pack.KindRule] {
			ref, _ := rule.doc[column].(string)
			refs = append(refs, ref)
		}
		if err := w.read(ctx, q, store.CatalogRowsParams{Kind: string(kind), Refs: refs}); err != nil {
			return err
		}
	}
	return nil
}
