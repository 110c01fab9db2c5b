package outbox

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// Drained is the result of Drain.
type Drained struct {
	Published     int
	Undeliverable int // messages to workers without a queue
	Refused       int // messages of operators that Refused took
}

// Drain publishes every row while no relay runs, oldest first, and deletes each row when all of it
// is confirmed. It stops at the first message that the broker does not confirm; its row and the
// rest stay. It drops messages to workers without a queue, and publishes batches as the single
// messages that they contain. It offers refused messages of operators to refused, as the last try.
func Drain(ctx context.Context, st *store.Store, publisher Publisher, refused Refused) (Drained, error) {
	var d Drained
	for {
		rows, err := st.ClaimOutbox(ctx, store.ClaimOutboxParams{Page: sweepPage})
		if err != nil {
			return d, fmt.Errorf("claim outbox rows: %w", err)
		}
		if len(rows) == 0 {
			return d, nil
		}
		for i := range rows {
			if err := drainRow(ctx, st, publisher, refused, &rows[i], &d); err != nil {
				return d, err
			}
		}
	}
}

func drainRow(
	ctx context.Context, st *store.Store, publisher Publisher, refused Refused, row *store.ClaimOutboxRow, d *Drained,
) error {
	messages, err := messagesOf(row)
	if err != nil {
		return err
	}
	batch := make([]broker.Message, 0, len(messages))
	for i := range messages {
		m := messages[i].wire(time.Now())
		if m.Alone || !message.IsBatch(m.Type) {
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
	settle := func(context.Context, *store.Tx) error { return nil }
	for i, outcome := range publisher.Publish(ctx, batch) {
		_, toWorker := message.WorkerOfKey(batch[i].RoutingKey)
		switch {
		case outcome.Status == broker.Confirmed, !batch[i].Alone && outcome.Status == broker.Returned &&
			message.MayVanish(batch[i].RoutingKey):
			d.Published++
		case outcome.Status == broker.Returned && toWorker && !batch[i].Alone:
			d.Undeliverable++
		case batch[i].Alone && isRefused(outcome): // a row of an operator has one message
			d.Refused++
			settle = func(ctx context.Context, tx *store.Tx) error {
				taken, err := refused(ctx, tx, messages[0], math.MaxInt, outcome.Err.Error())
				if err == nil && !taken {
					err = outcome.Err
				}
				return err
			}
		default:
			return fmt.Errorf("publish %s of outbox row %d: %w", batch[i].RoutingKey, row.ID, outcome.Err)
		}
	}
	err = st.Tx(ctx, "settle an outbox row", func(ctx context.Context, tx *store.Tx) error {
		if err := settle(ctx, tx); err != nil {
			return err
		}
		_, err := tx.DeleteOutbox(ctx, []int64{row.ID})
		return err
	})
	if err != nil {
		return fmt.Errorf("delete outbox row %d: %w", row.ID, err)
	}
	return nil
}
