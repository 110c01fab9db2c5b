package monitor

import (
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
	maxCheckedKeys       = 4
)

var topologyChecks = []string{
	checkExchange, checkRoute, checkTTL, CheckDeadLetterQueue, checkOrphans, checkKind, checkDelivery, checkOverflow,
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
// virtual host. workers are the registered ids, nil if unknown. It is a pure function.
func CheckTopology(w *broker.Wiring, workers []int64) []Check {
	look := wiring{Wiring: w}
	for i := range w.Queues {
		if q := &w.Queues[i]; look.isOurs(q) {
			look.ours = append(look.ours, ourQueue{q, q.Settings()})
		}
	}
	return []Check{
		look.exchanges(), look.routes(), look.expiry(), look.deadLetters(),
		look.orphans(workers), look.kinds(), look.deliveries(), look.overflows(),
	}
}

// those names Attune's queues that satisfy a condition.
func (w *wiring) those(is func(q ourQueue) bool) (names []string) {
	for _, q := range w.ours {
		if is(q) {
			names = append(names, q.Name)
		}
	}
	return names
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
	for _, r := range w.Routes {
		if !r.ToExchange && r.Destination == q.Name &&
			(r.Source == message.ExchangeExecutions || r.Source == message.ExchangeEvents) {
			return true
		}
	}
	return false
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

// routes: every key that a queue can dead-letter with leads to a queue.
func (w *wiring) routes() Check {
	lost, unsure := map[string][]string{}, []string{}
	checked := 0
	for _, q := range w.ours {
		if q.DeadLetterExchange == nil {
			continue
		}
		for _, key := range w.deadKeys(q) {
			checked++
			reach := w.Reaches(*q.DeadLetterExchange, key)
			if key == anyKey {
				reach = w.ReachesAny(*q.DeadLetterExchange)
			}
			switch reach {
			case broker.Lost:
				lost[q.Name] = append(lost[q.Name], key)
			case broker.Unsure:
				unsure = append(unsure, q.Name)
			}
		}
	}
	switch {
	case len(lost) > 0:
		return w.lostRoutes(lost)
	case len(unsure) > 0:
		slices.Sort(unsure)
		unsure = slices.Compact(unsure)
		return Check{
			Name: checkRoute, Status: CheckUnknown, Objects: unsure, View: "broker",
			Text: "whether the dead letters of " + countOf(unsure, "queue") +
				" are kept cannot be seen: headers, a plug-in's exchange, or policies that this login may not read",
			Fix: "give the login of message_queue.management_url the tag monitoring and a right on the virtual host, or ask `attune-executor doctor`, which probes",
		}
	default:
		return Check{
			Name: checkRoute, Status: CheckOK,
			Text: fmt.Sprintf("all %d keys that can be dead-lettered lead to a queue", checked),
		}
	}
}

func (w *wiring) lostRoutes(lost map[string][]string) Check {
	queues := slices.Sorted(maps.Keys(lost))
	first := queues[0]
	text := fmt.Sprintf("dead letters of %s are lost: key %s of %s matches no binding", countOf(queues, "queue"),
		lost[first][0], first)
	all := slices.ContainsFunc(w.Routes,
		func(r broker.Route) bool { return r.Source == message.ExchangeDeadLetter && r.Key == "#" })
	if all && w.Exchanges[message.ExchangeDeadLetter].Kind == "direct" {
		text += `, and "#" at a direct exchange stands for itself only`
	}
	var keys []string
	for _, q := range queues {
		keys = append(keys, lost[q]...)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	shown := strings.Join(keys[:min(len(keys), maxCheckedKeys)], ", ")
	if len(keys) > maxCheckedKeys {
		shown += fmt.Sprintf(" and %d more", len(keys)-maxCheckedKeys)
	}
	return Check{
		Name: checkRoute, Status: CheckProblem, Text: text, Objects: queues, View: "broker",
		Fix: "restart a replica, which binds every key; or bind " + message.QueueDeadLetter + " to " +
			message.ExchangeDeadLetter + " with " + shown +
			"; or give " + message.ExchangeDeadLetter + " an alternate exchange by policy",
	}
}

// anyKey stands for an unknown key.
const anyKey = "any key"

// deadKeys are the keys with which the queue dead-letters: its own key, or the keys of its bindings.
func (w *wiring) deadKeys(q ourQueue) []string {
	if q.DeadLetterKey != "" {
		return []string{q.DeadLetterKey}
	}
	var keys []string
	for _, r := range w.Routes {
		if r.ToExchange || r.Destination != q.Name {
			continue
		}
		switch w.Exchanges[r.Source].Kind {
		case "direct":
			keys = append(keys, r.Key)
		case "topic":
			keys = append(keys, keysOf(r.Key)...)
		default:
			keys = append(keys, anyKey)
		}
	}
	if len(keys) == 0 {
		return []string{q.Name} // by name, through the default exchange
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// keysOf are the used keys that match a topic binding.
func keysOf(pattern string) []string {
	if !strings.ContainsAny(pattern, "*#") {
		return []string{pattern}
	}
	var keys []string
	for _, key := range message.DeadLetterKeys() {
		if broker.MatchesTopic(pattern, key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return []string{anyKey}
	}
	return keys
}

// expiry: expired messages are kept.
func (w *wiring) expiry() Check {
	limited := w.those(func(q ourQueue) bool { return q.TTL != nil && q.Name != message.QueueDeadLetter })
	drops := w.those(func(q ourQueue) bool { return q.TTL != nil && q.unkept() })
	removed := w.those(func(q ourQueue) bool { return q.Expires != nil })
	if len(removed) > 0 && len(drops) == 0 {
		return verdict(checkTTL, removed, Check{
			View: "broker",
			Text: countOf(removed, "queue") + " with expires: the broker deletes an unused queue with its messages",
			Fix:  "take expires out of the policy of " + first(removed) + ", or limit its pattern to other queues",
		}, "")
	}
	early := w.those(func(q ourQueue) bool { return q.expiresEarly() })
	if len(early) > 0 && len(drops) == 0 {
		return verdict(checkTTL, early, Check{
			View: "broker",
			Text: countOf(early, "queue") + " with a time to live by a policy: messages become dead letters before they " +
				"are handled",
			Fix: "take message-ttl out of the policy of " + first(early) + ", or limit its pattern to other queues",
		}, "")
	}
	return verdict(checkTTL, drops, Check{
		View: "broker",
		Text: countOf(drops, "queue") +
			" with a time to live and no dead-letter exchange: the broker deletes expired messages",
		Fix: "a policy with dead-letter-exchange " + message.ExchangeDeadLetter + " for " + first(drops) +
			" and its like",
	},
		phrase.Plural(len(limited), "queue with a time to live has", "queues with a time to live have")+
			" a dead-letter exchange")
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

// kinds: queues survive a restart and can be consumed.
func (w *wiring) kinds() Check {
	kinds := map[string]int{}
	streams := w.those(func(q ourQueue) bool { kinds[q.Type]++; return q.Type == "stream" })
	if len(streams) > 0 {
		return verdict(checkKind, streams, Check{
			View: "broker",
			Text: countOf(streams, "queue") + " of type stream: consumed messages stay, and none is dead-lettered",
			Fix:  "delete it and restart a replica, which declares it anew",
		}, "")
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	fleeting := w.those(func(q ourQueue) bool { return !q.Durable })
	return verdict(checkKind, fleeting, Check{
		View: "broker",
		Text: countOf(fleeting, "queue") + " not durable: gone with its messages when the broker restarts",
		Fix:  "delete it while it is empty, and restart the program that declares it",
	}, "durable: "+strings.Join(parts, ", "))
}

// deliveries: messages above the delivery limit are kept.
func (w *wiring) deliveries() Check {
	drops := w.those(func(q ourQueue) bool {
		limited := q.DeliveryLimit != nil && *q.DeliveryLimit >= 0 || q.DeliveryLimit == nil &&
			limitsByDefault(w.Version)
		return q.Type == "quorum" && limited && q.unkept()
	})
	return verdict(checkDelivery, drops, Check{
		View: "broker",
		Text: countOf(drops, "quorum queue") +
			" with a delivery limit and no dead-letter exchange: the broker deletes messages returned too often",
		Fix: "a policy with dead-letter-exchange " + message.ExchangeDeadLetter + " for " + first(drops),
	}, "no delivery limit deletes anything")
}

// limitsByDefault reports whether quorum queues have a delivery limit by default, as from version 4
// on.
func limitsByDefault(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 4
}

// overflows: a full queue rejects instead of deleting.
func (w *wiring) overflows() Check {
	drops := w.those(func(q ourQueue) bool {
		return (q.MaxLength != nil || q.MaxBytes != nil) && !strings.HasPrefix(q.Overflow, "reject-publish") &&
			(q.DeadLetterExchange == nil || q.Name == message.QueueDeadLetter)
	})
	return verdict(checkOverflow, drops, Check{
		View: "broker",
		Text: countOf(drops, "queue") +
			" with a length: when full, the broker deletes the oldest messages and still confirms new ones",
		Fix: "overflow reject-publish, or no length, for " + first(drops),
	}, "no full queue deletes anything")
}

// countOf counts the names, or is the only one.
func countOf(names []string, what string) string {
	if len(names) == 1 {
		return what + " " + names[0]
	}
	return strconv.Itoa(len(names)) + " " + what + "s"
}
