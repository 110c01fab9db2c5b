package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/tracing"
)

// crashPoint lets a test kill the process. By default it does nothing.
var crashPoint = func(string) {}

// publish sends rows and settles each by its outcomes. It reports whether the broker answered for
// all of them: false means that the broker is away and an immediate retry is useless.
func (r *Relay) publish(ctx context.Context, l *lane, rows []row) bool {
	var batch []broker.Message
	for _, each := range rows {
		for _, m := range each.messages {
			batch = append(batch, m.wire(each.since))
		}
	}
	crashPoint("before-publish")
	crashpoint.Reach("outbox:before-publish")
	begun := time.Now()
	outcomes := r.publisher.Publish(ctx, batch)
	r.traced(rows, outcomes, begun)
	crashPoint("after-publish")
	crashpoint.Reach("outbox:after-publish")
	answered := true
	var repeat []row
	for _, each := range rows {
		mine := outcomes[:len(each.messages)]
		outcomes = outcomes[len(each.messages):]
		r.metrics.outcomes(mine)
		switch r.settle(ctx, each, mine) {
		case rowConfirmed, rowSplit:
		case rowRepeated:
			repeat = append(repeat, each)
			answered = false
		case rowLeft:
			answered = false
		}
	}
	r.again(l, repeat)
	return answered
}

// traced offers the spans of messages that carry a traceparent. They end when the broker has answered
// for the whole batch.
func (r *Relay) traced(rows []row, outcomes []broker.Outcome, begun time.Time) {
	if r.cfg.Traces == nil {
		return
	}
	ended, i := time.Now(), 0
	for _, each := range rows {
		for _, m := range each.messages {
			outcome := outcomes[i]
			i++
			above := tracing.Parse(strings.TrimPrefix(m.Trace, tracing.Header+"="))
			if !above.Valid() {
				continue
			}
			span := tracing.Span{
				Context: tracing.Context{Trace: above.Trace, Span: tracing.RandomSpan(), Sampled: above.Sampled},
				Parent:  above.Span, Name: "publish " + m.Exchange, Role: tracing.Producer, Start: begun, End: ended,
				Attrs: []tracing.Attr{
					{Key: "messaging.system", Value: "rabbitmq"},
					{Key: "messaging.destination.name", Value: m.Exchange},
					{Key: "messaging.rabbitmq.destination.routing_key", Value: m.RoutingKey},
					{Key: "messaging.message.id", Value: m.ID},
				},
			}
			if outcome.Err != nil {
				span.Failure = outcome.Err.Error()
			}
			r.cfg.Traces.Offer(span)
		}
	}
}

// rowOutcome is the state of a row after one attempt to publish it.
type rowOutcome int

const (
	rowConfirmed rowOutcome = iota // the broker has confirmed every message of it
	rowRepeated                    // this replica retries it from memory
	rowSplit                       // the refused messages wait for a sweep in a row of their own
	rowLeft                        // the row waits for a sweep unchanged
)

// settle decides what happens to a row and does it. The caller handles settledRepeat, because it
// keeps the order of the rows.
func (r *Relay) settle(ctx context.Context, each row, outcomes []broker.Outcome) rowOutcome {
	var left, returned []Message
	var reason error
	refused, resent := false, each.resent()
	for i, outcome := range outcomes {
		if outcome.Status == broker.Confirmed || outcome.Status == broker.Returned && !resent &&
			message.MayVanish(each.messages[i].RoutingKey) {
			continue
		}
		left = append(left, each.messages[i])
		if reason == nil {
			reason = outcome.Err
		}
		refused = refused || isRefused(outcome)
		if outcome.Status == broker.Returned && !resent {
			returned = append(returned, each.messages[i])
		}
	}
	switch {
	case len(left) == 0:
		r.forget(each, true)
		return rowConfirmed
	case refused || len(left) < len(each.messages):
		r.split(ctx, each, left, returned, reason)
		return rowSplit
	case resent && !errors.Is(reason, broker.ErrNotConnected):
		r.forget(each, false) // without an answer it must not delay other rows
		return rowLeft
	case time.Since(each.since) < r.cfg.SweepAge-time.Second, r.keeps(reason):
		return rowRepeated // the same row, from memory: no other replica publishes it
	default:
		r.forget(each, false) // a sweep of any replica takes it
		return rowLeft
	}
}

// isRefused reports whether the broker, or before it the publisher, did not accept a message. A retry
// helps only after a change elsewhere.
func isRefused(o broker.Outcome) bool {
	return o.Status == broker.Returned || o.Status == broker.Nacked || errors.Is(o.Err, broker.ErrInvalid)
}

// forget drops a row from memory; confirmed rows are deleted soon.
func (r *Relay) forget(each row, confirmed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lane(&each).size -= len(each.messages)
	if !confirmed {
		delete(r.held, each.id)
		return
	}
	r.done = append(r.done, each.id)
	signal(r.delete)
}

// again puts rows before the newer ones, so that their routing keys keep their order.
func (r *Relay) again(l *lane, rows []row) {
	if len(rows) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l.pending = append(slices.Clip(rows), l.pending...)
	signal(l.wake)
}

// split moves the unconfirmed messages to a row of their own and deletes the rest. If that fails
// the whole row stays, and its confirmed messages are published once more.
func (r *Relay) split(ctx context.Context, each row, left, returned []Message, reason error) {
	text := "not confirmed"
	if reason != nil {
		text = broker.Trouble(reason).String()
	}
	r.logger.WarnContext(telemetry.Often(ctx), "Messages were not delivered",
		"messages", len(left), "of", len(each.messages), "returned", len(returned), "routing_key", left[0].RoutingKey,
		"reason", text)
	bounded, cancel := context.WithTimeout(ctx, splitTimeout)
	defer cancel()
	err := r.store.Tx(bounded, "split an outbox row", func(ctx context.Context, tx *store.Tx) error {
		mine, err := tx.LockOutbox(ctx, each.id, r.ownerID())
		if err != nil || len(mine) == 0 {
			return err // another replica has settled the row
		}
		rest, err := r.offerUndeliverable(ctx, tx, left, returned)
		if err == nil {
			rest, err = r.offerRefused(ctx, tx, each, rest, text)
		}
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			c := columnsOf(rest)
			if _, err := tx.SplitOutbox(ctx, store.SplitOutboxParams{
				ID: each.id, LastError: text,
				MessageIds: c.ids, Exchanges: c.exchanges, RoutingKeys: c.keys, MessageTypes: c.types, Bodies: c.bodies,
				Traces: c.traces,
			}); err != nil && store.ClassOf(err) != store.ClassRefused {
				return fmt.Errorf("split outbox row %d: %w", each.id, err)
			}
		}
		_, err = tx.DeleteOutbox(ctx, []int64{each.id})
		return err
	})
	if err != nil && ctx.Err() == nil {
		r.logger.WarnContext(ctx, "Outbox row could not be split; a sweep publishes all of it again", "outbox_id",
			each.id, "error", err)
	}
	r.forget(each, false)
}

// splitTimeout bounds the wait for locked rows: all publishing waits for it.
const splitTimeout = 10 * time.Second

// offerUndeliverable offers messages that no queue accepted to Undeliverable, and returns the
// messages to retry.
func (r *Relay) offerUndeliverable(ctx context.Context, tx *store.Tx, left, returned []Message) ([]Message, error) {
	if len(returned) == 0 || r.cfg.Undeliverable == nil {
		return left, nil
	}
	taken, err := r.cfg.Undeliverable(ctx, tx, returned)
	if err != nil {
		return nil, fmt.Errorf("offer %d undeliverable messages: %w", len(returned), err)
	}
	return slices.DeleteFunc(slices.Clone(left), func(m Message) bool { return taken[m.ID] }), nil
}

// offerRefused offers messages of operators to Refused, and returns the messages to retry.
func (r *Relay) offerRefused(ctx context.Context, tx *store.Tx, each row, left []Message, reason string) (
	rest []Message, err error,
) {
	if r.cfg.Refused == nil || !each.resent() {
		return left, nil
	}
	for _, m := range left {
		taken, err := r.cfg.Refused(ctx, tx, m, int(max(each.attempts, 1)), reason)
		if err != nil {
			return nil, fmt.Errorf("offer the refused message %s: %w", m.ID, err)
		}
		if !taken {
			rest = append(rest, m)
		}
	}
	return rest, nil
}

// deletePause is how long confirmed rows collect before the relay deletes them: at a low rate each
// delete would otherwise be a transaction for one row. While appending transactions delete such
// rows, the rest waits for takenPause. If the replica crashes meanwhile, the rows are published
// once more.
const (
	deletePause = 50 * time.Millisecond
	takenPause  = 250 * time.Millisecond
)

// maxTaken bounds the rows that one appending transaction deletes.
const maxTaken = 500

// takePublished hands confirmed rows to a transaction that deletes them.
func (r *Relay) takePublished() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.done), maxTaken)
	ids := append([]int64{}, r.done[:n]...)
	r.done = append(r.done[:0], r.done[n:]...)
	if n > 0 {
		r.taken = time.Now()
	}
	return ids
}

// deleted settles the taken rows: without a commit they must be deleted again.
func (r *Relay) deleted(ids []int64, committed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !committed { // the next transaction, the next delete or a sweep takes them
		r.done = append(ids, r.done...)
		return
	}
	for _, id := range ids {
		delete(r.held, id)
	}
}

func (r *Relay) pauseBeforeDelete() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.taken) < time.Second {
		return takenPause
	}
	return deletePause
}

// runDeletes deletes all confirmed rows, in one statement a time.
func (r *Relay) runDeletes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.delete:
			if !supervise.Sleep(ctx, r.pauseBeforeDelete()) {
				return
			}
			for r.cfg.Gate.Retry(ctx, "outbox", r.deleteDone(ctx)) {
			}
		}
	}
}

// deleteDone deletes the confirmed rows. After a failure they stay due; if they are never deleted,
// a sweep publishes them once more.
func (r *Relay) deleteDone(ctx context.Context) error {
	r.mu.Lock()
	ids := r.done
	r.done = nil
	r.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	crashPoint("before-delete")
	crashpoint.Reach("outbox:before-delete")
	_, err := r.store.DeleteOutbox(ctx, ids)
	r.deleted(ids, err == nil)
	if err != nil && ctx.Err() == nil && store.ClassOf(err) != store.ClassInstallation {
		r.logger.WarnContext(ctx, "Published outbox rows could not be deleted yet", "rows", len(ids), "error", err)
	}
	return err
}

// sweepPage bounds the rows of one claim.
const sweepPage = 100

// sweepOnce claims rows that no relay owns: page after page while the broker accepts them, else one
// page as a test. A replica whose broker is away claims one row at a time, and releases its own
// rows at the end of the sweep, so that other replicas get them.
func (r *Relay) sweepOnce(ctx context.Context) error {
	_ = r.deleteDone(ctx) // logged
	for r.room() {
		page := int32(sweepPage)
		if r.away.Load() {
			if page = 1; r.Pending() > 0 {
				break
			}
		}
		claimed, err := r.store.ClaimOutbox(ctx, store.ClaimOutboxParams{
			OlderThanSeconds: r.cfg.SweepAge.Seconds(), LeaseSeconds: r.cfg.Lease.Seconds(), Page: page,
			Owner: r.ownerID(),
		})
		if err != nil {
			return fmt.Errorf("claim outbox rows: %w", err)
		}
		if !r.takeOver(ctx, claimed) || len(claimed) < sweepPage || !r.well.Load() {
			break
		}
	}
	if err := r.release(ctx); err != nil {
		return err
	}
	backlog, err := r.store.OutboxBacklog(ctx)
	if err != nil {
		return fmt.Errorf("read the outbox backlog: %w", err)
	}
	r.metrics.backlog(backlog.Messages, backlog.OldestSeconds)
	return nil
}

// takeOver hands claimed rows to the relay. It reports whether all of them fit.
func (r *Relay) takeOver(ctx context.Context, claimed []store.ClaimOutboxRow) (fit bool) {
	fit = true
	slices.SortFunc(claimed, func(a, b store.ClaimOutboxRow) int { return int(a.ID - b.ID) })
	for i := range claimed {
		c := &claimed[i]
		messages, err := messagesOf(c)
		if err != nil {
			r.logger.ErrorContext(ctx, "Outbox row cannot be read and stays", "outbox_id", c.ID, "error", err)
			continue
		}
		if r.holds(c.ID) {
			continue // this replica is publishing or deleting it
		}
		r.metrics.sweeps.Add(float64(len(messages)))
		fit = r.hold(row{id: c.ID, since: time.Now(), attempts: c.Attempts, messages: messages}) && fit
	}
	return fit
}

func (r *Relay) holds(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[id]
}
