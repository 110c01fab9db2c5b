package broker

import "time"

// QueueSettings are the effective settings of a queue: its own arguments combined with its
// policies. A nil setting is not set.
type QueueSettings struct {
	TTL     *time.Duration `json:"ttl_ns"`
	Expires *time.Duration `json:"expires_ns"`
	// DeadLetterExchange may be the empty default exchange, which differs from nil.
	DeadLetterExchange *string `json:"dead_letter_exchange"`
	DeadLetterKey      string  `json:"dead_letter_key,omitempty"`
	MaxLength          *int64  `json:"max_length"`
	MaxBytes           *int64  `json:"max_bytes"`
	Overflow           string  `json:"overflow,omitempty"`
	// DeliveryLimit is negative if the queue explicitly has none.
	DeliveryLimit *int64 `json:"delivery_limit"`
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
