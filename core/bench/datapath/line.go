package datapath

import "sync"

// line is a queue in memory. Whoever takes gets everything that has arrived,
// up to a bound: batches form by themselves while the taker is busy.
type line[T any] struct {
	mu    sync.Mutex
	items []T           // guarded by mu
	wake  chan struct{} // holds a token while there may be something to take
}

func newLine[T any]() *line[T] { return &line[T]{wake: make(chan struct{}, 1)} }

func (l *line[T]) put(items ...T) {
	if len(items) == 0 {
		return
	}
	l.mu.Lock()
	l.items = append(l.items, items...)
	l.mu.Unlock()
	l.signal()
}

// take returns at most n items, nil when there are none.
func (l *line[T]) take(n int) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, len(l.items))
	if n == 0 {
		return nil
	}
	taken := l.items[:n:n]
	if l.items = l.items[n:]; len(l.items) > 0 {
		l.signal() // for another taker
	}
	return taken
}

func (l *line[T]) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
