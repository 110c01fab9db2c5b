package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// Drained is the result of Drain.
type Drained struct {
	Published     int
	Undeliverable int // messages to workers without a queue
}

// Drain publishes every row while no relay runs, oldest first, and deletes each row when all of it
// is confirmed. It stops at the first message that the broker does not confirm; its row and the
// rest stay. It drops messages to workers without a queue, and publishes batches as the single
// messages that they contain.
func Drain(ctx context.Context, st *store.Store, publisher Publisher) (Drained, error) {
	var d Drained
	for {
		rows, err := st.ClaimOutbox(ctx, store.ClaimOutboxParams{Page: sweepPage})
		if err != nil {
			return d, fmt.Errorf("claim outbox rows: %w", err)
		}
		if len(rows) == 0 {
			return d, nil
		}
		for _, row := range rows {
			if err := drainRow(ctx, publisher, row, &d); err != nil {
				return d, err
			}
			if _, err := st.DeleteOutbox(ctx, []int64{row.ID}); err != nil {
				return d, fmt.Errorf("delete outbox row %d: %w", row.ID, err)
			}
		}
	}
}

func drainRow(ctx context.Context, publisher Publisher, row store.ClaimOutboxRow, d *Drained) error {
	batch := make([]broker.Message, 0, len(row.MessageIds))
	for i := range row.MessageIds {
		m := broker.Message{
			ID: row.MessageIds[i], Exchange: row.Exchanges[i], RoutingKey: row.RoutingKeys[i],
			Type: row.MessageTypes[i],
			Body: row.Bodies[i], Timestamp: time.Now(), Headers: headers(row.Traces[i]),
		}
		if !message.IsBatch(m.Type) {
			batch = append(batch, m)
			continue
		}
		singles, err := message.Split(m.Body)
		if err != nil {
			return fmt.Errorf("read batch %s of outbox row %d: %w", m.ID, row.ID, err)
		}
		for _, one := range singles {
			m.ID, m.Type, m.Body = one.MessageID, one.Type, one.Body
			batch = append(batch, m)
		}
	}
	for i, outcome := range publisher.Publish(ctx, batch) {
		_, toWorker := message.WorkerOfKey(batch[i].RoutingKey)
		switch {
		case outcome.Status == broker.Confirmed, outcome.Status == broker.Returned &&
			message.MayVanish(batch[i].RoutingKey):
			d.Published++
		case outcome.Status == broker.Returned && toWorker:
			d.Undeliverable++
		default:
			return fmt.Errorf("publish %s of outbox row %d: %w", batch[i].RoutingKey, row.ID, outcome.Err)
		}
	}
	return nil
}
