package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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
const queueColumns = "name,vhost,type,state,policy,operator_policy,durable,exclusive,arguments,effective_policy_definition,head_message_timestamp," +
	"consumers,messages_ready,messages_unacknowledged," +
	"message_stats.publish_details.rate,message_stats.deliver_get_details.rate,message_stats.ack_details.rate"

// Alarm is an exhausted resource of a node.
type Alarm struct {
	Node     string
	Resource string // memory or disk
}

// Policy sets arguments of exchanges or queues from outside.
type Policy struct {
	Name       string
	Pattern    string
	ApplyTo    string // queues, exchanges or all
	Priority   int
	Definition map[string]any
}

// Binding is one route out of an exchange.
type Binding struct {
	Source string
	// Queue is empty for a binding to another exchange.
	Queue      string
	RoutingKey string
}

// Ping checks that the API answers and accepts the credentials.
func (m *Management) Ping(ctx context.Context) error {
	if err := m.do(ctx, http.MethodGet, "whoami", nil, nil); err != nil {
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
	return get[[]QueueInfo](ctx, m, "list queues", "queues/"+url.PathEscape(m.vhost)+"?columns="+queueColumns)
}

// Queue reads one queue; errors.Is(err, ErrNotFound) if it is missing.
func (m *Management) Queue(ctx context.Context, name string) (*QueueInfo, error) {
	path := "queues/" + url.PathEscape(m.vhost) + "/" + url.PathEscape(name) + "?columns=" + queueColumns
	return get[*QueueInfo](ctx, m, "read queue "+name, path)
}

// Alarms lists the alarms in force, which stop all publishing. Unlike the other calls the result is
// exact.
func (m *Management) Alarms(ctx context.Context) ([]Alarm, error) {
	check, err := through(ctx, m, "read alarms", (*rabbithole.Client).HealthCheckAlarms)
	if err != nil {
		return nil, err
	}
	alarms := make([]Alarm, 0, len(check.Alarms))
	for _, a := range check.Alarms {
		alarms = append(alarms, Alarm{Node: a.Node, Resource: a.Resource})
	}
	if len(alarms) == 0 && !check.Ok() {
		return nil, fmt.Errorf("read alarms: %s", check.Reason)
	}
	return alarms, nil
}

// Policies lists the policies of the virtual host.
func (m *Management) Policies(ctx context.Context) ([]Policy, error) {
	found, err := through(ctx, m, "list policies", func(c *rabbithole.Client) ([]rabbithole.Policy, error) {
		return c.ListPoliciesIn(m.vhost)
	})
	if err != nil {
		return nil, err
	}
	policies := make([]Policy, 0, len(found))
	for _, p := range found {
		policies = append(policies, Policy{
			Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: p.Definition,
		})
	}
	return policies, nil
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
	return get[*Permissions](ctx, m, "read the permissions of "+user,
		"permissions/"+url.PathEscape(m.vhost)+"/"+url.PathEscape(user))
}

// DeletePolicy takes a policy of the virtual host away. One that does not exist is no error.
func (m *Management) DeletePolicy(ctx context.Context, name string) error {
	err := m.do(ctx, http.MethodDelete, "policies/"+url.PathEscape(m.vhost)+"/"+url.PathEscape(name), nil, nil)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("delete policy %s: %w", name, err)
	}
	return nil
}

// PutPolicy makes or replaces a policy of the virtual host.
func (m *Management) PutPolicy(ctx context.Context, p Policy) error {
	response, err := through(ctx, m, "put policy "+p.Name, func(c *rabbithole.Client) (*http.Response, error) {
		return c.PutPolicy(m.vhost, p.Name, rabbithole.Policy{
			Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: p.Definition,
		})
	})
	if err != nil {
		return err
	}
	_ = response.Body.Close() // empty
	return nil
}

// QueueBindings lists the routes into a queue, without the implicit one of its own name.
func (m *Management) QueueBindings(ctx context.Context, name string) ([]Binding, error) {
	found, err := through(ctx, m, "list bindings of queue "+name,
		func(c *rabbithole.Client) ([]rabbithole.BindingInfo, error) {
			return c.ListQueueBindings(m.vhost, name)
		})
	if err != nil {
		return nil, err
	}
	bindings := make([]Binding, 0, len(found))
	for _, b := range found {
		if b.Source != "" {
			bindings = append(bindings, Binding{Source: b.Source, Queue: b.Destination, RoutingKey: b.RoutingKey})
		}
	}
	return bindings, nil
}

// CloseConnections closes every connection to the virtual host and sends the clients the reason. A
// connection that closed meanwhile is no error.
func (m *Management) CloseConnections(ctx context.Context, reason string) error {
	type connection struct {
		Name string `json:"name"`
	}
	path := "vhosts/" + url.PathEscape(m.vhost) + "/connections?columns=name"
	connections, err := get[[]connection](ctx, m, "list connections", path)
	if err != nil {
		return err
	}
	header := http.Header{"X-Reason": {strings.ReplaceAll(reason, "\n", " ")}}
	var errs []error
	for _, c := range connections {
		err := m.do(ctx, http.MethodDelete, "connections/"+url.PathEscape(c.Name), header, nil)
		if err != nil && !errors.Is(err, ErrNotFound) {
			errs = append(errs, fmt.Errorf("close connection %s: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}
