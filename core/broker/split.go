package broker

import (
	"sync"

	"github.com/attune-go/attune/core/message"
)

// parts are the deliveries that one delivery was split into. The broker hears of the
// delivery when all of them are settled.
type parts struct {
	mu       sync.Mutex
	whole    *Delivery
	settled  []bool
	detached []bool
	open     int  // parts that are not settled
	apart    bool // the whole is out of its batch, because a part is
}

// Split makes one delivery of each message that this one, a batch, stands for. Each is
// settled as every other delivery is: with the Ack of the broker's batch, or by itself
// once it is detached or given up. The broker hears of it when the last one is settled;
// until then all of them come again if the channel is lost. Requeue of one returns the
// whole message, settled parts included. Split must come before the batch's Ack.
func (d *Delivery) Split(singles []message.Single) []*Delivery {
	p := &parts{whole: d, settled: make([]bool, len(singles)), detached: make([]bool, len(singles)), open: len(singles)}
	if d.batch != nil {
		d.batch.split = append(d.batch.split, p)
	}
	list := make([]*Delivery, len(singles))
	for i, single := range singles {
		one := *d
		one.MessageID, one.Type, one.Body = single.MessageID, single.Type, single.Body
		if single.Type == message.TypeExecutionCompleted { // it came by the name of its queue
			one.Exchange, one.RoutingKey = message.ExchangeExecutions, message.KeyExecutionCompleted
		}
		one.parts, one.part = p, i
		list[i] = &one
	}
	return list
}

// accept settles one part.
func (p *parts) accept(part int) error {
	if whole := p.last(part); whole != nil {
		return whole.Ack()
	}
	return nil
}

// last settles one part. It returns the whole, which is to be acknowledged, after the last
// one, and nil before.
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

// detach takes one part, and with it the whole, out of the batch.
func (p *parts) detach(part int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.detached[part] = true
	if !p.apart {
		p.whole, p.apart = p.whole.Detach(), true
	}
}

// requeue returns the whole to its queue. Nothing of it is settled afterwards.
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

// rest settles the parts that went with the batch.
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
