package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// AlertTrigger is the trigger of the events that report problems of an installation, which rules handle like any other.
const AlertTrigger = "core.alert"

// AlertSource is the source_ref of the events, and the sensor that their messages name.
const AlertSource = "attune.system"

// messageSource is the source_service of the messages.
const messageSource = "system-alert"

// Alert is the payload of one event. Every key is present, possibly null.
type Alert struct {
	Severity      string    `json:"severity"`
	Category      string    `json:"category"`
	FailureType   string    `json:"failure_type"`
	ComponentType string    `json:"component_type"`
	ComponentID   *int64    `json:"component_id"`
	ComponentRef  *string   `json:"component_ref"`
	WorkerRole    *string   `json:"worker_role"`
	ObservedAt    time.Time `json:"observed_at"`
	Summary       string    `json:"summary"`
	Details       any       `json:"details"`
	// CorrelationID identifies the incident, so that rules recognise duplicates.
	CorrelationID *string `json:"correlation_id"`
}

// EmitAlerts inserts an event for each alert and appends the messages to the outbox, in the caller's
// transaction. relay, which may be nil, publishes them after the commit. Without the trigger it
// writes nothing.
func EmitAlerts(ctx context.Context, tx *store.Tx, relay Publishing, alerts []Alert) error {
	if len(alerts) == 0 {
		return nil
	}
	triggers, err := tx.TriggersByRef(ctx, []string{AlertTrigger})
	if err != nil {
		return fmt.Errorf("look up trigger %s: %w", AlertTrigger, err)
	}
	if len(triggers) == 0 {
		return nil
	}
	rows := store.InsertEventsParams{SourceRef: AlertSource}
	for i := range alerts {
		payload, err := json.Marshal(&alerts[i])
		if err != nil {
			return fmt.Errorf("encode the %s event %s: %w", AlertTrigger, alerts[i].FailureType, err)
		}
		rows.Triggers, rows.Refs = append(rows.Triggers, triggers[0].ID), append(rows.Refs, AlertTrigger)
		rows.Payloads = append(rows.Payloads, string(payload))
		rows.Rules, rows.RuleRefs = append(rows.Rules, 0), append(rows.RuleRefs, "")
	}
	made, err := tx.InsertEvents(ctx, rows)
	if err != nil {
		return fmt.Errorf("insert %d %s events: %w", len(alerts), AlertTrigger, err)
	}
	messages := make([]Message, len(made))
	for i, row := range made {
		envelope := message.New(message.TypeEventCreated, message.EventCreated{
			EventID: row.ID, TriggerID: &triggers[0].ID, TriggerRef: AlertTrigger, SensorRef: new(AlertSource),
			Payload: json.RawMessage(rows.Payloads[i]),
		}, row.Created, messageSource)
		body, err := envelope.Encode()
		if err != nil {
			return fmt.Errorf("encode the message of event %d: %w", row.ID, err)
		}
		messages[i] = Message{
			ID: envelope.MessageID, Exchange: message.ExchangeEvents, RoutingKey: message.KeyEventCreated,
			Type: message.TypeEventCreated, Body: body,
		}
	}
	if _, err := Send(ctx, tx, relay, messages); err != nil {
		return fmt.Errorf("tell of %d %s events: %w", len(alerts), AlertTrigger, err)
	}
	return nil
}
