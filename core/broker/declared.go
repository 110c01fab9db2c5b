package broker

import "time"

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

// ExecutorTopology is what DeclareExecutor declares, without the routes of dead letters.
func ExecutorTopology() Topology {
	var t Topology
	declareCommon(&t)
	declareExecutor(&t)
	return t
}

// WorkerTopology is what DeclareWorker declares.
func WorkerTopology(id int64, ttl time.Duration) Topology {
	if ttl <= 0 {
		ttl = WorkerQueueTTLDefault
	}
	var t Topology
	declareWorker(&t, id, ttl)
	return t
}
