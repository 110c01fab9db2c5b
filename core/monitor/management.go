package monitor

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/broker"
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

// ReadBroker reads the queues and the alarms. Alarms that the login may not see
// leave the queues readable and are reported as such.
func (m *management) ReadBroker(ctx context.Context) (*Broker, error) {
	queues, err := m.client.Queues(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the broker: %w", err)
	}
	b := &Broker{VHost: m.vhost, Queues: make([]BrokerQueue, 0, len(queues))}
	for _, q := range queues {
		b.Queues = append(b.Queues, BrokerQueue{
			Name: q.Name, State: q.State, Ready: count(q.Ready), Unacked: count(q.Unacked), Consumers: count(q.Consumers),
			Uncounted: q.Ready == nil,
		})
	}
	overview, err := m.client.Overview(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the broker: %w", err)
	}
	b.Node, b.Version = overview.Node, overview.RabbitMQVersion
	alarms, err := m.client.Alarms(ctx)
	if err != nil {
		b.AlarmsUnknown = err.Error()
		return b, nil //nolint:nilerr // Not every login may ask for alarms; the rest is still an answer.
	}
	for _, a := range alarms {
		b.Alarms = append(b.Alarms, a.Resource+" on "+a.Node)
	}
	return b, nil
}

func count(n *int) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}
