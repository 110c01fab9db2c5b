package monitor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/phrase"
)

// The checks of the wiring.
const (
	checkExchange = "topology.dlx"
	checkRoute    = "topology.route"
	checkTTL      = "topology.ttl"
	// CheckDeadLetterQueue checks that dead letters have a queue with a consumer.
	CheckDeadLetterQueue = "topology.dlq"
	checkOrphans         = "topology.orphans"
	checkKind            = "topology.type"
	checkDelivery        = "topology.delivery"
	checkOverflow        = "topology.overflow"
)

// brokerChecks are the checks of CheckTopology.
var brokerChecks = []string{
	checkExchange, CheckDeadLetterQueue, checkOrphans, checkTTL, checkKind, checkDelivery, checkOverflow,
}

// wiring is a broker's wiring with Attune's queues and their settings in force.
type wiring struct {
	*broker.Wiring
	ours []ourQueue
}

type ourQueue struct {
	*broker.QueueInfo
	broker.QueueSettings
}

// CheckTopology checks the wiring of a broker: that expired, rejected and overflowing messages are
// kept, and that queues have an owner. It checks only Attune's queues, because others may share the
// virtual host. workers are the registered ids, nil if unknown. It is a pure function. Whether dead
// letters arrive is known by the probes of the engine only.
func CheckTopology(w *broker.Wiring, workers []int64) []Check {
	look := wiring{Wiring: w}
	for i := range w.Queues {
		if q := &w.Queues[i]; look.isOurs(q) {
			look.ours = append(look.ours, ourQueue{q, q.Settings()})
		}
	}
	return append([]Check{look.exchanges(), look.deadLetters(), look.orphans(workers)}, look.settings()...)
}

// unkept reports whether the broker deletes messages that leave the queue by themselves.
func (q ourQueue) unkept() bool {
	return q.DeadLetterExchange == nil && q.Name != message.QueueDeadLetter
}

// isOurs reports whether a queue belongs to Attune, by name or by binding. Exclusive queues of
// clients do not.
func (w *wiring) isOurs(q *broker.QueueInfo) bool {
	if q.Exclusive {
		return false
	}
	if _, ok := message.WorkerOfQueue(q.Name); ok || strings.HasPrefix(q.Name, "attune.") {
		return true
	}
	return slices.ContainsFunc(w.Bindings, func(b broker.Binding) bool {
		return b.Queue == q.Name && (b.Source == message.ExchangeExecutions || b.Source == message.ExchangeEvents)
	})
}

// exchanges: every dead-letter exchange that a queue names exists.
func (w *wiring) exchanges() Check {
	missing := map[string][]string{}
	if _, ok := w.Exchanges[message.ExchangeDeadLetter]; !ok {
		missing[message.ExchangeDeadLetter] = nil
	}
	for _, q := range w.ours {
		if name := q.DeadLetterExchange; name != nil && *name != "" {
			if _, ok := w.Exchanges[*name]; !ok {
				missing[*name] = append(missing[*name], q.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		queues := missing[name]
		return Check{
			Name: checkExchange, Status: CheckProblem, Objects: queues, View: "broker",
			Text: "dead-letter exchange " + name + " does not exist: the broker deletes " +
				someOf(queues, "expired and rejected messages"),
			Fix: "restart a replica, which declares " + message.ExchangeDeadLetter + ", or declare " + name +
				" as a durable direct exchange",
		}
	}
	kind := w.Exchanges[message.ExchangeDeadLetter].Kind
	if kind != "direct" {
		return Check{
			Name: checkExchange, Status: CheckWarning, Objects: []string{message.ExchangeDeadLetter}, View: "broker",
			Text: message.ExchangeDeadLetter + " is of type " + kind +
				"; Attune declares it as direct, which the broker refuses",
			Fix: "delete it while no dead letter arrives, and restart a replica, which declares it anew",
		}
	}
	return Check{Name: checkExchange, Status: CheckOK, Text: message.ExchangeDeadLetter + " exists, type " + kind}
}

// someOf names the queues of a statement.
func someOf(queues []string, what string) string {
	switch len(queues) {
	case 0:
		return what
	case 1:
		return what + " in " + queues[0]
	default:
		return what + " in " + strconv.Itoa(len(queues)) + " queues"
	}
}

// expiresEarly reports whether a policy sets a time to live that is not declared, or a shorter one.
func (q ourQueue) expiresEarly() bool {
	if q.TTL == nil || q.Policy == "" && q.OperatorPolicy == "" {
		return false
	}
	declared, ok := q.Arguments["x-message-ttl"].(float64)
	return !ok || time.Duration(declared)*time.Millisecond > *q.TTL
}

// deadLetters: dead letters have a queue with a consumer.
func (w *wiring) deadLetters() Check {
	at := slices.IndexFunc(w.ours, func(q ourQueue) bool { return q.Name == message.QueueDeadLetter })
	if at < 0 {
		return Check{
			Name: CheckDeadLetterQueue, Status: CheckProblem, View: "dlq",
			Text: message.QueueDeadLetter + " does not exist: dead letters are lost",
			Fix:  "restart a replica, which declares and binds it",
		}
	}
	q := w.ours[at]
	c := Check{Name: CheckDeadLetterQueue, Objects: []string{q.Name}, View: "dlq"}
	switch {
	case q.Type == "stream":
		c.Status, c.Text = CheckProblem, q.Name+" is a stream, from which the handler cannot consume"
		c.Fix = "delete it and restart a replica, which declares it anew"
	case q.Consumers == nil:
		c.Status, c.Text = CheckUnknown, "the broker has not counted the consumers of "+q.Name+" yet"
	case *q.Consumers == 0:
		c.Status, c.Text = CheckProblem, q.Name+
			" has no consumer: dead letters accumulate undecided"
		c.Fix = "start a replica (attune-executor serve) with message_queue.rabbitmq.dead_letter.enabled: true"
	case q.TTL != nil || q.MaxLength != nil || q.MaxBytes != nil:
		c.Status, c.Text = CheckWarning, q.Name+
			" has a time to live or a length: the broker deletes unconsumed dead letters"
		c.Fix = "remove the setting: handled dead letters are in the ledger, only waiting ones in the queue"
	default:
		c.Status, c.Text = CheckOK, q.Name+": "+phrase.Plural(*q.Consumers, "consumer", "consumers")+
			", no time to live, no length"
	}
	return c
}

// orphans: every worker queue belongs to a registered worker.
func (w *wiring) orphans(workers []int64) Check {
	if workers == nil {
		return Check{Name: checkOrphans, Status: CheckUnknown, Text: "which workers have a row is not known"}
	}
	var names []string
	waiting := 0
	for _, q := range w.ours {
		if id, ok := message.WorkerOfQueue(q.Name); ok && !slices.Contains(workers, id) {
			names = append(names, q.Name)
			if q.Ready != nil {
				waiting += *q.Ready
			}
		}
	}
	switch {
	case len(names) == 0:
		return Check{Name: checkOrphans, Status: CheckOK, Text: "every worker's queue has a worker with a row"}
	case waiting == 0:
		return Check{
			Name: checkOrphans, Status: CheckWarning, Objects: names, View: "broker", Filter: "orphan",
			Text: countOf(names, "queue") + " of workers without a row, nothing in them",
			Fix:  "delete them; a worker that comes back declares its own",
		}
	default:
		return Check{
			Name: checkOrphans, Status: CheckProblem, Objects: names, View: "broker", Filter: "orphan",
			Text: countOf(names, "queue") + " of workers without a row, with " +
				phrase.Plural(waiting, "message", "messages") + " and no consumer",
			Fix: "leave dispatches to their time to live, which brings them back through the dead letters; then delete the queues",
		}
	}
}

// limitsByDefault reports whether quorum queues have a delivery limit by default, as from version 4
// on.
func limitsByDefault(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 4
}

// settings are the checks of the settings in force: of each check the first fault that a queue has.
func (w *wiring) settings() []Check {
	const (
		keepBy    = "a policy with dead-letter-exchange " + message.ExchangeDeadLetter + " for "
		notPolicy = " out of the policy of "
		otherwise = ", or limit its pattern to other queues"
		anew      = "delete it while it is empty, and restart the program that declares it: "
	)
	list := []Check{
		{Name: checkTTL, Text: "no queue deletes what expires"},
		{Name: checkKind, Text: "every queue is durable, and none is a stream"},
		{Name: checkDelivery, Text: "no delivery limit deletes anything"},
		{Name: checkOverflow, Text: "no full queue deletes anything"},
	}
	for _, fault := range []struct {
		name, what, text string
		fix, after       string // with the first queue in between
		of               func(q ourQueue) bool
	}{
		{
			checkTTL, "queue", "with a time to live and no dead-letter exchange: the broker deletes expired messages",
			keepBy, " and its like", func(q ourQueue) bool { return q.TTL != nil && q.unkept() },
		},
		{
			checkTTL, "queue", "with expires: the broker deletes an unused queue with its messages",
			"take expires" + notPolicy, otherwise, func(q ourQueue) bool { return q.Expires != nil },
		},
		{
			checkTTL, "queue", "with a time to live by a policy: messages become dead letters before they are handled",
			"take message-ttl" + notPolicy, otherwise, ourQueue.expiresEarly,
		},
		{
			checkKind, "queue", "of type stream: consumed messages stay, and none is dead-lettered",
			anew, "", func(q ourQueue) bool { return q.Type == "stream" },
		},
		{
			checkKind, "queue", "not durable: gone with its messages when the broker restarts",
			anew, "", func(q ourQueue) bool { return !q.Durable },
		},
		{
			checkDelivery, "quorum queue",
			"with a delivery limit and no dead-letter exchange: the broker deletes messages returned too often",
			keepBy, "", func(q ourQueue) bool {
				limited := q.DeliveryLimit != nil && *q.DeliveryLimit >= 0 ||
					q.DeliveryLimit == nil && limitsByDefault(w.Version)
				return q.Type == "quorum" && limited && q.unkept()
			},
		},
		{
			checkOverflow, "queue",
			"with a length: when full, the broker deletes the oldest messages and still confirms new ones",
			"overflow reject-publish, or no length, for ", "", func(q ourQueue) bool {
				return (q.MaxLength != nil || q.MaxBytes != nil) && !strings.HasPrefix(q.Overflow, "reject-publish") &&
					(q.DeadLetterExchange == nil || q.Name == message.QueueDeadLetter)
			},
		},
	} {
		var names []string
		for _, q := range w.ours {
			if fault.of(q) {
				names = append(names, q.Name)
			}
		}
		at := slices.IndexFunc(list, func(c Check) bool { return c.Name == fault.name })
		if len(names) > 0 && list[at].Status == "" {
			list[at] = Check{
				Name: fault.name, Status: CheckProblem, Objects: names, View: "broker",
				Text: countOf(names, fault.what) + " " + fault.text, Fix: fault.fix + names[0] + fault.after,
			}
		}
	}
	for i := range list {
		list[i].Status = cmp.Or(list[i].Status, CheckOK)
	}
	return list
}

// routesValid is how long a probe of the routes says something about now. A replica probes each minute.
const routesValid = 5 * time.Minute

// Routes is the newest probe of the routes of dead letters by any replica, and its age; nil if there is none.
func (r *Replicas) Routes() (newest *broker.RouteReport, age time.Duration) {
	if r == nil {
		return nil, 0
	}
	for i := range r.List {
		one := &r.List[i]
		if one.Details.Routes == nil {
			continue
		}
		if at := one.Details.Clock.Sub(one.Details.Routes.At) + one.Age; newest == nil || at < age {
			newest, age = one.Details.Routes, max(at, 0)
		}
	}
	return newest, age
}

// checkRoutes: dead letters reach a queue, by the probes of the replicas.
func checkRoutes(replicas *Replicas) Check {
	c := Check{Name: checkRoute, Status: CheckUnknown, View: "broker"}
	newest, age := replicas.Routes()
	switch {
	case newest == nil:
		c.Text, c.Fix = "no replica has probed the routes of dead letters", "`attune-executor doctor` probes them"
		return c
	case len(newest.Lost) > 0:
		c.Status, c.Objects = CheckProblem, queuesOf(newest.Lost)
		c.Text = phrase.Plural(len(newest.Lost), "route", "routes") + " of dead letters lead to no queue: key " +
			newest.Lost[0]
		if len(c.Objects) > 0 {
			c.Text += "; lost are the dead letters of " + strings.Join(c.Objects, ", ")
		}
		c.Fix = "restart a replica, which binds every key; or bind " + message.QueueDeadLetter + " to " +
			message.ExchangeDeadLetter + " with each key"
	case newest.Unknown > 0:
		c.Text = phrase.Plural(newest.Unknown, "route", "routes") + " of dead letters could not be probed"
	case age > routesValid:
		c.Text = fmt.Sprintf("all %d routes of dead letters were last seen to lead to a queue", newest.Routed)
	default:
		c.Status, c.Text = CheckOK, fmt.Sprintf("all %d routes of dead letters lead to a queue", newest.Routed)
	}
	c.Text += ", probed " + phrase.Span(age) + " ago"
	return c
}

// queuesOf are the queues whose messages die with the keys.
func queuesOf(keys []string) (queues []string) {
	for _, key := range keys {
		bindings := broker.ExecutorTopology(false).Bindings
		if id, ok := message.WorkerOfKey(key); ok {
			bindings = broker.WorkerTopology(id, 0, false).Bindings
		}
		for _, b := range bindings {
			enforcement := b.RoutingKey == message.PatternEnforcement && key == message.KeyEnforcementCreated
			if b.RoutingKey == key || enforcement {
				queues = append(queues, b.Queue)
			}
		}
	}
	slices.Sort(queues)
	return slices.Compact(queues)
}

// countOf counts the names, or is the only one.
func countOf(names []string, what string) string {
	if len(names) == 1 {
		return what + " " + names[0]
	}
	return strconv.Itoa(len(names)) + " " + what + "s"
}
