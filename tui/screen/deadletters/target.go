package deadletters

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// Where requests for executions are sent, and where they wait for a scheduler.
const (
	requestExchange = "attune.executions"
	requestKey      = "execution.requested"
	requestQueue    = "attune.execution.requests.queue"
)

// Target is where a requeue of the letter in sight sends a message to; false where it
// would send none.
func (m *Message) Target() (exchange, key string, ok bool) {
	r := m.current()
	switch {
	case r == nil || r.verdict.class != requeue:
		return "", "", false
	case r.Verdict.Requeue == monitor.RequeueSends:
		return r.Exchange, r.RoutingKey, true
	default:
		return requestExchange, requestKey, true
	}
}

// route is what the broker has said of a target, or nil.
func (m *Message) route(exchange, key string) *monitor.Route {
	if at := m.env.Data.Route; at != nil && at.Exchange == exchange && at.Key == key {
		return at
	}
	return nil
}

// routeLines say whether the target of a requeue exists, where its key leads and who
// takes from there.
func (m *Message) routeLines(r *row, check func(ok bool, text string), queue func(name, note string)) {
	exchange, key, ok := m.Target()
	if !ok {
		if r.Execution != nil {
			queue(requestQueue, "")
		}
		return
	}
	name := "exchange " + exchange
	if exchange == "" {
		name = "the default exchange"
	}
	at := m.route(exchange, key)
	switch {
	case at == nil && m.env.Data.Fresh(screen.FeedRoute).Err != nil:
		check(false, "where "+key+" leads is unknown: "+m.env.Data.Fresh(screen.FeedRoute).Err.Error())
		return
	case at == nil:
		check(false, "asking where "+key+" leads …")
		return
	case !at.Exists:
		check(false, name+" does not exist")
		return
	}
	check(true, name+" exists"+m.env.Mark(screen.FeedRoute))
	routes := key + " routes to " + strconv.Itoa(len(at.Queues)) + " queues"
	if len(at.Queues) == 1 {
		routes = key + " routes to 1 queue"
	}
	switch {
	case at.Unsure && len(at.Queues) == 0:
		check(false, "whether "+key+" routes to a queue cannot be seen")
	case at.Lost:
		check(false, key+" routes to no queue")
	default:
		check(true, routes)
	}
	for _, one := range at.Queues[:min(len(at.Queues), 3)] {
		queue(one, "")
	}
}
