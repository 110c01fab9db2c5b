package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/bounds"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// Round is one transaction's decisions in the making.
type Round struct {
	Ledger *admission.Ledger

	scheduler *Scheduler
	plan      *Plan
	fleet     *placement.Fleet
	messages  []outbox.Message
	endings   []ending
	unplaced  bool // something was ended for want of a worker
	replan    bool // a row is not what it was when the steps planned
	missing   scopes
	left      map[int64]bool // executions that are left for another round
	held      []int64        // queues to fill that another round holds
	ran       []ran

	newExecutions []*NewExecution
	more          []outbox.Message // of the steps

	dispatches map[int64][]message.Dispatch // to workers that read batches; of compose

	afterwards
	orchestration
	taken
}

// ran is how long an execution of an action ran.
type ran struct {
	actionRef string
	took      time.Duration
	latency   time.Duration // from its request to its start
}

// ending is an execution that the engine ends while it waits.
type ending struct {
	execution int64
	actionID  int64
	actionRef string
	status    attune.Status
	result    json.RawMessage
	refused   string // for the metric; empty if it is counted otherwise
}

func newRound(s *Scheduler, plan *Plan, ledger *admission.Ledger, workers []placement.Worker, turn int) *Round {
	return &Round{
		Ledger: ledger, scheduler: s, plan: plan, fleet: placement.NewFleet(s.fleet.standing(ledger, workers), turn), missing: make(scopes),
		left: make(map[int64]bool),
	}
}

// Now is the round's moment by the database's clock.
func (r *Round) Now() time.Time { return r.Ledger.Now.UTC() }

// Queue returns the queue of a key that a step asked for.
func (r *Round) Queue(key admission.Key) (int64, bool) {
	id, ok := r.plan.queues[key]
	return id, ok && r.Ledger.Locked(id)
}

// Row returns the row of an execution as Plan.Row does.
func (r *Round) Row(id int64) (store.ReadRoundExecutionsRow, bool) { return r.plan.Row(id) }

// Rule returns the rule of an action.
func (r *Round) Rule(id *int64, ref string) (Rule, bool) { return r.plan.Rule(id, ref) }

// Left reports whether an execution must be left for another round, because another one
// holds a queue that it needs. The result names it then.
func (r *Round) Left(id int64) bool {
	c := r.plan.claims[id]
	if c == nil {
		return false
	}
	for _, queue := range c.queues {
		r.left[id] = r.left[id] || r.Ledger.Held(queue)
	}
	for _, key := range c.keys {
		queue, ok := r.plan.queues[key]
		r.left[id] = r.left[id] || (ok && r.Ledger.Held(queue))
	}
	return r.left[id]
}

// Replan has the round run again, because a row is not what it was when the
// steps planned for it.
func (r *Round) Replan() { r.replan = true }

// MaxQueued is the longest line of a queue of the action.
func (r *Round) MaxQueued(rule Rule) int {
	return cmp.Or(rule.Limits.MaxQueued, r.scheduler.cfg.MaxQueued)
}

// Front reports whether a retry of the action goes before those who wait.
func (r *Round) Front(rule Rule) bool {
	return cmp.Or(rule.Limits.RetryPlace, r.scheduler.cfg.RetryPlace) == policy.PlaceFront
}

// Release gives back the slot and the worker's room of a terminal execution.
func (r *Round) Release(id int64) bool {
	fact, ok := r.Ledger.Fact(id)
	if !ok || !r.Ledger.Release(id) {
		return false
	}
	if fact.HeldAt != nil {
		r.fleet.Release(*fact.HeldAt)
	}
	if row, ok := r.plan.Row(id); ok && fact.Started != nil && fact.Ended != nil {
		r.ran = append(r.ran, ran{
			actionRef: row.ActionRef, took: fact.Ended.Sub(*fact.Started), latency: fact.Started.Sub(row.Created),
		})
	}
	return true
}

// Promote gives free slots to waiting heads.
func (r *Round) Promote() { r.Ledger.Promote(r.Gate()) }

// Gate is what stands between a free slot of a queue and a worker.
func (r *Round) Gate() admission.Gate { return admission.Gate{Scopes: r.scopes, Place: r.place} }

// scopes finds the shared limits of an execution. Those that were not asked
// for are, together with those of everybody else who may be next, when the
// round is run again.
func (r *Round) scopes(w admission.Waiter) ([]int64, bool) {
	rule, ok := r.plan.Rule(&w.ActionID, w.ActionRef)
	if !ok || len(rule.Limits.Wide) == 0 {
		return nil, true
	}
	keys := rule.scopes(w.Config)
	ids := make([]int64, len(keys))
	for i, key := range keys {
		id, known := r.plan.scopeIDs[key]
		if !known {
			r.Ledger.EachWaiter(r.miss)
			r.miss(w)
			return nil, false
		}
		ids[i] = id
	}
	return ids, true
}

func (r *Round) miss(w admission.Waiter) {
	rule, ok := r.plan.Rule(&w.ActionID, w.ActionRef)
	if !ok {
		return
	}
	for i, key := range rule.scopes(w.Config) {
		r.missing[key] = rule.Limits.Wide[i]
	}
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

// Refuse ends a waiting execution as cancelled because a policy does not let
// it wait, or no longer. What stands in brackets at the end of the reason is no part
// of its name in the metric. facts are added to the published result.
func (r *Round) Refuse(id, actionID int64, actionRef, reason, detail string, facts map[string]any) {
	result := map[string]any{
		"error": reason, "message": detail, "action_ref": actionRef,
		"cancelled_by": "execution_scheduler", "cancelled_at": r.Now(),
	}
	maps.Copy(result, facts)
	name, _, _ := strings.Cut(reason, " (")
	r.end(ending{
		execution: id, actionID: actionID, actionRef: actionRef, status: attune.StatusCancelled, result: encode(result),
		refused: strings.ReplaceAll(strings.ToLower(name), " ", "_"),
	})
}

// Expire ends an execution that has waited longer than its queue allows and
// takes it out of its line.
func (r *Round) Expire(id, actionID int64, actionRef string, since time.Time, allowed time.Duration) {
	if !r.Ledger.Withdraw(id) {
		return
	}
	waited := r.Now().Sub(since)
	r.end(ending{
		execution: id, actionID: actionID, actionRef: actionRef, status: attune.StatusTimeout, refused: "queue_timeout",
		result: encode(map[string]any{
			"error":      "Queue timeout",
			"message":    fmt.Sprintf("it waited %s for its start, longer than the %s that its queue allows", waited.Round(time.Second), allowed),
			"action_ref": actionRef, "queue_timeout_seconds": allowed.Seconds(), "waited_seconds": waited.Round(time.Millisecond).Seconds(),
			"enqueued_at": since.UTC(), "timed_out_by": "execution_scheduler", "timed_out_at": r.Now(),
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
	r.writeNewExecutions(p)
	r.writeEndings(p)
	r.taken.write(p)
	r.Ledger.Write(p)
	r.afterwards.write(p)
	var ticket *outbox.Ticket
	if len(r.messages) > 0 {
		ticket = outbox.AppendTo(tx, p, r.scheduler.relay, r.messages)
	}
	crashpoint.Reach("round:before-commit")
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

// compose writes the messages: a dispatch for every grant, alone or with others of its
// worker, and one completion for every ending.
func (r *Round) compose() error {
	r.messages, r.dispatches = r.messages[:0], nil
	for _, g := range r.Ledger.Granted() {
		if err := r.dispatch(g); err != nil {
			return err
		}
	}
	for _, e := range r.endings {
		if err := r.add(r.completed(e)); err != nil {
			return err
		}
	}
	for _, e := range r.newExecutions {
		if !e.known || !e.rule.Workflow {
			continue
		}
		if err := r.add(r.message(message.TypeExecutionRequested, message.KeyExecutionRequested, r.asked(e))); err != nil {
			return err
		}
	}
	r.messages = append(r.messages, r.more...)
	if err := r.composeTaken(); err != nil {
		return err
	}
	if err := r.composeBatches(); err != nil {
		return err
	}
	return r.composeOutcomes()
}

// maxConfigInDispatch bounds the parameters carried in a dispatch. Workers
// read parameters from the row; the copy is a courtesy to other consumers.
const maxConfigInDispatch = 16 << 10

// dispatch hands an execution to its worker: by a message of its own, or with others of
// this round by composeBatches if the worker reads batches.
func (r *Round) dispatch(g admission.Granted) error {
	payload := message.Dispatch{
		ExecutionID: g.ExecutionID, WorkerID: g.Worker, ActionRef: g.ActionRef,
		ScheduledAttemptUpdatedAt: r.updatedAt(g.Updated), Attempt: g.Attempt + 1,
	}
	payload.Config = bounds.Copy(g.Config, maxConfigInDispatch)
	if w := r.fleet.Worker(g.Worker); w == nil || !w.Batch {
		return r.add(r.message(message.TypeExecutionRequested, message.DispatchKey(g.Worker), payload))
	}
	if r.dispatches == nil {
		r.dispatches = make(map[int64][]message.Dispatch)
	}
	r.dispatches[g.Worker] = append(r.dispatches[g.Worker], payload)
	return nil
}

// composeBatches writes the dispatches to workers that read batches, in as few messages
// as the bounds of a batch allow.
func (r *Round) composeBatches() error {
	for _, worker := range slices.Sorted(maps.Keys(r.dispatches)) {
		key := message.DispatchKey(worker)
		sent, err := message.Batches(message.TypeExecutionBatchRequested, r.dispatches[worker], r.Now(), r.scheduler.cfg.Source)
		if err != nil {
			return fmt.Errorf("write the dispatches for %s: %w", key, err)
		}
		for _, one := range sent {
			r.messages = append(r.messages, outbox.Message{
				ID: one.ID, Exchange: message.ExchangeExecutions, RoutingKey: key, Type: one.Type, Body: one.Body,
			})
		}
	}
	return nil
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
	return r.message(message.TypeExecutionCompleted, message.KeyExecutionCompleted,
		message.ExecutionCompleted{
			ExecutionID: e.execution, ActionID: e.actionID, ActionRef: e.actionRef,
			Status: string(e.status), Result: e.result, CompletedAt: r.Now(),
		})
}

func (r *Round) message(kind, key string, payload any) (outbox.Message, error) {
	envelope := message.New(kind, payload, r.Now(), r.scheduler.cfg.Source)
	body, err := envelope.Encode()
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode %s for %s: %w", kind, key, err)
	}
	return outbox.Message{
		ID: envelope.MessageID, Exchange: message.ExchangeExecutions, RoutingKey: key, Type: kind, Body: body,
	}, nil
}

func (r *Round) result(plan *Plan) Result {
	result := Result{
		Released: r.Ledger.Released(), Granted: len(r.Ledger.Granted()), Enqueued: r.Ledger.Enqueued(),
		Ended: len(r.endings) + len(r.stops), Unfilled: r.Ledger.Unfilled(), Moved: len(r.moves), RetryIn: r.soonest(),
		Starts: r.starts, Tasks: r.tasks, Made: len(r.newExecutions), Held: r.held,
	}
	for _, id := range result.Unfilled {
		action := r.Ledger.ActionOf(id)
		rule, _ := r.plan.Rule(&action, "")
		result.UnfilledOf = append(result.UnfilledOf, rule.ActionRef)
	}
	if r.repeated != nil {
		result.Repeated = r.repeated.Rows()
	}
	if after, ok := r.Ledger.Wake(); ok {
		result.Wake = max(after, time.Millisecond)
	}
	for _, id := range plan.ids {
		if _, ok := plan.rows[id]; !ok {
			result.Missing = append(result.Missing, id)
		}
		if r.left[id] {
			result.Left = append(result.Left, id)
			delete(r.left, id)
		}
	}
	return result
}

// observe measures how long who was admitted had waited, and how long who was
// released had run.
func (r *Round) observe(m *Metrics) {
	for _, g := range r.Ledger.Granted() {
		m.waited(g.ActionRef, r.Ledger.Clock.Sub(g.Created))
	}
	for _, e := range r.endings {
		if e.refused != "" {
			m.refuse(e.refused)
		}
	}
	if m != nil {
		m.lies.Add(float64(len(r.said)))
	}
	for _, done := range r.ran {
		m.ran(done.actionRef, done.took, done.latency)
	}
}
