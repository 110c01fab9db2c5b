package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

// Overview is the state of the whole message broker, over all virtual hosts. Numbers are nil until
// the broker has counted.
type Overview struct {
	RabbitMQVersion string `json:"rabbitmq_version"`
	Node            string `json:"node"`
	// StatisticsOff says that the broker counts nothing and knows no state of connections.
	StatisticsOff bool `json:"disable_stats"`
	Totals        struct {
		Ready   *int `json:"messages_ready"`
		Unacked *int `json:"messages_unacknowledged"`
	} `json:"queue_totals"`
	Objects struct {
		Connections *int `json:"connections"`
		Channels    *int `json:"channels"`
		Consumers   *int `json:"consumers"`
		Queues      *int `json:"queues"`
	} `json:"object_totals"`
	Rates struct {
		Publish Rate `json:"publish_details"`
		Deliver Rate `json:"deliver_get_details"`
		Ack     Rate `json:"ack_details"`
	} `json:"message_stats"`
}

// Rate is a number of messages per second; nil while unknown.
type Rate struct {
	PerSecond *float64 `json:"rate"`
}

// QueueInfo is the management API's state of a queue. A nil number is not zero: the broker has not
// counted yet.
type QueueInfo struct {
	Name   string `json:"name"`
	VHost  string `json:"vhost"`
	Type   string `json:"type"`
	State  string `json:"state"`
	Policy string `json:"policy"`
	// OperatorPolicy is the broker operators' policy, which applies on top.
	OperatorPolicy string         `json:"operator_policy"`
	Durable        bool           `json:"durable"`
	Exclusive      bool           `json:"exclusive"`
	Arguments      map[string]any `json:"arguments"`
	// InForce are the combined settings of all policies for the queue.
	InForce Definition `json:"effective_policy_definition"`
	// Head is the publish time of the head message in seconds, if it has one.
	Head      *int64 `json:"head_message_timestamp"`
	Consumers *int   `json:"consumers"`
	Ready     *int   `json:"messages_ready"`
	Unacked   *int   `json:"messages_unacknowledged"`
	Rates     struct {
		Publish Rate `json:"publish_details"`
		Deliver Rate `json:"deliver_get_details"`
		Ack     Rate `json:"ack_details"`
	} `json:"message_stats"`
}

// Definition is the settings of a policy. The broker writes an empty one as a list.
type Definition map[string]any

// UnmarshalJSON accepts an object; anything else is empty.
func (d *Definition) UnmarshalJSON(text []byte) error {
	*d = nil
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	return json.Unmarshal(text, (*map[string]any)(d))
}

// queueColumns limits the size of the response: a queue has some hundred fields.
const queueColumns = "?columns=name,vhost,type,state,policy,operator_policy,durable,exclusive,arguments,effective_policy_definition,head_message_timestamp," +
	"consumers,messages_ready,messages_unacknowledged," +
	"message_stats.publish_details.rate,message_stats.deliver_get_details.rate,message_stats.ack_details.rate"

// Alarm is an exhausted resource of a node.
type Alarm struct {
	Node     string `json:"node"`
	Resource string `json:"resource"` // memory or disk
}

// Policy sets arguments of exchanges or queues from outside.
type Policy struct {
	Name       string     `json:"name"`
	Pattern    string     `json:"pattern"`
	ApplyTo    string     `json:"apply-to"` // queues, exchanges or all
	Priority   int        `json:"priority"`
	Definition Definition `json:"definition"`
}

// Binding is one route out of an exchange.
type Binding struct {
	Source string `json:"source"`
	// Queue is empty for a binding to another exchange.
	Queue      string `json:"destination"`
	RoutingKey string `json:"routing_key"`
}

// Ping checks that the API answers and accepts the credentials.
func (m *Management) Ping(ctx context.Context) error {
	if err := m.do(ctx, http.MethodGet, "whoami", nil, nil, nil); err != nil {
		return fmt.Errorf("ping the management API: %w", err)
	}
	return nil
}

// Overview reads the state of the whole broker.
func (m *Management) Overview(ctx context.Context) (*Overview, error) {
	return get[*Overview](ctx, m, "read the broker's overview", "overview")
}

// Queues lists the queues of the virtual host.
func (m *Management) Queues(ctx context.Context) ([]QueueInfo, error) {
	return get[[]QueueInfo](ctx, m, "list queues", m.within("queues")+queueColumns)
}

// Queue reads one queue; errors.Is(err, ErrNotFound) if it is missing.
func (m *Management) Queue(ctx context.Context, name string) (*QueueInfo, error) {
	return get[*QueueInfo](ctx, m, "read queue "+name, m.within("queues", name)+queueColumns)
}

// Alarms lists the alarms in force, which stop all publishing. Unlike the other calls the result is
// exact.
func (m *Management) Alarms(ctx context.Context) ([]Alarm, error) {
	var check struct {
		Alarms []Alarm `json:"alarms"`
	}
	err := m.do(ctx, http.MethodGet, "health/checks/alarms", nil, nil, &check)
	if err != nil && len(check.Alarms) == 0 {
		return nil, fmt.Errorf("read alarms: %w", err)
	}
	return check.Alarms, nil
}

// Policies lists the policies of the virtual host.
func (m *Management) Policies(ctx context.Context) ([]Policy, error) {
	found, err := through(ctx, m, "list policies", func(c *rabbithole.Client) ([]rabbithole.Policy, error) {
		return c.ListPoliciesIn(m.vhost)
	})
	policies := make([]Policy, len(found))
	for i, p := range found {
		policies[i] = Policy{
			Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority,
			Definition: Definition(p.Definition),
		}
	}
	return policies, err
}

// Permissions are those of a user on the virtual host, as regular expressions of names.
type Permissions struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// Permissions reads the permissions of a user, which only administrators may; errors.Is(err, ErrNotFound) if
// it has none.
func (m *Management) Permissions(ctx context.Context, user string) (*Permissions, error) {
	return get[*Permissions](ctx, m, "read the permissions of "+user, m.within("permissions", user))
}

// DeletePolicy takes a policy of the virtual host away. One that does not exist is no error.
func (m *Management) DeletePolicy(ctx context.Context, name string) error {
	_, err := through(ctx, m, "delete policy "+name, func(c *rabbithole.Client) (*http.Response, error) {
		return c.DeletePolicy(m.vhost, name)
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// PutPolicy makes or replaces a policy of the virtual host.
func (m *Management) PutPolicy(ctx context.Context, p Policy) error {
	_, err := through(ctx, m, "put policy "+p.Name, func(c *rabbithole.Client) (*http.Response, error) {
		return c.PutPolicy(m.vhost, p.Name, rabbithole.Policy{
			Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority,
			Definition: rabbithole.PolicyDefinition(p.Definition),
		})
	})
	return err
}

// Wiring lists what a virtual host has, without its policies.
type Wiring struct {
	// Version is the broker's; empty if unknown.
	Version   string
	Exchanges map[string]ExchangeInfo
	Queues    []QueueInfo
	Bindings  []Binding
}

// ExchangeInfo is the management API's state of an exchange.
type ExchangeInfo struct {
	Name      string         `json:"name"`
	Kind      string         `json:"type"`
	Durable   bool           `json:"durable"`
	Internal  bool           `json:"internal"`
	Arguments map[string]any `json:"arguments"`
	Policy    string         `json:"policy"`
}

// Wiring reads what the virtual host has.
func (m *Management) Wiring(ctx context.Context) (*Wiring, error) {
	w := &Wiring{Exchanges: map[string]ExchangeInfo{}}
	exchanges, err := get[[]ExchangeInfo](ctx, m, "list exchanges",
		m.within("exchanges")+"?columns=name,type,durable,internal,arguments,policy")
	if err != nil {
		return nil, err
	}
	for _, e := range exchanges {
		w.Exchanges[e.Name] = e
	}
	if w.Queues, err = m.Queues(ctx); err != nil {
		return nil, err
	}
	if w.Bindings, err = m.bindings(ctx, "list bindings", func(c *rabbithole.Client) ([]rabbithole.BindingInfo, error) {
		return c.ListBindingsIn(m.vhost)
	}); err != nil {
		return nil, err
	}
	if overview, err := m.Overview(ctx); err == nil { // otherwise the version stays unknown
		w.Version = overview.RabbitMQVersion
	}
	return w, nil
}

// QueueBindings lists the routes into a queue, without the implicit one of its own name.
func (m *Management) QueueBindings(ctx context.Context, name string) ([]Binding, error) {
	return m.bindings(ctx, "list bindings of queue "+name,
		func(c *rabbithole.Client) ([]rabbithole.BindingInfo, error) {
			return c.ListQueueBindings(m.vhost, name)
		})
}

// bindings reads bindings without the implicit ones.
func (m *Management) bindings(
	ctx context.Context, what string, list func(*rabbithole.Client) ([]rabbithole.BindingInfo, error),
) ([]Binding, error) {
	found, err := through(ctx, m, what, list)
	bindings := make([]Binding, 0, len(found))
	for _, b := range found {
		if b.DestinationType == "exchange" {
			b.Destination = ""
		}
		if b.Source != "" {
			bindings = append(bindings, Binding{Source: b.Source, Queue: b.Destination, RoutingKey: b.RoutingKey})
		}
	}
	return bindings, err
}

// client is a connection to the virtual host.
type client struct {
	Connection string     `json:"name"`
	State      string     `json:"state"`
	Properties Definition `json:"client_properties"`
}

// name is the name that the client set; empty without one.
func (c *client) name() string {
	name, _ := c.Properties["connection_name"].(string)
	return name
}

func (m *Management) clients(ctx context.Context) ([]client, error) {
	return get[[]client](ctx, m, "list connections",
		m.within("vhosts")+"/connections?columns=name,state,client_properties.connection_name")
}

// CloseConnections closes every connection to the virtual host and sends the clients the reason. A
// connection that closed meanwhile is no error.
func (m *Management) CloseConnections(ctx context.Context, reason string) error {
	clients, err := m.clients(ctx)
	errs := []error{err}
	header := http.Header{"X-Reason": {strings.ReplaceAll(reason, "\n", " ")}}
	for _, c := range clients {
		err := m.do(ctx, http.MethodDelete, "connections/"+url.PathEscape(c.Connection), header, nil, nil)
		if err != nil && !errors.Is(err, ErrNotFound) {
			errs = append(errs, fmt.Errorf("close connection %s: %w", c.Connection, err))
		}
	}
	return errors.Join(errs...)
}

// Blocked lists the clients of the virtual host that the broker blocks from publishing: the name that each set, or else
// the broker's name for it.
func (m *Management) Blocked(ctx context.Context) (blocked []string, err error) {
	clients, err := m.clients(ctx)
	for _, c := range clients {
		if c.State == "blocked" || c.State == "blocking" { // has not tried to publish yet
			blocked = append(blocked, cmp.Or(c.name(), c.Connection))
		}
	}
	return blocked, err
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
	found, err := get[[]struct {
		Tag     string     `json:"consumer_tag"`
		Queue   Definition `json:"queue"`
		Channel Definition `json:"channel_details"` // an empty list until it is known
	}](ctx, m, "list consumers", m.within("consumers"))
	if err != nil {
		return nil, err
	}
	clients, err := m.clients(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[any]string, len(clients))
	for _, c := range clients {
		names[c.Connection] = c.name()
	}
	consumers := make([]QueueConsumer, len(found))
	for i, c := range found {
		consumers[i] = QueueConsumer{Tag: c.Tag, Connection: names[c.Channel["connection_name"]]}
		consumers[i].Queue, _ = c.Queue["name"].(string)
		consumers[i].Peer, _ = c.Channel["peer_host"].(string)
	}
	return consumers, nil
}

// Node is one node of the broker. Unknown numbers are nil.
type Node struct {
	Name        string         `json:"name"`
	Running     bool           `json:"running"`
	MemoryUsed  *int64         `json:"memory_used"`
	MemoryLimit *int64         `json:"memory_limit"`
	MemoryAlarm bool           `json:"memory_alarm"`
	DiskFree    *int64         `json:"disk_free"`
	DiskLimit   *int64         `json:"disk_limit"`
	DiskAlarm   bool           `json:"disk_alarm"`
	Files       *int64         `json:"files"`
	FilesLimit  *int64         `json:"files_limit"`
	Uptime      *time.Duration `json:"uptime_ns"`
}

// Nodes lists the nodes of the broker; it needs the user tag monitoring.
func (m *Management) Nodes(ctx context.Context) ([]Node, error) {
	found, err := get[[]map[string]any](ctx, m, "list nodes", "nodes?columns=name,running,mem_used,mem_limit,mem_alarm,"+
		"disk_free,disk_free_limit,disk_free_alarm,fd_used,fd_total,uptime")
	nodes := make([]Node, len(found))
	for i, n := range found {
		nodes[i] = Node{
			Running: n["running"] == true, MemoryUsed: whole(n["mem_used"]), MemoryLimit: whole(n["mem_limit"]),
			MemoryAlarm: n["mem_alarm"] == true, DiskFree: whole(n["disk_free"]), // a text if it is not monitored
			DiskLimit: whole(n["disk_free_limit"]), DiskAlarm: n["disk_free_alarm"] == true,
			Files: whole(n["fd_used"]), FilesLimit: whole(n["fd_total"]), Uptime: millis(whole(n["uptime"])),
		}
		nodes[i].Name, _ = n["name"].(string)
	}
	return nodes, err
}

// LengthSample is the number of ready messages of a queue at a time.
type LengthSample struct {
	At    time.Time `json:"at"`
	Ready int64     `json:"ready"`
}

// Lengths is the number of ready messages of a queue over the last hour, the oldest first: the
// samples of the management API, one a minute. It is empty if the broker keeps none; errors.Is(err,
// ErrNotFound) if the queue is missing.
func (m *Management) Lengths(ctx context.Context, queue string) ([]LengthSample, error) {
	found, err := get[struct {
		Ready struct {
			Samples []struct {
				Sample any   `json:"sample"`
				At     int64 `json:"timestamp"` // milliseconds
			} `json:"samples"`
		} `json:"messages_ready_details"`
	}](ctx, m, "read the lengths of queue "+queue,
		m.within("queues", queue)+"?lengths_age=3600&lengths_incr=60&columns=messages_ready_details.samples")
	samples := make([]LengthSample, 0, len(found.Ready.Samples))
	for _, s := range slices.Backward(found.Ready.Samples) { // the newest come first
		if ready := whole(s.Sample); ready != nil {
			samples = append(samples, LengthSample{At: time.UnixMilli(s.At), Ready: *ready})
		}
	}
	return samples, err
}
