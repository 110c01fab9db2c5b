package broker

import (
	"maps"
	"time"
)

// declarations receives a topology: the declarer, or a list.
type declarations interface {
	exchange(name, kind string, internal bool)
	queue(name string, arguments Table)
	bind(queue, exchange string, keys ...string)
}

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

// ofType adds the type of queues to the arguments of one. Classic queues have no such argument, because
// other participants declare none.
func ofType(arguments Table, quorum bool) Table {
	if !quorum {
		return arguments
	}
	arguments = maps.Clone(arguments)
	if arguments == nil {
		arguments = Table{}
	}
	arguments["x-queue-type"] = "quorum"
	return arguments
}

// ofType is the topology with queues of a type.
func (t *Topology) ofType(quorum bool) Topology {
	for i, q := range t.Queues {
		t.Queues[i].Arguments = ofType(q.Arguments, quorum)
	}
	return *t
}

// ExecutorTopology is what DeclareExecutor declares, without the routes of dead letters.
func ExecutorTopology(quorum bool) Topology {
	var t Topology
	declareCommon(&t)
	declareExecutor(&t)
	return t.ofType(quorum)
}

// WorkerTopology is what DeclareWorker declares.
func WorkerTopology(id int64, ttl time.Duration, quorum bool) Topology {
	if ttl <= 0 {
		ttl = WorkerQueueTTLDefault
	}
	var t Topology
	declareWorker(&t, id, ttl)
	return t.ofType(quorum)
}
