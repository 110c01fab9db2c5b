package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/supervise"
)

// outlet is one publishing channel in confirm mode.
type outlet struct {
	conn    *connection
	channel *amqp.Channel

	mu          sync.Mutex
	returns     <-chan amqp.Return // nil once closed; guarded by mu
	returned    map[origin]int     // returns not yet matched; guarded by mu
	closed      <-chan *amqp.Error // holds at most one element
	reason      *amqp.Error        // why the channel closed; guarded by mu
	outstanding int                // guarded by mu
	// refused says that the broker refused a message: no more are sent, and the channel closes after the
	// last confirmation. After a quorum queue has lost its leader, a channel that sent to it may be refused
	// for ever, and a new one is not. Guarded by mu.
	refused bool
	alone   bool // it carries one message at a time
}

type origin struct{ id, exchange, key string }

// outlet returns the current channel, and opens one if necessary.
func (p *Publisher) outlet(ctx context.Context) (*outlet, error) {
	if o := p.inUse(); o != nil {
		return o, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.ConnectTimeout, errConnectTimeout)
	defer cancel()
	select {
	case p.opening <- struct{}{}:
		defer func() { <-p.opening }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, context.Cause(ctx))
	}
	var last error
	for {
		conn, err := p.link.wait(ctx)
		if err != nil && last != nil {
			return nil, fmt.Errorf("%w (before: %w)", err, last)
		}
		if err != nil {
			return nil, err
		}
		if o := p.inUse(); o != nil {
			return o, nil // another caller opened it, or it is no longer blocked
		}
		o, err := call(ctx, conn, func() (*outlet, error) { return openOutlet(conn, p.cfg.Window, p.alone) },
			func(o *outlet) { discardChannel(o.channel) })
		if err == nil {
			<-p.current
			p.current <- o
			return o, nil
		}
		last = err
		// No tight loop on a connection that opens no channels, or is about to be found dead.
		if !supervise.Sleep(ctx, p.cfg.MinBackoff) {
			return nil, fmt.Errorf("%w: %w", ErrNotConnected, last)
		}
	}
}

// errConnectTimeout is the cause of a timeout while waiting for a channel.
var errConnectTimeout = errors.New("no channel in time")

// inUse returns the current channel if it can send messages.
func (p *Publisher) inUse() *outlet {
	o := <-p.current
	p.current <- o
	if o == nil || o.channel.IsClosed() || o.conn.IsClosed() || o.conn.blocked.Load() || o.wasRefused() {
		return nil
	}
	return o
}

func (o *outlet) wasRefused() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refused
}

func openOutlet(conn *connection, window int, alone bool) (*outlet, error) {
	channel, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open the publishing channel: %w", err)
	}
	// A return is read before its message leaves the window, so twice the window always has room;
	// the library would block on a full channel.
	o := &outlet{
		conn: conn, channel: channel, returned: make(map[origin]int), alone: alone,
		returns: channel.NotifyReturn(make(chan amqp.Return, 2*window+64)),
		closed:  channel.NotifyClose(make(chan *amqp.Error, 1)),
	}
	if err := channel.Confirm(false); err != nil {
		discardChannel(channel)
		return nil, fmt.Errorf("enable confirmations: %w", err)
	}
	return o, nil
}

func (o *outlet) send(m *Message) (*amqp.DeferredConfirmation, error) {
	o.mu.Lock()
	if o.outstanding == 0 {
		o.takeReturnsLocked()
		clear(o.returned) // late returns of abandoned messages
	}
	o.outstanding++
	o.mu.Unlock()
	confirm, err := o.channel.PublishWithDeferredConfirm(m.Exchange, m.RoutingKey, true, false, o.publishing(m))
	if err != nil {
		o.forget()
	}
	return confirm, err
}

// publishing is a message as it is sent.
func (o *outlet) publishing(m *Message) amqp.Publishing {
	if m.Properties != nil {
		return m.Properties.publishing(m.Body, o.conn.login)
	}
	correlation, at := m.CorrelationID, m.Timestamp
	if correlation == "" {
		correlation = m.ID
	}
	if at.IsZero() {
		at = time.Now()
	}
	expiration := ""
	if m.Fleeting {
		expiration = "0"
	}
	return amqp.Publishing{
		DeliveryMode: amqp.Persistent, ContentType: "application/json",
		MessageId: m.ID, CorrelationId: correlation, Type: m.Type, Timestamp: at,
		Headers: m.Headers, Body: m.Body, Expiration: expiration,
	}
}

// forget drops a message whose outcome the caller no longer awaits.
func (o *outlet) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.takeReturnsLocked()
	o.doneLocked()
}

// resolve turns a confirmation into an outcome. The return of a message, if any, is always in its
// channel before the confirmation resolves.
func (o *outlet) resolve(m *Message, acked bool) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.doneLocked()
	o.takeReturnsLocked()
	key := origin{m.id(), m.Exchange, m.RoutingKey}
	if n := o.returned[key]; n > 0 {
		if n == 1 {
			delete(o.returned, key)
		} else {
			o.returned[key] = n - 1
		}
		return Outcome{
			Status: Returned,
			Err:    fmt.Errorf("%w: exchange %q, routing key %q", ErrReturned, m.Exchange, m.RoutingKey),
		}
	}
	switch {
	case acked:
		return Outcome{Status: Confirmed}
	case o.channel.IsClosed():
		return o.lostLocked(m)
	default:
		o.refused = true
		return Outcome{
			Status: Nacked,
			Err:    fmt.Errorf("%w: exchange %q, routing key %q", ErrNacked, m.Exchange, m.RoutingKey),
		}
	}
}

// lostLocked is the outcome of a message whose channel closed. If it closed because the message's
// own exchange is missing or forbidden, the message was certainly not routed; the caller should retry
// it only after a pause.
func (o *outlet) lostLocked(m *Message) Outcome {
	select {
	case reason, ok := <-o.closed:
		if ok {
			o.reason = reason
		}
	default:
	}
	if o.reason == nil {
		return Outcome{Status: Unknown, Err: ErrChannelLost}
	}
	if o.reason.Code == amqp.NotFound && strings.Contains(o.reason.Reason, "no exchange '"+m.Exchange+"'") {
		return Outcome{Status: Returned, Err: fmt.Errorf("%w: %w", ErrReturned, o.reason)}
	}
	forbidden := o.reason.Code == amqp.AccessRefused && strings.Contains(o.reason.Reason, "exchange '"+m.Exchange+"'")
	if forbidden || o.alone && o.reason.Server && !o.conn.IsClosed() {
		return Outcome{Status: Nacked, Err: fmt.Errorf("%w: %w", ErrNacked, o.reason)}
	}
	return Outcome{Status: Unknown, Err: fmt.Errorf("%w: %w", ErrChannelLost, o.reason)}
}

func (o *outlet) takeReturnsLocked() {
	for {
		select {
		case r, ok := <-o.returns:
			if !ok {
				o.returns = nil
				return
			}
			o.returned[origin{r.MessageId, r.Exchange, r.RoutingKey}]++
		default:
			return
		}
	}
}

// doneLocked removes a message from the window.
func (o *outlet) doneLocked() {
	o.outstanding--
	if o.refused && o.outstanding == 0 {
		go discardChannel(o.channel)
	}
}
