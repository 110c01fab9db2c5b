package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Message is a message to publish. It is persistent.
type Message struct {
	// ID is the message id, the same each time it is published. Required.
	ID string
	// CorrelationID is ID if empty.
	CorrelationID string
	Exchange      string
	RoutingKey    string
	// Type is the message type, for consumers that read properties only.
	Type string
	Body []byte
	// Timestamp is now if zero; AMQP carries whole seconds.
	Timestamp time.Time
	Headers   Table
	// Fleeting makes the message expire unless a consumer takes it at once.
	Fleeting bool
	// Properties replace those above: the message has exactly these, and ID only names it here.
	Properties *Properties
	// Alone sends the message on a channel that carries no other at that time. Its destination may be
	// missing or forbidden, and then the broker closes the channel.
	Alone bool
}

// id is the message id that the broker sees.
func (m *Message) id() string {
	if m.Properties != nil {
		return m.Properties.MessageID
	}
	return m.ID
}

// shortMax is the longest text of an AMQP property.
const shortMax = 255

// check refuses messages that cannot be encoded: the library would close the connection over them,
// with the messages of all callers.
func (m *Message) check() error {
	for _, field := range []struct{ name, value string }{
		{"message id", m.ID},
		{"correlation id", m.CorrelationID},
		{"exchange", m.Exchange},
		{"routing key", m.RoutingKey},
		{"type", m.Type},
	} {
		if len(field.value) > shortMax {
			return fmt.Errorf("%w: its %s has %d bytes, more than %d", ErrInvalid, field.name, len(field.value),
				shortMax)
		}
	}
	if m.ID == "" {
		return fmt.Errorf("%w: it has no message id", ErrInvalid)
	}
	headers := m.Headers
	if m.Properties != nil {
		headers = m.Properties.Headers
		if size := len(m.Properties.Encode()); size > maxHeaderFrame {
			return fmt.Errorf("%w: its properties and headers have %d bytes, more than %d", ErrInvalid, size,
				maxHeaderFrame)
		}
	}
	for name := range headers {
		if len(name) > shortMax {
			return fmt.Errorf("%w: a header's name has %d bytes, more than %d", ErrInvalid, len(name), shortMax)
		}
	}
	if err := headers.Validate(); err != nil {
		return fmt.Errorf("%w: its headers: %w", ErrInvalid, err)
	}
	return nil
}

// Status is the outcome of a message.
type Status int

// The outcomes of a message.
const (
	// NotSent means that the message was not sent: the caller may publish it again. It is the zero
	// value.
	NotSent Status = iota
	// Confirmed means that the broker has put it into at least one queue.
	Confirmed
	// Returned means that no queue accepts messages of this exchange and key.
	Returned
	// Nacked means that a queue refused it, for example because it is full.
	Nacked
	// Unknown means that it was sent without an answer: it may be in its queue or not.
	Unknown
)

// String names the status in lower case.
func (s Status) String() string {
	switch s {
	case NotSent:
		return "not_sent"
	case Confirmed:
		return "confirmed"
	case Returned:
		return "returned"
	case Nacked:
		return "nacked"
	case Unknown:
		return "unknown"
	default:
		return fmt.Sprintf("Status(%d)", int(s))
	}
}

// Outcome is the result of one message. Err is nil exactly if Status is Confirmed.
type Outcome struct {
	Err    error
	Status Status
}

// Errors of outcomes, besides those of the connection.
var (
	ErrInvalid        = errors.New("the message cannot be sent")
	ErrReturned       = errors.New("the message was returned as unroutable")
	ErrNacked         = errors.New("the message broker refused the message")
	ErrConfirmTimeout = errors.New("the message was not confirmed in time")
	ErrChannelLost    = errors.New("the channel was lost before the confirmation")
)

// Publisher publishes with confirms. Any number of goroutines share it and its one window of
// unconfirmed messages. They do not wait for each other's confirms unless the window is full.
type Publisher struct {
	cfg     Config
	link    *link
	metrics *Metrics
	slots   chan struct{} // one element per unconfirmed message
	opening chan struct{} // held while a channel is being opened
	current chan *outlet  // holds one element: the current channel or nil
	alone   bool          // its channel carries one message at a time
}

func newPublisher(cfg Config, link *link, metrics *Metrics) *Publisher {
	p := &Publisher{
		cfg: cfg, link: link, metrics: metrics,
		slots:   make(chan struct{}, cfg.Window),
		opening: make(chan struct{}, 1),
		current: make(chan *outlet, 1),
	}
	p.current <- nil
	return p
}

// Publish sends the messages in order and returns their outcomes, in the same order, when all are
// known. Messages are in flight together, so a batch costs little more than one message. Without a
// connection it waits for one; messages that are still unsent then are NotSent with
// ErrNotConnected.
func (p *Publisher) Publish(ctx context.Context, messages []Message) []Outcome {
	f := flight{p: p, messages: messages, outcomes: make([]Outcome, len(messages))}
	for i := range messages {
		f.send(ctx, i)
	}
	for len(f.pending) > 0 {
		f.collect(ctx)
	}
	if f.apart != nil {
		f.apart.discard()
	}
	for i := range messages {
		// What is sent alone goes where an operator or another program wants it.
		if o := &f.outcomes[i]; !messages[i].Alone && (o.Status == Confirmed || o.Status == Nacked) {
			p.link.note(messages[i].Exchange, o.Err)
		}
	}
	p.metrics.outcomes(f.outcomes)
	return f.outcomes
}

// flight is one call of Publish.
type flight struct {
	p        *Publisher
	messages []Message
	outcomes []Outcome
	pending  []pending  // sent, without an outcome, in order
	gaveUp   error      // once set, the rest is not sent
	apart    *Publisher // of messages that are sent alone; nil before the first
}

type pending struct {
	index   int
	sent    time.Time
	outlet  *outlet
	confirm *amqp.DeferredConfirmation
}

func (f *flight) send(ctx context.Context, index int) {
	if err := f.messages[index].check(); err != nil {
		f.outcomes[index] = Outcome{Status: NotSent, Err: err}
		return
	}
	if f.messages[index].Alone && !f.p.alone {
		f.sendAlone(ctx, index)
		return
	}
	if f.gaveUp == nil {
		f.gaveUp = f.acquire(ctx)
	}
	if f.gaveUp != nil {
		f.outcomes[index] = Outcome{Status: NotSent, Err: f.gaveUp}
		return
	}
	for {
		outlet, err := f.p.outlet(ctx)
		if err != nil {
			f.gaveUp = err
			f.outcomes[index] = Outcome{Status: NotSent, Err: err}
			<-f.p.slots
			return
		}
		confirm, err := outlet.send(&f.messages[index])
		if errors.Is(err, amqp.ErrClosed) {
			continue // the message was not sent: try the next channel
		}
		if err != nil {
			f.outcomes[index] = unsent(outlet, err)
			<-f.p.slots
			return
		}
		f.p.metrics.sent()
		f.pending = append(f.pending, pending{index, time.Now(), outlet, confirm})
		return
	}
}

// sendAlone sends a message and awaits its outcome.
func (f *flight) sendAlone(ctx context.Context, index int) {
	if f.apart == nil {
		cfg := f.p.cfg
		cfg.Window = 1
		f.apart = newPublisher(cfg, f.p.link, f.p.metrics)
		f.apart.alone = true
	}
	one := flight{
		p: f.apart, messages: f.messages[index : index+1], outcomes: f.outcomes[index : index+1], gaveUp: f.gaveUp,
	}
	one.send(ctx, 0)
	for len(one.pending) > 0 {
		one.collect(ctx)
	}
	f.gaveUp = one.gaveUp
}

// discard closes the channel of a publisher that sends no more.
func (p *Publisher) discard() {
	if o := <-p.current; o != nil && !o.channel.IsClosed() {
		go discardChannel(o.channel)
	}
	p.current <- nil
}

// unsent is the outcome of a message that the library refused. If the channel survived, the message
// itself was invalid and was not sent.
func unsent(o *outlet, err error) Outcome {
	if o.channel.IsClosed() || o.conn.IsClosed() {
		return Outcome{Status: Unknown, Err: fmt.Errorf("%w: %w", ErrChannelLost, err)}
	}
	return Outcome{Status: NotSent, Err: fmt.Errorf("publish: %w", err)}
}

// acquire takes a place in the window. A flight that holds places returns one before it waits, so
// that two flights never wait for each other.
func (f *flight) acquire(ctx context.Context) error {
	for {
		select {
		case f.p.slots <- struct{}{}:
			return nil
		default:
		}
		if len(f.pending) > 0 {
			f.collect(ctx)
			continue
		}
		select {
		case f.p.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for the publishing window: %w", context.Cause(ctx))
		}
	}
}

// collect waits for the outcome of the oldest pending message.
func (f *flight) collect(ctx context.Context) {
	oldest := f.pending[0]
	f.pending = f.pending[1:]
	outcome := f.await(ctx, oldest)
	f.outcomes[oldest.index] = outcome
	f.p.metrics.resolved(outcome.Status, time.Since(oldest.sent))
	<-f.p.slots
}

func (f *flight) await(ctx context.Context, m pending) Outcome {
	select {
	case <-m.confirm.Done():
		return m.outlet.resolve(&f.messages[m.index], m.confirm.Acked())
	default:
	}
	deadline := time.NewTimer(f.p.cfg.ConfirmTimeout - time.Since(m.sent))
	defer deadline.Stop()
	select {
	case <-m.confirm.Done():
		return m.outlet.resolve(&f.messages[m.index], m.confirm.Acked())
	case <-deadline.C:
		m.outlet.forget()
		return Outcome{Status: Unknown, Err: ErrConfirmTimeout}
	case <-ctx.Done():
		m.outlet.forget()
		return Outcome{Status: Unknown, Err: fmt.Errorf("wait for the confirmation: %w", context.Cause(ctx))}
	}
}
