package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
)

// maxMessages bounds the messages of one outbox row.
const maxMessages = 300

// announce appends the messages for workers and sensors about changed packs and rules.
func (c *Catalog) announce(ctx context.Context, tx *store.Tx, done []written, pruned []store.PrunableRowsRow) error {
	if len(done)+len(pruned) == 0 {
		return nil
	}
	now, err := tx.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	messages, err := packMessages(ctx, tx, done, now)
	if err != nil {
		return err
	}
	for _, one := range done {
		if one.item.Kind == pack.KindRule {
			if messages, err = ruleMessages(messages, one, now); err != nil {
				return err
			}
		}
	}
	for _, row := range pruned {
		if row.Kind != string(pack.KindRule) {
			continue
		}
		one, err := outbox.Encode(message.TypeRuleDisabled, message.RuleDisabled{
			RuleID: row.ID, RuleRef: row.Ref, TriggerRef: row.Detail,
		}, now, source)
		if err != nil {
			return err
		}
		messages = append(messages, one)
	}
	for some := range slices.Chunk(messages, maxMessages) {
		if _, err := outbox.Send(ctx, tx, c.relay, some); err != nil {
			return err
		}
	}
	return nil
}

// packMessages announce every changed pack as registered.
func packMessages(ctx context.Context, tx *store.Tx, done []written, now time.Time) ([]outbox.Message, error) {
	changed := map[string]bool{}
	for _, one := range done {
		changed[one.item.Pack] = true
	}
	rows, err := tx.CatalogRows(ctx,
		store.CatalogRowsParams{Kind: string(pack.KindPack), Refs: slices.Sorted(maps.Keys(changed))})
	if err != nil {
		return nil, fmt.Errorf("read the packs that changed: %w", err)
	}
	var messages []outbox.Message
	for _, row := range rows {
		names, err := tx.PackRuntimeNames(ctx, row.ID)
		if err != nil {
			return nil, fmt.Errorf("read the runtimes of the pack %s: %w", row.Ref, err)
		}
		var doc struct {
			Version string `json:"version"`
		}
		if err := json.Unmarshal(row.Doc, &doc); err != nil {
			return nil, fmt.Errorf("read the pack %s: %w", row.Ref, err)
		}
		one, err := outbox.Encode(message.TypePackRegistered, message.PackRegistered{
			PackID: row.ID, PackRef: row.Ref, Version: doc.Version, RuntimeNames: append([]string{}, names...),
		}, now, source)
		if err != nil {
			return nil, err
		}
		messages = append(messages, one)
	}
	return messages, nil
}

// ruleMessages announce new and switched rules. A rule whose trigger changed or returned is enabled
// again, because sensors follow that.
func ruleMessages(messages []outbox.Message, one written, now time.Time) ([]outbox.Message, error) {
	enabled := one.now["enabled"] == true
	params, err := json.Marshal(one.now["trigger_params"])
	if err != nil {
		return nil, fmt.Errorf("encode the parameters of the rule %s: %w", one.item.Ref, err)
	}
	wasEnabled := one.was != nil && one.was["enabled"] == true
	moved := one.was != nil && (!expr.Equal(one.was["trigger"], plain(one.now["trigger"])) ||
		!expr.Equal(one.was["trigger_ref"], one.now["trigger_ref"]) ||
		!expr.Equal(one.was["trigger_params"], plain(one.now["trigger_params"])))
	var next outbox.Message
	switch {
	case one.was == nil:
		next, err = outbox.Encode(message.TypeRuleCreated, message.RuleCreated{
			RuleID: one.id, RuleRef: one.item.Ref, TriggerID: idOf(one.now["trigger"]), TriggerRef: one.item.Trigger,
			ActionID: idOf(one.now["action"]), ActionRef: one.item.Action, TriggerParams: params, Enabled: enabled,
		}, now, source)
	case enabled && (!wasEnabled || moved):
		next, err = outbox.Encode(message.TypeRuleEnabled, message.RuleEnabled{
			RuleID: one.id, RuleRef: one.item.Ref, TriggerRef: one.item.Trigger, TriggerParams: params,
		}, now, source)
	case !enabled && wasEnabled:
		next, err = outbox.Encode(message.TypeRuleDisabled, message.RuleDisabled{
			RuleID: one.id, RuleRef: one.item.Ref, TriggerRef: one.item.Trigger,
		}, now, source)
	default:
		return messages, nil
	}
	if err != nil {
		return nil, err
	}
	return append(messages, next), nil
}

// idOf is an id in a row, as it was read or will be written; nil for none.
func idOf(value any) *int64 {
	id, _ := value.(int64)
	if number, ok := value.(json.Number); ok {
		id, _ = number.Int64()
	}
	if id == 0 {
		return nil
	}
	return &id
}
