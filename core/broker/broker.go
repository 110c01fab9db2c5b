package broker

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// Broker keeps the connections to one virtual host of one message broker. It is a supervise.Service.
type Broker struct {
	supervise.Base
	cfg       Config
	logger    *slog.Logger
	metrics   *Metrics
	board     stateBoard
	publish   *link
	consume   *link
	publisher *Publisher
	held      *budget       // of received messages
	trying    chan struct{} // has an element while a message is tried alone
	node      atomic.Int64  // that answered last, of those in the URL

	mu              sync.Mutex
	connected       bool        // both links were up once; guarded by mu
	recreatedQueues []Recreated // recreated queues, the latest last; guarded by mu
}

var _ supervise.Service = (*Broker)(nil)

// New makes a Broker; it connects at Start. A nil logger discards; nil metrics are not exported.
func New(cfg Config, logger *slog.Logger, metrics *Metrics) *Broker {
	if logger == nil {
		logger = telemetry.Discard()
	}
	b := &Broker{
		cfg: cfg.withDefaults(), logger: logger, metrics: cmp.Or(metrics, NewMetrics(nil)), held: newBudget(),
		trying: make(chan struct{}, 1),
	}
	b.publish = newLink(b, "publish")
	b.consume = newLink(b, consumePurpose)
	b.publisher = newPublisher(b.cfg, b.publish, b.metrics)
	return b
}

// Start begins to connect and returns after the first attempt, successful or not. It retries in the
// background.
func (b *Broker) Start(ctx context.Context) error {
	if err := b.Launch(ctx, nil, b.run); err != nil {
		return err
	}
	for _, l := range []*link{b.publish, b.consume} {
		select {
		case <-l.attempted:
		case <-b.Done():
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

func (b *Broker) run(ctx context.Context) {
	var links sync.WaitGroup
	links.Go(func() { b.consume.run(ctx) })
	links.Go(func() { b.publish.run(ctx) })
	links.Wait()
	b.board.set(StateStopped, nil)
}

// State returns the state of the connections.
func (b *Broker) State() State {
	select {
	case <-b.Done():
		return StateStopped
	default:
		state, _ := b.board.held()
		return state
	}
}

// ConnectedFor is how long the connections have been up, 0 if they are down.
func (b *Broker) ConnectedFor() time.Duration {
	if state, since := b.board.held(); state == StateConnected {
		return time.Since(since)
	}
	return 0
}

// Watch returns a channel that receives every later change of state. A slow reader loses the oldest
// changes; the Broker never waits for it. The channel is never closed.
func (b *Broker) Watch() <-chan StateChange { return b.board.watch() }

// Publisher returns the publisher, which all callers share.
func (b *Broker) Publisher() *Publisher { return b.publisher }

// linkChanged derives the common state from both links.
func (b *Broker) linkChanged(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	publishUp, publishBlocked := b.publish.condition()
	consumeUp, _ := b.consume.condition()
	switch {
	case publishUp && consumeUp && publishBlocked:
		b.connected = true
		b.board.set(StateBlocked, cause)
	case publishUp && consumeUp:
		b.connected = true
		b.board.set(StateConnected, nil)
	case b.connected:
		b.board.set(StateDisconnected, cause)
	}
}
