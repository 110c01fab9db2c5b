package monitor

import (
	"testing"

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
		Routes: []broker.Route{
			{
				Source: message.ExchangeExecutions, Destination: message.QueueEnforcements,
				Key: message.PatternEnforcement,
			},
			{
				Source: message.ExchangeExecutions, Destination: message.WorkerExecutionsQueue(7),
				Key: message.DispatchKey(7),
			},
			{
				Source: message.ExchangeDeadLetter, Destination: message.QueueDeadLetter,
				Key: message.KeyEnforcementCreated,
			},
			{Source: message.ExchangeDeadLetter, Destination: message.QueueDeadLetter, Key: message.DispatchKey(7)},
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
	require.Len(t, CheckTopology(declared(), nil), len(topologyChecks))
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
		"as shipped: one binding with a hash": {func(w *broker.Wiring) {
			w.Routes = append(w.Routes[:2],
				broker.Route{Source: message.ExchangeDeadLetter, Destination: message.QueueDeadLetter, Key: "#"})
		}, checkRoute, CheckProblem, `and "#" at a direct exchange stands for itself only`},
		"one key without a binding": {
			func(w *broker.Wiring) { w.Routes = w.Routes[:3] }, checkRoute, CheckProblem,
			"queue " + worker + " are lost",
		},
		"an own dead-letter key": {func(w *broker.Wiring) {
			at(w, worker).Arguments["x-dead-letter-routing-key"] = "nobody"
		}, checkRoute, CheckProblem, "key nobody"},
		"an unreadable policy": {func(w *broker.Wiring) {
			e := w.Exchanges[message.ExchangeDeadLetter]
			e.Policy, w.PoliciesUnknown, w.Routes = "p", "refused", w.Routes[:3]
			w.Exchanges[message.ExchangeDeadLetter] = e
		}, checkRoute, CheckUnknown, "cannot be seen"},
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
			w.Routes[1].Destination = "worker.9.executions"
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
			require.Equal(t, one.status != CheckUnknown || one.check == checkRoute, c.Fix != "",
				"a fault comes with what to do: %s", c.Text)
		})
	}
	unknown := checksOf(declared())
	require.Equal(t, CheckUnknown, unknown[checkOrphans].Status, "without the rows no queue is an orphan")
}
