package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/supervise"
)

// link keeps one connection up: it dials, watches, and dials again.
type link struct {
	broker    *Broker
	purpose   string
	attempted chan struct{} // closed after the first attempt to connect

	mu      sync.Mutex
	conn    *connection   // nil while down; guarded by mu
	changed chan struct{} // closed at the next change; guarded by mu
	lastErr error         // why it is down; guarded by mu
	since   time.Time     // when it came up, went down, or was blocked; guarded by mu
	// blockedBy is the exhausted resource of the last block; guarded by mu.
	blockedBy string
	server    string // broker of the last connection; guarded by mu
	// refused is what the broker refuses while the connection is up, by queue or exchange; guarded by mu.
	refused map[string]refused
}

// refused is a refusal of something that is tried again.
type refused struct {
	err         error
	first, last time.Time
}

// refusedFor is how long a refusal counts that is not repeated.
const refusedFor = 2 * time.Minute

// consumePurpose names the connection that receives deliveries.
const consumePurpose = "consume"

func newLink(b *Broker, purpose string) *link {
	return &link{
		broker: b, purpose: purpose, attempted: make(chan struct{}), changed: make(chan struct{}),
		refused: map[string]refused{},
	}
}

// lasting is how long a connection must have lasted for its loss to count as a new incident.
const lasting = time.Second

func (l *link) run(ctx context.Context) {
	pauses := newBackOff(l.broker.cfg)
	first := sync.OnceFunc(func() { close(l.attempted) })
	defer first()
	for ctx.Err() == nil {
		begun := time.Now()
		conn, err := l.broker.dial(ctx, l.broker.cfg.ConnectionName+"/"+l.purpose)
		l.broker.metrics.connect(l.purpose, err)
		if err == nil {
			begun = time.Now()
			// The listeners come before the first publish: the client drops a notice without one.
			closed := conn.NotifyClose(make(chan *amqp.Error, 1))
			blocked := conn.NotifyBlocked(make(chan amqp.Blocking, watchBuffer))
			l.set(conn, nil)
			first()
			l.broker.logger.InfoContext(ctx, "Connected to the message broker", "connection", l.purpose)
			err = l.watch(ctx, conn, closed, blocked)
			if conn.held != nil {
				conn.held.clear()
			}
		}
		l.set(nil, err)
		first()
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > lasting {
			pauses.Reset()
		}
		pause := pauses.NextBackOff()
		l.broker.logger.WarnContext(ctx, "Message broker is away",
			"connection", l.purpose, "pause", pause, "problem", Trouble(err).String(), "error", err)
		supervise.Sleep(ctx, pause)
	}
}

// watch follows a connection to its end and returns the cause.
func (l *link) watch(ctx context.Context, conn *connection, closed <-chan *amqp.Error,
	blocked <-chan amqp.Blocking,
) error {
	for {
		select {
		case <-ctx.Done():
			conn.goodbye()
			return ErrStopped
		case reason := <-closed:
			if reason == nil {
				return errors.New("the connection was closed")
			}
			return fmt.Errorf("connection lost: %w", reason)
		case b, ok := <-blocked:
			if !ok {
				blocked = nil
				continue
			}
			if l == l.broker.publish { // the other connection publishes nothing that could block
				l.block(ctx, conn, b)
			}
		}
	}
}

func (l *link) block(ctx context.Context, conn *connection, b amqp.Blocking) {
	l.mu.Lock()
	if conn.blocked.Swap(b.Active) != b.Active {
		l.since = time.Now()
	}
	l.blockedBy = b.Reason
	l.mu.Unlock()
	l.broker.metrics.block(l.purpose, b.Active)
	if b.Active {
		l.broker.logger.WarnContext(ctx, "Message broker blocks publishers", "connection", l.purpose,
			"problem", Trouble(&BlockedError{b.Reason}).String(), "reason", b.Reason)
	} else {
		l.broker.logger.InfoContext(ctx, "Message broker accepts messages again", "connection", l.purpose)
	}
	l.mu.Lock()
	l.announceLocked()
	l.mu.Unlock()
	var cause error
	if b.Active {
		cause = &BlockedError{b.Reason}
	}
	l.broker.linkChanged(cause)
}

// set records that the link is up (conn) or down (nil).
func (l *link) set(conn *connection, cause error) {
	l.mu.Lock()
	was := l.conn
	if conn != was || l.since.IsZero() {
		l.since = time.Now()
	}
	if conn != nil {
		product, _ := conn.Properties["product"].(string)
		version, _ := conn.Properties["version"].(string)
		l.server = strings.TrimSpace(product + " " + version)
	}
	l.conn, l.lastErr = conn, cause
	l.announceLocked()
	l.mu.Unlock()
	l.broker.metrics.up(l.purpose, conn != nil)
	if was != nil || conn != nil {
		l.broker.linkChanged(cause)
	}
}

// note records that the broker refused the use of a queue or an exchange, or with nil that it works.
func (l *link) note(object string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.refused, object)
		return
	}
	if _, answered := refusal(err, amqp.AccessRefused, amqp.NotFound, amqp.ResourceLocked, amqp.PreconditionFailed,
		amqp.NotAllowed, amqp.ResourceError); answered {
		now, before := time.Now(), l.refused[object]
		l.refused[object] = refused{err, cmp.Or(before.first, now), now}
	}
}

func (l *link) announceLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// condition reports whether the link is up and whether the broker blocks it.
func (l *link) condition() (up, blocked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil, l.conn != nil && l.conn.blocked.Load()
}

// wait returns a connection that is up and not blocked, within the connect timeout and the context.
func (l *link) wait(ctx context.Context) (*connection, error) {
	if conn, _, _ := l.current(); conn != nil && !conn.blocked.Load() {
		return conn, nil
	}
	timeout := time.NewTimer(l.broker.cfg.ConnectTimeout)
	defer timeout.Stop()
	for {
		conn, changed, cause := l.current()
		if conn != nil && !conn.blocked.Load() {
			return conn, nil
		}
		select {
		case <-changed:
		case <-l.broker.Done():
			return nil, ErrStopped
		case <-ctx.Done():
			return nil, l.absent(conn, context.Cause(ctx))
		case <-timeout.C:
			return nil, l.absent(conn, cause)
		}
	}
}

func (l *link) current() (*connection, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn, l.changed, l.lastErr
}

// absent is the error of a caller whose wait for a connection failed.
func (l *link) absent(conn *connection, cause error) error {
	kind := ErrNotConnected
	if conn != nil {
		l.mu.Lock()
		kind = &BlockedError{l.blockedBy}
		l.mu.Unlock()
	}
	if cause == nil {
		return kind
	}
	return fmt.Errorf("%w: %w", kind, cause)
}

// newBackOff returns pauses that grow from MinBackoff to MaxBackoff, each jittered by half, so that
// replicas do not reconnect in step.
func newBackOff(cfg Config) *backoff.ExponentialBackOff {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = cfg.MinBackoff, cfg.MaxBackoff
	pauses.Multiplier, pauses.RandomizationFactor = 2, 0.5
	pauses.Reset()
	return pauses
}

// Link is the state of one of a Broker's two connections.
type Link struct {
	// Purpose is publish or consume. Declarations use consume.
	Purpose string
	Up      bool
	// Blocked says that the broker is connected but accepts no messages.
	Blocked bool
	// Blocks is the exhausted resource meanwhile.
	Blocks string
	// Trouble is why the connection is down or blocked, or what the broker refuses on it; empty while it works.
	Trouble phrase.Trouble
	// Since is when the state began. It is zero before the first attempt to connect.
	Since time.Time
	// Server is the broker's name and version; empty before the first connection.
	Server string
}

// Links returns the state of both connections.
func (b *Broker) Links() []Link {
	return []Link{b.publish.describe(), b.consume.describe()}
}

func (l *link) describe() Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := Link{Purpose: l.purpose, Up: l.conn != nil, Since: l.since, Server: l.server}
	switch {
	case l.conn == nil && l.lastErr != nil:
		d.Trouble = Trouble(l.lastErr)
	case l.conn == nil:
		d.Trouble = Trouble(ErrNotConnected)
	case l.conn.blocked.Load():
		d.Blocked, d.Blocks, d.Trouble = true, l.blockedBy, Trouble(&BlockedError{l.blockedBy})
	default:
		for _, object := range slices.Sorted(maps.Keys(l.refused)) {
			if r := l.refused[object]; d.Trouble.Fact == "" && time.Since(r.last) < refusedFor {
				d.Trouble, d.Since = Trouble(r.err), r.first
			}
		}
	}
	return d
}
