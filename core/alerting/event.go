package alerting

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

type details struct {
	Rule   string    `json:"rule"`
	Target string    `json:"target"`
	Value  float64   `json:"value"`
	Since  time.Time `json:"since"`
}

// announce emits an event for each alert that fires, in the same transaction, if the trigger exists.
func (l *Loop) announce(ctx context.Context, tx *store.Tx, fired []store.RaiseAlertsRow) error {
	alerts := make([]outbox.Alert, len(fired))
	for i, alert := range fired {
		alerts[i] = eventOf(alert)
	}
	return outbox.EmitAlerts(ctx, tx, nil, alerts)
}

func eventOf(alert store.RaiseAlertsRow) outbox.Alert {
	e := outbox.Alert{
		Severity: alert.Severity, Category: "health", FailureType: alert.Rule, ComponentType: "executor",
		ObservedAt: time.Now().UTC(), Summary: alert.Summary,
		Details:       details{Rule: alert.Rule, Target: alert.Target, Value: alert.Value, Since: alert.Since.UTC()},
		CorrelationID: new(fmt.Sprintf("alert:%s:%s", alert.Rule, alert.Target)),
	}
	if alert.Target != "" {
		e.ComponentRef = &alert.Target
	}
	if strings.HasPrefix(alert.Rule, "worker") {
		e.ComponentType = "worker"
		if id, err := strconv.ParseInt(alert.Target, 10, 64); err == nil {
			e.ComponentID = &id
		}
	}
	return e
}
