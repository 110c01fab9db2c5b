package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// LockedError says that somebody else runs a plan on the dead letters, and who.
type LockedError = store.LockedError

// The pace of requeueing many.
const (
	requeueRate = 20 // in a second
	maxErrors   = 3  // in a row end it
)

// ManyReceipt is what an act on many frozen letters has done. Planned is Done,
// Changed, Failed and Left together.
type ManyReceipt struct {
	Planned int `json:"planned"`
	Done    int `json:"done"`
	// Changed were decided, repeated or taken up by somebody since they were chosen.
	Changed int      `json:"changed"`
	Failed  int      `json:"failed"`
	Left    int      `json:"left"`
	Errors  []string `json:"errors,omitempty"`
	// Stopped says why it ended early; empty if it did not.
	Stopped string  `json:"stopped,omitempty"`
	Audits  []int64 `json:"audit_ids"`
}

// underLock runs an act on many letters while nobody else runs one: it fails at once
// with a *LockedError.
func (t *Triage) underLock(ctx context.Context, act func(check func() error) error) error {
	lock, err := t.store.LockSession(ctx, deadletter.LockName(message.QueueDeadLetter), t.cfg.Source+" "+t.cfg.Actor)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return act(func() error { return lock.Check(ctx) })
}

// RequeueMany requeues letters that were chosen one by one, in their order, at a
// pace, each in a transaction and with an audit of its own. Ids in anyway are
// requeued although that is of no use. It ends after some errors in a row, when its
// lock is lost, and when it is stopped; the receipt says how far it came.
func (t *Triage) RequeueMany(ctx context.Context, ids, anyway []int64, reason string) (*ManyReceipt, error) {
	return t.eachLetter(ctx, ids, func(id int64) (int64, error) {
		r, err := t.requeue(ctx, id, reason, slices.Contains(anyway, id))
		if err != nil {
			return 0, err
		}
		return r.Audit, nil
	})
}

// SendLetters has the messages of letters that wait published to an exchange with a
// routing key, or without an exchange to the queue of that name, in the way of
// RequeueMany. A hand-over is not sent to a worker, which is ErrNoMessage.
func (t *Triage) SendLetters(ctx context.Context, ids []int64, exchange, key, reason string) (*ManyReceipt, error) {
	return t.eachLetter(ctx, ids, func(id int64) (int64, error) {
		to := map[string]any{"exchange": exchange, "routing_key": key}
		return t.publishLetter(ctx, audit{action: "dead_letter.send", of: letterOf(id), reason: reason, outcome: outcomeDone, request: to},
			func(ctx context.Context, tx *store.Tx) (deadletter.Resent, error) {
				return deadletter.Send(ctx, tx, id, exchange, key, t.cfg.Actor, reason)
			})
	})
}

// ReturnLetters undoes the taking of letters that wait, in the way of RequeueMany: their
// messages go back to the queues that an operator took them from.
func (t *Triage) ReturnLetters(ctx context.Context, ids []int64, reason string) (*ManyReceipt, error) {
	return t.eachLetter(ctx, ids, func(id int64) (int64, error) {
		return t.publishLetter(ctx, audit{action: "dead_letter.return", of: letterOf(id), reason: reason, outcome: outcomeDone},
			func(ctx context.Context, tx *store.Tx) (deadletter.Resent, error) {
				return deadletter.Return(ctx, tx, id, t.cfg.Actor, reason)
			})
	})
}

// publishLetter decides about one letter, appends its message and records both, in one
// transaction.
func (t *Triage) publishLetter(
	ctx context.Context, a audit, decide func(context.Context, *store.Tx) (deadletter.Resent, error),
) (row int64, err error) {
	var refused error
	err = t.letterTx(ctx, fmt.Sprintf("%s %d", a.action, a.of.id), func(ctx context.Context, tx *store.Tx) error {
		resent, err := decide(ctx, tx)
		if refused = err; err != nil {
			return err
		}
		if err := outbox.Publish(ctx, tx, t.relay, resent.OutboxRow, resent.Messages); err != nil {
			return err
		}
		row = 0 // the transaction may be repeated
		return t.record(ctx, tx.Queries, &row, a)
	})
	if err != nil {
		return 0, refusal(refused, err)
	}
	return row, nil
}

// eachLetter acts on letters at a pace while nobody else acts on many.
func (t *Triage) eachLetter(ctx context.Context, ids []int64, act func(id int64) (int64, error)) (*ManyReceipt, error) {
	receipt := &ManyReceipt{Planned: len(ids), Audits: []int64{}}
	err := t.underLock(ctx, func(check func() error) error {
		pace := time.NewTicker(time.Second / requeueRate)
		defer pace.Stop()
		row := 0
		for i, id := range ids {
			if i > 0 {
				select {
				case <-pace.C:
				case <-ctx.Done():
				}
			}
			if err := errors.Join(ctx.Err(), check()); err != nil {
				receipt.stop(ctx, err)
				return nil
			}
			audit, err := act(id)
			if err == nil {
				receipt.Audits = append(receipt.Audits, audit)
			}
			if row = receipt.count(err, row); row >= maxErrors {
				receipt.stop(ctx, fmt.Errorf("%d errors in a row: %w", row, err))
				return nil
			}
			progress(ctx, i+1, len(ids))
		}
		return nil
	})
	receipt.Left = receipt.Planned - receipt.Done - receipt.Changed - receipt.Failed
	return receipt, err
}

// count counts what came of one letter, and returns how many errors there were in a
// row.
func (r *ManyReceipt) count(err error, row int) int {
	switch {
	case err == nil:
		r.Done++
		return 0
	case isRefusal(err):
		r.Changed++
		r.note(err)
		return 0
	default:
		r.Failed++
		r.note(err)
		return row + 1
	}
}

func (r *ManyReceipt) note(err error) {
	if len(r.Errors) < 10 {
		r.Errors = append(r.Errors, err.Error())
	}
}

func (r *ManyReceipt) stop(ctx context.Context, err error) {
	r.Stopped = err.Error()
	if ctx.Err() != nil {
		r.Stopped = "stopped by hand"
	}
}

// PlanDiscardOf freezes the letters with these ids, as far as they wait, for DiscardMany,
// which takes MaxDiscard of them at most.
func (t *Triage) PlanDiscardOf(ctx context.Context, ids []int64) (*DiscardPlan, error) {
	plan := &DiscardPlan{Groups: []DiscardGroup{}}
	err := t.store.ReadTx(ctx, "plan a discard", func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.ControlNow(ctx)
		if err != nil {
			return fmt.Errorf("read the clock: %w", err)
		}
		plan.At = now
		rows, err := tx.PlanLetterDiscardOf(ctx, ids)
		if err != nil {
			return fmt.Errorf("find dead letters to discard: %w", err)
		}
		list := make([]store.PlanLetterDiscardRow, len(rows))
		for i, row := range rows {
			list[i] = store.PlanLetterDiscardRow(row)
		}
		plan.fill(list)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return plan, nil
}

// DiscardManyLocked is DiscardMany while nobody else runs a plan on the dead letters.
func (t *Triage) DiscardManyLocked(ctx context.Context, plan *DiscardPlan) (receipt *DiscardManyReceipt, err error) {
	err = t.underLock(ctx, func(check func() error) (err error) {
		receipt, err = t.discardMany(ctx, plan, check)
		return err
	})
	return receipt, err
}

// IDs are the letters of a plan, the oldest first.
func (p *DiscardPlan) IDs() []int64 { return slices.Clone(p.ids) }

// Reopen has letters that were discarded wait again; others are left as
// they are. It returns those that wait now. What had been decided stays written down.
func (t *Triage) Reopen(ctx context.Context, ids []int64, reason string) (*ManyReceipt, error) {
	receipt := &ManyReceipt{Planned: len(ids), Audits: []int64{}}
	err := t.underLock(ctx, func(check func() error) error {
		for page := range slices.Chunk(ids, discardPage) {
			if err := check(); err != nil {
				return err
			}
			var reopened []int64
			var row int64
			err := t.letterTx(ctx, "reopen dead letters", func(ctx context.Context, tx *store.Tx) (err error) {
				if reopened, err = deadletter.Reopen(ctx, tx, page, t.cfg.Actor, reason); err != nil || len(reopened) == 0 {
					return err
				}
				row = 0 // the transaction may be repeated
				return t.record(ctx, tx.Queries, &row, audit{
					action: "dead_letter.reopen", of: manyLetters, reason: reason, outcome: outcomeDone,
					request: map[string]any{"letters": reopened},
				})
			})
			if err != nil {
				receipt.Failed += len(page)
				return err
			}
			receipt.Done += len(reopened)
			receipt.Changed += len(page) - len(reopened)
			if row != 0 {
				receipt.Audits = append(receipt.Audits, row)
			}
			progress(ctx, receipt.Done+receipt.Changed, receipt.Planned)
		}
		return nil
	})
	receipt.Left = receipt.Planned - receipt.Done - receipt.Changed - receipt.Failed
	return receipt, err
}
