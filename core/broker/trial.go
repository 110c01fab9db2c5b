package broker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// A redelivered message was in the hands of a process that did not settle it, and may be why that process
// died. Small ones cannot be: what is made of them is bounded, and a panic while one is read is an error. A
// large one is tried alone: a row is committed before it is handed out and deleted when it was handled. A
// message whose row is older than a trial lasts has ended a process while it was tried alone; it is
// dead-lettered unread. A younger row may be of a living process that has a copy, or has lost its connection.
// So an ordinary death of a process with hundreds of messages in hand condemns none.

// Trials records trials of messages; *store.Store implements it.
type Trials interface {
	// BeginTrial records the begin of a trial: the age is negative. Otherwise it is the age in seconds of one
	// that has not ended. A database that cannot record trials gives errors.ErrUnsupported.
	BeginTrial(ctx context.Context, fingerprint, queue string) (age float64, err error)
	EndTrial(ctx context.Context, fingerprint string) error
}

// HeaderUnread marks a dead letter that must not be decoded: a process died while it tried the message alone.
const HeaderUnread = "x-attune-unread"

// ErrEndedProcess is the reason of such a dead letter.
var ErrEndedProcess = errors.New("a process died while it tried this message alone, so it was not read again")

const (
	// largeTrial is the size in memory from which a redelivered message is tried alone.
	largeTrial = 128 << 10
	// trialTime is how long a trial lasts at most: a message that is still waited for has ended no process.
	trialTime = 3 * time.Second
	trialPoll = 5 * time.Millisecond
	// trialEnd is how long the record of its end may take.
	trialEnd   = 2 * time.Second
	trialPause = time.Second
	// trialTries bounds how often the begin of a trial is tried while the database does not answer; then the
	// message is handled without.
	trialTries   = 30
	trialTimeout = 5 * time.Second
)

// Doubtful reports whether the delivery has to be tried alone.
func (d *Delivery) Doubtful() bool { return d.Redelivered && d.weight > largeTrial }

// Unread marks the delivery as one that must not be decoded.
func (d *Delivery) Unread() {
	if d.Headers == nil {
		d.Headers = Table{}
	}
	d.Headers[HeaderUnread] = true
}

// Fingerprint identifies the content of the delivery in a queue.
func (d *Delivery) Fingerprint(queue string) string {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%q %q %q ", queue, d.MessageID, d.Type) // writing to a hash cannot fail
	_, _ = hash.Write(d.Body)                                         // as above
	return hex.EncodeToString(hash.Sum(nil))
}

// tryAlone hands out a batch of one doubtful delivery, after the trials of other consumers, and returns when
// it was handled. It returns false if the delivery was not handed out because the subscription ends.
func (s *subscription) tryAlone(ctx context.Context, alone *Batch, batches chan<- *Batch) bool {
	b := s.publisher.link.broker
	poll := time.NewTicker(trialPoll)
	defer poll.Stop()
	going := func() bool { return ctx.Err() == nil && !s.channel.IsClosed() }
	for locked := false; !locked; {
		select {
		case b.trying <- struct{}{}:
			locked = true
		case <-poll.C:
			if !going() {
				return false
			}
		}
	}
	defer func() { <-b.trying }()
	d := &alone.Deliveries[0]
	print, tried := d.Fingerprint(s.cfg.Queue), false
	for tries := 0; ; {
		bounded, cancel := context.WithTimeout(ctx, trialTimeout)
		age, err := s.cfg.trials.BeginTrial(bounded, print, s.cfg.Queue)
		cancel()
		if tried = err == nil && age > (trialTime+trialEnd).Seconds(); tried || err == nil && age < 0 {
			break
		}
		if err != nil {
			b.logger.WarnContext(telemetry.Often(ctx), "Trial of a large message could not be recorded",
				"queue", s.cfg.Queue, "message_id", d.MessageID, "error", err)
			if tries == trialTries || errors.Is(err, errors.ErrUnsupported) {
				break
			}
			tries++
		}
		if supervise.Sleep(ctx, trialPause); !going() {
			return false
		}
	}
	if tried {
		b.logger.ErrorContext(telemetry.Often(ctx), "Message has ended a process and is dead-lettered unread",
			"queue", s.cfg.Queue, "message_id", d.MessageID, "bytes", len(d.Body))
		d.Unread()
		if s.cfg.Queue != message.QueueDeadLetter {
			d.GiveUp(ctx, ErrEndedProcess, 1)
			return true
		}
	} else {
		defer s.endTrial(ctx, print)
	}
	for handed := false; !handed; {
		select {
		case batches <- alone:
			handed = true
		case <-poll.C:
			if !going() {
				return false
			}
		}
	}
	s.metrics.countDelivered(s.cfg.Queue, 1, 1)
	for until := time.Now().Add(trialTime); going() && time.Now().Before(until) && !s.settled(alone); {
		<-poll.C
	}
	return true
}

// endTrial records that this process has survived a trial. It repeats until the database answers or the consumer
// stops: the row that it leaves would condemn the message when it is delivered again.
func (s *subscription) endTrial(ctx context.Context, print string) {
	for {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialEnd)
		err := s.cfg.trials.EndTrial(bounded, print)
		cancel()
		if err == nil {
			return
		}
		s.publisher.link.broker.logger.WarnContext(telemetry.Often(ctx),
			"End of the trial of a message could not be recorded", "queue", s.cfg.Queue, "error", err)
		if !supervise.Sleep(ctx, trialPause) {
			return
		}
	}
}

// settled reports whether every delivery of a batch is settled, or detached to be settled later.
func (s *subscription) settled(b *Batch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.unsettled == 0
}
