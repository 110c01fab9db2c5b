package broker

import (
	"sync"

	"github.com/attune-go/attune/core/message"
)

// parts are the deliveries into which one delivery was split. The broker's delivery is settled when
// all of them are.
type parts struct {
	mu       sync.Mutex
	whole    *Delivery
	settled  []bool
	detached []bool
	open     int  // unsettled parts
	apart    bool // the whole is detached from its batch, because a part is
	refused  bool // the whole becomes a dead letter, because a part is unreadable
}

// Split makes one delivery of each message of this batch message. Each is settled like any
// delivery: with the Ack of the batch, or alone if it is detached or given up. The broker's
// delivery is settled with the last one; until then all are delivered again if the channel is lost.
// Requeue of one returns the whole message, including settled parts. Split must precede the batch's
// Ack.
func (d *Delivery) Split(singles []message.Single) []*Delivery {
	p := &parts{whole: d, settled: make([]bool, len(singles)), detached: make([]bool, len(singles)), open: len(singles)}
	if d.batch != nil {
		d.batch.split = append(d.batch.split, p)
	}
	list := make([]*Delivery, len(singles))
	for i, single := range singles {
		one := *d
		one.MessageID, one.Type, one.Body = single.MessageID, single.Type, single.Body
		if single.Type == message.TypeExecutionCompleted { // it arrived under the name of its queue
			one.Exchange, one.RoutingKey = message.ExchangeExecutions, message.KeyExecutionCompleted
		}
		one.parts, one.part = p, i
		list[i] = &one
	}
	return list
}

func (p *parts) accept(part int) error {
	if whole := p.last(part); whole != nil {
		return whole.Ack()
	}
	return nil
}

// last settles one part. After the last one it returns the whole delivery, which the caller
// acknowledges; before, nil.
func (p *parts) last(part int) *Delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled[part] {
		return nil
	}
	p.settled[part] = true
	if p.open--; p.open > 0 {
		return nil
	}
	return p.whole
}

// detach detaches one part, and with it the whole, from the batch.
func (p *parts) detach(part int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.detached[part] = true
	if !p.apart {
		p.whole, p.apart = p.whole.Detach(), true
	}
}

// refuse returns the whole delivery, and whether this part is the first unreadable one.
func (p *parts) refuse() (whole *Delivery, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, p.refused = !p.refused, true
	return p.whole, first
}

// requeue returns the whole to its queue; no part of it stays settled.
func (p *parts) requeue() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == 0 {
		return nil
	}
	p.open = 0
	for i := range p.settled {
		p.settled[i] = true
	}
	return p.whole.Requeue()
}

func (p *parts) stale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole.Stale()
}

// rest settles the parts that belong to the batch.
func (p *parts) rest() error {
	for i := range p.settled {
		p.mu.Lock()
		detached := p.detached[i]
		p.mu.Unlock()
		if detached {
			continue
		}
		if err := p.accept(i); err != nil {
			return err
		}
	}
	return nil
}
