package redrive

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

// Whole is a message as the broker has it.
type Whole = broker.Whole

// Death is an entry of a letter's history.
type Death = broker.Death

// Letter is one dead letter as it was read from the broker or from the spool.
type Letter struct {
	*Whole `json:"-"`

	// Seq is its place in what was read, from 0.
	Seq int `json:"seq"`
	// Hash is that of the body: ids may be absent or repeated.
	Hash   string    `json:"hash"`
	Deaths []Death   `json:"deaths,omitempty"`
	Died   time.Time `json:"died"` // the first death of the latest kind
	Reason string    `json:"reason"`
	// From is the queue that it died in.
	From string `json:"from,omitempty"`
	// SentTo and SentKey are where it had been published.
	SentTo  string `json:"sent_to,omitempty"`
	SentKey string `json:"sent_key,omitempty"`
	// Kind is the type that the body names, else the property; empty if neither.
	Kind    string    `json:"kind,omitempty"`
	Version string    `json:"version,omitempty"`
	SentAt  time.Time `json:"sent_at"`
	// Trouble says why the body cannot be read; empty if it can.
	Trouble   string          `json:"trouble,omitempty"`
	Execution int64           `json:"execution,omitempty"`
	Worker    int64           `json:"worker,omitempty"`
	ActionRef string          `json:"action_ref,omitempty"`
	Attempt   int64           `json:"attempt,omitempty"`
	AttemptAt time.Time       `json:"attempt_at"` // execution.updated after the hand-over
	Payload   json.RawMessage `json:"payload,omitempty"`
	// Dispatch says that it hands an execution to a worker.
	Dispatch bool `json:"dispatch,omitempty"`
	// Deliveries is what a quorum queue counts; 0 elsewhere.
	Deliveries int64 `json:"deliveries,omitempty"`

	// Requeues is how often it was sent again from here, and Requeued by whom, when and in
	// which operation the last time.
	Requeues int64     `json:"requeues,omitempty"`
	Requeued *Requeued `json:"requeued,omitempty"`

	// Op and State are set for what comes from the spool.
	Op    string `json:"op,omitempty"`
	State string `json:"state,omitempty"`
}

// Requeued is the last time that a message was sent again.
type Requeued struct {
	Op string `json:"op"`
	By string `json:"by"`
	At string `json:"at"`
}

// The headers by which a message says that it was sent again. The broker's own count of
// deaths begins anew with every sender, since RabbitMQ 4.
const (
	headerRequeues   = "x-attune-requeue-count"
	headerRequeueOp  = "x-attune-requeue-op"
	headerRequeuedBy = "x-attune-requeue-by"
	headerRequeuedAt = "x-attune-requeue-at"
)

// readRequeues reads how often a letter was sent again. Older ones have no count.
func (l *Letter) readRequeues() {
	text := func(key string) string {
		value, _ := l.Headers[key].(string)
		return value
	}
	l.Requeues = max(0, count(l.Headers[headerRequeues]))
	if op := text(headerRequeueOp); op != "" {
		l.Requeues = max(1, l.Requeues)
		l.Requeued = &Requeued{op, text(headerRequeuedBy), text(headerRequeuedAt)}
	}
}

// Read makes a letter of a message. It never fails: what cannot be read says so.
func Read(w *Whole, seq int) Letter {
	hash := sha256.Sum256(w.Body)
	l := Letter{Whole: w, Seq: seq, Hash: hex.EncodeToString(hash[:]), Reason: "unknown", SentTo: w.Exchange, SentKey: w.RoutingKey, Kind: w.Type}
	l.Deaths = broker.Deaths(w.Headers)
	if len(l.Deaths) > 0 {
		d := l.Deaths[0]
		l.Died, l.Reason, l.From = d.At, cmp.Or(d.Reason, l.Reason), d.Queue
		l.SentTo = d.Exchange
		if len(d.RoutingKeys) > 0 {
			l.SentKey = d.RoutingKeys[0]
		}
	}
	l.Deliveries = count(w.Headers["x-delivery-count"])
	if l.Deliveries == 0 {
		l.Deliveries = count(w.Headers["x-acquired-count"])
	}
	l.readRequeues()
	l.readBody()
	return l
}

func count(value any) int64 {
	switch n := value.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	default:
		return 0
	}
}

func (l *Letter) readBody() {
	envelope, err := message.DecodeRaw(l.Body)
	if err != nil {
		l.Trouble = err.Error()
		return
	}
	l.Kind, l.Version, l.SentAt, l.Payload = envelope.MessageType, envelope.Version, envelope.Timestamp, envelope.Payload
	var about struct {
		ExecutionID int64     `json:"execution_id"`
		WorkerID    int64     `json:"worker_id"`
		ActionRef   string    `json:"action_ref"`
		Attempt     int64     `json:"attempt"`
		AttemptAt   time.Time `json:"scheduled_attempt_updated_at"`
	}
	if err := json.Unmarshal(envelope.Payload, &about); err != nil {
		l.Trouble = "its payload has fields of other types than its kind: " + err.Error()
		return
	}
	l.Execution, l.Worker, l.ActionRef = about.ExecutionID, about.WorkerID, about.ActionRef
	l.Attempt, l.AttemptAt = about.Attempt, about.AttemptAt
	worker, toWorker := message.WorkerOfKey(l.SentKey)
	l.Dispatch = l.Kind == message.TypeExecutionRequested && (toWorker || !l.AttemptAt.IsZero() || l.Worker != 0)
	if l.Worker == 0 && toWorker {
		l.Worker = worker
	}
}

// Key identifies a letter: the same id with another body is another one.
func (l *Letter) Key() string { return l.MessageID + "/" + l.Hash[:min(len(l.Hash), 16)] }

// Name is what people call it.
func (l *Letter) Name() string {
	if l.MessageID != "" {
		return l.MessageID
	}
	return fmt.Sprintf("without id, %d bytes, %.8s", len(l.Body), l.Hash)
}
