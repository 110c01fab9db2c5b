package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// Round is one transaction's decisions in the making.
type Round struct {
	Ledger *admission.Ledger

	h        *HandOver
	plan     *Plan
	fleet    *placement.Fleet
	messages []outbox.Message
	endings  []ending
	unplaced bool // something was ended for want of a worker
	replan   bool // a row is not what it was when the steps planned
}

// ending is an execution that the engine ends while it waits.
type ending struct {
	execution int64
	actionID  int64
	actionRef string
	status    attune.Status
	result    json.RawMessage
}

func newRound(h *HandOver, plan *Plan, ledger *admission.Ledger, workers []placement.Worker, turn int) *Round {
	live := make([]placement.Worker, 0, len(workers))
	for _, w := range workers {
		assigned, ok := ledger.Load(w.ID)
		if !ok && !w.Deaf {
			continue
		}
		w.Assigned, w.Deaf = assigned, !ok
		live = append(live, w)
	}
	return &Round{Ledger: ledger, h: h, plan: plan, fleet: placement.NewFleet(live, turn)}
}

// Now is the round's moment by the database's clock.
func (r *Round) Now() time.Time { return r.Ledger.Now.UTC() }

// Queue returns the queue of a key that a step asked for.
func (r *Round) Queue(key admission.Key) (int64, bool) {
	id, ok := r.plan.queues[key]
	return id, ok && r.Ledger.Locked(id)
}

// Row returns the row of an execution as it was read without locks.
func (r *Round) Row(id int64) (store.ReadRoundExecutionsRow, bool) { return r.plan.Row(id) }

// Rule returns the rule of an action.
func (r *Round) Rule(id *int64, ref string) (Rule, bool) { return r.h.rules.find(id, ref) }

// Replan has the round run again, because a row is not what it was when the
// steps planned for it.
func (r *Round) Replan() { r.replan = true }

// MaxQueued is the longest line of one queue.
func (r *Round) MaxQueued() int { return r.h.cfg.MaxQueued }

// Release gives back the slot and the worker's room of a terminal execution.
func (r *Round) Release(id int64) bool {
	fact, ok := r.Ledger.Fact(id)
	if !ok || !r.Ledger.Release(id) {
		return false
	}
	if fact.Worker != nil {
		r.fleet.Release(*fact.Worker)
	}
	return true
}

// Promote gives free slots to waiting heads.
func (r *Round) Promote() { r.Ledger.Promote(r.Gate) }

// Gate places an execution whose queue has a slot for it. An execution that
// can never be placed is ended here.
func (r *Round) Gate(w admission.Waiter) admission.Answer {
	rule, ok := r.h.rules.find(&w.ActionID, w.ActionRef)
	if !ok {
		r.Fail(w.ExecutionID, w.ActionID, w.ActionRef, "action not found", "the action no longer exists")
		return admission.End()
	}
	verdict := r.fleet.Choose(rule.Need)
	switch verdict.Outcome {
	case placement.Placed:
		return admission.Grant(verdict.Worker)
	case placement.Busy:
		return admission.Wait(verdict.Reason)
	case placement.NoWorkers, placement.Incompatible:
	}
	if verdict.Outcome == placement.NoWorkers && r.h.cfg.WaitForWorkers {
		return admission.Wait(verdict.Reason)
	}
	r.unplaced = true
	r.Fail(w.ExecutionID, w.ActionID, w.ActionRef, verdict.Reason, "the execution cannot be placed on any worker")
	return admission.End()
}

// Fail ends a waiting execution as failed, with the result that the published
// scheduler writes.
func (r *Round) Fail(id, actionID int64, actionRef, reason, detail string) {
	r.end(ending{
		execution: id, actionID: actionID, actionRef: actionRef, status: attune.StatusFailed,
		result: encode(map[string]any{
			"error": reason, "message": detail, "action_ref": actionRef,
			"failed_by": "execution_scheduler", "failed_at": r.Now(),
		}),
	})
}

// Refuse ends a waiting execution as cancelled because its policy does not
// let it wait.
func (r *Round) Refuse(id, actionID int64, actionRef, reason, detail string) {
	r.end(ending{
		execution: id, actionID: actionID, actionRef: actionRef, status: attune.StatusCancelled,
		result: encode(map[string]any{
			"error": reason, "message": detail, "action_ref": actionRef,
			"cancelled_by": "execution_scheduler", "cancelled_at": r.Now(),
		}),
	})
}

func encode(fields map[string]any) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(`{}`) // cannot happen: strings and times only
	}
	return raw
}

func (r *Round) end(e ending) {
	r.endings = append(r.endings, e)
	r.Ledger.End(e.execution, e.status)
}

// write stores the round and commits it. It returns the outbox row, 0 when
// the round has no messages.
func (r *Round) write(ctx context.Context, tx *store.Tx) (int64, error) {
	if err := r.compose(); err != nil {
		return 0, err
	}
	p := tx.Pipeline()
	r.writeEndings(p)
	r.Ledger.Write(p)
	var ticket *outbox.Ticket
	if len(r.messages) > 0 {
		ticket = outbox.AppendTo(p, r.messages)
	}
	if err := p.Commit(ctx); err != nil {
		return 0, fmt.Errorf("write a round of %d executions: %w", len(r.plan.ids), err)
	}
	if ticket == nil {
		return 0, nil
	}
	return ticket.ID(), nil
}

func (r *Round) writeEndings(p *store.Pipeline) {
	if len(r.endings) == 0 {
		return
	}
	sort.Slice(r.endings, func(i, j int) bool { return r.endings[i].execution < r.endings[j].execution })
	n := len(r.endings)
	ids, statuses, results := make([]int64, n), make([]string, n), make([]string, n)
	for i, e := range r.endings {
		ids[i], statuses[i], results[i] = e.execution, string(e.status), string(e.result)
	}
	p.Exec(store.DecideExecutions, ids, statuses, results)
}

// compose writes the messages: one dispatch for every grant, one completion
// for every ending.
func (r *Round) compose() error {
	r.messages = r.messages[:0]
	for _, g := range r.Ledger.Granted() {
		m, err := r.dispatch(g)
		if err != nil {
			return err
		}
		r.messages = append(r.messages, m)
	}
	for _, e := range r.endings {
		m, err := r.completed(e)
		if err != nil {
			return err
		}
		r.messages = append(r.messages, m)
	}
	return nil
}

// maxConfigInDispatch bounds the parameters carried in a dispatch. Workers
// read parameters from the row; the copy is a courtesy to other consumers.
const maxConfigInDispatch = 16 << 10

func (r *Round) dispatch(g admission.Granted) (outbox.Message, error) {
	payload := message.Dispatch{
		ExecutionID: g.ExecutionID, WorkerID: g.Worker, ActionRef: g.ActionRef,
		ScheduledAttemptUpdatedAt: r.updatedAt(g.Updated), Attempt: g.Attempt + 1,
	}
	if len(g.Config) <= maxConfigInDispatch {
		payload.Config = g.Config
	}
	return r.message(message.TypeExecutionRequested, message.ExchangeExecutions, message.DispatchKey(g.Worker), payload)
}

// updatedAt is what execution.updated says after this transaction's write: the
// trigger takes the start of the transaction, and one microsecond more than
// the old value if that is later.
func (r *Round) updatedAt(before time.Time) time.Time {
	if next := before.Add(time.Microsecond); next.After(r.Ledger.Now) {
		return next.UTC()
	}
	return r.Now()
}

func (r *Round) completed(e ending) (outbox.Message, error) {
	return r.message(message.TypeExecutionCompleted, message.ExchangeExecutions, message.KeyExecutionCompleted,
		message.ExecutionCompleted{
			ExecutionID: e.execution, ActionID: e.actionID, ActionRef: e.actionRef,
			Status: string(e.status), Result: e.result, CompletedAt: r.Now(),
		})
}

func (r *Round) message(kind, exchange, key string, payload any) (outbox.Message, error) {
	envelope := message.New(kind, payload, r.Now(), r.h.cfg.Source)
	body, err := envelope.Encode()
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode %s for %s: %w", kind, key, err)
	}
	return outbox.Message{
		ID: envelope.MessageID, Exchange: exchange, RoutingKey: key, Type: kind, Body: body,
	}, nil
}

func (r *Round) result(plan *Plan) Result {
	result := Result{
		Released: r.Ledger.Released(), Granted: len(r.Ledger.Granted()), Enqueued: r.Ledger.Enqueued(),
		Ended: len(r.endings), Unfilled: r.Ledger.Unfilled(),
	}
	for _, id := range plan.ids {
		if _, ok := plan.rows[id]; !ok {
			result.Missing = append(result.Missing, id)
		}
	}
	return result
}
