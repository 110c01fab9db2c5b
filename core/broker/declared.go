package broker

import (
	"maps"
	"time"
)

// Topology lists exchanges, queues and bindings with all their arguments.
type Topology struct {
	Exchanges []Exchange
	Queues    []DeclaredQueue
	Bindings  []Binding
}

// Exchange is one exchange. All of ours are durable and have no arguments.
type Exchange struct {
	Name     string
	Kind     string // direct, topic or fanout
	Internal bool
}

// DeclaredQueue is one declared queue. All of ours are durable.
type DeclaredQueue struct {
	Name      string
	Arguments Table
}

func (t *Topology) exchange(name, kind string, internal bool) {
	t.Exchanges = append(t.Exchanges, Exchange{Name: name, Kind: kind, Internal: internal})
}

func (t *Topology) queue(name string, arguments Table) {
	t.Queues = append(t.Queues, DeclaredQueue{Name: name, Arguments: arguments})
}

func (t *Topology) bind(queue, exchange string, keys ...string) {
	for _, key := range keys {
		t.Bindings = append(t.Bindings, Binding{Source: exchange, Queue: queue, RoutingKey: key})
	}
}

// ofType is the topology with queues of a type. Classic queues have no argument for it, because other participants
// declare none.
func (t *Topology) ofType(quorum bool) Topology {
	for i, q := range t.Queues {
		if quorum {
			arguments := Table{"x-queue-type": "quorum"}
			maps.Copy(arguments, q.Arguments)
			t.Queues[i].Arguments = arguments
		}
	}
	return *t
}

// ExecutorTopology is what DeclareExecutor declares, without the routes of dead letters.
func ExecutorTopology(quorum bool) Topology {
	var t Topology
	t.common()
	t.executor()
	return t.ofType(quorum)
}

// WorkerTopology is what DeclareWorker declares.
func WorkerTopology(id int64, ttl time.Duration, quorum bool) Topology {
	if ttl <= 0 {
		ttl = WorkerQueueTTLDefault
	}
	var t Topology
	t.worker(id, ttl)
	return t.ofType(quorum)
}
