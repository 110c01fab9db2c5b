package broker

import "context"

// MoveUntil moves one page and stops before it is acknowledged.
func MoveUntil(ctx context.Context, b *Broker, queue, exchange string, confirmed func() error) error {
	from, err := dial(ctx, b.cfg, "from")
	if err != nil {
		return err
	}
	defer from.sever()
	to, err := dial(ctx, b.cfg, "to")
	if err != nil {
		return err
	}
	defer to.sever()
	m := mover{from: from, to: to, queue: queue, exchange: exchange, confirmed: confirmed}
	_, err = m.page(ctx)
	return err
}
