package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

// declared is the topology of an engine and one worker.
func declared() *broker.Wiring {
	one := 1
	queue := func(name string, arguments map[string]any) broker.QueueInfo {
		return broker.QueueInfo{
			Name: name, Type: "classic", Durable: true, Arguments: arguments, Consumers: &one,
			Ready: &one,
		}
	}
	dlx := func(more ...any) map[string]any {
		arguments := map[string]any{"x-dead-letter-exchange": message.ExchangeDeadLetter}
		for i := 0; i < len(more); i += 2 {
			arguments[more[i].(string)] = more[i+1] //nolint:forcetypeassert,errcheck // a test
		}
		return arguments
	}
	w := &broker.Wiring{
		Version: "3.13.7",
		Exchanges: map[string]broker.ExchangeInfo{
			message.ExchangeDeadLetter: {Name: message.ExchangeDeadLetter, Kind: "direct"},
			message.ExchangeExecutions: {Name: message.ExchangeExecutions, Kind: "topic"},
		},
		Queues: []broker.QueueInfo{
			queue(message.QueueDeadLetter, nil), queue(message.QueueEnforcements, dlx()),
			queue(message.WorkerExecutionsQueue(7), dlx("x-message-ttl", 300_000.0)),
			queue("billing", map[string]any{"x-message-ttl": 5.0}),
		},
		Bindings: []broker.Binding{
			{
				Source: message.ExchangeExecutions, Queue: message.QueueEnforcements,
				RoutingKey: message.PatternEnforcement,
			},
			{
				Source: message.ExchangeExecutions, Queue: message.WorkerExecutionsQueue(7),
				RoutingKey: message.DispatchKey(7),
			},
		},
	}
	return w
}

func checksOf(w *broker.Wiring, workers ...int64) map[string]Check {
	found := map[string]Check{}
	for _, c := range CheckTopology(w, workers) {
		found[c.Name] = c
	}
	return found
}

func TestAWiringAsDeclaredIsWell(t *testing.T) {
	t.Parallel()
	for name, c := range checksOf(declared(), 7) {
		require.Equal(t, CheckOK, c.Status, "%s: %s", name, c.Text)
		require.Empty(t, c.Fix, name)
	}
	require.Len(t, CheckTopology(declared(), nil), len(brokerChecks))
}

// TestEveryFaultOfTheWiringIsNamed with its queue and the remedy.
func TestEveryFaultOfTheWiringIsNamed(t *testing.T) {
	t.Parallel()
	worker := message.WorkerExecutionsQueue(7)
	at := func(w *broker.Wiring, name string) *broker.QueueInfo {
		for i := range w.Queues {
			if w.Queues[i].Name == name {
				return &w.Queues[i]
			}
		}
		return nil
	}
	for name, one := range map[string]struct {
		harm   func(w *broker.Wiring)
		check  string
		status CheckStatus
		text   string
	}{
		"no dead-letter exchange": {
			func(w *broker.Wiring) { delete(w.Exchanges, message.ExchangeDeadLetter) },
			checkExchange, CheckProblem, "does not exist",
		},
		"another kind of it": {func(w *broker.Wiring) {
			w.Exchanges[message.ExchangeDeadLetter] = broker.ExchangeInfo{
				Name: message.ExchangeDeadLetter,
				Kind: "topic",
			}
		}, checkExchange, CheckWarning, "type topic"},
		"a time to live and nothing else": {func(w *broker.Wiring) {
			delete(at(w, worker).Arguments, "x-dead-letter-exchange")
		}, checkTTL, CheckProblem, "deletes expired messages"},
		"a policy that removes queues": {func(w *broker.Wiring) {
			at(w, worker).InForce = broker.Definition{"expires": 1_800_000.0}
		}, checkTTL, CheckProblem, "deletes an unused queue with its messages"},
		"a policy with a shorter time to live": {func(w *broker.Wiring) {
			at(w, worker).Policy, at(w, worker).InForce = "short", broker.Definition{"message-ttl": 1.0}
		}, checkTTL, CheckProblem, "become dead letters before they are handled"},
		"no queue of dead letters": {
			func(w *broker.Wiring) { w.Queues = w.Queues[1:] }, CheckDeadLetterQueue,
			CheckProblem, "does not exist",
		},
		"no consumer of dead letters": {
			func(w *broker.Wiring) { w.Queues[0].Consumers = new(int) }, CheckDeadLetterQueue,
			CheckProblem, "has no consumer",
		},
		"consumers not counted": {
			func(w *broker.Wiring) { w.Queues[0].Consumers = nil }, CheckDeadLetterQueue,
			CheckUnknown, "not counted",
		},
		"dead letters with a time to live": {func(w *broker.Wiring) {
			w.Queues[0].InForce = broker.Definition{"message-ttl": 86_400_000.0}
		}, CheckDeadLetterQueue, CheckWarning, "deletes unconsumed"},
		"a worker without a row": {func(w *broker.Wiring) {
			at(w, worker).Name = "worker.9.executions"
			w.Bindings[1].Queue = "worker.9.executions"
		}, checkOrphans, CheckProblem, "1 message and no consumer"},
		"a stream": {
			func(w *broker.Wiring) { at(w, worker).Type = "stream" }, checkKind,
			CheckProblem, "of type stream",
		},
		"a queue that does not survive": {
			func(w *broker.Wiring) { at(w, worker).Durable = false }, checkKind,
			CheckProblem, "not durable",
		},
		"a delivery limit and no way on": {func(w *broker.Wiring) {
			q := at(w, worker)
			q.Type, q.Arguments = "quorum", map[string]any{"x-delivery-limit": 5.0}
		}, checkDelivery, CheckProblem, "returned too often"},
		"the limit that version 4 sets": {func(w *broker.Wiring) {
			q := at(w, worker)
			q.Type, q.Arguments, w.Version = "quorum", nil, "4.1.0"
		}, checkDelivery, CheckProblem, "returned too often"},
		"dead letters pushed out": {func(w *broker.Wiring) {
			w.Queues[0].Arguments = map[string]any{"x-max-length": 100.0}
		}, checkOverflow, CheckProblem, "deletes the oldest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := declared()
			one.harm(w)
			c := checksOf(w, 7)[one.check]
			require.Equal(t, one.status, c.Status, c.Text)
			require.Contains(t, c.Text, one.text)
			require.Equal(t, one.status != CheckUnknown, c.Fix != "",
				"a fault comes with what to do: %s", c.Text)
		})
	}
	unknown := checksOf(declared())
	require.Equal(t, CheckUnknown, unknown[checkOrphans].Status, "without the rows no queue is an orphan")
}

// The newest probe of any replica says whether dead letters reach a queue, with its age; lost ones are named with their
// queues.
func TestTheRoutesAreJudgedByTheNewestProbe(t *testing.T) {
	t.Parallel()
	at := time.Now()
	replica := func(report, probe time.Duration, r *broker.RouteReport) Replica {
		if r != nil {
			r.At = at.Add(-probe)
		}
		return Replica{Age: report, Details: ReplicaDetails{Clock: at.Add(-report), Routes: r}}
	}
	old := replica(8*time.Minute, 9*time.Minute, &broker.RouteReport{Lost: []string{message.KeyEventCreated}})
	lost := broker.RouteReport{Routed: 9, Lost: []string{message.DispatchKey(7), message.KeyEnforcementCreated}}
	for name, c := range map[string]struct {
		list    []Replica
		status  CheckStatus
		text    string
		objects []string
	}{
		"no replica": {nil, CheckUnknown, "no replica has probed the routes of dead letters", nil},
		"not probed": {
			[]Replica{replica(0, 0, nil)}, CheckUnknown, "no replica has probed the routes of dead letters", nil,
		},
		"well": {
			[]Replica{old, replica(0, time.Minute, &broker.RouteReport{Routed: 10})}, CheckOK,
			"all 10 routes of dead letters lead to a queue, probed 1m ago", nil,
		},
		"no engine since": {
			[]Replica{old, replica(6*time.Minute, 7*time.Minute, &broker.RouteReport{Routed: 10})}, CheckUnknown,
			"all 10 routes of dead letters were last seen to lead to a queue, probed 7m ago", nil,
		},
		"lost": {
			[]Replica{old, replica(0, 0, &lost)}, CheckProblem, "2 routes of dead letters lead to no queue: key " +
				message.DispatchKey(7) + "; lost are the dead letters of attune.enforcements.queue, worker.7.executions",
			[]string{message.QueueEnforcements, message.WorkerExecutionsQueue(7)},
		},
		"no result": {
			[]Replica{replica(0, 0, &broker.RouteReport{Routed: 9, Unknown: 1})}, CheckUnknown,
			"1 route of dead letters could not be probed", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := checkRoutes(&Replicas{List: c.list})
			require.Equal(t, c.status, check.Status, check.Text)
			require.Contains(t, check.Text, c.text)
			require.Equal(t, c.objects, check.Objects)
			require.Equal(t, c.status == CheckProblem, check.Fix != "" && check.Objects != nil)
		})
	}
	require.Equal(t, CheckUnknown, checkRoutes(nil).Status, "a schema without replicas")
}
