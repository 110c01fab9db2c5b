package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

type connection struct {
	*amqp.Connection
	cfg     Config
	socket  net.Conn
	login   string
	held    *budget // nil if the connection receives no messages
	blocked atomic.Bool
}

// boundedConn sets a deadline for every write to the socket: the library sets none, and a peer that
// stops reading would block its callers for ever.
type boundedConn struct {
	net.Conn
	timeout time.Duration
}

// Write implements net.Conn.
func (c *boundedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// readBuffer is the size of one read from the socket.
const readBuffer = 32 << 10

// dial connects to the first node that answers, beginning with the one that answered last. The nodes
// share the configured time.
func (b *Broker) dial(ctx context.Context, name string) (*connection, error) {
	each := nodes(b.cfg.URL)
	cfg := b.cfg
	cfg.DialTimeout /= time.Duration(len(each))
	first := b.node.Load()
	var errs []error
	for i := range each {
		at := (first + int64(i)) % int64(len(each))
		cfg.URL = each[at]
		conn, err := dial(ctx, cfg, name, b.held)
		if err == nil {
			b.node.Store(at)
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// dial connects to one node within the configured time or until the context ends.
func dial(ctx context.Context, cfg Config, name string, held *budget) (*connection, error) {
	uri, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	var socket net.Conn
	switch {
	case strings.HasSuffix(name, "/"+takePurpose):
		held = newBudget() // it ends with the connection, and so do the messages that are not acknowledged
	case !strings.HasSuffix(name, "/"+consumePurpose):
		held = nil
	}
	keep := func() bool { return true }
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(name)
	for key, value := range cfg.Properties {
		properties[key] = value
	}
	// TLS starts here, because the library would start it outside the repair of headers.
	plain := strings.Replace(cfg.URL, "amqps://", "amqp://", 1)
	user, login := uri.Username, []amqp.Authentication(nil) // nil: that of the URL
	if cfg.Login != nil && len(uri.AuthMechanism) == 0 {
		var password string
		user, password = cfg.Login()
		login = []amqp.Authentication{&amqp.PlainAuth{Username: user, Password: password}}
	}
	inner, err := amqp.DialConfig(plain, amqp.Config{
		SASL: login,
		Dial: func(network, _ string) (net.Conn, error) {
			raw, err := (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port)))
			if err != nil {
				return nil, err
			}
			// Covers the handshake; the library removes it afterwards.
			if err := raw.SetDeadline(time.Now().Add(cfg.DialTimeout)); err != nil {
				_ = raw.Close() // unusable either way
				return nil, err
			}
			keep = context.AfterFunc(ctx, func() { _ = raw.Close() }) // aborts the handshake
			bounded := net.Conn(&boundedConn{Conn: raw, timeout: cfg.WriteTimeout})
			if uri.Scheme == "amqps" {
				if bounded, err = secure(bounded, uri); err != nil {
					_ = raw.Close() // unusable either way
					return nil, err
				}
			}
			socket = &readableConn{
				Conn: bounded, in: bufio.NewReaderSize(bounded, readBuffer), held: held, gone: make(chan struct{}),
			}
			return socket, nil
		},
		Heartbeat:  cfg.Heartbeat,
		Locale:     "en_US",
		Properties: properties,
	})
	if err != nil {
		return nil, &ConnectError{User: user, VHost: uri.Vhost, Err: err}
	}
	if !keep() {
		return nil, &ConnectError{User: user, VHost: uri.Vhost, Err: context.Cause(ctx)}
	}
	return &connection{Connection: inner, cfg: cfg, socket: socket, login: uri.Username, held: held}, nil
}

// sever closes the socket without the protocol; the library then fails every call.
func (c *connection) sever() { _ = c.socket.Close() }

// goodbye closes the connection in order, or severs it if the broker does not answer.
func (c *connection) goodbye() {
	watchdog := time.AfterFunc(c.cfg.CloseTimeout+time.Second, c.sever)
	defer watchdog.Stop()
	_ = c.CloseDeadline(time.Now().Add(c.cfg.CloseTimeout)) // closed whatever it returns
}

type answer[T any] struct {
	value T
	err   error
}

// call runs library calls, which have no deadlines, and waits for them no longer than the context.
// If the broker does not answer within the call timeout, it severs the connection. It discards late
// results.
func call[T any](ctx context.Context, c *connection, run func() (T, error), discard func(T)) (T, error) {
	answers, gone := make(chan answer[T]), make(chan struct{})
	defer close(gone)
	watchdog := time.AfterFunc(c.cfg.CallTimeout, c.sever)
	go func() {
		value, err := run()
		watchdog.Stop()
		select {
		case answers <- answer[T]{value, err}:
		case <-gone:
			if err == nil && discard != nil {
				discard(value)
			}
		}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// do is call without a result.
func do(ctx context.Context, c *connection, run func() error) error {
	_, err := call(ctx, c, func() (struct{}, error) { return struct{}{}, run() }, nil)
	return err
}

// onChannel is call with a channel of its own.
func onChannel[T any](ctx context.Context, c *connection, use func(*amqp.Channel) (T, error)) (T, error) {
	return call(ctx, c, func() (T, error) {
		channel, err := c.Channel()
		if err != nil {
			var none T
			return none, err
		}
		defer discardChannel(channel)
		return use(channel)
	}, nil)
}

// use is onChannel of a link; what names the purpose in an error.
func use[T any](ctx context.Context, l *link, what string, run func(*amqp.Channel) (T, error)) (value T, err error) {
	conn, err := l.wait(ctx)
	if err == nil {
		if value, err = onChannel(ctx, conn, run); err == nil {
			return value, nil
		}
		if conn.IsClosed() {
			err = fmt.Errorf("%w: %w", ErrNotConnected, err)
		}
	}
	var none T
	return none, fmt.Errorf("%s: %w", what, err)
}

// apart is use of a connection of its own, which ends with it.
func apart[T any](
	ctx context.Context, b *Broker, purpose, what string, run func(*amqp.Channel) (T, error),
) (value T, err error) {
	conn, err := b.dial(ctx, b.cfg.ConnectionName+"/"+purpose)
	if err != nil {
		return value, fmt.Errorf("%s: %w: %w", what, ErrNotConnected, err)
	}
	defer conn.goodbye()
	if value, err = onChannel(ctx, conn, run); err != nil {
		return value, fmt.Errorf("%s: %w", what, err)
	}
	return value, nil
}

// refusal is the broker's own error in err, if there is one with one of these codes.
func refusal(err error, codes ...int) (*amqp.Error, bool) {
	refused, ok := errors.AsType[*amqp.Error](err)
	return refused, ok && slices.Contains(codes, refused.Code)
}

// discardChannel closes a channel unless an error has closed it already.
func discardChannel(channel *amqp.Channel) {
	if !channel.IsClosed() {
		_ = channel.Close() // nothing depends on it any more
	}
}
