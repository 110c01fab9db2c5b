package outbox

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/store"
)

// takeTimeout bounds the taking of one row of which the relay was told.
const takeTimeout = 5 * time.Second

// runListen takes rows as their writers tell of them, which have no relay of their
// own. One that cannot be taken now is left to a sweep.
func (r *Relay) runListen(ctx context.Context) {
	r.store.Listen(ctx, func(_, payload string) {
		id, mine := r.told(payload)
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

// told reads which row a notification names, if it is one of this schema.
func (r *Relay) told(payload string) (id int64, mine bool) {
	schema, number, _ := strings.Cut(payload, " ")
	id, err := strconv.ParseInt(number, 10, 64)
	return id, err == nil && schema == r.store.Schema()
}

// room reports whether the relay can hold more.
func (r *Relay) room() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size < r.cfg.MaxPending
}
