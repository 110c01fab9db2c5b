package triage

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
)

const (
	// MaxDiscard bounds the dead letters of one act; the same again goes on.
	MaxDiscard = 10_000
	// discardPage is how many letters one transaction decides.
	discardPage = 500
)

// DiscardOrder says which of the dead letters that wait for a person are discarded. The
// zero value is all of them.
type DiscardOrder struct {
	Reason    string `json:"reason,omitempty"`    // why they died
	Action    string `json:"action,omitempty"`    // a star stands for anything
	Worker    string `json:"worker,omitempty"`    // by id or name
	Type      string `json:"type,omitempty"`      // of message
	Execution int64  `json:"execution,omitempty"` // what they are about
	// MaxAge takes only what was stored within it, MinAge only what was stored
	// before.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	MinAge time.Duration `json:"min_age_ns,omitempty"`
	// Note says why, for those who look at what was done.
	Note string `json:"note,omitempty"`
}

// DiscardGroup counts letters of a plan that died for one reason and are of one
// type.
type DiscardGroup struct {
	Reason string    `json:"reason"`
	Type   string    `json:"type"`
	Count  int       `json:"count"`
	Oldest time.Time `json:"oldest"`
}

// DiscardPlan is which letters would be discarded: those that waited when it was made.
type DiscardPlan struct {
	DiscardOrder

	At      time.Time      `json:"at"`
	Letters int            `json:"letters"`
	Groups  []DiscardGroup `json:"groups"`
	First   int64          `json:"first_id,omitempty"`
	Last    int64          `json:"last_id,omitempty"`
	// More says that more match than one act takes: the oldest are in the plan.
	More bool `json:"more"`

	ids []int64
}

// PlanDiscard freezes which letters wait and match. Nothing is locked or written.
func (t *Triage) PlanDiscard(ctx context.Context, order DiscardOrder) (*DiscardPlan, error) {
	plan := &DiscardPlan{DiscardOrder: order, Groups: []DiscardGroup{}}
	err := t.store.ReadTx(ctx, "plan a discard", func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.ControlNow(ctx)
		if err != nil {
			return fmt.Errorf("read the clock: %w", err)
		}
		plan.At = now
		worker := int64(0)
		if order.Worker != "" {
			if worker, err = monitor.ResolveWorker(ctx, tx, order.Worker); err != nil || worker == 0 {
				return err
			}
		}
		rows, err := tx.PlanLetterDiscard(ctx, store.PlanLetterDiscardParams{
			Execution: order.Execution, Reason: order.Reason, Pattern: monitor.Pattern(order.Action, false),
			Worker: worker, MessageType: order.Type,
			NewerSeconds: order.MaxAge.Seconds(), OlderSeconds: order.MinAge.Seconds(), Bound: MaxDiscard + 1,
		})
		if err != nil {
			return fmt.Errorf("find dead letters to discard: %w", err)
		}
		plan.fill(rows)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return plan, nil
}

func (p *DiscardPlan) fill(rows []store.PlanLetterDiscardRow) {
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
	if p.Letters = len(p.ids); p.Letters > 0 {
		p.First, p.Last = p.ids[0], p.ids[p.Letters-1]
	}
}

// DiscardManyReceipt is what an act on many has done. Planned is Discarded, AlreadyDecided and
// Left together.
type DiscardManyReceipt struct {
	Planned        int     `json:"planned"`
	Discarded      int     `json:"discarded"`
	AlreadyDecided int     `json:"already_decided"` // by somebody else, since the plan
	Left           int     `json:"left"`            // still waiting: it was interrupted
	Seconds        float64 `json:"seconds"`
	Outcome        string  `json:"outcome"` // done, nothing to do, unchanged, interrupted or failed
	Audit          int64   `json:"audit_id,omitempty"`
}

// DiscardMany decides that nothing is done about the letters of a plan, a page a
// transaction. Letters that somebody has decided since are passed over, and what
// came later is not touched; the rows keep everything. It always returns a
// receipt; with an error too it says what had been done by then.
func (t *Triage) DiscardMany(ctx context.Context, plan *DiscardPlan) (*DiscardManyReceipt, error) {
	return t.discardMany(ctx, plan, func() error { return nil })
}

// discardMany is DiscardMany as long as check has no error.
func (t *Triage) discardMany(ctx context.Context, plan *DiscardPlan, check func() error) (*DiscardManyReceipt, error) {
	began := time.Now()
	receipt := &DiscardManyReceipt{Planned: plan.Letters, Outcome: outcomeRunning}
	var err error
	for begin := 0; begin < len(plan.ids) && err == nil; begin += discardPage {
		page := plan.ids[begin:min(begin+discardPage, len(plan.ids))]
		if err = check(); err == nil {
			err = t.discardPage(ctx, plan, page, receipt)
		}
		if err != nil {
			err = fmt.Errorf("discard dead letters after %d: %w", receipt.Discarded, err)
		}
		progress(ctx, receipt.Discarded+receipt.AlreadyDecided, plan.Letters)
	}
	receipt.Seconds = time.Since(began).Seconds()
	receipt.Left = max(receipt.Planned-receipt.Discarded-receipt.AlreadyDecided, 0)
	receipt.Outcome = outcomeOf(ctx, err, receipt.Planned, receipt.Discarded)
	ending, cancel := ending(ctx)
	defer cancel()
	auditErr := t.store.Tx(ending, "end a discard", func(ctx context.Context, tx *store.Tx) error {
		return t.auditDiscard(ctx, tx, plan, receipt, err)
	})
	return receipt, cmp.Or(err, auditErr)
}

func (t *Triage) discardPage(ctx context.Context, plan *DiscardPlan, page []int64, receipt *DiscardManyReceipt) error {
	after := *receipt
	err := t.letterTx(ctx, "discard dead letters", func(ctx context.Context, tx *store.Tx) error {
		after = *receipt
		discarded, err := deadletter.DiscardMany(ctx, tx, page, t.cfg.Actor, plan.Note)
		if err != nil {
			return err
		}
		after.Discarded += len(discarded)
		after.AlreadyDecided += len(page) - len(discarded)
		return t.auditDiscard(ctx, tx, plan, &after, nil)
	})
	if err == nil {
		*receipt = after
	}
	return err
}

// auditDiscard writes down how far it has come, in the row of the first page.
func (t *Triage) auditDiscard(
	ctx context.Context, tx *store.Tx, plan *DiscardPlan, receipt *DiscardManyReceipt, failure error,
) error {
	return t.record(ctx, tx.Queries, &receipt.Audit, audit{
		action: "dead_letter.discard", of: manyLetters, reason: plan.Note, outcome: receipt.Outcome,
		request: map[string]any{"plan": plan, "receipt": receipt}, failure: failureOf(failure),
	})
}
