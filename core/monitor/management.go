package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

// management reads the broker through its management interface.
type management struct {
	client *broker.Management
	vhost  string
}

// NewManagementReader makes a BrokerReader of a management client for one
// virtual host.
func NewManagementReader(client *broker.Management, vhost string) BrokerReader {
	return &management{client: client, vhost: vhost}
}

// ReadBroker reads the queues, the nodes and what keeps publishers waiting. The
// questions are asked at the same time, so that a slow one costs no other. What
// the login may not see, or what does not come in time, is reported as unknown;
// without the queues and the overview there is no answer.
func (m *management) ReadBroker(ctx context.Context) (*Broker, error) {
	b := &Broker{VHost: m.vhost}
	var queues []broker.QueueInfo
	var overview *broker.Overview
	var alarms []broker.Alarm
	var failed [2]error
	var reads sync.WaitGroup
	reads.Go(func() { queues, failed[0] = m.client.Queues(ctx) })
	reads.Go(func() { overview, failed[1] = m.client.Overview(ctx) })
	reads.Go(func() {
		var err error
		if alarms, err = m.client.Alarms(ctx); err != nil {
			b.AlarmsUnknown = err.Error()
		}
	})
	reads.Go(func() { b.Nodes, b.NodesUnknown = m.nodes(ctx) })
	reads.Go(func() { b.Blocked, b.BlockedUnknown = m.blocked(ctx) })
	reads.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return nil, fmt.Errorf("read the broker: %w", err)
	}
	b.Queues = make([]BrokerQueue, 0, len(queues))
	for i := range queues {
		b.Queues = append(b.Queues, brokerQueue(&queues[i]))
	}
	b.Node, b.Version = overview.Node, overview.RabbitMQVersion
	for _, a := range alarms {
		b.Alarms = append(b.Alarms, a.Resource+" on "+a.Node)
	}
	return b, nil
}

// ReadWiring reads how exchanges and queues hang together.
func (m *management) ReadWiring(ctx context.Context) (*broker.Wiring, error) {
	return m.client.Wiring(ctx)
}

// ReadDepth reads how long a queue was over the last hour. One that does not exist
// has no past.
func (m *management) ReadDepth(ctx context.Context, queue string) ([]PastDepth, error) {
	samples, err := m.client.Lengths(ctx, queue)
	if errors.Is(err, broker.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	depth := make([]PastDepth, len(samples))
	for i, s := range samples {
		depth[i] = PastDepth(s)
	}
	return depth, nil
}

func brokerQueue(q *broker.QueueInfo) BrokerQueue {
	s := q.Settings()
	out := BrokerQueue{
		Name: q.Name, State: q.State, Ready: count(q.Ready), Unacked: count(q.Unacked), Consumers: count(q.Consumers),
		Uncounted: q.Ready == nil, Type: q.Type, Durable: q.Durable, Exclusive: q.Exclusive, Policy: q.Policy, OperatorPolicy: q.OperatorPolicy,
		TTL: s.TTL, Expires: s.Expires, DeadLetterExchange: s.DeadLetterExchange, DeadLetterKey: s.DeadLetterKey,
		MaxLength: s.MaxLength, MaxBytes: s.MaxBytes, Overflow: s.Overflow, DeliveryLimit: s.DeliveryLimit,
		Published: q.Rates.Publish.PerSecond, Delivered: q.Rates.Deliver.PerSecond, Acked: q.Rates.Ack.PerSecond,
	}
	if q.Head != nil && *q.Head > 0 {
		at := time.Unix(*q.Head, 0)
		out.Head = &at
	}
	if id, ok := message.WorkerOfQueue(q.Name); ok {
		out.Worker = &id
	}
	return out
}

func (m *management) nodes(ctx context.Context) (nodes []BrokerNode, unknown string) {
	found, err := m.client.Nodes(ctx)
	if err != nil {
		return nil, err.Error()
	}
	for _, n := range found {
		nodes = append(nodes, BrokerNode(n))
	}
	return nodes, ""
}

func (m *management) blocked(ctx context.Context) (clients []string, unknown string) {
	found, err := m.client.Blocked(ctx)
	if err != nil {
		return nil, err.Error()
	}
	for _, c := range found {
		clients = append(clients, c.Client)
	}
	return clients, ""
}

func count(n *int) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}
