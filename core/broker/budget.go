package broker

import (
	"errors"
	"sync"
	"time"
)

// The prefetch counts messages, not bytes. So the bytes of received messages are counted too, for all
// connections of a Broker together: while too many are unsettled, the connections are not read, and the
// messages stay with the broker.
const (
	maxHeld = 16 << 20 // bytes of unsettled messages from which larger messages wait
	// smallMessage never waits, so that cancels and ordinary requests pass while large messages are
	// unsettled. The prefetch bounds the small ones.
	smallMessage = 32 << 10
	// heldWait bounds the wait, because all consumers and the heartbeats of a connection wait too. After it
	// one more message is admitted, unless far too many are held.
	heldWait   = 10 * time.Second
	farTooMany = 4 * maxHeld
	// plainHeaders are headers that are not counted; those of ordinary messages are smaller.
	plainHeaders = 4 << 10
)

// errHeld ends a connection whose messages are not settled: all return to their queues.
var errHeld = errors.New("too many bytes of messages are unsettled")

// budget counts the bytes of unsettled messages.
type budget struct {
	wait    time.Duration // heldWait except in tests
	mu      sync.Mutex
	used    int
	leaving int           // ending subscriptions, whose replies must not wait behind a message
	changed chan struct{} // closed at the next release; nil without a waiting reader
}

func newBudget() *budget { return &budget{wait: heldWait} }

// take counts a message and waits until it may be read, or until the connection is gone.
func (b *budget) take(size int, gone <-chan struct{}) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := size > smallMessage
	var timeout <-chan time.Time
	for waiting && b.used > 0 && b.used+size > maxHeld && b.leaving == 0 {
		if timeout == nil {
			timeout = time.After(b.wait)
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-gone:
			waiting = false
		case <-timeout:
			waiting = false
		}
		b.mu.Lock()
		if !waiting && b.used+size > farTooMany {
			return errHeld
		}
	}
	b.used += size
	return nil
}

func (b *budget) release(size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = max(b.used-size, 0)
	b.wakeLocked()
}

// leave admits everything until the caller calls done.
func (b *budget) leave() (done func()) {
	add := func(n int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.leaving += n
		b.wakeLocked()
	}
	add(1)
	return func() { add(-1) }
}

// clear returns all bytes, because a channel with its deliveries is lost. Later releases of other
// channels then count too much, until everything is settled.
func (b *budget) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = 0
	b.wakeLocked()
}

func (b *budget) wakeLocked() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
