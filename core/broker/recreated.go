package broker

import (
	"context"
	"slices"
	"time"
)

// Recreated is a queue that was missing or had crashed, and was declared again. Its messages are
// lost.
type Recreated struct {
	Queue string
	Cause string
	At    time.Time
}

// Recreated lists the queues that this Broker declared again, each with the last time.
func (b *Broker) Recreated() []Recreated {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.recreatedQueues)
}

func (b *Broker) recreated(ctx context.Context, queue string, cause error) {
	b.logger.WarnContext(ctx, "Queue was gone and is declared again", "queue", queue, "reason", cause)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recreatedQueues = slices.DeleteFunc(b.recreatedQueues, func(r Recreated) bool { return r.Queue == queue })
	b.recreatedQueues = append(b.recreatedQueues, Recreated{Queue: queue, Cause: cause.Error(), At: time.Now()})
}
