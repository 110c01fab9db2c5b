package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
)

const (
	// MaxDiscard bounds the dead letters of one action; the same action again continues.
	MaxDiscard = 10_000
	// discardPage is how many dead letters one transaction decides.
	discardPage = 500
)

// DiscardRequest selects waiting dead letters. The zero value selects all of them.
type DiscardRequest struct {
	Reason    string `json:"reason,omitempty"` // of the dead letter
	Action    string `json:"action,omitempty"` // a star stands for any text
	Worker    string `json:"worker,omitempty"` // by id or name
	Type      string `json:"type,omitempty"`   // of the message
	Execution int64  `json:"execution,omitempty"`
	// MaxAge and MinAge bound the time since a dead letter was stored; 0 is no bound.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	MinAge time.Duration `json:"min_age_ns,omitempty"`
	// Note is the reason in the audit.
	Note string `json:"note,omitempty"`
}

// DiscardGroup counts the dead letters of a plan by reason and type.
type DiscardGroup struct {
	Reason string    `json:"reason"`
	Type   string    `json:"type"`
	Count  int       `json:"count"`
	Oldest time.Time `json:"oldest"`
}

// DiscardPlan has the dead letters that would be discarded: the ones that waited at its time.
type DiscardPlan struct {
	DiscardRequest

	At          time.Time      `json:"at"`
	DeadLetters int            `json:"letters"`
	Groups      []DiscardGroup `json:"groups"`
	First       int64          `json:"first_id,omitempty"`
	Last        int64          `json:"last_id,omitempty"`
	// More reports that more match than one action takes; the plan has the oldest.
	More bool `json:"more"`

	ids []int64
}

// PlanDiscard lists the waiting dead letters that match, without locks or writes.
func (t *Triage) PlanDiscard(ctx context.Context, request DiscardRequest) (*DiscardPlan, error) {
	return t.planDiscard(ctx, request,
		func(ctx context.Context, tx *store.Tx) (rows []store.PlanDeadLetterDiscardRow, err error) {
			worker := int64(0)
			if request.Worker != "" {
				if worker, err = monitor.ResolveWorker(ctx, tx, request.Worker); err != nil || worker == 0 {
					return nil, err
				}
			}
			return tx.PlanDeadLetterDiscard(ctx, store.PlanDeadLetterDiscardParams{
				Execution: request.Execution, Reason: request.Reason, Pattern: monitor.Pattern(request.Action, false),
				Worker: worker, MessageType: request.Type, NewerSeconds: request.MaxAge.Seconds(),
				OlderSeconds: request.MinAge.Seconds(), Bound: MaxDiscard + 1,
			})
		})
}

// PlanDiscardOf lists the waiting ones of these dead letters, at most MaxDiscard.
func (t *Triage) PlanDiscardOf(ctx context.Context, ids []int64) (*DiscardPlan, error) {
	return t.planDiscard(ctx, DiscardRequest{},
		func(ctx context.Context, tx *store.Tx) ([]store.PlanDeadLetterDiscardRow, error) {
			rows, err := tx.PlanDeadLetterDiscardOf(ctx, ids)
			list := make([]store.PlanDeadLetterDiscardRow, len(rows))
			for i, row := range rows {
				list[i] = store.PlanDeadLetterDiscardRow(row)
			}
			return list, err
		})
}

func (t *Triage) planDiscard(
	ctx context.Context, request DiscardRequest,
	find func(context.Context, *store.Tx) ([]store.PlanDeadLetterDiscardRow, error),
) (*DiscardPlan, error) {
	return Read(ctx, t, "plan a discard", func(ctx context.Context, tx *store.Tx) (*DiscardPlan, error) {
		now, err := tx.Now(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the clock: %w", err)
		}
		rows, err := find(ctx, tx)
		if err != nil {
			return nil, fmt.Errorf("find dead letters to discard: %w", err)
		}
		planned := &DiscardPlan{DiscardRequest: request, At: now, Groups: []DiscardGroup{}}
		planned.fill(rows)
		return planned, nil
	})
}

// IDs returns the dead letters of a plan, the oldest first.
func (p *DiscardPlan) IDs() []int64 { return slices.Clone(p.ids) }

func (p *DiscardPlan) fill(rows []store.PlanDeadLetterDiscardRow) {
	p.More = len(rows) > MaxDiscard
	rows = rows[:min(len(rows), MaxDiscard)]
	at := map[[2]string]int{}
	for _, r := range rows {
		p.ids = append(p.ids, r.ID)
		key := [2]string{r.Reason, r.MessageType}
		i, ok := at[key]
		if !ok {
			i = len(p.Groups)
			at[key] = i
			p.Groups = append(p.Groups, DiscardGroup{Reason: r.Reason, Type: r.MessageType, Oldest: r.Created})
		}
		p.Groups[i].Count++
	}
	if p.DeadLetters = len(p.ids); p.DeadLetters > 0 {
		p.First, p.Last = p.ids[0], p.ids[p.DeadLetters-1]
	}
}

// DiscardManyReceipt is the result of DiscardMany. Planned is the sum of Discarded, AlreadyDecided
// and Left.
type DiscardManyReceipt struct {
	Planned        int     `json:"planned"`
	Discarded      int     `json:"discarded"`
	AlreadyDecided int     `json:"already_decided"` // by others, since the plan
	Left           int     `json:"left"`            // still waiting: it was interrupted
	Seconds        float64 `json:"seconds"`
	Outcome        string  `json:"outcome"` // done, nothing to do, unchanged, interrupted or failed
	Audit          int64   `json:"audit_id,omitempty"`
}

// DiscardMany discards the dead letters of a plan, a page in each transaction. No other operator may act on many
// dead letters meanwhile: otherwise it fails with a *LockedError. It leaves dead letters alone that were decided
// since, or arrived later; the rows keep everything. It always returns a receipt, with an error that of a part.
func (t *Triage) DiscardMany(ctx context.Context, plan *DiscardPlan) (*DiscardManyReceipt, error) {
	began := time.Now()
	receipt := &DiscardManyReceipt{Planned: plan.DeadLetters, Outcome: outcomeRunning}
	err := t.discardPages(ctx, plan, receipt)
	if locked, ok := errors.AsType[*LockedError](err); ok {
		receipt.Outcome, receipt.Left = outcomeFailed, plan.DeadLetters
		return receipt, locked
	}
	if err != nil {
		err = fmt.Errorf("discard dead letters after %d: %w", receipt.Discarded, err)
	}
	receipt.Seconds = time.Since(began).Seconds()
	receipt.Left = max(receipt.Planned-receipt.Discarded-receipt.AlreadyDecided, 0)
	receipt.Outcome = outcomeOf(ctx, err, receipt.Planned, receipt.Discarded)
	return receipt, t.finish(ctx, "end a discard", err, func(ctx context.Context, tx *store.Tx) error {
		return t.auditDiscard(ctx, tx, plan, receipt, err)
	})
}

func (t *Triage) discardPages(ctx context.Context, plan *DiscardPlan, receipt *DiscardManyReceipt) error {
	if plan.DeadLetters == 0 {
		return nil
	}
	lock, err := t.store.LockSession(ctx, DeadLettersLock, t.holder())
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	left := plan.ids
	return loop{lock: lock}.run(ctx, func(ctx context.Context) (more bool, err error) {
		page := left[:min(len(left), discardPage)]
		left = left[len(page):]
		err = t.discardPage(ctx, plan, page, receipt)
		progress(ctx, receipt.Discarded+receipt.AlreadyDecided, plan.DeadLetters)
		return len(left) > 0, err
	})
}

func (t *Triage) discardPage(ctx context.Context, plan *DiscardPlan, page []int64, receipt *DiscardManyReceipt) error {
	return t.act(ctx, "discard dead letters", func(ctx context.Context, tx *store.Tx) error {
		after := *receipt
		discarded, err := deadletter.DiscardMany(ctx, tx, page, t.cfg.Actor, plan.Note)
		if err != nil {
			return err
		}
		after.Discarded += len(discarded)
		after.AlreadyDecided += len(page) - len(discarded)
		tx.AfterCommit(func() { *receipt = after })
		return t.auditDiscard(ctx, tx, plan, &after, nil)
	})
}

// auditDiscard writes the progress into the row of the first page.
func (t *Triage) auditDiscard(
	ctx context.Context, tx *store.Tx, plan *DiscardPlan, receipt *DiscardManyReceipt, failure error,
) error {
	return t.record(ctx, tx.Queries, &receipt.Audit, audit{
		action: "dead_letter.discard", of: manyDeadLetters, reason: plan.Note, outcome: receipt.Outcome,
		request: map[string]any{"plan": plan, "receipt": receipt}, failure: failureOf(failure),
	})
}
