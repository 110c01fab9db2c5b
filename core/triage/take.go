package triage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

const (
	// TakeRate is the default number of dead letters that a take writes in a second.
	TakeRate = 1000
	// TakePrefetch bounds the unacknowledged messages of a take: they return to the queue if it
	// crashes.
	TakePrefetch = 50
	// PurgeOffered is the number of messages above which the broker may purge a queue.
	PurgeOffered = 50_000
	// takeWait is how long a take waits for the next message.
	takeWait = 2 * time.Second
	// maxMatched bounds the matching rows in a receipt.
	maxMatched = 1000
)

// ErrFewMessages reports that a queue has too few messages for a purge by the broker.
var ErrFewMessages = errors.New("the broker purges only many messages")

// ErrQueueMissing reports that the broker has no such queue.
var ErrQueueMissing = errors.New("the broker has no such queue")

// DeadLetterQueues acts on the broker's queues of dead letters; *broker.Broker implements it.
type DeadLetterQueues interface {
	QueueState(ctx context.Context, name string) (broker.QueueState, error)
	Drain(ctx context.Context, queue string, bound, prefetch int) (*broker.Drain, error)
	PurgeQueue(ctx context.Context, name string) (int, error)
	ExchangeExists(ctx context.Context, name string) (bool, error)
}

// TakeRequest asks to move messages from the broker into the ledger. Match does not select messages,
// because none returns to the queue: the receipt names the matching rows.
type TakeRequest struct {
	Queue string `json:"queue"`           // attune.dlx.queue if empty
	First int    `json:"first,omitempty"` // the greatest number; 0 for all ready messages
	// Rate is how many are taken in a second. Default TakeRate.
	Rate  float64         `json:"rate,omitempty"`
	Match DeadLetterMatch `json:"match,omitzero"`
	Note  string          `json:"note,omitempty"`
}

// DeadLetterMatch selects dead letters; empty fields match all.
type DeadLetterMatch struct {
	Reason    string `json:"reason,omitempty"`
	Action    string `json:"action,omitempty"` // a star stands for any text
	Worker    string `json:"worker,omitempty"` // by id
	Type      string `json:"type,omitempty"`
	Execution int64  `json:"execution,omitempty"`
}

// Matches reports whether a row is selected.
func (m DeadLetterMatch) Matches(e *deadletter.Entry) bool {
	action := m.Action == ""
	if !action {
		action, _ = path.Match(m.Action, e.ActionRef)
	}
	return action && (m.Reason == "" || m.Reason == e.Reason) && (m.Type == "" || m.Type == e.Type) &&
		(m.Worker == "" || e.WorkerID != nil && m.Worker == strconv.FormatInt(*e.WorkerID, 10)) &&
		(m.Execution == 0 || e.Execution != nil && m.Execution == *e.Execution)
}

// TakePlan is what a take would do. Its bound is fixed: later messages stay.
type TakePlan struct {
	TakeRequest

	Op        string `json:"op"`
	Ready     int    `json:"ready"`
	Consumers int    `json:"consumers"`
	Bound     int    `json:"bound"`

	audit int64 // the newest action before the plan
}

// PlanTake reads the number of messages in the queue. Errors other than those of the broker:
// ErrNoBroker and ErrQueueMissing.
func (t *Triage) PlanTake(ctx context.Context, request TakeRequest) (*TakePlan, error) {
	request.Queue, request.Rate = cmp.Or(request.Queue, message.QueueDeadLetter), cmp.Or(request.Rate, TakeRate)
	if t.wires == nil {
		return nil, ErrNoBroker
	}
	state, err := t.wires.QueueState(ctx, request.Queue)
	if err != nil {
		return nil, err
	}
	if !state.Exists {
		return nil, fmt.Errorf("%w: %s", ErrQueueMissing, request.Queue)
	}
	plan := &TakePlan{
		TakeRequest: request, Op: uuid.NewString(), Ready: state.Ready, Consumers: state.Consumers,
		Bound: state.Ready,
	}
	if request.First > 0 {
		plan.Bound = min(plan.Bound, request.First)
	}
	if plan.audit, err = t.store.NewestAudit(ctx); err != nil {
		plan.audit = math.MaxInt64 // only the author of a loss stays unknown
	}
	return plan, nil
}

// TakeReceipt is the result of a take. Taken is the sum of New, Known and Probes; a batch message
// counts once for each of its executions.
type TakeReceipt struct {
	Op      string `json:"op"`
	Queue   string `json:"queue"`
	Planned int    `json:"planned"`
	Taken   int    `json:"taken"`
	New     int    `json:"new"`    // new rows, which wait for an operator
	Known   int    `json:"known"`  // already in the ledger
	Probes  int    `json:"probes"` // probes of routes, which are dropped
	// Absent counts planned messages that had left the queue. Lost says what became of them, as far as is known; empty
	// without any, or if the queue has consumers.
	Absent int    `json:"absent"`
	Lost   string `json:"lost,omitempty"`
	Left   int    `json:"left"` // planned messages that were not reached
	Before int    `json:"before"`
	After  int    `json:"after"` // ready messages at the end; -1 if unknown
	// Matching counts the matching new rows, Matched names the first ones.
	Matching int     `json:"matching"`
	Matched  []int64 `json:"matched,omitempty"`
	Seconds  float64 `json:"seconds"`
	Outcome  string  `json:"outcome"`
	// Stopped is the reason of an early end; empty without one.
	Stopped string `json:"stopped,omitempty"`
	Audit   int64  `json:"audit_id,omitempty"`

	messages int // that left the queue
}

// Take moves the planned messages into the ledger, in the order of the queue. One transaction writes a page of
// messages with the counts of the audit; after it the messages are acknowledged. When the context ends, Take still
// writes the messages that were delivered, so that none returns to the queue. It returns a receipt unless it could
// not begin, also with an error; the same take again continues. Errors other than those of the servers: ErrNoBroker
// and a *LockedError.
func (t *Triage) Take(ctx context.Context, plan *TakePlan) (receipt *TakeReceipt, err error) {
	if t.wires == nil {
		return nil, ErrNoBroker
	}
	lock, err := t.store.LockSession(ctx, deadletter.LockName(plan.Queue), t.holder())
	if err != nil {
		return nil, err
	}
	defer lock.Release(ctx)
	drain, err := t.wires.Drain(ctx, plan.Queue, plan.Bound, TakePrefetch)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	run := &take{Triage: t, plan: plan, drain: drain, began: began, receipt: &TakeReceipt{
		Op: plan.Op, Queue: plan.Queue, Planned: plan.Bound, Before: plan.Ready, After: -1, Outcome: outcomeRunning,
	}}
	err = run.run(ctx, lock)
	ending, cancel := ending(ctx)
	defer cancel()
	err = errors.Join(err, drain.Close(ending))
	run.receipt.Seconds = time.Since(began).Seconds()
	run.finish(ending, err, ctx.Err() != nil)
	return run.receipt, err
}

// take is a running Take.
type take struct {
	*Triage

	plan    *TakePlan
	drain   *broker.Drain
	receipt *TakeReceipt
	began   time.Time
	empty   bool // the queue had no more messages
}

func (r *take) run(ctx context.Context, lock *store.SessionLock) error {
	whole := context.WithoutCancel(ctx) // a page that has begun is finished
	pages := loop{lock: lock}
	err := pages.run(ctx, func(ctx context.Context) (more bool, err error) {
		if more, err = r.next(ctx, whole); more { // the rate decides when the next page is due
			due := time.Duration(float64(r.receipt.Taken) / r.plan.Rate * float64(time.Second))
			supervise.Sleep(ctx, time.Until(r.began.Add(due)))
		}
		r.empty = !more && err == nil
		return more, err
	})
	if err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	if err := r.drain.Stop(whole); err != nil {
		return err
	}
	return pages.run(whole, func(context.Context) (more bool, err error) { return r.next(whole, whole) })
}

// next writes the next page into the ledger. The end of ctx ends the wait for the page with its error. more is false
// without a page.
func (r *take) next(ctx, whole context.Context) (more bool, err error) {
	page, err := r.drain.Next(ctx, takeWait)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, broker.ErrNotFound):
		return false, fmt.Errorf("%w: %s", ErrQueueMissing, r.plan.Queue)
	case err != nil || page == nil:
		return false, err
	}
	if err := r.page(whole, page); err != nil {
		return false, err
	}
	progress(ctx, r.receipt.messages, r.receipt.Planned)
	return true, nil
}

// page writes messages and their counts, and acknowledges them.
func (r *take) page(ctx context.Context, page []broker.Delivery) error {
	for begin, i := 0, 0; i < len(page); i++ { // a message that may have ended a process goes alone
		if !page[i].Doubtful() {
			if i+1 == len(page) || page[i+1].Doubtful() {
				if err := r.write(ctx, page[begin:i+1]); err != nil {
					return err
				}
				begin = i + 1
			}
			continue
		}
		print := page[i].Fingerprint(r.plan.Queue)
		if began, err := r.store.BeginTrial(ctx, print, r.plan.Queue); err == nil && began == 0 {
			page[i].Unread()
		}
		if err := r.write(ctx, page[i:i+1]); err != nil {
			return err
		}
		_ = r.store.EndTrial(ctx, print) // a trial without a record, or with one for too long, is no reason to stop
		begin = i + 1
	}
	r.receipt.messages += len(page)
	if err := r.drain.Ack(ctx); err != nil {
		return err
	}
	crashpoint.Reach("take:acknowledged")
	return nil
}

// write writes messages and their counts.
func (r *take) write(ctx context.Context, page []broker.Delivery) error {
	taking := deadletter.TakeInfo{Queue: r.plan.Queue, By: r.cfg.Actor, Note: r.plan.Note, Op: r.plan.Op}
	_, err := deadletter.Take(ctx, r.store, page, taking,
		func(ctx context.Context, tx *store.Tx, taken deadletter.Taken) error {
			after := *r.receipt
			after.add(taken, r.plan.Match)
			if err := r.audit(ctx, tx, &after, nil); err != nil {
				return err
			}
			tx.AfterCommit(func() { *r.receipt = after })
			return nil
		})
	return err
}

func (r *TakeReceipt) add(taken deadletter.Taken, match DeadLetterMatch) {
	r.New += len(taken.Entries)
	r.Known += taken.Known
	r.Probes += taken.Probes
	r.Taken = r.New + r.Known + r.Probes
	for i := range taken.Entries {
		if !match.Matches(&taken.Entries[i]) {
			continue
		}
		if r.Matching++; len(r.Matched) < maxMatched {
			r.Matched = append(r.Matched, taken.Entries[i].ID)
		}
	}
}

// audit writes the progress into the row of the first page.
func (r *take) audit(ctx context.Context, tx *store.Tx, receipt *TakeReceipt, failure error) error {
	counts := *receipt
	counts.Matched = nil
	return r.record(ctx, tx.Queries, &receipt.Audit, audit{
		action: "dead_letter.take", of: manyDeadLetters, reason: r.plan.Note, outcome: receipt.Outcome,
		request: map[string]any{"plan": r.plan, "receipt": &counts}, failure: failureOf(failure),
	})
}

// finish sets the outcome, and writes it if the database answers.
func (r *take) finish(ctx context.Context, err error, stopped bool) {
	receipt := r.receipt
	missing := max(receipt.Planned-receipt.messages, 0)
	if r.empty && err == nil {
		receipt.Absent = missing
		r.sayLost(ctx)
	} else {
		receipt.Left = missing
	}
	switch {
	case err != nil:
		receipt.Outcome, receipt.Stopped = outcomeFailed, r.Denied(err).Error()
	case stopped && missing > 0:
		receipt.Outcome, receipt.Stopped = outcomeInterrupted, stoppedByHand
	case receipt.Taken == 0 && receipt.Absent > 0:
		receipt.Outcome = outcomeUnchanged
	case receipt.Taken == 0:
		receipt.Outcome = outcomeNothing
	default:
		receipt.Outcome = outcomeDone
	}
	if state, stateErr := r.wires.QueueState(ctx, r.plan.Queue); stateErr == nil && state.Exists {
		receipt.After = state.Ready
	}
	// If this fails, the audit stays running, with the counts of the last page.
	_ = r.store.Tx(ctx, "end a take",
		func(ctx context.Context, tx *store.Tx) error { return r.audit(ctx, tx, receipt, err) })
}

// sayLost says what became of the messages that had left the queue.
func (r *take) sayLost(ctx context.Context) {
	receipt := r.receipt
	if receipt.Absent == 0 {
		return
	}
	by, err := r.store.QueueEmptied(ctx, r.plan.audit, receipt.Audit, receipt.Queue)
	at := by.At.UTC().Format(time.RFC3339)
	switch {
	case err == nil && by.Action == "dead_letter.take":
		receipt.Lost = fmt.Sprintf("%s took messages of %s into the ledger at %s", by.Actor, receipt.Queue, at)
	case err == nil:
		receipt.Lost = fmt.Sprintf("they are lost: %s purged %s at %s", by.Actor, receipt.Queue, at)
	case r.plan.Consumers == 0:
		receipt.Lost = "they are lost, unless a consumer took them: they were purged or expired, and no action of " +
			"attune-executor says by whom"
	}
}

// BrokerPurge is the result of PurgeBroker.
type BrokerPurge struct {
	Queue   string `json:"queue"`
	Before  int    `json:"before"`
	Removed int    `json:"removed"`
	After   int    `json:"after"` // -1 if unknown
	Audit   int64  `json:"audit_id,omitempty"`
}

// PurgeBroker makes the broker delete all ready messages of a queue, also ones that arrive meanwhile.
// They are lost, without rows in the ledger. The audit is written before, with the outcome running,
// and again with the counts. It refuses queues of at most PurgeOffered messages.
func (t *Triage) PurgeBroker(ctx context.Context, queue, reason string) (*BrokerPurge, error) {
	plan, err := t.PlanTake(ctx, TakeRequest{Queue: queue})
	if err != nil {
		return nil, err
	}
	p := &BrokerPurge{Queue: plan.Queue, Before: plan.Ready, After: -1}
	if p.Before <= PurgeOffered {
		return nil, fmt.Errorf("%d messages lie in %s: %w, more than %d: take them", p.Before, p.Queue, ErrFewMessages,
			PurgeOffered)
	}
	a := audit{
		action: "dead_letter.purge-broker", of: manyDeadLetters, reason: reason, outcome: outcomeRunning,
		request: p,
	}
	if err := t.record(ctx, t.store.Queries, &p.Audit, a); err != nil {
		return nil, err
	}
	a.outcome = outcomeDone
	var purgeErr error
	if p.Removed, purgeErr = t.wires.PurgeQueue(ctx, p.Queue); purgeErr != nil {
		a.outcome, a.failure = outcomeFailed, purgeErr.Error()
	}
	ending, cancel := ending(ctx)
	defer cancel()
	if state, err := t.wires.QueueState(ending, p.Queue); err == nil && state.Exists {
		p.After = state.Ready
	}
	return p, errors.Join(purgeErr, t.record(ending, t.store.Queries, &p.Audit, a))
}
