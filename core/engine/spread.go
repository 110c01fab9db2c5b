package engine

import (
	"hash/maphash"
	"slices"
	"sync"
)

var seed = maphash.MakeSeed()

// LaneOf returns the lane, from 0 to n-1, of an action's messages. It is stable while the process runs.
func LaneOf(action string, n int) int {
	if n <= 1 {
		return 0
	}
	return int(maphash.String(seed, action) % uint64(n))
}

// Box holds items that a lane has not taken yet, in order. It has no bound: its filler bounds the
// items in hand. It is safe for concurrent use.
type Box[T any] struct {
	mu    sync.Mutex
	items []T           // guarded by mu
	wake  chan struct{} // holds a token while there may be items
}

// NewBox makes an empty box.
func NewBox[T any]() *Box[T] { return &Box[T]{wake: make(chan struct{}, 1)} }

// Put adds items at the end.
func (b *Box[T]) Put(items ...T) {
	if len(items) == 0 {
		return
	}
	b.mu.Lock()
	b.items = append(b.items, items...)
	b.mu.Unlock()
	b.signal()
}

// Take returns the first n items, or all if there are fewer.
func (b *Box[T]) Take(n int) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, len(b.items))
	if n <= 0 {
		return nil
	}
	taken := b.items[:n:n]
	if b.items = b.items[n:]; len(b.items) > 0 {
		b.signal()
	} else {
		b.items = nil // taken items are not kept in memory
	}
	return taken
}

// Keep drops the items for which keep is false.
func (b *Box[T]) Keep(keep func(T) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = slices.DeleteFunc(slices.Clone(b.items), func(item T) bool { return !keep(item) })
}

// Len is the number of items.
func (b *Box[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}

// Wake has a token when there may be items.
func (b *Box[T]) Wake() <-chan struct{} { return b.wake }

func (b *Box[T]) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
