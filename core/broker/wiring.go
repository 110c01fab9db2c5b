package broker

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Route is an existing binding from an exchange to a queue or to another exchange.
type Route struct {
	Source      string
	Destination string
	ToExchange  bool
	Key         string
}

// Wiring is the graph of the exchanges and queues of a virtual host.
type Wiring struct {
	// Version is the broker's; empty if unknown.
	Version   string
	Exchanges map[string]ExchangeInfo
	Queues    []QueueInfo
	Routes    []Route
	// Policies are those of the virtual host. PoliciesUnknown says why they could not be read,
	// which needs more rights than the rest.
	Policies        []Policy
	PoliciesUnknown string
}

// Wiring reads the graph of the virtual host. Policies that the login may not read do not fail the
// rest.
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
	if w.Routes, err = m.routes(ctx); err != nil {
		return nil, err
	}
	if w.Policies, err = m.Policies(ctx); err != nil {
		w.PoliciesUnknown = err.Error()
	}
	if overview, err := m.Overview(ctx); err == nil { // otherwise the version stays unknown
		w.Version = overview.RabbitMQVersion
	}
	return w, nil
}

// routes lists every binding of the virtual host except the implicit ones.
func (m *Management) routes(ctx context.Context) ([]Route, error) {
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
	routes := make([]Route, 0, len(found))
	for _, b := range found {
		if b.Source != "" {
			routes = append(routes, Route{b.Source, b.Destination, b.Kind == "exchange", b.RoutingKey})
		}
	}
	return routes, nil
}

// Bindings lists every route from an exchange to a queue in the virtual host.
func (m *Management) Bindings(ctx context.Context) ([]Binding, error) {
	routes, err := m.routes(ctx)
	if err != nil {
		return nil, err
	}
	bindings := make([]Binding, 0, len(routes))
	for _, r := range routes {
		if !r.ToExchange {
			bindings = append(bindings, Binding{Source: r.Source, Queue: r.Destination, RoutingKey: r.Key})
		}
	}
	return bindings, nil
}

// Reach says whether a message reaches a queue.
type Reach int

// The results of Reaches.
const (
	Lost Reach = iota
	// Unsure means that the path contains an object that Reaches cannot evaluate: an exchange of a
	// plug-in, headers, or an unreadable policy.
	Unsure
	Kept
)

// Reaches follows a routing key from an exchange through bindings, other exchanges and alternate
// exchanges. The empty exchange leads to the queue of that name.
func (w *Wiring) Reaches(exchange, key string) Reach {
	return w.follow(exchange, key, map[string]bool{})
}

// ReachesAny is Reaches for an arbitrary key.
func (w *Wiring) ReachesAny(exchange string) Reach {
	return w.Reaches(exchange, "\x00no key that anybody binds")
}

// Leads lists the queues that a key reaches by bindings that can be evaluated, also through other
// exchanges, but not through alternate ones.
func (w *Wiring) Leads(exchange, key string) []string {
	found := map[string]bool{}
	w.lead(exchange, key, map[string]bool{}, found)
	return slices.Sorted(maps.Keys(found))
}

func (w *Wiring) lead(exchange, key string, been, found map[string]bool) {
	if exchange == "" {
		found[key] = w.Reaches("", key) == Kept
		if !found[key] {
			delete(found, key)
		}
		return
	}
	if been[exchange] {
		return
	}
	been[exchange] = true
	for _, r := range w.Routes {
		switch {
		case r.Source != exchange || matches(w.Exchanges[exchange].Kind, r.Key, key) != Kept:
		case r.ToExchange:
			w.lead(r.Destination, key, been, found)
		default:
			found[r.Destination] = true
		}
	}
}

func (w *Wiring) follow(exchange, key string, been map[string]bool) Reach {
	if exchange == "" {
		for i := range w.Queues {
			if w.Queues[i].Name == key {
				return Kept
			}
		}
		return Lost
	}
	e, ok := w.Exchanges[exchange]
	if !ok || been[exchange] {
		return Lost
	}
	been[exchange] = true
	best := Lost
	for _, r := range w.Routes {
		if r.Source != exchange {
			continue
		}
		match := matches(e.Kind, r.Key, key)
		if match != Lost && r.ToExchange {
			match = min(match, w.follow(r.Destination, key, been))
		}
		best = max(best, match)
	}
	if best == Kept {
		return Kept
	}
	alternate, known := w.alternate(e)
	switch {
	case !known:
		return Unsure
	case alternate != "":
		return max(best, w.follow(alternate, key, been))
	default:
		return best
	}
}

// alternate is the exchange that receives unmatched messages; known is false while an unreadable
// policy governs the exchange.
func (w *Wiring) alternate(e ExchangeInfo) (name string, known bool) {
	if name, ok := e.Arguments["alternate-exchange"].(string); ok {
		return name, true
	}
	if e.Policy == "" {
		return "", true
	}
	if w.PoliciesUnknown != "" {
		return "", false
	}
	for _, p := range w.Policies {
		if p.Name == e.Policy {
			name, _ := p.Definition["alternate-exchange"].(string)
			return name, true
		}
	}
	return "", true
}

// matches reports whether a binding of such an exchange matches the key.
func matches(kind, binding, key string) Reach {
	var taken bool
	switch kind {
	case "fanout":
		taken = true
	case "direct":
		taken = binding == key
	case "topic":
		taken = MatchesTopic(binding, key)
	default:
		return Unsure
	}
	if taken {
		return Kept
	}
	return Lost
}

// MatchesTopic reports whether the pattern of a topic binding matches a routing key: a star stands
// for one word, a hash for any number of words.
func MatchesTopic(pattern, key string) bool {
	return matchWords(strings.Split(pattern, "."), strings.Split(key, "."))
}

func matchWords(pattern, words []string) bool {
	if len(pattern) == 0 {
		return len(words) == 0
	}
	if pattern[0] == "#" {
		for skip := range len(words) + 1 {
			if matchWords(pattern[1:], words[skip:]) {
				return true
			}
		}
		return false
	}
	return len(words) > 0 && (pattern[0] == "*" || pattern[0] == words[0]) && matchWords(pattern[1:], words[1:])
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
