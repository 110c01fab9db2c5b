package broker

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Wiring lists what a virtual host has, without its policies.
type Wiring struct {
	// Version is the broker's; empty if unknown.
	Version   string
	Exchanges map[string]ExchangeInfo
	Queues    []QueueInfo
	Bindings  []Binding
}

// Wiring reads what the virtual host has.
func (m *Management) Wiring(ctx context.Context) (*Wiring, error) {
	w := &Wiring{Exchanges: map[string]ExchangeInfo{}}
	exchanges, err := m.Exchanges(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range exchanges {
		w.Exchanges[e.Name] = e
	}
	if w.Queues, err = m.Queues(ctx); err != nil {
		return nil, err
	}
	if w.Bindings, err = m.Bindings(ctx); err != nil {
		return nil, err
	}
	if overview, err := m.Overview(ctx); err == nil { // otherwise the version stays unknown
		w.Version = overview.RabbitMQVersion
	}
	return w, nil
}

// Bindings lists every binding of the virtual host except the implicit ones.
func (m *Management) Bindings(ctx context.Context) ([]Binding, error) {
	var found []struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
		Kind        string `json:"destination_type"`
		RoutingKey  string `json:"routing_key"`
	}
	path := "bindings/" + url.PathEscape(m.vhost) + "?columns=source,destination,destination_type,routing_key"
	if err := m.do(ctx, http.MethodGet, path, nil, &found); err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	bindings := make([]Binding, 0, len(found))
	for _, b := range found {
		if b.Kind == "exchange" {
			b.Destination = ""
		}
		if b.Source != "" {
			bindings = append(bindings, Binding{Source: b.Source, Queue: b.Destination, RoutingKey: b.RoutingKey})
		}
	}
	return bindings, nil
}

// QueueSettings are the effective settings of a queue: its own arguments combined with its
// policies. A nil setting is not set.
type QueueSettings struct {
	TTL     *time.Duration
	Expires *time.Duration
	// DeadLetterExchange may be the empty default exchange, which differs from nil.
	DeadLetterExchange *string
	DeadLetterKey      string
	MaxLength          *int64
	MaxBytes           *int64
	Overflow           string
	// DeliveryLimit is negative if the queue explicitly has none.
	DeliveryLimit *int64
}

// Settings computes the effective settings as the broker does: the smaller number wins; for texts
// the queue's own wins.
func (q *QueueInfo) Settings() QueueSettings {
	s := QueueSettings{
		TTL: millis(q.smaller("message-ttl")), Expires: millis(q.smaller("expires")),
		MaxLength: q.smaller("max-length"), MaxBytes: q.smaller("max-length-bytes"), DeliveryLimit: q.deliveryLimit(),
	}
	if name, ok := q.text("dead-letter-exchange"); ok {
		s.DeadLetterExchange = &name
	}
	s.DeadLetterKey, _ = q.text("dead-letter-routing-key")
	s.Overflow, _ = q.text("overflow")
	return s
}

func (q *QueueInfo) text(name string) (string, bool) {
	if text, ok := q.Arguments["x-"+name].(string); ok {
		return text, true
	}
	text, ok := q.InForce[name].(string)
	return text, ok
}

func (q *QueueInfo) smaller(name string) *int64 {
	var least *int64
	for _, value := range []any{q.Arguments["x-"+name], q.InForce[name]} {
		if n := whole(value); n != nil && (least == nil || *n < *least) {
			least = n
		}
	}
	return least
}

// deliveryLimit is the smaller of argument and policy. A negative one means no limit: then the
// other applies.
func (q *QueueInfo) deliveryLimit() *int64 {
	argument, policy := whole(q.Arguments["x-delivery-limit"]), whole(q.InForce["delivery-limit"])
	if argument == nil || policy != nil && (*argument < 0 || *policy >= 0 && *policy < *argument) {
		return policy
	}
	return argument
}

// whole is a JSON number, or nil for anything else.
func whole(value any) *int64 {
	number, ok := value.(float64)
	if !ok {
		return nil
	}
	n := int64(number)
	return &n
}

func millis(n *int64) *time.Duration {
	if n == nil {
		return nil
	}
	d := time.Duration(*n) * time.Millisecond
	return &d
}
