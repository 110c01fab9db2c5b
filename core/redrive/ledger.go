package redrive

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
)

// ledger writes letters that are about to be removed into the ledger, where there is
// one. A handler that meets one of them later knows by that that it is decided.
func (r *runner) ledger(ctx context.Context, letters ...*Whole) error {
	if !r.plan.Ledger || len(letters) == 0 {
		return nil
	}
	if r.spool == nil {
		for _, w := range letters {
			if len(w.Body) > deadletter.MaxBody {
				return fmt.Errorf("its body of %d bytes is more than the ledger keeps, %d, and there is no spool: it stays", len(w.Body), deadletter.MaxBody)
			}
		}
	}
	decision := deadletter.Discarded
	if r.plan.Do == DoPurge {
		decision = deadletter.Purged
	}
	return deadletter.Keep(ctx, r.desk.store, deliveries(letters), deadletter.Removal{
		Decision: decision, By: r.desk.cfg.Actor, Note: r.reason, Op: r.plan.Op,
	})
}

// returned has a letter that is about to be put back wait for a person again in the
// ledger, where there is one and it was removed by a decision.
func (r *runner) returned(ctx context.Context, source *Spooled, w *Whole) error {
	if source.Do != DoDiscard && source.Do != DoPurge {
		return nil
	}
	shape, err := r.desk.store.RedriveShape(ctx)
	if err != nil {
		return fmt.Errorf("look at the schema: %w", err)
	}
	if !shape.Ours {
		return nil
	}
	return deadletter.Return(ctx, r.desk.store, deliveries([]*Whole{w}), r.desk.cfg.Actor, r.reason)
}

// deliveries are messages as the handler of the engine has them.
func deliveries(letters []*Whole) []*broker.Delivery {
	list := make([]*broker.Delivery, len(letters))
	for i, w := range letters {
		list[i] = &broker.Delivery{
			MessageID: w.MessageID, CorrelationID: w.CorrelationID, Type: w.Type, RoutingKey: w.RoutingKey, Exchange: w.Exchange,
			ContentType: w.ContentType, ContentEncoding: w.ContentEncoding, AppID: w.AppID, Expiration: w.Expiration, Priority: w.Priority,
			Redelivered: w.Redelivered, Headers: w.Headers, Timestamp: w.Timestamp, Body: w.Body,
		}
	}
	return list
}
