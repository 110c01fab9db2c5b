package broker

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Death is one entry of a dead letter's history: the cause and count of its deaths in a queue.
type Death struct {
	Queue       string
	Exchange    string
	Reason      string // expired, rejected, maxlen or delivery_limit
	RoutingKeys []string
	Count       int64
	// At is the first death for this queue and reason, in whole seconds.
	At time.Time
	// Expiration is the message's own time to live, which the broker removes.
	Expiration string
}

// Deaths reads a dead letter's history, the latest queue and reason first. Every field is optional,
// and malformed ones are skipped: the header can be forged.
func Deaths(headers Table) []Death {
	entries, _ := headers["x-death"].([]any)
	var deaths []Death
	for _, entry := range entries {
		fields, ok := entry.(amqp.Table)
		if !ok {
			continue
		}
		death := Death{}
		death.Queue, _ = fields["queue"].(string)
		death.Exchange, _ = fields["exchange"].(string)
		death.Reason, _ = fields["reason"].(string)
		death.Count, _ = fields["count"].(int64)
		death.At, _ = fields["time"].(time.Time)
		death.Expiration, _ = fields["original-expiration"].(string)
		keys, _ := fields["routing-keys"].([]any)
		for _, key := range keys {
			if text, ok := key.(string); ok {
				death.RoutingKeys = append(death.RoutingKeys, text)
			}
		}
		deaths = append(deaths, death)
	}
	return deaths
}
