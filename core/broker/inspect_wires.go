package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ExchangeInfo is the management API's state of an exchange.
type ExchangeInfo struct {
	Name      string         `json:"name"`
	Kind      string         `json:"type"`
	Durable   bool           `json:"durable"`
	Internal  bool           `json:"internal"`
	Arguments map[string]any `json:"arguments"`
	Policy    string         `json:"policy"`
}

// Exchanges lists the exchanges of the virtual host.
func (m *Management) Exchanges(ctx context.Context) ([]ExchangeInfo, error) {
	return get[[]ExchangeInfo](ctx, m, "list exchanges",
		"exchanges/"+url.PathEscape(m.vhost)+"?columns=name,type,durable,internal,arguments,policy")
}

// QueueConsumer is one subscription to a queue, as the management API lists it.
type QueueConsumer struct {
	Queue string
	Tag   string
	// Connection is the client's name of its connection, and Peer its address. Both are empty while
	// unknown.
	Connection string
	Peer       string
}

// Consumers lists the subscriptions in the virtual host. A subscription younger than some seconds
// may be missing.
func (m *Management) Consumers(ctx context.Context) ([]QueueConsumer, error) {
	var found []struct {
		Tag   string `json:"consumer_tag"`
		Queue struct {
			Name string `json:"name"`
		} `json:"queue"`
		Channel json.RawMessage `json:"channel_details"` // an empty list until it is known
	}
	if err := m.do(ctx, http.MethodGet, "consumers/"+url.PathEscape(m.vhost), nil, &found); err != nil {
		return nil, fmt.Errorf("list consumers: %w", err)
	}
	var connections []struct {
		Name   string `json:"name"`
		Client struct {
			Name string `json:"connection_name"`
		} `json:"client_properties"`
	}
	path := "vhosts/" + url.PathEscape(m.vhost) + "/connections?columns=name,client_properties.connection_name"
	if err := m.do(ctx, http.MethodGet, path, nil, &connections); err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	names := make(map[string]string, len(connections))
	for _, c := range connections {
		names[c.Name] = c.Client.Name
	}
	consumers := make([]QueueConsumer, 0, len(found))
	for _, c := range found {
		var channel struct {
			Connection string `json:"connection_name"`
			Host       string `json:"peer_host"`
		}
		_ = json.Unmarshal(c.Channel, &channel) // then it stays unknown
		consumers = append(consumers, QueueConsumer{
			Queue: c.Queue.Name, Tag: c.Tag, Connection: names[channel.Connection], Peer: channel.Host,
		})
	}
	return consumers, nil
}

// ExchangeExists reports whether an exchange of this name exists.
func (b *Broker) ExchangeExists(ctx context.Context, name string) (bool, error) {
	conn, err := b.consume.wait(ctx)
	if err != nil {
		return false, fmt.Errorf("look up exchange %s: %w", name, err)
	}
	_, err = onChannel(ctx, conn, func(channel *amqp.Channel) (none struct{}, err error) {
		// A passive declaration ignores the kind.
		return none, channel.ExchangeDeclarePassive(name, amqp.ExchangeDirect, true, false, false, false, nil)
	})
	if _, missing := refusal(err, amqp.NotFound); missing {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up exchange %s: %w", name, err)
	}
	return true, nil
}
