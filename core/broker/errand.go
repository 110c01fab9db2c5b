package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/crashpoint"
)

// Decimal is the number type of AMQP headers that Go has none for.
type Decimal = amqp.Decimal

// Whole is a message with everything that it carries, typed as AMQP types it, so
// that it can be sent again as it was.
type Whole struct {
	Exchange        string
	RoutingKey      string
	Redelivered     bool
	Headers         Table
	ContentType     string
	ContentEncoding string
	DeliveryMode    uint8
	Priority        uint8
	CorrelationID   string
	ReplyTo         string
	Expiration      string
	MessageID       string
	Timestamp       time.Time
	Type            string
	UserID          string
	AppID           string
	Body            []byte

	tag      uint64
	consumer int
}

func wholeOf(d *amqp.Delivery) *Whole {
	return &Whole{
		Exchange: d.Exchange, RoutingKey: d.RoutingKey, Redelivered: d.Redelivered, Headers: d.Headers, ContentType: d.ContentType,
		ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode, Priority: d.Priority, CorrelationID: d.CorrelationId, ReplyTo: d.ReplyTo,
		Expiration: d.Expiration, MessageID: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, UserID: d.UserId, AppID: d.AppId, Body: d.Body,
		tag: d.DeliveryTag,
	}
}

// publishing is the message as it is sent: kept over a restart, and without a
// user, since the broker lets nobody send in another's name.
func (w *Whole) publishing() amqp.Publishing {
	return amqp.Publishing{
		Headers: w.Headers, ContentType: w.ContentType, ContentEncoding: w.ContentEncoding, DeliveryMode: amqp.Persistent, Priority: w.Priority,
		CorrelationId: w.CorrelationID, ReplyTo: w.ReplyTo, Expiration: w.Expiration, MessageId: w.MessageID, Timestamp: w.Timestamp,
		Type: w.Type, AppId: w.AppID, Body: w.Body,
	}
}

// Return is how messages that were taken and not settled go back to their queue.
type Return int

// The ways back.
const (
	// ReturnByNack asks for all of them to be put back at once.
	ReturnByNack Return = iota
	// ReturnByClose leaves it to the end of the channel.
	ReturnByClose
)

// Errand is a short stay at the broker: a connection that takes and looks, and one
// that sends, since a broker in alarm stops reading from those that send. It is
// for one goroutine and is never dialled again.
type Errand struct {
	cfg  Config
	take *connection
	send *connection // nil until something is sent

	out     *amqp.Channel
	returns chan amqp.Return
	blocked chan amqp.Blocking
}

// OpenErrand connects. The name is what the broker's own pages show.
func OpenErrand(ctx context.Context, cfg Config) (*Errand, error) {
	cfg = cfg.withDefaults()
	take, err := dial(ctx, cfg, cfg.ConnectionName)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	return &Errand{cfg: cfg, take: take}, nil
}

// Close ends both connections. What was taken and not settled goes back.
func (e *Errand) Close() {
	e.take.goodbye()
	if e.send != nil {
		e.send.goodbye()
	}
}

// Version is the version of the broker as it greeted us; empty if it did not say.
func (e *Errand) Version() string {
	version, _ := e.take.Properties["version"].(string)
	return version
}

// Lost reports whether the connection that takes is gone.
func (e *Errand) Lost() bool { return e.take.IsClosed() }

// Queue reads how many messages are ready in a queue and how many consumers it has,
// exactly. errors.Is(err, ErrNotFound) if there is none.
func (e *Errand) Queue(ctx context.Context, name string) (ready, consumers int, err error) {
	q, err := ask(ctx, e.take, func() (amqp.Queue, error) {
		channel, err := e.take.Channel()
		if err != nil {
			return amqp.Queue{}, err
		}
		defer discardChannel(channel)
		return channel.QueueDeclarePassive(name, true, false, false, false, nil)
	}, nil)
	if err != nil {
		return 0, 0, absentQueue(name, err)
	}
	return q.Messages, q.Consumers, nil
}

// Exchange tells whether an exchange exists.
func (e *Errand) Exchange(ctx context.Context, name string) (bool, error) {
	_, err := ask(ctx, e.take, func() (struct{}, error) {
		channel, err := e.take.Channel()
		if err != nil {
			return struct{}{}, err
		}
		defer discardChannel(channel)
		return struct{}{}, channel.ExchangeDeclarePassive(name, "topic", true, false, false, false, nil)
	}, nil)
	if refused, ok := errors.AsType[*amqp.Error](err); ok && refused.Code == amqp.NotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for exchange %s: %w", name, err)
	}
	return true, nil
}

func absentQueue(name string, err error) error {
	if refused, ok := errors.AsType[*amqp.Error](err); ok && refused.Code == amqp.NotFound {
		return fmt.Errorf("look for queue %s: %w", name, ErrNotFound)
	}
	return fmt.Errorf("look for queue %s: %w", name, err)
}

// Purge removes what is ready in a queue and says how much that was: also what came
// a moment ago, and nothing of what somebody holds.
func (e *Errand) Purge(ctx context.Context, queue string) (int, error) {
	n, err := ask(ctx, e.take, func() (int, error) {
		channel, err := e.take.Channel()
		if err != nil {
			return 0, err
		}
		defer discardChannel(channel)
		return channel.QueuePurge(queue, false)
	}, nil)
	if err != nil && e.Lost() {
		err = fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	if err != nil {
		return 0, fmt.Errorf("purge queue %s: %w", queue, err)
	}
	return n, nil
}

// Peek gets the first messages of a queue, at most n, and returns them to it. stop
// ends it early. What was got before an error is returned with it.
func (e *Errand) Peek(ctx context.Context, queue string, n int, back Return, stop func(*Whole) bool) (found []*Whole, err error) {
	channel, err := ask(ctx, e.take, e.take.Channel, discardChannel)
	if err != nil {
		return nil, fmt.Errorf("peek into queue %s: %w", queue, err)
	}
	defer func() {
		if err := giveBack(channel, back); err != nil {
			e.take.sever() // then they go back with the connection
		}
	}()
	for len(found) < n {
		type got struct {
			d  amqp.Delivery
			ok bool
		}
		one, err := ask(ctx, e.take, func() (got, error) {
			d, ok, err := channel.Get(queue, false)
			return got{d, ok}, err
		}, nil)
		if err != nil {
			return found, fmt.Errorf("peek into queue %s: %w", queue, err)
		}
		if !one.ok {
			break
		}
		found = append(found, wholeOf(&one.d))
		if stop != nil && stop(found[len(found)-1]) {
			break
		}
	}
	return found, nil
}

// giveBack returns all that a channel holds, and closes it.
func giveBack(channel *amqp.Channel, back Return) error {
	if channel.IsClosed() {
		return nil
	}
	if back == ReturnByNack {
		if err := channel.Nack(0, true, true); err != nil {
			return err
		}
	}
	return channel.Close()
}

// Errors of an errand, besides ErrReturned and ErrNacked.
var (
	errSendBlocked = fmt.Errorf("%w: nothing was sent", ErrBlocked)
	// ErrUnanswered is the ErrNotConnected of what was asked of a broker that went away
	// or fell silent before it answered: whether it was done is unknown.
	ErrUnanswered = fmt.Errorf("%w: it was asked and has not answered", ErrNotConnected)
)

// Send publishes a message, mandatory, and waits until the broker has confirmed
// that it is in a queue. With ErrUnanswered it may be there; with any other error it
// is not.
func (e *Errand) Send(ctx context.Context, exchange, key string, w *Whole) error {
	if e.out == nil || e.out.IsClosed() {
		if err := e.openSending(ctx); err != nil {
			return err
		}
	}
	if e.Blocked() {
		return errSendBlocked
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.ConfirmTimeout, ErrConfirmTimeout)
	defer cancel()
	acked, err := ask(ctx, e.send, func() (bool, error) {
		confirm, err := e.out.PublishWithDeferredConfirmWithContext(ctx, exchange, key, true, false, w.publishing())
		if err != nil {
			return false, err
		}
		crashpoint.Reach("redrive:published")
		return confirm.WaitContext(ctx)
	}, nil)
	if err != nil || !acked && e.send.IsClosed() { // whose end refuses whatever was not confirmed
		return fmt.Errorf("publish to %s with the key %s: %w", exchange, key, e.unanswered(ctx, err))
	}
	select { // a return arrives before the confirm of its message
	case one := <-e.returns:
		return fmt.Errorf("%w: %s", ErrReturned, strings.ToLower(one.ReplyText))
	default:
	}
	if !acked {
		return ErrNacked
	}
	return nil
}

// unanswered says why a message has no confirm.
func (e *Errand) unanswered(ctx context.Context, err error) error {
	switch {
	case e.Blocked():
		return fmt.Errorf("%w: %w", ErrUnanswered, ErrBlocked)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrUnanswered, context.Cause(ctx))
	case err == nil || e.send.IsClosed() || severed(err):
		return ErrUnanswered
	default:
		return err
	}
}

// severed reports whether an error is one of the connection's own socket: whoever
// writes may learn that it is gone before the connection says that it is closed.
func severed(err error) bool {
	_, socket := errors.AsType[*net.OpError](err)
	return socket || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (e *Errand) openSending(ctx context.Context) (err error) {
	if e.send == nil || e.send.IsClosed() {
		if e.send, err = dial(ctx, e.cfg, e.cfg.ConnectionName+"/send"); err != nil {
			e.send = nil
			return fmt.Errorf("%w: %w", ErrNotConnected, err)
		}
		e.blocked = e.send.NotifyBlocked(make(chan amqp.Blocking, watchBuffer))
	}
	e.out, err = ask(ctx, e.send, func() (*amqp.Channel, error) {
		channel, err := e.send.Channel()
		if err != nil {
			return nil, err
		}
		return channel, channel.Confirm(false)
	}, discardChannel)
	if err != nil {
		return fmt.Errorf("open the publishing channel: %w", err)
	}
	e.returns = e.out.NotifyReturn(make(chan amqp.Return, watchBuffer))
	return nil
}

// Blocked reports whether the broker has said that it takes no messages.
func (e *Errand) Blocked() bool {
	for e.send != nil {
		select {
		case b, ok := <-e.blocked:
			if !ok {
				return false
			}
			e.send.blocked.Store(b.Active)
		default:
			return e.send.blocked.Load()
		}
	}
	return false
}
