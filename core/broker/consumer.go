package broker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/supervise"
)

// ConsumerConfig configures a consumer.
type ConsumerConfig struct {
	// Await is called before every subscription and blocks until subscribing is allowed; it returns
	// false when ctx ends. May be nil.
	Await func(ctx context.Context) bool
	// MaxBatch caps the messages of a batch. Prefetch if zero.
	MaxBatch int
	// Prefetch is how many messages may be unsettled at a time. Twice MaxBatch
	// if zero, so that the next batch collects while one is being handled.
	Prefetch int
	// Queue is the queue's name. Required.
	Queue string
	// Restore declares the queue if it was deleted or crashed. The consumer then subscribes again.
	// If nil, the consumer waits for the queue.
	Restore func(ctx context.Context) error
	// Tag names the consumer in the management UI; the library generates a unique one if empty.
	Tag string

	trials Trials // nil without
}

const batchDefault = 100

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	c.MaxBatch = supervise.OrDefault(c.MaxBatch, supervise.OrDefault(c.Prefetch, batchDefault))
	c.Prefetch = supervise.OrDefault(c.Prefetch, 2*c.MaxBatch)
	return c
}

// Consumer receives messages from one queue in natural batches: each receive from Batches gets
// everything that has arrived, up to MaxBatch.
//
// When it loses its channel, its connection or its queue, it subscribes again, with pauses, for as
// long as it runs. Stop cancels the subscription and returns undelivered messages to the queue;
// batches that were handed out can be settled until the Broker stops.
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

// Consume makes a consumer; it receives nothing before Start.
func (b *Broker) Consume(cfg ConsumerConfig) *Consumer {
	cfg.trials = b.cfg.Trials
	return &Consumer{
		cfg: cfg.withDefaults(), link: b.consume, logger: b.logger, metrics: b.metrics,
		batches: make(chan *Batch), giveBack: make(chan struct{}, 1),
	}
}

// Start begins to subscribe and returns at once. It retries in the background.
func (c *Consumer) Start(ctx context.Context) error { return c.Launch(ctx, nil, c.run) }

// Batches returns the channel of the batches. It is never closed.
func (c *Consumer) Batches() <-chan *Batch { return c.batches }

// errGivenBack ends a subscription after GiveBack.
var errGivenBack = errors.New("deliveries are given back to the queue")

// GiveBack ends the subscription and returns all unsettled messages to the queue, in order:
// handed-out batches become stale. The consumer subscribes again when Await allows it. GiveBack
// does not wait.
func (c *Consumer) GiveBack() {
	select {
	case c.giveBack <- struct{}{}:
	default:
	}
}

// Subscribed reports whether the broker delivers to this consumer now.
func (c *Consumer) Subscribed() bool { return c.subscribed.Load() }

func (c *Consumer) run(ctx context.Context) {
	cfg := c.link.broker.cfg
	defer c.link.note(c.cfg.Queue, nil)
	pauses := newBackOff(cfg)
	logged := ""
	for ctx.Err() == nil && (c.cfg.Await == nil || c.cfg.Await(ctx)) {
		begun := time.Now()
		err := c.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > lasting {
			pauses.Reset()
			logged = ""
		}
		if errors.Is(err, ErrStopped) {
			<-ctx.Done() // the Broker has stopped
			return
		}
		if errors.Is(err, errGivenBack) {
			c.logger.DebugContext(ctx, "Deliveries are given back", "queue", c.cfg.Queue)
			continue
		}
		// The same error is logged once, however often the subscription is tried.
		level := slog.LevelWarn
		if err.Error() == logged {
			level = slog.LevelDebug
		}
		logged = err.Error()
		c.link.note(c.cfg.Queue, cmp.Or(c.restore(ctx, err), err))
		pause := pauses.NextBackOff()
		c.logger.Log(ctx, level, "Queue is not being consumed",
			"queue", c.cfg.Queue, "pause", pause, "problem", Trouble(err).String(), "error", err)
		supervise.Sleep(ctx, pause)
	}
}

// restore declares a queue that is gone, and returns why it could not.
func (c *Consumer) restore(ctx context.Context, cause error) error {
	_, missing := refusal(cause, amqp.NotFound)
	if c.cfg.Restore == nil || !missing && !errors.Is(cause, errCancelled) {
		return nil
	}
	before, err := c.link.broker.QueueState(ctx, c.cfg.Queue)
	if err == nil && !before.Exists {
		err = c.cfg.Restore(ctx)
	}
	switch {
	case err != nil:
		c.logger.WarnContext(ctx, "Queue is missing and could not be declared",
			"queue", c.cfg.Queue, "problem", Trouble(err).String(), "error", err)
	case !before.Exists:
		c.link.broker.recreated(ctx, c.cfg.Queue, cause)
	}
	return err
}

func (c *Consumer) serve(ctx context.Context) error {
	conn, err := c.link.wait(ctx)
	if err != nil {
		return err
	}
	s, err := call(ctx, conn, func() (*subscription, error) { return subscribe(conn, c.cfg, c.link.broker.publisher) },
		func(s *subscription) { discardChannel(s.channel) })
	if err != nil {
		return err
	}
	c.link.note(c.cfg.Queue, nil)
	c.mark(true)
	defer c.mark(false)
	select {
	case <-c.giveBack: // the messages of an earlier request are back already
	default:
	}
	c.logger.DebugContext(ctx, "Queue is being consumed", "queue", c.cfg.Queue)
	return s.pump(ctx, c.batches, c.giveBack)
}

func (c *Consumer) mark(on bool) {
	c.subscribed.Store(on)
	c.metrics.subscribe(c.cfg.Queue, on)
}
