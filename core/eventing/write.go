package eventing

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/tracing"
)

// key identifies an enforcement.
type key struct{ rule, event int64 }

// write marks the events, creates the enforcements of newly marked ones, and requests executions.
func (b *batch) write(ctx context.Context) error {
	if err := b.mark(ctx); err != nil {
		return err
	}
	b.result.Events, b.result.Repeated = len(b.marked), len(b.events)-len(b.marked)
	made, err := b.insert(ctx)
	if err != nil {
		return err
	}
	if err := b.storeSecrets(ctx, made); err != nil {
		return err
	}
	if err := b.request(ctx); err != nil {
		return err
	}
	if err := b.trace(ctx); err != nil {
		return err
	}
	crashpoint.Reach("events:before-commit")
	return nil
}

// mark finds the events that this transaction is the first to match.
func (b *batch) mark(ctx context.Context) error {
	arg := store.MarkEventsMatchedParams{}
	for _, e := range b.events {
		lines := make([]string, len(e.failures))
		for i, failure := range e.failures {
			lines[i] = strings.Join(strings.Fields(failure), " ")
		}
		arg.Events = append(arg.Events, e.row.ID)
		arg.Rules = append(arg.Rules, int32(e.rules))
		arg.Matched = append(arg.Matched, int32(e.matched))
		arg.Failures = append(arg.Failures, strings.Join(lines, "\n"))
	}
	marked, err := b.tx.MarkEventsMatched(ctx, arg)
	if err != nil {
		return fmt.Errorf("mark %d events: %w", len(b.events), err)
	}
	b.marked = make(map[int64]bool, len(marked))
	for _, id := range marked {
		b.marked[id] = true
	}
	return nil
}

// insert creates the enforcements, and returns the new ones.
func (b *batch) insert(ctx context.Context) (map[key]int64, error) {
	var arg store.InsertEnforcementsParams
	for _, e := range b.fresh() {
		if len(e.fires) == 0 {
			continue
		}
		arg.Payloads = append(arg.Payloads, payloadObject(e.row.Payload))
		for _, f := range e.fires {
			failure, note := "", strings.ReplaceAll(f.note, "\x00", "")
			if f.err != nil {
				failure, note = reason(f.err), ""
			}
			arg.Events, arg.Rules = append(arg.Events, e.row.ID), append(arg.Rules, f.rule.row.ID)
			arg.Positions = append(arg.Positions, int32(len(arg.Payloads)))
			arg.Configs = append(arg.Configs, cmp.Or(string(f.config), "{}"))
			arg.Conditions, arg.Errors = append(arg.Conditions, f.mode()), append(arg.Errors, failure)
			arg.Notes = append(arg.Notes, note)
		}
	}
	made := make(map[key]int64, len(arg.Events))
	if len(arg.Events) == 0 {
		return made, nil
	}
	rows, err := b.tx.InsertEnforcements(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("insert %d enforcements: %w", len(arg.Events), err)
	}
	for _, row := range rows {
		made[key{rule: row.Rule, event: row.Event}] = row.ID
		if row.Status == store.EnforcementStatusEnumCreated {
			b.result.Created++
		} else {
			b.result.Disabled++
			b.disabled = append(b.disabled, row.ID)
		}
	}
	return made, nil
}

// trace has the spans of the matched events sent, and those of enforcements without an execution.
func (b *batch) trace(ctx context.Context) error {
	if !b.cfg.Traced || len(b.marked) == 0 {
		return nil
	}
	events := slices.Sorted(maps.Keys(b.marked))
	if err := b.tx.AddTracePending(ctx, string(tracing.Event), events); err != nil {
		return fmt.Errorf("request the spans of %d events: %w", len(events), err)
	}
	if len(b.disabled) == 0 {
		return nil
	}
	if err := b.tx.AddTracePending(ctx, string(tracing.Enforcement), b.disabled); err != nil {
		return fmt.Errorf("request the spans of %d enforcements: %w", len(b.disabled), err)
	}
	return nil
}

// payloadObject is the stored payload of an enforcement: objects only.
func payloadObject(payload []byte) string {
	if text := strings.TrimSpace(string(payload)); strings.HasPrefix(text, "{") {
		return text
	}
	return "{}"
}

// storeSecrets stores the secrets of the new enforcements.
func (b *batch) storeSecrets(ctx context.Context, made map[key]int64) error {
	var arg store.InsertSecretValuesParams
	for _, f := range b.fires {
		id, ok := made[key{rule: f.rule.row.ID, event: f.event.row.ID}]
		if !ok {
			continue
		}
		for _, one := range f.secrets {
			store.AddSecret(&arg, secret.OfEnforcement, id, one)
		}
	}
	if len(arg.EntityIds) == 0 {
		return nil
	}
	if err := b.tx.InsertSecretValues(ctx, arg); err != nil {
		return fmt.Errorf("store %d secrets of enforcements: %w", len(arg.EntityIds), err)
	}
	return nil
}

// request requests the execution of every pending enforcement of these events: the new ones, and
// those of another program.
func (b *batch) request(ctx context.Context) error {
	ids := make([]int64, 0, len(b.events))
	events := make(map[int64]*event, len(b.events))
	for _, e := range b.events {
		events[e.row.ID] = e
		if !b.marked[e.row.ID] || len(e.fires) > 0 {
			ids = append(ids, e.row.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := b.tx.CreatedEnforcements(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the enforcements of %d events: %w", len(ids), err)
	}
	messages := make([]outbox.Message, len(rows))
	for i, row := range rows {
		if messages[i], err = b.message(row, events[row.Event]); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(messages, messagesPerRow) {
		if _, err := outbox.Send(ctx, b.tx, b.relay, part); err != nil {
			return err
		}
	}
	return nil
}

// messagesPerRow bounds one outbox row, so that a relay publishes many messages in parts.
const messagesPerRow = 500

// maxPayloadInMessage bounds the payload in a message. Consumers read the row.
const maxPayloadInMessage = 16 << 10

func (b *batch) message(row store.CreatedEnforcementsRow, e *event) (outbox.Message, error) {
	payload := message.EnforcementCreated{
		EnforcementID: row.ID, RuleID: row.Rule, RuleRef: row.RuleRef, EventID: &row.Event, TriggerRef: row.TriggerRef,
		Payload: json.RawMessage("{}"),
	}
	if kept := jsonvalue.Copy(e.row.Payload, maxPayloadInMessage); len(kept) > 0 {
		payload.Payload = kept
	}
	return outbox.Encode(message.TypeEnforcementCreated, payload, row.Now, b.cfg.Source)
}
