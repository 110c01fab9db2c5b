package alerting

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// Trigger is the trigger whose rules alerts fire, if the installation has it.
const Trigger = "core.alert"

// eventSource and messageSource are what existing services say of system events.
const (
	eventSource   = "attune.system"
	messageSource = "system-alert"
)

// event is the payload that rules on alerts know.
type event struct {
	Severity      string    `json:"severity"`
	Category      string    `json:"category"`
	FailureType   string    `json:"failure_type"`
	ComponentType string    `json:"component_type"`
	ComponentID   *int64    `json:"component_id"`
	ComponentRef  string    `json:"component_ref,omitempty"`
	ObservedAt    time.Time `json:"observed_at"`
	Summary       string    `json:"summary"`
	Details       details   `json:"details"`
}

type details struct {
	Rule   string    `json:"rule"`
	Target string    `json:"target"`
	Value  float64   `json:"value"`
	Since  time.Time `json:"since"`
}

// announce emits an event for each alert that fires, in the transaction that says
// so, where the trigger exists and is enabled.
func (l *Loop) announce(ctx context.Context, tx *store.Tx, fired []store.RaiseAlertsRow) error {
	if len(fired) == 0 {
		return nil
	}
	triggers, err := tx.TriggersByRef(ctx, []string{Trigger})
	if err != nil {
		return fmt.Errorf("look up trigger %s: %w", Trigger, err)
	}
	if len(triggers) == 0 || !triggers[0].Enabled {
		return nil
	}
	rows := store.InsertEventsParams{SourceRef: eventSource}
	for _, alert := range fired {
		payload, err := json.Marshal(eventOf(alert))
		if err != nil {
			return fmt.Errorf("encode the event of alert %s: %w", alert.Rule, err)
		}
		rows.Triggers, rows.Refs = append(rows.Triggers, triggers[0].ID), append(rows.Refs, Trigger)
		rows.Payloads = append(rows.Payloads, string(payload))
		rows.Rules, rows.RuleRefs = append(rows.Rules, 0), append(rows.RuleRefs, "")
	}
	made, err := tx.InsertEvents(ctx, rows)
	if err != nil {
		return fmt.Errorf("insert the events of %d alerts: %w", len(fired), err)
	}
	messages := make([]outbox.Message, len(made))
	for i, row := range made {
		envelope := message.New(message.TypeEventCreated, message.EventCreated{
			EventID: row.ID, TriggerID: &triggers[0].ID, TriggerRef: Trigger, Payload: json.RawMessage(rows.Payloads[i]),
		}, row.Created, messageSource)
		body, err := envelope.Encode()
		if err != nil {
			return fmt.Errorf("encode the message of event %d: %w", row.ID, err)
		}
		messages[i] = outbox.Message{
			ID: envelope.MessageID, Exchange: message.ExchangeEvents, RoutingKey: message.KeyEventCreated, Type: message.TypeEventCreated, Body: body,
		}
	}
	if _, err := outbox.Append(ctx, tx, messages); err != nil {
		return fmt.Errorf("tell of the events of %d alerts: %w", len(fired), err)
	}
	return nil
}

func eventOf(alert store.RaiseAlertsRow) event {
	e := event{
		Severity: alert.Severity, Category: "health", FailureType: alert.Rule, ComponentType: "executor", ComponentRef: alert.Target,
		ObservedAt: time.Now().UTC(), Summary: alert.Summary,
		Details: details{Rule: alert.Rule, Target: alert.Target, Value: alert.Value, Since: alert.Since.UTC()},
	}
	if strings.HasPrefix(alert.Rule, "worker") {
		e.ComponentType = "worker"
		if id, err := strconv.ParseInt(alert.Target, 10, 64); err == nil {
			e.ComponentID = &id
		}
	}
	return e
}
