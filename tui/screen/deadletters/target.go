package deadletters

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// The route of execution requests.
const (
	requestExchange = "attune.executions"
	requestKey      = "execution.requested"
	requestQueue    = "attune.execution.requests.queue"
)

// Target is where a requeue would publish a message; false if it would publish none.
func (m *Detail) Target() (exchange, key string, ok bool) {
	r := m.current()
	switch {
	case r == nil || r.verdict.class != requeue && r.verdict.class != again:
		return "", "", false
	case r.Verdict.Requeue == monitor.RequeueSends:
		return r.Exchange, r.RoutingKey, true
	default:
		return requestExchange, requestKey, true
	}
}

// route is the last reading of a route, or nil.
func (m *Detail) route(exchange, key string) *monitor.Route {
	if at := m.env.Data.Route; at != nil && at.Exchange == exchange && at.Key == key {
		return at
	}
	return nil
}

// targetLines check where a requeue would publish. The plan asks the broker again.
func (m *Detail) targetLines(r *row, c *content) []string {
	e, b := m.env, m.env.Data.Broker
	lines := []string{e.Dim("TARGET CHECK") + e.Mark(screen.FeedBroker)}
	if b == nil {
		return append(lines, "unknown: the broker was not read")
	}
	check := func(ok bool, text string) {
		sign := e.Paint(theme.Good, "✓ ")
		if !ok {
			sign = e.Paint(theme.Warn, "▲ ")
		}
		lines = append(lines, sign+widget.Clean(text))
	}
	checkQueue := func(name, note string) {
		if q, ok := b.Queue(name); ok {
			check(q.Consumers > 0, name+" has "+e.Consumers(&q)+note)
		} else {
			check(false, "there is no queue "+name+note)
		}
	}
	if exchange, key, ok := m.Target(); ok {
		m.checkRoute(exchange, key, check, checkQueue)
	} else if r.Execution != nil {
		checkQueue(requestQueue, "")
	}
	if len(c.deaths) > 0 && c.deaths[0].Queue != "" && r.Execution != nil {
		checkQueue(c.deaths[0].Queue, " (not used: a worker is chosen)")
	}
	switch {
	case b.AlarmsUnknown != "":
		check(false, "alarms are unknown: "+b.AlarmsUnknown)
	case len(b.Alarms) > 0:
		check(false, "alarm: "+b.Alarms[0])
	default:
		check(true, "no memory or disk alarm")
	}
	return lines
}

// checkRoute checks that the exchange exists, that the key leads to a queue, and that it has consumers.
func (m *Detail) checkRoute(exchange, key string, check func(ok bool, text string), queue func(name, note string)) {
	name := "exchange " + exchange
	if exchange == "" {
		name = "the default exchange"
	}
	at, err := m.route(exchange, key), m.env.Data.Fresh(screen.FeedRoute).Err
	switch {
	case at == nil && err != nil:
		check(false, "where "+key+" leads is unknown: "+err.Error())
		return
	case at == nil:
		check(false, "reading where "+key+" leads …")
		return
	case !at.Exists:
		check(false, name+" does not exist")
		return
	}
	check(true, name+" exists"+m.env.Mark(screen.FeedRoute))
	switch n := len(at.Queues); {
	case at.Unsure:
		check(false, "no queue is bound with "+key+"; whether a pattern leads to one, only the broker knows")
	case at.Lost:
		check(false, key+" routes to no queue")
	case n == 1:
		check(true, key+" routes to 1 queue")
	default:
		check(true, key+" routes to "+strconv.Itoa(n)+" queues")
	}
	for _, one := range at.Queues[:min(len(at.Queues), 3)] {
		queue(one, "")
	}
}
