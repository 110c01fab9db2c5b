package rule

import (
	"fmt"
	"time"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/secret"
)

// Event is an event as rules see it.
type Event struct {
	ID         int64
	TriggerRef string
	Payload    any // a value of package expr; nil without one
	Created    time.Time
}

// NewEvent makes an event of a stored row. A marker of a secret in its payload counts as plain data, because any client
// may have sent it. It fails if the payload is not JSON.
func NewEvent(id int64, triggerRef string, payload []byte, created time.Time) (Event, error) {
	event := Event{ID: id, TriggerRef: triggerRef, Created: created}
	if len(payload) == 0 {
		return event, nil
	}
	var err error
	if event.Payload, err = expr.FromJSON(payload); err != nil {
		return event, fmt.Errorf("payload of event %d: %w", id, err)
	}
	if secret.Has(payload) {
		event.Payload = secret.Defuse(event.Payload)
	}
	return event, nil
}

// names is the variable event of expressions and templates.
func (e Event) names(triggerRef bool) map[string]any {
	names := map[string]any{"id": e.ID, "trigger": e.TriggerRef, "payload": e.Payload, "created": timestamp(e.Created)}
	if triggerRef {
		names["trigger_ref"] = e.TriggerRef
	}
	return names
}

// timestamp formats a time as existing rules see it: with +00:00, and no, three or six digits after
// the second.
func timestamp(at time.Time) string {
	layout := "2006-01-02T15:04:05-07:00"
	switch at = at.UTC().Truncate(time.Microsecond); {
	case at.Nanosecond() == 0:
	case at.Nanosecond()%int(time.Millisecond) == 0:
		layout = "2006-01-02T15:04:05.000-07:00"
	default:
		layout = "2006-01-02T15:04:05.000000-07:00"
	}
	return at.Format(layout)
}

// maxShown bounds a value in a reason.
const maxShown = 80

// show is a value in a reason: short, and on one line.
func show(value any) string { return short(expr.JSON(value)) }

func short(text string) string {
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}
