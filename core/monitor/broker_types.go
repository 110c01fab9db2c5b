package monitor

import (
	"strconv"
	"strings"
	"time"
)

// BrokerQueue is one queue of the message broker.
type BrokerQueue struct {
	Name      string `json:"name"`
	Ready     int64  `json:"ready"`
	Unacked   int64  `json:"unacked"`
	Consumers int64  `json:"consumers"`
	State     string `json:"state,omitempty"`
	// Uncounted is true while the broker has not counted yet; the numbers are
	// then unknown, not zero.
	Uncounted bool `json:"uncounted,omitempty"`
	// Type is classic, quorum or stream.
	Type           string `json:"type,omitempty"`
	Durable        bool   `json:"durable"`
	Exclusive      bool   `json:"exclusive,omitempty"`
	Policy         string `json:"policy,omitempty"`
	OperatorPolicy string `json:"operator_policy,omitempty"`
	// What is in force, by the queue's own arguments and by policies; nil is not set.
	TTL     *time.Duration `json:"ttl_ns"`
	Expires *time.Duration `json:"expires_ns"`
	// DeadLetterExchange may be the empty default exchange, which is not none.
	DeadLetterExchange *string `json:"dead_letter_exchange"`
	DeadLetterKey      string  `json:"dead_letter_key,omitempty"`
	MaxLength          *int64  `json:"max_length"`
	MaxBytes           *int64  `json:"max_bytes"`
	Overflow           string  `json:"overflow,omitempty"`
	DeliveryLimit      *int64  `json:"delivery_limit"`
	// Rates in messages a second; nil until the broker has two samples.
	Published *float64 `json:"published_per_second"`
	Delivered *float64 `json:"delivered_per_second"`
	Acked     *float64 `json:"acked_per_second"`
	// Head is when the message at the head was published, where messages say so.
	Head *time.Time `json:"head"`
	// Worker is the worker that the queue is called after; nil for other queues.
	Worker *int64 `json:"worker"`
}

// BrokerNode is one node of the message broker. Numbers are nil where it does not
// say them.
type BrokerNode struct {
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

// Broker is what the message broker's management interface says.
type Broker struct {
	Reading
	Node    string        `json:"node"`
	Version string        `json:"version"`
	VHost   string        `json:"vhost"`
	Queues  []BrokerQueue `json:"queues"`
	// Alarms lists raised resource alarms.
	Alarms []string `json:"alarms"`
	// AlarmsUnknown says why the alarms could not be read; empty when they were.
	AlarmsUnknown string `json:"alarms_unknown,omitempty"`
	// Nodes are the nodes of the broker, NodesUnknown why they could not be read.
	Nodes        []BrokerNode `json:"nodes"`
	NodesUnknown string       `json:"nodes_unknown,omitempty"`
	// Blocked names the clients that the broker keeps from publishing, BlockedUnknown
	// says why that could not be read.
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

// WorkerQueue names the broker queue that a worker takes executions from.
func WorkerQueue(id int64) string { return "worker." + strconv.FormatInt(id, 10) + ".executions" }

// WorkerOfQueue returns the worker that a queue name belongs to, and false for
// a queue of another kind.
func WorkerOfQueue(name string) (int64, bool) {
	rest, ok := strings.CutPrefix(name, "worker.")
	if !ok {
		return 0, false
	}
	digits, ok := strings.CutSuffix(rest, ".executions")
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, err == nil
}
