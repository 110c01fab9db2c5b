package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/supervise"
)

// ConsumerConfig says what to consume.
type ConsumerConfig struct {
	// Await is called before every subscription and waits until there may be one; it
	// returns false when ctx ends. May be nil.
	Await func(ctx context.Context) bool
	// MaxBatch caps the messages of a batch. Prefetch if zero.
	MaxBatch int
	// Prefetch is how many messages may be unsettled at a time. Twice MaxBatch
	// if zero, so that the next batch collects while one is being handled.
	Prefetch int
	// Queue is the queue's name. Required.
	Queue string
	// Restore declares the queue when it is gone: deleted, or crashed. The consumer then
	// subscribes again. May be nil; then the queue is waited for.
	Restore func(ctx context.Context) error
	// Tag names the consumer on the broker's own pages; it is made unique by
	// the library if empty.
	Tag string
}

const batchDefault = 100

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	if c.MaxBatch <= 0 {
		c.MaxBatch = c.Prefetch
	}
	if c.MaxBatch <= 0 {
		c.MaxBatch = batchDefault
	}
	if c.Prefetch <= 0 {
		c.Prefetch = 2 * c.MaxBatch
	}
	return c
}

// Consumer takes messages from one queue in natural batches: whoever receives
// from Batches gets what has arrived by then, up to MaxBatch. It is a
// supervise.Service.
//
// When its channel, its connection or its queue is lost, it subscribes again,
// with pauses, for as long as it runs. Stop cancels the subscription and
// returns what was not handed out to the queue; batches handed out before may
// still be settled until the Broker stops.
type Consumer struct {
	supervise.Base
	cfg        ConsumerConfig
	link       *link
	logger     *slog.Logger
	metrics    *Metrics
	batches    chan *Batch
	giveBack   chan struct{}
	subscribed atomic.Bool
}

var _ supervise.Service = (*Consumer)(nil)

// Consume makes a consumer; it takes nothing before its Start.
func (b *Broker) Consume(cfg ConsumerConfig) *Consumer {
	return &Consumer{
		cfg: cfg.withDefaults(), link: b.consume, logger: b.logger, metrics: b.metrics,
		batches: make(chan *Batch), giveBack: make(chan struct{}, 1),
	}
}

// Start begins to subscribe and returns at once: a broker or a queue that is
// away is awaited in the background.
func (c *Consumer) Start(ctx context.Context) error { return c.Launch(ctx, nil, c.run) }

// Batches is where batches are received. The channel is never closed.
func (c *Consumer) Batches() <-chan *Batch { return c.batches }

// errGivenBack ends a subscription whose deliveries were given back.
var errGivenBack = errors.New("deliveries are given back to the queue")

// GiveBack ends the subscription and returns everything unsettled to the queue, in
// its order: batches that were handed out become stale. The consumer subscribes again
// when Await allows it. GiveBack does not wait.
func (c *Consumer) GiveBack() {
	select {
	case c.giveBack <- struct{}{}:
	default:
	}
}

// Subscribed tells whether the broker delivers to this consumer now.
func (c *Consumer) Subscribed() bool { return c.subscribed.Load() }

func (c *Consumer) run(ctx context.Context) {
	cfg := c.link.broker.cfg
	pauses := newBackOff(cfg)
	told := ""
	for ctx.Err() == nil && (c.cfg.Await == nil || c.cfg.Await(ctx)) {
		begun := time.Now()
		err := c.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > lasting {
			pauses.Reset()
			told = ""
		}
		if errors.Is(err, ErrStopped) {
			<-ctx.Done() // the Broker is gone for good
			return
		}
		if errors.Is(err, errGivenBack) {
			c.logger.DebugContext(ctx, "Deliveries are given back", "queue", c.cfg.Queue)
			continue
		}
		// The same trouble is told once, however often it is tried.
		level := slog.LevelWarn
		if err.Error() == told {
			level = slog.LevelDebug
		}
		told = err.Error()
		c.restore(ctx, err)
		pause := pauses.NextBackOff()
		c.logger.Log(ctx, level, "Queue is not being consumed", "queue", c.cfg.Queue, "pause", pause, "error", err)
		supervise.Sleep(ctx, pause)
	}
}

// restore declares a queue that is gone.
func (c *Consumer) restore(ctx context.Context, cause error) {
	refused, ok := errors.AsType[*amqp.Error](cause)
	if c.cfg.Restore == nil || !errors.Is(cause, errCancelled) && (!ok || refused.Code != amqp.NotFound) {
		return
	}
	before, err := c.link.broker.QueueState(ctx, c.cfg.Queue)
	if err == nil && !before.Exists {
		err = c.cfg.Restore(ctx)
	}
	switch {
	case err != nil:
		c.logger.WarnContext(ctx, "Queue is gone and could not be declared", "queue", c.cfg.Queue, "error", err)
	case !before.Exists:
		c.link.broker.recreated(ctx, c.cfg.Queue, cause)
	}
}

// serve holds one subscription from its beginning to its end.
func (c *Consumer) serve(ctx context.Context) error {
	conn, err := c.link.wait(ctx)
	if err != nil {
		return err
	}
	s, err := ask(ctx, conn, func() (*subscription, error) { return subscribe(conn, c.cfg, c.link.broker.publisher) },
		func(s *subscription) { discardChannel(s.channel) })
	if err != nil {
		return err
	}
	c.mark(true)
	defer c.mark(false)
	select {
	case <-c.giveBack: // what it was asked for before has come back already
	default:
	}
	c.logger.DebugContext(ctx, "Queue is being consumed", "queue", c.cfg.Queue)
	return s.pump(ctx, c.batches, c.giveBack)
}

func (c *Consumer) mark(on bool) {
	c.subscribed.Store(on)
	c.metrics.subscribe(c.cfg.Queue, on)
}
