package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// lease is how long no other relay claims the rows of this one. The relay's mutex guards it.
type lease struct {
	renewed time.Time // start of the last renewal, by this process's clock
	lapsed  bool      // it may have ended since the held rows were last checked
}

func (r *Relay) runLease(ctx context.Context) {
	for r.owner != uuid.Nil {
		if err := r.renew(ctx); err != nil && ctx.Err() == nil {
			r.logger.DebugContext(ctx, "Lease of the outbox could not be renewed", "error", err)
		}
		if !supervise.Sleep(ctx, r.cfg.Lease/5) {
			return
		}
	}
}

// renew extends the lease. The lease has not lapsed if this renewal finished before the previous
// one could expire.
func (r *Relay) renew(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// A renewal that is cut could take effect after the end of the lease, so it gets a second to finish.
	renewing, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease/2)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, cancel) })()
	begun := time.Now()
	if err := r.store.RenewOutboxLease(renewing, r.owner); err != nil {
		return fmt.Errorf("renew the lease of relay %s: %w", r.owner, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.lease.renewed) >= r.cfg.Lease {
		r.lease.lapsed = true
	}
	r.lease.renewed = begun
	return nil
}

// entitled reports whether this relay may publish the rows it holds. After a lapse it drops the
// rows that another replica has claimed.
func (r *Relay) entitled(ctx context.Context) bool {
	r.mu.Lock()
	leased := !r.lease.lapsed && time.Since(r.lease.renewed) < r.cfg.Lease*4/5
	r.mu.Unlock()
	if r.owner == uuid.Nil || leased {
		return true
	}
	err := r.renew(ctx)
	if err == nil {
		err = r.confirmOwned(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.logger.DebugContext(ctx, "Publishing waits for the lease of the outbox", "error", err)
	}
	return err == nil
}

// confirmOwned drops the held rows that this relay no longer owns.
func (r *Relay) confirmOwned(ctx context.Context) error {
	r.mu.Lock()
	if !r.lease.lapsed {
		r.mu.Unlock()
		return nil
	}
	var ids []int64
	for _, l := range []*lane{&r.own, &r.resent} {
		for _, each := range l.pending {
			ids = append(ids, each.id)
		}
	}
	r.lease.lapsed = false
	r.mu.Unlock()
	kept, err := r.store.KeepOutbox(ctx, ids, r.owner)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.lease.lapsed = true
		return fmt.Errorf("read which of %d rows are still owned: %w", len(ids), err)
	}
	gone := make(map[int64]bool, len(ids))
	for _, id := range ids {
		gone[id] = true
	}
	for _, id := range kept {
		delete(gone, id)
	}
	for _, l := range []*lane{&r.own, &r.resent} {
		l.pending = slices.DeleteFunc(l.pending, func(each row) bool {
			if gone[each.id] {
				delete(r.held, each.id)
				l.size -= len(each.messages)
			}
			return gone[each.id]
		})
	}
	if len(gone) > 0 {
		r.metrics.given.Add(float64(len(gone)))
		r.logger.WarnContext(ctx, "Outbox rows were claimed by other replicas after a lapsed lease", "rows", len(gone))
	}
	return nil
}

// releasePage bounds the rows that one sweep releases.
const releasePage = 5000

// release releases rows that this relay owns and does not hold: any replica may claim them. A row
// may be committed a while before its writer hands it to the relay, hence twice the age.
func (r *Relay) release(ctx context.Context) error {
	if r.owner == uuid.Nil {
		return nil
	}
	r.mu.Lock()
	held := slices.AppendSeq(make([]int64, 0, len(r.held)), maps.Keys(r.held)) // never nil: NULL is not empty
	r.mu.Unlock()
	_, err := r.store.ReleaseOutbox(ctx, store.ReleaseOutboxParams{
		Owner: r.owner, OlderThanSeconds: 2 * r.cfg.SweepAge.Seconds(), Held: held, Page: releasePage,
	})
	if err != nil {
		return fmt.Errorf("release outbox rows: %w", err)
	}
	return nil
}

// endLease lets other replicas claim the remaining rows at once.
func (r *Relay) endLease(ctx context.Context) {
	if r.owner == uuid.Nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := r.store.EndOutboxLease(ctx, r.owner); err != nil {
		r.logger.DebugContext(ctx, "Lease of the outbox could not be ended and runs out", "error", err)
	}
}

// keeps reports whether this relay retries a row that the broker has not confirmed. It does while
// the broker is connected, however long it blocks.
func (r *Relay) keeps(reason error) bool {
	absent := errors.Is(reason, broker.ErrNotConnected) && !errors.Is(reason, broker.ErrBlocked)
	return r.owner != uuid.Nil && !absent
}

// ownerID is the owner as a statement parameter.
func (r *Relay) ownerID() *uuid.UUID {
	if r.owner == uuid.Nil {
		return nil
	}
	return &r.owner
}

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
		r.takeOver(ctx, rows)
	}, Channel)
}

// parseNotification parses a notification; mine is false for another schema or an invalid payload.
func (r *Relay) parseNotification(payload string) (id int64, mine bool) {
	schema, number, _ := strings.Cut(payload, " ")
	id, err := strconv.ParseInt(number, 10, 64)
	return id, err == nil && schema == r.store.Schema()
}

// room reports whether the relay can hold more messages of the engine's programs.
func (r *Relay) room() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.own.size < r.cfg.MaxPending
}
