package outbox

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/store"
)

// takeTimeout bounds the claim of one notified row.
const takeTimeout = 5 * time.Second

// runListen claims notified rows, whose writers have no relay. A row that it cannot claim now is
// left to a sweep.
func (r *Relay) runListen(ctx context.Context) {
	r.store.Listen(ctx, func(_, payload string) {
		id, mine := r.parseNotification(payload)
		if !mine || !r.room() {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, takeTimeout)
		defer cancel()
		taken, err := r.store.TakeOutbox(ctx, r.ownerID(), id)
		if err != nil {
			r.logger.DebugContext(ctx, "A row of the outbox is left to a sweep", "outbox_id", id, "error", err)
			return
		}
		rows := make([]store.ClaimOutboxRow, len(taken))
		for i, row := range taken {
			rows[i] = store.ClaimOutboxRow(row)
		}
		r.takeOver(rows)
	}, Channel)
}

// parseNotification parses a notification; mine is false for another schema or an invalid payload.
func (r *Relay) parseNotification(payload string) (id int64, mine bool) {
	schema, number, _ := strings.Cut(payload, " ")
	id, err := strconv.ParseInt(number, 10, 64)
	return id, err == nil && schema == r.store.Schema()
}

// room reports whether the relay can hold more messages.
func (r *Relay) room() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size < r.cfg.MaxPending
}
