package broker

import (
	"context"
	"sync"
	"time"
)

// The prefetch counts messages, not bytes, so only few large ones are admitted at a time. While
// they are unsettled, the connection is not read, and the broker keeps the others.
const (
	largeBody   = 1 << 20
	largeBudget = 16 << 20 // bytes of unsettled large bodies
	// largeWait bounds the wait, because all consumers and the heartbeats of the connection wait
	// too. After it one more body is admitted.
	largeWait = 10 * time.Second
)

// budget counts the bytes of admitted large bodies of a connection.
type budget struct {
	mu      sync.Mutex
	used    int
	leaving int           // ending subscriptions, whose replies must not wait behind a body
	changed chan struct{} // closed at the next release; nil without a waiting reader
}

func (b *budget) take(size int) {
	if size < largeBody {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), largeWait) //nolint:forbidigo // a reader has none
	defer cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.used > 0 && b.used+size > largeBudget && b.leaving == 0 && ctx.Err() == nil {
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		b.mu.Lock()
	}
	b.used += size
}

func (b *budget) release(size int) {
	if size < largeBody {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = max(b.used-min(size, largeBudget), 0)
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

// clear returns all bytes, because a channel with its deliveries is lost.
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
