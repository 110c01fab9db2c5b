package submit

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/tracing"
)

// MaxPayload is the largest payload of an event, in bytes.
const MaxPayload = 1 << 20

// eventSource is the source_ref of events that are emitted here.
const eventSource = "attune.emit"

// Event is an event to emit.
type Event struct {
	// TriggerRef names the trigger, such as core.timer.
	TriggerRef string
	// Payload is any JSON value, usually an object; empty and null mean none.
	Payload json.RawMessage
	// RuleRef lets the event fire this rule only; empty means all of the trigger's.
	RuleRef string
	// Execution is the execution whose action emits it, 0 for none. It bounds chains of rules that
	// fire each other. A missing execution counts as none.
	Execution int64
	// Key makes EmitEvent repeatable; nil for none.
	Key *Key
}

// Emitted is an event that was stored.
type Emitted struct {
	ID         int64     // of the event
	TriggerRef string    // as given
	Enabled    bool      // state of the trigger: a disabled one fires nothing
	Created    time.Time // by the clock of the database
	OutboxID   int64     // of the outbox row of its message
	Repeated   bool      // an earlier emission with the key has stored it
}

// ErrPayload reports a payload that is refused as a whole.
var ErrPayload = errors.New("the payload is refused")

// UnknownTriggerError reports that no trigger has the ref.
type UnknownTriggerError struct {
	Ref     string
	Nearest string // empty without a similar one
}

// Error names the ref and the nearest one.
func (e *UnknownTriggerError) Error() string {
	return unknownText("trigger", e.Ref, e.Nearest)
}

// RuleMismatchError reports that a rule is missing, or belongs to another trigger.
type RuleMismatchError struct {
	Ref        string
	TriggerRef string // of the rule; empty if the rule is missing
}

// Error names the case.
func (e *RuleMismatchError) Error() string {
	if e.TriggerRef == "" {
		return unknownText("rule", e.Ref, "")
	}
	return fmt.Sprintf("rule %s belongs to trigger %s", e.Ref, e.TriggerRef)
}

// InvalidPayloadError lists all mistakes of a payload.
type InvalidPayloadError struct {
	Ref      string // of the trigger
	Mistakes []schema.Mistake
}

// Error lists the mistakes on one line.
func (e *InvalidPayloadError) Error() string {
	return fmt.Sprintf("the payload does not fit %s: %s", e.Ref, schema.Words(e.Mistakes))
}

// EmitEvent stores one event with its message.
func (s *Submitter) EmitEvent(ctx context.Context, event Event) (Emitted, error) {
	var list []Emitted
	create := func() (err error) {
		list, err = s.EmitEvents(ctx, []Event{event})
		return err
	}
	if event.Key == nil {
		if err := create(); err != nil {
			return Emitted{}, err
		}
		return list[0], nil
	}
	earlier, err := s.once(ctx, event.Key, create)
	if err != nil {
		return Emitted{}, fmt.Errorf("emit %s: %w", event.TriggerRef, err)
	}
	if earlier == 0 {
		return list[0], nil
	}
	row, err := s.store.EmittedEvent(ctx, earlier)
	if err != nil {
		return Emitted{}, fmt.Errorf("read the earlier event %d: %w", earlier, err)
	}
	return Emitted{
		ID: earlier, TriggerRef: row.TriggerRef, Enabled: row.Enabled, Created: row.Created, Repeated: true,
	}, nil
}

// EmitEvents stores many events in one transaction: all or none. The result is in the order of the
// events.
func (s *Submitter) EmitEvents(ctx context.Context, events []Event) ([]Emitted, error) {
	if len(events) == 0 {
		return nil, nil
	}
	rows, done, err := s.prepare(ctx, events)
	if err != nil {
		return nil, err
	}
	err = s.store.Tx(ctx, "emit events", func(ctx context.Context, tx *store.Tx) error {
		if err := s.insertEvents(ctx, tx, rows, done); err != nil {
			return err
		}
		if err := recordOrigins(ctx, tx, events, done); err != nil {
			return err
		}
		ids := make([]int64, len(done))
		for i, one := range done {
			ids[i] = one.ID
			if err := events[i].Key.take(ctx, tx, one.ID); err != nil {
				return err
			}
		}
		return recordTrace(ctx, tx, tracing.Event, ids)
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// recordOrigins stores which executions have emitted the events.
func recordOrigins(ctx context.Context, tx *store.Tx, events []Event, done []Emitted) error {
	var ids, executions []int64
	for i, event := range events {
		if event.Execution != 0 {
			ids, executions = append(ids, done[i].ID), append(executions, event.Execution)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := tx.RecordEventOrigins(ctx, ids, executions); err != nil {
		return fmt.Errorf("record which executions emitted %d events: %w", len(ids), err)
	}
	return nil
}

// prepare looks up the triggers and rules and checks the payloads.
func (s *Submitter) prepare(ctx context.Context, events []Event) (store.InsertEventsParams, []Emitted, error) {
	rows := store.InsertEventsParams{SourceRef: eventSource}
	triggers, err := s.triggers(ctx, events)
	if err != nil {
		return rows, nil, err
	}
	rules, err := s.rules(ctx, events)
	if err != nil {
		return rows, nil, err
	}
	done := make([]Emitted, len(events))
	for i, event := range events {
		trigger := triggers[event.TriggerRef]
		payload, err := trigger.check(event)
		if err != nil {
			return rows, nil, err
		}
		done[i] = Emitted{TriggerRef: event.TriggerRef, Enabled: trigger.enabled}
		rows.Triggers, rows.Refs = append(rows.Triggers, trigger.id), append(rows.Refs, event.TriggerRef)
		rows.Payloads = append(rows.Payloads, payload)
		rows.Rules, rows.RuleRefs = append(rows.Rules, rules[event.RuleRef]), append(rows.RuleRefs, event.RuleRef)
	}
	return rows, done, nil
}

// trigger is the part of a trigger that emitting needs.
type trigger struct {
	id      int64
	enabled bool
	schema  *schema.Schema
}

func (s *Submitter) triggers(ctx context.Context, events []Event) (map[string]trigger, error) {
	var refs []string
	for _, event := range events {
		refs = append(refs, event.TriggerRef)
	}
	slices.Sort(refs)
	refs = slices.Compact(refs)
	rows, err := s.store.TriggersByRef(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("look up %d triggers: %w", len(refs), err)
	}
	found := make(map[string]trigger, len(rows))
	for _, row := range rows {
		known, err := schema.Parse(row.OutSchema)
		if err != nil {
			return nil, fmt.Errorf("emit %s: its schema of payloads: %w", row.Ref, err)
		}
		found[row.Ref] = trigger{row.ID, row.Enabled, known}
	}
	for _, ref := range refs {
		if _, ok := found[ref]; !ok {
			known, err := s.store.TriggerRefs(ctx, hintRefs)
			if err != nil {
				known = nil // the hint is optional
			}
			return nil, &UnknownTriggerError{Ref: ref, Nearest: phrase.Nearest(ref, known)}
		}
	}
	return found, nil
}

// rules returns the ids of the rules that events name.
func (s *Submitter) rules(ctx context.Context, events []Event) (map[string]int64, error) {
	found := map[string]int64{"": 0}
	for _, event := range events {
		if _, ok := found[event.RuleRef]; ok {
			continue
		}
		row, err := s.store.RuleByRef(ctx, event.RuleRef)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil, &RuleMismatchError{Ref: event.RuleRef}
		case err != nil:
			return nil, fmt.Errorf("look up rule %s: %w", event.RuleRef, err)
		case row.TriggerRef != event.TriggerRef:
			return nil, &RuleMismatchError{event.RuleRef, row.TriggerRef}
		}
		found[event.RuleRef] = row.ID
	}
	return found, nil
}

// check returns the payload in compact form, empty for none.
func (t trigger) check(event Event) (string, error) {
	text := bytes.TrimSpace(event.Payload)
	if len(text) > MaxPayload {
		return "", fmt.Errorf("emit %s: %w: it has %d bytes, and %d are allowed", event.TriggerRef, ErrPayload,
			len(text), MaxPayload)
	}
	if len(text) == 0 || string(text) == "null" {
		text = nil
	}
	var value any
	if text != nil {
		var err error
		if value, err = expr.FromJSON(text); err == nil && !json.Valid(text) {
			err = errors.New("it has text after the end of the value")
		}
		if err != nil {
			return "", fmt.Errorf("emit %s: %w: it is not JSON: %w", event.TriggerRef, ErrPayload, err)
		}
	}
	if err := jsonvalue.Check("payload", text); err != nil {
		return "", fmt.Errorf("emit %s: %w: %w", event.TriggerRef, ErrPayload, err)
	}
	if mistakes := t.mistakes(value); len(mistakes) > 0 {
		return "", &InvalidPayloadError{event.TriggerRef, mistakes}
	}
	var compact bytes.Buffer
	if text != nil {
		_ = json.Compact(&compact, text) // the text is valid
	}
	return compact.String(), nil
}

// mistakes returns the mistakes of a payload; a missing payload counts as an empty one.
func (t trigger) mistakes(value any) []schema.Mistake {
	switch v := value.(type) {
	case nil:
		return t.schema.ValidateParams(map[string]any{})
	case map[string]any:
		return t.schema.ValidateParams(v)
	default:
		return t.schema.Validate(value)
	}
}

// insertEvents writes rows and messages, which are published after the commit.
func (s *Submitter) insertEvents(ctx context.Context, tx *store.Tx, rows store.InsertEventsParams,
	done []Emitted,
) error {
	inserted, err := tx.InsertEvents(ctx, rows)
	if err != nil {
		return fmt.Errorf("insert %d events: %w", len(done), err)
	}
	slices.SortFunc(inserted, func(a, b store.InsertEventsRow) int { return cmp.Compare(a.ID, b.ID) })
	messages := make([]outbox.Message, len(inserted))
	for i, row := range inserted {
		done[i].ID, done[i].Created = row.ID, row.Created
		messages[i], err = outbox.Encode(message.TypeEventCreated, message.EventCreated{
			EventID: row.ID, TriggerID: &rows.Triggers[i], TriggerRef: done[i].TriggerRef,
			Payload: json.RawMessage(cmp.Or(rows.Payloads[i], "null")),
		}, row.Created, source)
		if err != nil {
			return err
		}
	}
	return s.appendMessages(ctx, tx, messages, func(i int, row int64) { done[i].OutboxID = row })
}
