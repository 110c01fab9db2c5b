package monitor

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

const (
	// routeTimeout bounds the reading of routes: without them the rest of a verdict is of use.
	routeTimeout = 3 * time.Second
	// wiringTTL is how long verdicts use a reading of the wiring: the feeds of one poll share it.
	wiringTTL = time.Second
)

// lastWiring is the last reading of the broker's wiring for verdicts.
type lastWiring struct {
	at  time.Time
	of  *broker.Wiring
	err error
}

// readWiring reads the wiring unless it was read a moment ago. Concurrent calls share one reading.
func (m *Monitor) readWiring(ctx context.Context) (*broker.Wiring, error) {
	m.wiringMu.Lock()
	defer m.wiringMu.Unlock()
	if time.Since(m.wiring.at) < wiringTTL {
		return m.wiring.of, m.wiring.err
	}
	bounded, cancel := context.WithTimeout(ctx, routeTimeout)
	defer cancel()
	var read lastWiring
	_, read.err = m.askBroker(func(b BrokerReader) (err error) {
		read.of, err = b.ReadWiring(bounded)
		return err
	})
	if ctx.Err() == nil || read.err == nil { // a caller that went away says nothing about the broker
		read.at = time.Now()
		m.wiring = read
	}
	return read.of, read.err
}

// sends reports whether a requeue would send the message, so that the verdict depends on the broker.
func sends(e LedgerEntry) bool { return e.Verdict.Requeue == RequeueSends && e.Verdict.Possible() }

// routesUnknown says of verdicts that depend on the broker that it did not answer.
func routesUnknown(list []LedgerEntry, err error) {
	for i := range list {
		if sends(list[i]) {
			list[i].Verdict.Unknown = broker.Trouble(err).Fact
		}
	}
}

// assessRoutes advises against a requeue of messages that the broker would refuse, whose queue is gone, or that no
// consumer would take. It reads the broker once, and only if a message would be sent.
func (m *Monitor) assessRoutes(ctx context.Context, list []LedgerEntry) {
	if !slices.ContainsFunc(list, sends) {
		return
	}
	wiring, err := m.readWiring(ctx)
	if err != nil {
		routesUnknown(list, err)
		return
	}
	consumers := make(map[string]*int, len(wiring.Queues))
	for _, q := range wiring.Queues {
		consumers[q.Name] = q.Consumers
	}
	routes := map[[2]string]*Route{}
	for i := range list {
		e := &list[i]
		if !sends(*e) {
			continue
		}
		to := [2]string{e.Exchange, e.RoutingKey}
		if routes[to] == nil {
			routes[to] = &Route{Exchange: e.Exchange, Key: e.RoutingKey}
			routes[to].follow(wiring)
		}
		assessRoute(e, routes[to], consumers)
	}
}

// assessRoute completes a verdict with the route of the message and the consumers of the broker's queues.
func assessRoute(e *LedgerEntry, route *Route, consumers map[string]*int) {
	v := &e.Verdict
	problem := func(advice, problem, why string) {
		v.Advice, v.Why = advice, v.Why+"; "+why
		v.Problem = strings.TrimSuffix(problem+" · "+v.Problem, " · ")
	}
	_, exists := consumers[e.Queue]
	gone := e.Queue != "" && !exists && !engineConsumes(e.Queue)
	refused := route.Refuses()
	switch {
	case refused != "":
		short := "no route to a queue"
		switch {
		case !route.Exists:
			short = "exchange " + route.Exchange + " is gone"
		case gone:
			short, refused = e.Queue+" is gone", e.Queue+" is gone and "+refused
		}
		problem(AdviseSend, short, refused+", so the broker refuses it, and half a minute later it is a dead letter again")
	case gone:
		problem(AdviseFix, e.Queue+" is gone", e.Queue+", where it died, is gone")
	default:
		reached := route.Queues
		if e.Queue != "" {
			reached = []string{e.Queue}
		}
		if queues := unconsumed(reached, consumers); queues != "" {
			problem(AdviseFix, "no consumer", queues+" has no consumer, so it stays there or dies again")
		}
	}
}

// unconsumed names the queues of a message if nothing consumes them; empty otherwise, or if that is unknown. A running
// engine consumes its own.
func unconsumed(reached []string, consumers map[string]*int) string {
	for _, name := range reached {
		if n := consumers[name]; n == nil || *n > 0 || engineConsumes(name) {
			return ""
		}
	}
	return strings.Join(reached, ", ")
}

// engineConsumes reports whether engines declare and consume the queue, or a worker reads it at its start.
func engineConsumes(queue string) bool {
	q := BrokerQueue{Name: queue}
	return queue == DeadLetterQueue || slices.Contains(message.EngineQueues(), queue) || q.Notices()
}
