package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
)

// TypeProbe is the message type of a probe. Consumers of dead letters drop probes.
const TypeProbe = "attune.probe"

// RouteProbe is the result of a probe of one dead-letter route.
type RouteProbe struct {
	Key string
	// Routed is true if a dead letter with this key reaches a queue. It is false if the dead letter
	// would be lost, or if Err is set.
	Routed bool
	// Err is why the probe has no result; nil if it has one.
	Err error
}

// RouteReport is the result of a probe of all routes.
type RouteReport struct {
	At     time.Time `json:"at"` // by the clock of the program that probed
	Routed int       `json:"routed"`
	// Lost are the keys whose dead letters reach no queue, Unknown counts the probes without a result.
	Lost    []string `json:"lost,omitempty"`
	Unknown int      `json:"unknown,omitempty"`
}

// ProbeDeadLetters checks whether dead letters with these routing keys would be kept: it publishes
// a probe with each key through the dead-letter exchange. A routed probe vanishes in the
// dead-letter queue, unless the queue has a consumer at that moment or older messages. In the
// latter case it vanishes after those.
func (b *Broker) ProbeDeadLetters(ctx context.Context, keys []string) []RouteProbe {
	messages := make([]Message, len(keys))
	for i, key := range keys {
		messages[i] = Message{
			ID: uuid.NewString(), Exchange: message.ExchangeDeadLetter, RoutingKey: key,
			Type: TypeProbe, Body: []byte(`{"message_type":"` + TypeProbe + `"}`), Fleeting: true,
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

// deathTTL is the time to live of the message in ProbeDeath, and deathTimeout the timeout of its
// arrival.
const (
	deathTTL     = 200 * time.Millisecond
	deathTimeout = 5 * time.Second
)

// ProbeDeath checks whether the broker dead-letters messages: one message that expires and one that
// is rejected in a private queue must arrive in another, through the dead-letter exchange with a
// key of their own. That exchange must be direct, as declared, else they would also arrive
// elsewhere.
func (b *Broker) ProbeDeath(ctx context.Context) error {
	_, err := use(ctx, b.publish, "probe expiry and rejection", func(channel *amqp.Channel) (none struct{}, err error) {
		return none, probeDeath(ctx, channel)
	})
	return err
}

func probeDeath(ctx context.Context, channel *amqp.Channel) error {
	key := TypeProbe + "." + uuid.NewString()
	from, to := key+".dies", key+".arrives"
	if err := channel.ExchangeDeclarePassive(message.ExchangeDeadLetter, amqp.ExchangeDirect, true, false, false, false,
		nil); err != nil {
		return err
	}
	if _, err := channel.QueueDeclare(to, false, true, true, false, nil); err != nil {
		return err
	}
	// exclusive: the connection deletes it at the latest
	defer func() { _, _ = channel.QueueDelete(to, false, false, false) }()
	if err := channel.QueueBind(to, key, message.ExchangeDeadLetter, false, nil); err != nil {
		return err
	}
	arguments := toDeadLetters()
	arguments["x-message-ttl"], arguments["x-dead-letter-routing-key"] = milliseconds(deathTTL), key
	if _, err := channel.QueueDeclare(from, false, true, true, false, arguments); err != nil {
		return err
	}
	defer func() { _, _ = channel.QueueDelete(from, false, false, false) }() // as above
	for range 2 {
		if err := channel.PublishWithContext(ctx, "", from, false, false,
			amqp.Publishing{Type: TypeProbe}); err != nil {
			return err
		}
	}
	for begin := time.Now(); time.Since(begin) < deathTTL; { // an expired message is proof as well
		if one, ok, err := channel.Get(from, false); err != nil {
			return err
		} else if ok {
			if err := one.Nack(false, false); err != nil {
				return err
			}
			break
		}
		supervise.Sleep(ctx, deathTTL/20)
	}
	return awaitDeaths(ctx, channel, to)
}

func awaitDeaths(ctx context.Context, channel *amqp.Channel, queue string) error {
	reasons := map[string]bool{}
	for begin, arrived := time.Now(), 0; arrived < 2; {
		one, ok, err := channel.Get(queue, true)
		switch {
		case err != nil:
			return err
		case ok:
			arrived++
			for _, death := range Deaths(one.Headers) {
				reasons[death.Reason] = true
			}
		case time.Since(begin) > deathTimeout:
			return fmt.Errorf("%w: %d of 2 messages arrived (%v)", ErrDeathLost, arrived,
				slices.Sorted(maps.Keys(reasons)))
		case !supervise.Sleep(ctx, deathTTL/10):
			return context.Cause(ctx)
		}
	}
	return nil
}

// ErrDeathLost reports that messages that died in a queue did not arrive at the dead-letter
// exchange.
var ErrDeathLost = errors.New("expired or rejected messages are lost")
