package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ErrStale is the error of settling a delivery whose channel is lost. The message is back in its
// queue and is delivered again.
var ErrStale = errors.New("the delivery's channel is closed; the message will be delivered again")

// errCancelled ends a subscription whose queue was deleted, has crashed or has moved.
var errCancelled = errors.New("the broker cancelled the consumer: the queue was deleted or has moved")

// subscription is one consumer on one channel, until the channel is lost.
type subscription struct {
	cfg        ConsumerConfig
	conn       *connection
	channel    *amqp.Channel
	metrics    *Metrics
	publisher  *Publisher // of dead letters
	tag        string
	deliveries <-chan amqp.Delivery
	closed     <-chan *amqp.Error
	cancelled  <-chan string

	mu       sync.Mutex
	open     []*Batch // with unsettled deliveries, in order; guarded by mu
	dead     bool     // guarded by mu
	retiring bool     // the channel closes with the last open batch; guarded by mu
}

func subscribe(conn *connection, cfg ConsumerConfig, publisher *Publisher) (*subscription, error) {
	channel, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open a channel to consume %s: %w", cfg.Queue, err)
	}
	s := &subscription{
		cfg: cfg, conn: conn, channel: channel, metrics: publisher.metrics, publisher: publisher, tag: cfg.Tag,
		closed:    channel.NotifyClose(make(chan *amqp.Error, 1)),
		cancelled: channel.NotifyCancel(make(chan string, 1)),
	}
	if s.tag == "" {
		s.tag = "attune." + cfg.Queue // unique within the channel is enough
	}
	if err = channel.Qos(cfg.Prefetch, 0, false); err == nil {
		s.deliveries, err = channel.Consume(cfg.Queue, s.tag, false, false, false, false, nil)
	}
	if err != nil {
		discardChannel(channel)
		return nil, fmt.Errorf("consume %s: %w", cfg.Queue, err)
	}
	return s, nil
}

// pump offers the received messages, and adds to the offered batch until it is received. It returns
// when the consumer stops, gives back its deliveries or loses the subscription.
func (s *subscription) pump(ctx context.Context, batches chan<- *Batch, giveBack <-chan struct{}) error {
	var batch, alone *Batch // alone has a delivery that has to be tried alone, after the batch
	size, again := 0, 0     // of the batch, which belongs to its receiver after the hand-out
	for {
		in, out := s.deliveries, batches
		if batch == nil {
			out = nil
			if alone != nil && s.tryAlone(ctx, alone, batches) {
				alone = nil
			}
		}
		if size == s.cfg.MaxBatch || alone != nil {
			in = nil
		}
		select {
		case d, ok := <-in:
			if !ok {
				return s.lost()
			}
			if s.cfg.trials != nil && d.Redelivered && weightOf(&d) > largeTrial {
				alone = s.add(nil, &d)
				continue
			}
			batch = s.add(batch, &d)
			if d.Redelivered {
				again++
			}
			size = len(batch.Deliveries)
		case out <- batch:
			s.metrics.countDelivered(s.cfg.Queue, size, again)
			batch, size, again = nil, 0, 0
		case reason, ok := <-s.closed:
			if ok && reason != nil {
				return s.invalidate(fmt.Errorf("channel lost: %w", reason))
			}
			return s.invalidate(errors.New("channel closed"))
		case <-giveBack:
			s.closeChannel()
			return errGivenBack
		case <-ctx.Done():
			if alone != nil {
				if err := alone.Deliveries[0].Requeue(); err != nil {
					return err
				}
			}
			return s.retire(batch)
		}
	}
}

// add adds a delivery to the batch, and makes one if necessary.
func (s *subscription) add(batch *Batch, d *amqp.Delivery) *Batch {
	if batch == nil {
		batch = &Batch{subscription: s, first: d.DeliveryTag}
		s.mu.Lock()
		s.open = append(s.open, batch)
		s.mu.Unlock()
	}
	batch.append(d)
	return batch
}

// lost ends a subscription whose deliveries stopped, and returns the cause.
func (s *subscription) lost() error {
	select {
	case <-s.cancelled:
		// The channel still exists; closing it returns unsettled messages, if their queue still
		// exists.
		s.closeChannel()
		return errCancelled
	case reason, ok := <-s.closed:
		if ok && reason != nil {
			return s.invalidate(fmt.Errorf("channel lost: %w", reason))
		}
	default:
	}
	s.closeChannel()
	return errors.New("deliveries have ended")
}

// invalidate makes every batch of the subscription stale.
func (s *subscription) invalidate(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead, s.open = true, nil
	return cause
}

// retire ends the subscription in order: the broker delivers nothing more, undelivered messages
// return to the queue, and the channel stays open for the handed-out batches.
func (s *subscription) retire(unsent *Batch) error {
	if s.conn.held != nil {
		defer s.conn.held.leave()()
	}
	//nolint:forbidigo // the end of a subscription outlives its caller; do has a deadline of its own
	err := do(context.Background(), s.conn, func() error {
		if err := s.channel.Cancel(s.tag, false); err != nil {
			return err
		}
		for d := range s.deliveries { // ends: the library closes it after a cancel
			unsent = s.add(unsent, &d)
		}
		return nil
	})
	if err != nil {
		return s.invalidate(fmt.Errorf("cancel the consumer: %w", err))
	}
	if unsent != nil {
		for i := range unsent.Deliveries {
			if err := unsent.Deliveries[i].Requeue(); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	s.retiring = true
	idle := len(s.open) == 0
	s.mu.Unlock()
	if idle {
		s.closeChannel()
	}
	return nil
}

// closeChannel makes the rest of the subscription stale and closes its channel, which returns
// everything unsettled. If the channel does not close, its connection is severed.
func (s *subscription) closeChannel() {
	_ = s.invalidate(nil)
	if s.conn.held != nil {
		s.conn.held.clear()
		defer s.conn.held.leave()()
	}
	//nolint:forbidigo // as in retire
	_ = do(context.Background(), s.conn, func() error {
		discardChannel(s.channel)
		return nil
	})
}

// acknowledge settles the unsettled deliveries of a batch: with one frame if no older batch is
// open, because a multiple acknowledgement covers older ones too.
func (s *subscription) acknowledge(b *Batch) error {
	s.mu.Lock()
	defer s.unlockAndLeave()
	if b.unsettled == 0 {
		return nil
	}
	n := b.unsettled
	if s.dead {
		s.metrics.settle(s.cfg.Queue, "stale", n)
		return ErrStale
	}
	var err error
	if s.open[0] == b && !b.detached {
		// The last unsettled tag, not the last tag: the broker rejects a tag that was settled
		// before.
		last := len(b.settled) - 1
		for last > 0 && b.settled[last] {
			last--
		}
		err = s.channel.Ack(b.tags[last], true)
	} else {
		for i, tag := range b.tags {
			if !b.settled[i] && err == nil {
				err = s.channel.Ack(tag, false)
			}
		}
	}
	for i := range b.settled {
		if !b.settled[i] {
			s.release(b, i)
		}
		b.settled[i] = true
	}
	s.finishLocked(b)
	if err != nil {
		s.metrics.settle(s.cfg.Queue, "stale", n)
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	s.metrics.settle(s.cfg.Queue, "acknowledged", n)
	return nil
}

// unlockAndLeave closes the channel of a retired subscription with its last batch.
func (s *subscription) unlockAndLeave() {
	leave := s.retiring && !s.dead && len(s.open) == 0
	s.mu.Unlock()
	if leave {
		s.closeChannel()
	}
}

func (s *subscription) isDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

func (s *subscription) accept(b *Batch, position int) error {
	return s.settle(b, position, "acknowledged", func() error { return s.channel.Ack(b.tags[position], false) })
}

func (s *subscription) acceptAll(list []*Delivery) error {
	s.mu.Lock()
	defer s.unlockAndLeave()
	var tags []uint64
	for _, d := range list {
		b, at := d.batch, d.position
		if b.settled[at] {
			continue
		}
		tags = append(tags, b.tags[at])
		if s.dead {
			continue
		}
		b.settled[at] = true
		b.unsettled--
		s.release(b, at)
		if b.unsettled == 0 {
			s.finishLocked(b)
		}
	}
	if len(tags) == 0 {
		return nil
	}
	if s.dead {
		s.metrics.settle(s.cfg.Queue, "stale", len(tags))
		return ErrStale
	}
	slices.Sort(tags)
	together, _ := slices.BinarySearch(tags, s.oldestLocked(tags[len(tags)-1]+1))
	var err error
	if together > 0 {
		err = s.channel.Ack(tags[together-1], true)
	}
	for _, tag := range tags[together:] {
		if err == nil {
			err = s.channel.Ack(tag, false)
		}
	}
	if err != nil {
		s.metrics.settle(s.cfg.Queue, "stale", len(tags))
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	s.metrics.settle(s.cfg.Queue, "acknowledged", len(tags))
	return nil
}

// oldestLocked is the smallest unsettled tag below a bound, or the bound. It skips the batch that
// is not handed out yet, whose tags are all greater.
func (s *subscription) oldestLocked(bound uint64) uint64 {
	for _, b := range s.open {
		if b.first >= bound {
			continue
		}
		for i, settled := range b.settled {
			if !settled {
				bound = min(bound, b.tags[i])
				break
			}
		}
	}
	return bound
}

// detach gives a delivery a batch of its own, before its former one, so that no acknowledgement of
// a later batch covers it.
func (s *subscription) detach(b *Batch, position int) *Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	alone := &Batch{
		subscription: s, first: b.tags[position], tags: []uint64{b.tags[position]},
		settled: []bool{b.settled[position]}, detached: true,
	}
	one := b.Deliveries[position]
	one.batch, one.position = alone, 0
	alone.Deliveries = []Delivery{one}
	if b.settled[position] || s.dead {
		return &alone.Deliveries[0]
	}
	alone.unsettled = 1
	b.settled[position] = true
	b.unsettled--
	at := slices.Index(s.open, b)
	s.open = slices.Insert(s.open, max(at, 0), alone)
	if b.unsettled == 0 {
		s.finishLocked(b)
	}
	return &alone.Deliveries[0]
}

func (s *subscription) requeue(b *Batch, position int) error {
	return s.settle(b, position, "requeued", func() error { return s.channel.Nack(b.tags[position], false, true) })
}

func (s *subscription) settle(b *Batch, position int, outcome string, send func() error) error {
	s.mu.Lock()
	defer s.unlockAndLeave()
	if b.settled[position] {
		return nil
	}
	if s.dead {
		return ErrStale
	}
	b.settled[position] = true
	b.unsettled--
	s.release(b, position)
	if b.unsettled == 0 {
		s.finishLocked(b)
	}
	if err := send(); err != nil {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	s.metrics.settle(s.cfg.Queue, outcome, 1)
	return nil
}

// release returns the bytes of a message to the budget.
func (s *subscription) release(b *Batch, position int) {
	if s.conn.held != nil {
		s.conn.held.release(b.Deliveries[position].weight)
	}
}

func (s *subscription) finishLocked(b *Batch) {
	b.unsettled = 0
	if i := slices.Index(s.open, b); i >= 0 {
		s.open = slices.Delete(s.open, i, i+1)
	}
}
