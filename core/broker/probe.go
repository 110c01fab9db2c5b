package broker

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/message"
)

// TypeProbe is the message type of a probe. Whoever consumes dead letters
// drops probes.
const TypeProbe = "attune.probe"

// RouteProbe is what a probe of one dead-letter route found.
type RouteProbe struct {
	Key string
	// Routed is true if a dead letter with this key reaches a queue, and false
	// if it would be lost or if Err says that nothing was found out.
	Routed bool
	// Err is why the probe found out nothing; nil if it did.
	Err error
}

// ProbeDeadLetters finds out whether dead letters with these routing keys
// would be kept, by publishing a probe with each through the dead-letter
// exchange. The probes that are routed end in the dead-letter queue.
func (b *Broker) ProbeDeadLetters(ctx context.Context, keys []string) []RouteProbe {
	messages := make([]Message, len(keys))
	for i, key := range keys {
		messages[i] = Message{
			ID: uuid.NewString(), Exchange: message.ExchangeDeadLetter, RoutingKey: key,
			Type: TypeProbe, Body: []byte(`{"message_type":"` + TypeProbe + `"}`),
		}
	}
	probes := make([]RouteProbe, len(keys))
	for i, outcome := range b.publisher.Publish(ctx, messages) {
		probes[i] = RouteProbe{Key: keys[i], Routed: outcome.Status == Confirmed}
		if outcome.Status != Confirmed && outcome.Status != Returned {
			probes[i].Err = fmt.Errorf("probe the dead-letter route %s: %w", keys[i], outcome.Err)
		}
	}
	return probes
}
