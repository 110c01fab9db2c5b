package redrive

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/broker"
)

// Check is one thing that was looked at before a run.
type Check struct {
	OK bool `json:"ok"`
	// Warn marks what is no reason to refuse.
	Warn bool   `json:"warn,omitempty"`
	Text string `json:"text"`
}

// Route is where a message leads that is sent to a target.
type Route struct {
	Queues []string `json:"queues"`
	// Ahead and Consumers are what lies in those queues, and who takes from them.
	Ahead     int `json:"ahead"`
	Consumers int `json:"consumers"`
}

// checkTarget asks whether an exchange exists and where a key leads. Without the
// management interface the routes are unknown; what is sent is then still returned
// if no queue takes it.
func (d *Desk) checkTarget(ctx context.Context, errand *broker.Errand, exchange, key string) ([]Check, *Route, error) {
	if exchange == "" {
		ready, consumers, err := errand.Queue(ctx, key)
		if err != nil {
			return []Check{{Text: "there is no queue " + key}}, nil, nil //nolint:nilerr // it is what was asked
		}
		return []Check{{OK: true, Text: fmt.Sprintf("queue %s exists: %d ready", key, ready)}, consumed(key, consumers)},
			&Route{Queues: []string{key}, Ahead: ready, Consumers: consumers}, nil
	}
	exists, err := errand.Exchange(ctx, exchange)
	if err != nil {
		return nil, nil, err
	}
	if !exists {
		return []Check{{Text: fmt.Sprintf("exchange %s does not exist", exchange)}}, nil, nil
	}
	checks := []Check{{OK: true, Text: fmt.Sprintf("exchange %s exists", exchange)}}
	queues, err := d.routes(ctx, exchange, key)
	switch {
	case err != nil:
		return append(checks, Check{Warn: true, Text: "where the key leads is unknown: " + err.Error()}), nil, nil //nolint:nilerr // it is said, and what is sent is returned if nobody takes it
	case len(queues) == 0:
		return append(checks, Check{Text: fmt.Sprintf("%s routes to no queue", key)}), &Route{}, nil
	}
	checks = append(checks, Check{OK: true, Text: fmt.Sprintf("%s routes to %d of the queues", key, len(queues))})
	route := &Route{Queues: queues}
	for i, name := range queues[:min(len(queues), routesAsked)] {
		ready, consumers, err := errand.Queue(ctx, name)
		if err != nil {
			continue // it was deleted since
		}
		route.Ahead, route.Consumers = route.Ahead+ready, route.Consumers+consumers
		if i < routesShown {
			checks = append(checks, consumed(name, consumers))
		}
	}
	return checks, route, nil
}

// routesAsked and routesShown bound the queues of a target that are looked at, and
// those that are named one by one.
const (
	routesAsked = 20
	routesShown = 3
)

func consumed(queue string, consumers int) Check {
	has := fmt.Sprintf("%s has %d consumers", queue, consumers)
	if consumers == 1 {
		has = queue + " has 1 consumer"
	}
	return Check{OK: consumers > 0, Warn: consumers == 0, Text: has}
}

// refused is the first check that forbids a run; empty if none does.
func refused(checks []Check) string {
	for _, c := range checks {
		if !c.OK && !c.Warn {
			return c.Text
		}
	}
	return ""
}

var errNoManagement = fmt.Errorf("there is no management interface")

// routes lists the queues that a key reaches, through exchanges too.
func (d *Desk) routes(ctx context.Context, exchange, key string) ([]string, error) {
	if d.cfg.Management == nil {
		return nil, errNoManagement
	}
	exchanges, err := d.cfg.Management.Exchanges(ctx)
	if err != nil {
		return nil, err
	}
	bindings, err := d.cfg.Management.Bindings(ctx)
	if err != nil {
		return nil, err
	}
	kind := ""
	for _, e := range exchanges {
		if e.Name == exchange {
			kind = e.Kind
		}
	}
	var queues []string
	for _, b := range bindings {
		if b.Source == exchange && reaches(kind, b.RoutingKey, key) {
			queues = append(queues, b.Queue)
		}
	}
	return queues, nil
}

// reaches reports whether a binding takes a key.
func reaches(kind, pattern, key string) bool {
	switch kind {
	case "fanout":
		return true
	case "topic":
		return topic(strings.Split(pattern, "."), strings.Split(key, "."))
	default:
		return pattern == key
	}
}

func topic(pattern, words []string) bool {
	switch {
	case len(pattern) == 0:
		return len(words) == 0
	case pattern[0] == "#":
		return topic(pattern[1:], words) || len(words) > 0 && topic(pattern, words[1:])
	case len(words) == 0:
		return false
	default:
		return (pattern[0] == "*" || pattern[0] == words[0]) && topic(pattern[1:], words[1:])
	}
}

// leadsBack reports whether what dies in the target queue comes back to this one.
func (d *Desk) leadsBack(ctx context.Context, exchange, key string) (bool, error) {
	queues := []string{key}
	var err error
	if exchange != "" {
		if queues, err = d.routes(ctx, exchange, key); err != nil {
			return false, err
		}
	} else if d.cfg.Management == nil {
		return false, errNoManagement
	}
	for _, name := range queues {
		info, err := d.cfg.Management.Queue(ctx, name)
		if err != nil {
			return false, err
		}
		dlx, ok := info.Arguments["x-dead-letter-exchange"].(string)
		if !ok {
			continue
		}
		back := key
		if other, ok := info.Arguments["x-dead-letter-routing-key"].(string); ok {
			back = other
		}
		if dlx == "" && back == d.cfg.Queue {
			return true, nil
		}
		ends, err := d.routes(ctx, dlx, back)
		if err != nil {
			return false, err
		}
		if slices.Contains(ends, d.cfg.Queue) {
			return true, nil
		}
	}
	return false, nil
}
