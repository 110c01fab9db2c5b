package deadletter

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
)

// headerPutBack keeps the cause of death of a message that was put back to its queue: a client
// cannot write the broker's own headers.
const headerPutBack = "x-attune-put-back"

// putBack is the value of headerPutBack, as JSON.
type putBack struct {
	Queue    string     `json:"queue,omitempty"`
	Exchange string     `json:"exchange,omitempty"`
	Key      string     `json:"key"`
	Reason   string     `json:"reason"`
	Died     *time.Time `json:"died,omitempty"`
	Count    int64      `json:"count,omitempty"`
	Said     string     `json:"said,omitempty"`
	Row      int64      `json:"row,omitempty"` // of the ledger
}

// Reasons of the ledger. The broker's own are expired, rejected, maxlen and delivery_limit.
const (
	ReasonExpired  = "expired"
	ReasonRejected = "rejected"
	ReasonPoison   = "poison"  // the engine gave up on the message
	ReasonTaken    = "taken"   // an operator took it from its queue while it was alive
	ReasonUnknown  = "unknown" // its headers do not say
)

// kind is the subject of a dead letter.
type kind int

const (
	kindUnknown kind = iota // unreadable, or of a type without a handler
	kindProbe
	kindDispatch
	kindCancel
	kindRequested
	kindCompleted
	kindStatus
	kindOther // readable, but not the engine's to decide
)

// Message is one dead letter: the message, its cause of death, and its subject.
type Message struct {
	// Execution is the execution that it is about; 0 for none.
	Execution int64

	fingerprint string
	kind        kind
	delivery    *broker.Delivery
	trouble     string // why it is unreadable
	unreadable  bool   // a dispatch of which only the beginning is readable
	batched     bool   // it was part of a batch message

	exchange, key, queue, reason string
	said                         string    // why the engine gave up on it
	died                         time.Time // zero if unknown

	worker  int64     // of a dispatch or cancel request
	attempt int32     // of a dispatch; 0 if its engine does not number attempts
	handed  time.Time // of a dispatch; zero if unknown

	seen      seen
	failure   string    // why the batches could not decide it
	reduced   bool      // the database refuses its full form
	tried     bool      // it may be in the ledger: storing it was tried
	tries     int       // how often storing it alone failed
	open      bool      // no worker had capacity
	firstRead time.Time // when a batch first read it, by the database's clock
	detail    string    // the reason of the decision
	decision  string    // empty: it waits for an operator
	taking    *TakeInfo // how an operator took it; nil for the handler's dead letters
	row       int64     // its id in the ledger, once written
	count     int64     // how often it died for the same cause
	others    []int64   // executions of other dead letters that its row represents
}

// Read makes a dead letter of a delivery. It never fails: an unreadable delivery becomes a dead
// letter with trouble.
func Read(d *broker.Delivery) *Message { return read(d, message.QueueDeadLetter) }

// readAll makes the dead letters of a message in a queue: one, or one for each message of a batch.
// An unreadable batch is one dead letter, and so are the unreadable messages of one.
func readAll(d *broker.Delivery, queue string) []*Message {
	if _, gaveUp := d.Headers[broker.HeaderReason]; gaveUp || unread(d) || !message.IsBatch(d.Type) {
		return []*Message{read(d, queue)}
	}
	singles, err := message.Split(d.Body)
	if err != nil {
		return []*Message{read(d, queue)}
	}
	deadLetters := make([]*Message, 0, len(singles))
	unreadable := false
	for i, part := range d.Split(singles) {
		l := read(part, queue)
		l.batched = true
		if l.trouble != "" {
			if unreadable {
				continue // settled with its batch
			}
			unreadable = true
			trouble := fmt.Sprintf("message %d of %d: %s", i+1, len(singles), l.trouble)
			part.MessageID, part.Type, part.Body = d.MessageID, d.Type, d.Body
			part.Exchange, part.RoutingKey = d.Exchange, d.RoutingKey
			l = read(part, queue)
			l.kind, l.trouble = kindUnknown, trouble
		}
		deadLetters = append(deadLetters, l)
	}
	return deadLetters
}

// maxName is the longest name in AMQP; a header may hold longer ones.
const maxName = 255

// read is readAs, which makes a panic over a forged message a dead letter that is not read.
func read(d *broker.Delivery, queue string) (l *Message) {
	defer func() {
		if defect := recover(); defect != nil {
			d.Unread()
			l = &Message{delivery: d, key: d.RoutingKey, exchange: d.Exchange, queue: queue, reason: ReasonUnknown}
			l.fingerprint, l.trouble = l.print(), fmt.Sprintf("a defect of this program: %v", defect)
		}
	}()
	return readAs(d, queue)
}

// readAs is Read of a message in any queue, which need not be dead.
func readAs(d *broker.Delivery, queue string) *Message {
	l := &Message{delivery: d, key: d.RoutingKey, exchange: d.Exchange, reason: ReasonUnknown}
	l.readDeath()
	if l.reason == ReasonUnknown && queue != message.QueueDeadLetter {
		l.reason, l.queue = ReasonTaken, queue
	}
	for _, name := range []*string{&l.queue, &l.exchange, &l.key, &l.reason} {
		*name = (*name)[:min(len(*name), maxName)]
	}
	l.fingerprint = l.print()
	if d.Type == broker.TypeProbe {
		l.kind = kindProbe
		return l
	}
	if unread(d) {
		l.trouble = broker.ErrEndedProcess.Error()
		return l
	}
	l.readBody()
	return l
}

// unread reports that a message must not be decoded.
func unread(d *broker.Delivery) bool {
	_, marked := d.Headers[broker.HeaderUnread]
	return marked
}

// readDeath finds the cause of death. The engine's own headers come first: its dead letters may
// carry the broker's headers of an earlier death.
func (l *Message) readDeath() {
	headers := l.delivery.Headers
	if text, ok := headers[headerPutBack].(string); ok && l.readPutBack(text) {
		return
	}
	if said, ok := headers[broker.HeaderReason].(string); ok {
		l.reason, l.said = ReasonPoison, bounded(said)
		l.queue, _ = headers[broker.HeaderQueue].(string)
		l.exchange, _ = headers[broker.HeaderExchange].(string)
		if key, ok := headers[broker.HeaderKey].(string); ok && l.delivery.Exchange == "" {
			l.key = key // it was sent to its queue directly
		}
		if died, ok := headers[broker.HeaderDied].(string); ok {
			l.died, _ = time.Parse(time.RFC3339Nano, died)
		}
	} else if deaths := broker.Deaths(headers); len(deaths) > 0 {
		l.queue, l.exchange, l.died, l.count = deaths[0].Queue, deaths[0].Exchange, deaths[0].At, deaths[0].Count
		l.reason = cmp.Or(deaths[0].Reason, ReasonUnknown)
		// A queue or a policy may replace the routing key of dead letters, and an operator may have moved them
		// straight to their queue.
		if keys := deaths[0].RoutingKeys; len(keys) > 0 {
			l.key = keys[0]
		}
	}
	if l.key == message.QueueExecutionBatches {
		l.exchange, l.key = message.ExchangeExecutions, message.KeyExecutionCompleted
	}
	if l.exchange == "" || l.exchange == message.ExchangeDeadLetter {
		l.exchange = l.sentTo()
	}
}

// readPutBack reads the cause of death of a message that was put back; false if it is unreadable.
func (l *Message) readPutBack(text string) bool {
	var was putBack
	if json.Unmarshal([]byte(text), &was) != nil || was.Key == "" {
		return false
	}
	l.queue, l.exchange, l.key, l.said = was.Queue, was.Exchange, was.Key, bounded(was.Said)
	l.reason, l.count = cmp.Or(was.Reason, ReasonUnknown), was.Count
	if was.Died != nil {
		l.died = *was.Died
	}
	return true
}

// sentTo is the exchange to which messages of this kind are published.
func (l *Message) sentTo() string {
	if _, ok := message.WorkerOfKey(l.key); ok {
		return message.ExchangeExecutions
	}
	if route, ok := message.RouteOf(l.delivery.Type); ok && route.Key == l.key {
		return route.Exchange
	}
	return ""
}

// print is the fingerprint of one dead-lettering of one message; redeliveries have the same. Ids
// may repeat, so the content counts too; without an id all properties count.
func (l *Message) print() string {
	d, hash := l.delivery, sha256.New()
	died := l.died.UTC().Format(time.RFC3339Nano)
	write := func(parts ...any) {
		for _, part := range parts {
			text := fmt.Sprint(part)
			_, _ = fmt.Fprintf(hash, "%d:%s", len(text), text) // writing to a hash cannot fail
		}
	}
	write(d.MessageID, l.queue, l.reason, died, l.count)
	if from, again := d.Headers[headerRequeuedFrom].(string); again { // it may die again in the same second
		write(from)
	}
	if d.MessageID == "" {
		write(d.CorrelationID, d.Type, d.Exchange, d.RoutingKey, d.Timestamp.UTC(), string(jsonOf(d.Headers)))
	}
	_, _ = hash.Write(d.Body) // as above
	return hex.EncodeToString(hash.Sum(nil))
}

// readBody finds the subject of the dead letter.
func (l *Message) readBody() {
	body := l.delivery.Body
	worker, toWorker := message.WorkerOfKey(l.key)
	var err error
	switch {
	case toWorker && isDispatch(l.key):
		l.worker = worker
		err = decode(l, body, message.TypeExecutionRequested, kindDispatch, func(p message.Dispatch) {
			l.Execution, l.attempt, l.handed = p.ExecutionID, p.Attempt, p.ScheduledAttemptUpdatedAt
			if p.WorkerID != worker {
				l.trouble = fmt.Sprintf("its routing key names worker %d and its body worker %d", worker, p.WorkerID)
			}
		})
		if err != nil && l.peek() {
			return
		}
	case toWorker:
		l.worker = worker
		err = decode(l, body, message.TypeExecutionCancelRequested, kindCancel,
			func(p message.ExecutionCancelRequested) { l.Execution = p.ExecutionID })
	case l.key == message.KeyExecutionRequested:
		err = decode(l, body, message.TypeExecutionRequested, kindRequested,
			func(p message.ExecutionRequested) { l.Execution = p.ExecutionID })
	case l.key == message.KeyExecutionCompleted:
		err = decode(l, body, message.TypeExecutionCompleted, kindCompleted,
			func(p message.ExecutionCompleted) { l.Execution = p.ExecutionID })
	case l.key == message.KeyExecutionStatusChanged:
		err = decode(l, body, message.TypeExecutionStatusChanged, kindStatus,
			func(p message.ExecutionStatusChanged) { l.Execution = p.ExecutionID })
	default:
		err = l.readOther(body)
	}
	if err != nil {
		l.trouble = err.Error()
	}
	if l.trouble != "" {
		l.kind = kindUnknown
	}
}

// peek finds the execution of an unreadable dispatch, so that it does not hold a slot until a
// timeout. It reports whether it succeeded. Its worker and attempt are compared with the row like
// those of any other dispatch.
func (l *Message) peek() bool {
	d, found := message.PeekDispatch(l.delivery.Body)
	if !found || d.WorkerID != l.worker {
		return false
	}
	l.kind, l.Execution, l.attempt, l.unreadable = kindDispatch, d.ExecutionID, d.Attempt, true
	return true
}

// decode reads a body of one type.
func decode[P any](l *Message, body []byte, kind string, is kind, take func(P)) error {
	envelope, err := message.Decode[P](body)
	switch {
	case err != nil:
		return err
	case envelope.MessageType != kind:
		return fmt.Errorf("%w: %s where %s is expected", message.ErrUnknownType, envelope.MessageType, kind)
	}
	l.kind = is
	take(envelope.Payload)
	if l.Execution <= 0 {
		return fmt.Errorf("%w: execution_id %d", message.ErrIncomplete, l.Execution)
	}
	return nil
}

// readOther reads a message that is not about one execution, or not the engine's to decide.
func (l *Message) readOther(body []byte) error {
	envelope, err := message.DecodeRaw(body)
	if err != nil {
		return err
	}
	route, ok := message.RouteOf(envelope.MessageType)
	family, _, _ := strings.Cut(route.Key, ".")
	if !ok || route.Key == "" || !strings.HasPrefix(l.key, family+".") {
		return fmt.Errorf("%w: %s with the routing key %.100q", message.ErrUnknownType, envelope.MessageType, l.key)
	}
	l.kind = kindOther
	var about struct {
		ExecutionID int64 `json:"execution_id"`
	}
	if json.Unmarshal(envelope.Payload, &about) == nil && about.ExecutionID > 0 {
		l.Execution = about.ExecutionID
	}
	return nil
}

// typed is the message type of a dead letter, if it has one.
func (l *Message) typed() string {
	if l.delivery.Type != "" || unread(l.delivery) {
		return l.delivery.Type
	}
	if envelope, err := message.DecodeRaw(l.delivery.Body); err == nil {
		return envelope.MessageType
	}
	return ""
}
