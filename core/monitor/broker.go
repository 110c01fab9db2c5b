package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// BrokerQueue is one queue of the message broker.
type BrokerQueue struct {
	Name      string `json:"name"`
	Ready     int64  `json:"ready"`
	Unacked   int64  `json:"unacked"`
	Consumers int64  `json:"consumers"`
	State     string `json:"state,omitempty"`
	// Uncounted is true until the broker has counted: the numbers are then unknown, not zero.
	Uncounted bool `json:"uncounted,omitempty"`
	// Type is classic, quorum or stream.
	Type           string `json:"type,omitempty"`
	Durable        bool   `json:"durable"`
	Exclusive      bool   `json:"exclusive,omitempty"`
	Policy         string `json:"policy,omitempty"`
	OperatorPolicy string `json:"operator_policy,omitempty"`
	broker.QueueSettings
	// Rates are in messages a second; nil until the broker has two samples.
	Published *float64 `json:"published_per_second"`
	Delivered *float64 `json:"delivered_per_second"`
	Acked     *float64 `json:"acked_per_second"`
	// Head is the time of publishing of the first message, if the message has it.
	Head *time.Time `json:"head"`
	// Worker is the worker that the queue is named after, if any.
	Worker *int64 `json:"worker"`
}

// BrokerNode is one node of the message broker.
type BrokerNode = broker.Node

// Broker is the answer of the message broker's management interface.
type Broker struct {
	Reading
	Node    string        `json:"node"`
	Version string        `json:"version"`
	VHost   string        `json:"vhost"`
	Queues  []BrokerQueue `json:"queues"`
	// Alarms lists raised resource alarms.
	Alarms []string `json:"alarms"`
	// AlarmsUnknown says why the alarms could not be read.
	AlarmsUnknown string `json:"alarms_unknown,omitempty"`
	// NodesUnknown says why the nodes could not be read.
	Nodes        []BrokerNode `json:"nodes"`
	NodesUnknown string       `json:"nodes_unknown,omitempty"`
	// Blocked names the clients that the broker blocks from publishing, BlockedUnknown why they
	// could not be read.
	Blocked        []string `json:"blocked"`
	BlockedUnknown string   `json:"blocked_unknown,omitempty"`
}

// Queue finds a broker queue by name.
func (b *Broker) Queue(name string) (BrokerQueue, bool) {
	if b == nil {
		return BrokerQueue{}, false
	}
	for i := range b.Queues {
		if b.Queues[i].Name == name {
			return b.Queues[i], true
		}
	}
	return BrokerQueue{}, false
}

// WorkerQueue names the queue of a worker's dispatches.
func WorkerQueue(id int64) string { return message.WorkerExecutionsQueue(id) }

// WorkerOfQueue returns the worker whose dispatches the queue holds, and false for other queues.
func WorkerOfQueue(name string) (int64, bool) {
	id, ok := message.WorkerOfQueue(name)
	return id, ok && name == WorkerQueue(id)
}

var (
	errNoSource = phrase.Trouble{Fact: "not configured"}
	likeEscape  = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)
)

// BrokerReader reads the message broker. It fills everything but the Reading. ReadWiring reads what
// Checks needs, ReadDepth the recorded length of a queue.
type BrokerReader interface {
	ReadBroker(ctx context.Context) (*Broker, error)
	ReadWiring(ctx context.Context) (*broker.Wiring, error)
	ReadDepth(ctx context.Context, queue string) ([]PastDepth, error)
}

// Broker reads the queues and alarms of the message broker.
func (m *Monitor) Broker(ctx context.Context) (*Broker, error) {
	var result *Broker
	source, err := m.askBroker(func(b BrokerReader) (err error) {
		result, err = b.ReadBroker(ctx)
		return err
	})
	if result == nil || err != nil {
		result = &Broker{}
	}
	result.Sources = []Source{source}
	return result, err
}

// askBroker reads from the broker and records how it behaved.
func (m *Monitor) askBroker(ask func(BrokerReader) error) (Source, error) {
	return timed(SourceBroker, func() error {
		if m.deps.Broker == nil {
			return errNoSource
		}
		return ask(m.deps.Broker)
	})
}

// both reads from broker and database at the same time, and records how each behaved.
func (m *Monitor) both(
	ctx context.Context, name string, r *Reading, ask func(BrokerReader) error,
	read func(ctx context.Context, tx *store.Tx, s Shape) error,
) (brokerErr, databaseErr error) {
	var of Source
	var asked sync.WaitGroup
	asked.Go(func() { of, brokerErr = m.askBroker(ask) })
	databaseErr = m.Read(ctx, name, r, read)
	asked.Wait()
	r.Sources = append(r.Sources, of)
	return brokerErr, databaseErr
}

// Route says where a message would go.
type Route struct {
	Reading

	Exchange string `json:"exchange"`
	Key      string `json:"key"`
	// Exists says whether the exchange exists, Kind is its type. Internal says that only other
	// exchanges publish to it.
	Exists   bool   `json:"exists"`
	Kind     string `json:"kind,omitempty"`
	Internal bool   `json:"internal,omitempty"`
	// Queues are bound with this key, or get every message of the exchange. Lost says that nothing is bound,
	// Unsure that a pattern or another exchange may lead to a queue: only the broker knows.
	Queues []string `json:"queues"`
	Lost   bool     `json:"lost,omitempty"`
	Unsure bool     `json:"unsure,omitempty"`
}

// Route finds the exchange and the queues that are bound with the key. It sends nothing, and follows no patterns:
// the broker says of a message that was sent whether it reached a queue.
func (m *Monitor) Route(ctx context.Context, exchange, key string) (*Route, error) {
	r := &Route{Exchange: exchange, Key: key}
	var wiring *broker.Wiring
	of, err := m.askBroker(func(b BrokerReader) (err error) {
		wiring, err = b.ReadWiring(ctx)
		return err
	})
	r.At, r.Sources = time.Now(), []Source{of}
	if err != nil {
		return r, err
	}
	r.follow(wiring)
	return r, nil
}

func (r *Route) follow(wiring *broker.Wiring) {
	if r.Exchange == "" {
		r.Exists = true
		if slices.ContainsFunc(wiring.Queues, func(q broker.QueueInfo) bool { return q.Name == r.Key }) {
			r.Queues = []string{r.Key}
		}
		r.Lost = r.Queues == nil
		return
	}
	e, there := wiring.Exchanges[r.Exchange]
	r.Exists, r.Kind, r.Internal = there, e.Kind, e.Internal
	_, bound := e.Arguments["alternate-exchange"]
	bound = bound || e.Policy != "" // which may name one
	for _, b := range wiring.Bindings {
		if b.Source != r.Exchange || e.Kind == "direct" && b.RoutingKey != r.Key {
			continue
		}
		bound = true
		if b.Queue != "" && (e.Kind == "fanout" || e.Kind != "headers" && b.RoutingKey == r.Key) {
			r.Queues = append(r.Queues, b.Queue)
		}
	}
	slices.Sort(r.Queues)
	r.Queues = slices.Compact(r.Queues)
	r.Lost = !bound
	r.Unsure = bound && len(r.Queues) == 0
}

// Refuses returns the reason why the broker accepts no message for the route; empty if it may.
func (r *Route) Refuses() string {
	switch {
	case !r.Exists && message.Declared(r.Exchange):
		return "" // no replica has run on this broker yet
	case !r.Exists:
		return "there is no exchange " + r.Exchange
	case r.Internal:
		return "only other exchanges may publish to " + r.Exchange
	case r.Lost && r.Exchange == "":
		return "there is no queue " + r.Key
	case r.Lost:
		return "it routes to no queue"
	}
	return ""
}

// Answers asks one source for as little as possible. A source that is not configured is an error.
func (m *Monitor) Answers(ctx context.Context, source string) error {
	if source == SourceDatabase {
		var r Reading
		return m.Read(ctx, "whether the database answers", &r,
			func(context.Context, *store.Tx, Shape) error { return nil })
	}
	_, err := m.askBroker(func(b BrokerReader) error {
		if _, err := b.ReadDepth(ctx, DeadLetterQueue); err != nil && !errors.Is(err, broker.ErrNotFound) {
			return fmt.Errorf("ask the broker: %w", err)
		}
		return nil
	})
	return err
}

// queueDown are the states of broken queues.
var queueDown = []string{"down", "crashed", "stopped", "terminated", "minority", "nodeleader"}

// Down reports that the queue does not work.
func (q *BrokerQueue) Down() bool { return slices.Contains(queueDown, q.State) }

// Idle reports an empty queue without consumers, such as an unused queue of a pack or service.
func (q *BrokerQueue) Idle() bool {
	return !q.Uncounted && q.Ready == 0 && q.Unacked == 0 && q.Consumers == 0
}

// Unheard reports that the queue has messages and no consumer, or that the engine should consume it
// and does not.
func (q *BrokerQueue) Unheard() bool {
	if q.Uncounted || q.Consumers > 0 || q.Notices() {
		return false
	}
	return q.Ready > 0 || slices.Contains(alwaysConsumed, q.Name)
}

// Notices reports a queue of pack notices, which its worker reads when it runs.
func (q *BrokerQueue) Notices() bool {
	worker, ok := message.WorkerOfQueue(q.Name)
	return ok && q.Name == message.WorkerPacksQueue(worker)
}

// alwaysConsumed are the queues that a running engine consumes.
var alwaysConsumed = []string{message.QueueExecutionRequests, message.QueueExecutionCompleted, message.QueueDeadLetter}

// pressing ranks queues: broken ones, dead letters, messages without a consumer, queues in use, idle
// ones.
func (q *BrokerQueue) pressing() int {
	switch {
	case q.Down():
		return 0
	case q.Name == DeadLetterQueue && q.Ready > 0:
		return 1
	case q.Unheard():
		return 2
	case q.Ready > 0 && !q.Notices():
		return 3
	case q.Idle(), q.Notices():
		return 5
	default:
		return 4
	}
}

// ComparePressing orders queues by urgency, then by their number of messages.
func ComparePressing(a, b *BrokerQueue) int {
	return cmp.Or(cmp.Compare(a.pressing(), b.pressing()), cmp.Compare(b.Ready+b.Unacked, a.Ready+a.Unacked))
}

// management reads the broker through its management interface.
type management struct {
	client *broker.Management
	vhost  string
}

// NewManagementReader returns a BrokerReader for one virtual host.
func NewManagementReader(client *broker.Management, vhost string) BrokerReader {
	return &management{client: client, vhost: vhost}
}

// ReadBroker sends all requests at the same time. What the login may not see or what times out is
// unknown; without queues and overview it fails.
func (m *management) ReadBroker(ctx context.Context) (*Broker, error) {
	b := &Broker{VHost: m.vhost}
	var queues []broker.QueueInfo
	var overview *broker.Overview
	var alarms []broker.Alarm
	var failed [2]error
	var reads sync.WaitGroup
	reads.Go(func() { queues, failed[0] = m.client.Queues(ctx) })
	reads.Go(func() { overview, failed[1] = m.client.Overview(ctx) })
	var unknown [3]error
	reads.Go(func() { alarms, unknown[0] = m.client.Alarms(ctx) })
	reads.Go(func() { b.Nodes, unknown[1] = m.client.Nodes(ctx) })
	reads.Go(func() { b.Blocked, unknown[2] = m.client.Blocked(ctx) })
	reads.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return nil, fmt.Errorf("read the broker: %w", err)
	}
	for i, reason := range []*string{&b.AlarmsUnknown, &b.NodesUnknown, &b.BlockedUnknown} {
		if unknown[i] != nil {
			*reason = unknown[i].Error()
		}
	}
	b.Queues = make([]BrokerQueue, 0, len(queues))
	for i := range queues {
		b.Queues = append(b.Queues, brokerQueue(&queues[i]))
	}
	b.Node, b.Version = overview.Node, overview.RabbitMQVersion
	if overview.StatisticsOff {
		b.BlockedUnknown = "the statistics of the management API are off"
	}
	for _, a := range alarms {
		b.Alarms = append(b.Alarms, a.Resource+" on "+a.Node)
	}
	return b, nil
}

// ReadWiring reads exchanges, queues and bindings.
func (m *management) ReadWiring(ctx context.Context) (*broker.Wiring, error) {
	return m.client.Wiring(ctx)
}

// ReadDepth reads the length of a queue over the last hour; none if it does not exist.
func (m *management) ReadDepth(ctx context.Context, queue string) ([]PastDepth, error) {
	depth, err := m.client.Lengths(ctx, queue)
	if errors.Is(err, broker.ErrNotFound) {
		return nil, nil
	}
	return depth, err
}

func brokerQueue(q *broker.QueueInfo) BrokerQueue {
	out := BrokerQueue{
		Name: q.Name, State: q.State, Ready: count(q.Ready), Unacked: count(q.Unacked), Consumers: count(q.Consumers),
		Uncounted: q.Ready == nil, Type: q.Type, Durable: q.Durable, Exclusive: q.Exclusive, Policy: q.Policy,
		OperatorPolicy: q.OperatorPolicy, QueueSettings: q.Settings(), Published: q.Rates.Publish.PerSecond,
		Delivered: q.Rates.Deliver.PerSecond, Acked: q.Rates.Ack.PerSecond,
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

func count(n *int) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}
