package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/tracing"
)

// Batch collects the decisions of one transaction.
type Batch struct {
	Ledger *admission.Ledger

	scheduler *Scheduler
	plan      *Plan
	fleet     *placement.Fleet
	messages  []outbox.Message
	endings   []ending
	unplaced  bool // an execution was ended because no worker fits it
	replan    bool // a row changed after the steps planned
	missing   scopes
	left      map[int64]bool // executions that are left for another batch
	held      []int64        // queues to fill that another batch holds
	ran       []ran

	traces // empty while tracing is off

	newExecutions []*NewExecution
	more          []outbox.Message // messages that steps send

	dispatches map[int64][]message.Dispatch // to workers that read batches; compose fills it

	afterwards
	orchestration
	taken
}

type ran struct {
	actionRef string
	took      time.Duration
	latency   time.Duration // from the request to the start
}

// ending is an execution that the engine ends before any worker starts it.
type ending struct {
	execution int64
	actionID  int64
	actionRef string
	status    lifecycle.Status
	result    json.RawMessage
	refused   string // reason in the metric; empty if another metric counts it
}

func newBatch(s *Scheduler, plan *Plan, ledger *admission.Ledger, workers []placement.Worker) *Batch {
	rotation := int(s.rotation.Add(1))
	return &Batch{
		Ledger: ledger, scheduler: s, plan: plan,
		fleet:   placement.NewFleet(s.fleet.standing(ledger, workers), rotation),
		missing: make(scopes), left: make(map[int64]bool),
	}
}

// Now is the start of the batch by the database's clock.
func (b *Batch) Now() time.Time { return b.Ledger.Now.UTC() }

// Queue returns the queue of a key that a step planned, and whether the batch holds its lock.
func (b *Batch) Queue(key admission.Key) (int64, bool) {
	id, ok := b.plan.queues[key]
	return id, ok && b.Ledger.Locked(id)
}

// Row returns the row of an execution as Plan.Row does.
func (b *Batch) Row(id int64) (store.ReadBatchExecutionsRow, bool) { return b.plan.Row(id) }

// Rule returns the rule of an action.
func (b *Batch) Rule(id *int64, ref string) (Rule, bool) { return b.plan.Rule(id, ref) }

// Left reports whether an execution must be left for another batch, because that batch holds a
// queue that it needs. Result.Left then names the execution.
func (b *Batch) Left(id int64) bool {
	c := b.plan.claims[id]
	if c == nil {
		return false
	}
	for _, queue := range c.queues {
		b.left[id] = b.left[id] || b.Ledger.Held(queue)
	}
	for _, key := range c.keys {
		b.left[id] = b.left[id] || b.Ledger.Held(b.plan.queues[key])
	}
	return b.left[id]
}

// Replan makes the batch run again, because a row changed after the steps planned for it.
func (b *Batch) Replan() { b.replan = true }

// MaxQueued is the length limit of the action's queues.
func (b *Batch) MaxQueued(rule Rule) int {
	return cmp.Or(rule.Limits.MaxQueued, b.scheduler.cfg.MaxQueued)
}

// Front reports whether retries of the action go before the executions that already wait.
func (b *Batch) Front(rule Rule) bool {
	return cmp.Or(rule.Limits.RetryPlace, b.scheduler.cfg.RetryPlace) == policy.PlaceFront
}

// Release frees the slot of a terminal execution and its capacity at the worker.
func (b *Batch) Release(id int64) bool {
	fact, ok := b.Ledger.Fact(id)
	if !ok || !b.Ledger.Release(id) {
		return false
	}
	if fact.HeldAt != nil {
		b.fleet.Release(*fact.HeldAt)
	}
	if row, ok := b.plan.Row(id); ok && fact.Started != nil && fact.Ended != nil {
		b.ran = append(b.ran, ran{
			actionRef: row.ActionRef, took: fact.Ended.Sub(*fact.Started), latency: fact.Started.Sub(row.Created),
		})
	}
	return true
}

// Promote gives free slots to waiting heads.
func (b *Batch) Promote() { b.Ledger.Promote(b.Gate()) }

// Gate is the check between a free slot of a queue and a worker.
func (b *Batch) Gate() admission.Gate {
	return admission.Gate{Scopes: b.scopes, Place: b.place, Queue: b.mayQueue}
}

// scopes finds the shared limits of an execution. If one was not planned, scopes records it for the
// next try, with the limits of all other executions that may be next.
func (b *Batch) scopes(w admission.Candidate) ([]int64, bool) {
	rule, ok := b.plan.Rule(&w.ActionID, w.ActionRef)
	if !ok || len(rule.Limits.Shared) == 0 {
		return nil, true
	}
	keys := rule.scopes(w.Config)
	ids := make([]int64, len(keys))
	for i, key := range keys {
		id, known := b.plan.scopeIDs[key]
		if !known {
			b.Ledger.EachHead(b.miss)
			b.miss(w)
			return nil, false
		}
		ids[i] = id
	}
	return ids, true
}

func (b *Batch) miss(w admission.Candidate) {
	rule, ok := b.plan.Rule(&w.ActionID, w.ActionRef)
	if !ok {
		return
	}
	for i, key := range rule.scopes(w.Config) {
		b.missing[key] = rule.Limits.Shared[i]
	}
}

// Fail ends a waiting execution as failed, with the result that the published scheduler writes.
func (b *Batch) Fail(id, actionID int64, actionRef, reason, detail string) {
	b.end(ending{
		execution: id, actionID: actionID, actionRef: actionRef, status: lifecycle.StatusFailed,
		result: encode(map[string]any{
			"error": reason, "message": detail, "action_ref": actionRef,
			"failed_by": "execution_scheduler", "failed_at": b.Now(),
		}),
	})
}

// Refuse ends a waiting execution as cancelled because a policy does not let it wait. The metric
// drops a bracketed suffix of the reason. facts are added to the published result.
func (b *Batch) Refuse(id, actionID int64, actionRef, reason, detail string, facts map[string]any) {
	result := map[string]any{
		"error": reason, "message": detail, "action_ref": actionRef,
		"cancelled_by": "execution_scheduler", "cancelled_at": b.Now(),
	}
	maps.Copy(result, facts)
	name, _, _ := strings.Cut(reason, " (")
	b.end(ending{
		execution: id, actionID: actionID, actionRef: actionRef, status: lifecycle.StatusCancelled,
		result:  encode(result),
		refused: strings.ReplaceAll(strings.ToLower(name), " ", "_"),
	})
}

// Expire removes an execution from its queue and ends it, because it waited longer than the queue
// allows.
func (b *Batch) Expire(id, actionID int64, actionRef string, since time.Time, allowed time.Duration) {
	if !b.Ledger.Withdraw(id) {
		return
	}
	waited := b.Now().Sub(since)
	b.end(ending{
		execution: id, actionID: actionID, actionRef: actionRef, status: lifecycle.StatusTimeout,
		refused: "queue_timeout",
		result: encode(map[string]any{
			"error": "Queue timeout",
			"message": fmt.Sprintf("it waited %s for its start, longer than the %s that its queue allows",
				waited.Round(time.Second), allowed),
			"action_ref": actionRef, "queue_timeout_seconds": allowed.Seconds(),
			"waited_seconds": waited.Round(time.Millisecond).Seconds(),
			"enqueued_at":    since.UTC(), "timed_out_by": "execution_scheduler", "timed_out_at": b.Now(),
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

func (b *Batch) end(e ending) {
	b.endings = append(b.endings, e)
	b.Ledger.End(e.execution, e.status)
}

// verdict reports whether the decisions may be written. It adds the shared limits that were not
// locked to how.carried.
func (b *Batch) verdict(how attempt, steps []Step) error {
	maps.Copy(how.carried, b.missing)
	if b.replan || b.Ledger.Unplanned() {
		return errUnplanned
	}
	if b.unplaced && !how.fresh {
		return errStaleFleet
	}
	if b.Ledger.Optimistic() && (!b.plan.open(steps) || !b.Ledger.Open() || len(b.contradictions) > 0) {
		return admission.ErrNotOpen
	}
	return nil
}

// write stores the batch and commits it, in one round trip. Every statement counts its changed rows
// and fails the batch if the count differs from the decision. It returns the id of the outbox row,
// 0 without messages.
func (b *Batch) write(ctx context.Context, tx *store.Tx) (int64, error) {
	if err := b.compose(); err != nil {
		return 0, err
	}
	p := tx.Pipeline()
	b.Ledger.WriteOpen(p)   // before all other rows, in the lock order
	b.writeNewExecutions(p) // before anything refers to them
	b.writeEndings(p)
	b.writeMoves(p)
	b.writeStops(p)
	b.writeLostWork(p)
	if len(b.handledNotes) > 0 {
		p.Exec(store.DeleteUndelivered, b.handledNotes)
	}
	for _, one := range b.also {
		p.Exec(one.sql, one.args...)
	}
	b.Ledger.Write(p) // queues, slots, dispatches and workers' loads
	b.writeRepeats(p)
	if len(b.begun) > 0 {
		p.Exec(store.StartRetries, b.begun)
	}
	b.writeContradictions(p)
	if len(b.finished) > 0 {
		p.Exec(store.AddTracePending, string(tracing.Execution), b.finished)
	}
	var row *outbox.Handle
	if len(b.messages) > 0 {
		row = outbox.AppendTo(tx, p, b.scheduler.relay, b.messages)
	}
	if err := commit(ctx, p); err != nil {
		return 0, fmt.Errorf("write a batch of %d executions: %w", len(b.plan.ids), err)
	}
	if row == nil {
		return 0, nil
	}
	return row.ID(), nil
}

// commit commits the statements of a batch.
func commit(ctx context.Context, p *store.Pipeline) error {
	crashpoint.Reach("batch:before-commit")
	err := p.Commit(ctx)
	if err == nil {
		crashpoint.Reach("batch:committed")
	}
	return err
}

func (b *Batch) writeEndings(p *store.Pipeline) {
	if len(b.endings) == 0 {
		return
	}
	slices.SortFunc(b.endings, func(x, y ending) int { return cmp.Compare(x.execution, y.execution) })
	n := len(b.endings)
	ids, statuses, results := make([]int64, n), make([]string, n), make([]string, n)
	for i, e := range b.endings {
		ids[i], statuses[i], results[i] = e.execution, string(e.status), string(e.result)
	}
	p.Exec(store.DecideExecutions, ids, statuses, results)
}

// compose writes the messages: one dispatch for every grant (batched where the worker reads
// batches) and one completion for every ending.
func (b *Batch) compose() error {
	b.messages, b.dispatches = b.messages[:0], nil
	for _, g := range b.Ledger.Granted() {
		if err := b.dispatch(g); err != nil {
			return err
		}
	}
	for _, e := range b.endings {
		if err := b.add(b.completed(e)); err != nil {
			return err
		}
	}
	for _, e := range b.newExecutions {
		if !e.known || !e.rule.Workflow {
			continue
		}
		if err := b.add(outbox.Encode(message.TypeExecutionRequested, e.request(), b.Now(), b.Source())); err != nil {
			return err
		}
	}
	b.messages = append(b.messages, b.more...)
	if err := b.composeTaken(); err != nil {
		return err
	}
	if err := b.composeBatches(); err != nil {
		return err
	}
	return b.composeOutcomes()
}

// maxConfigInDispatch bounds the parameters copied into a dispatch. Workers read them from the row;
// the copy serves other consumers.
const maxConfigInDispatch = 16 << 10

// dispatch adds the message that hands an execution to its worker. For a worker that reads batches,
// composeBatches writes it.
func (b *Batch) dispatch(g admission.Granted) error {
	at := b.position(g.ExecutionID)
	payload := message.Dispatch{
		TraceParent: at,
		ExecutionID: g.ExecutionID, WorkerID: g.Worker, ActionRef: g.ActionRef,
		ScheduledAttemptUpdatedAt: b.updatedAt(g.Updated), Attempt: g.Attempt + 1,
		Config: jsonvalue.Copy(g.Config, maxConfigInDispatch),
	}
	if w := b.fleet.Worker(g.Worker); w == nil || !w.Batch {
		route := message.Route{Exchange: message.ExchangeExecutions, Key: message.DispatchKey(g.Worker)}
		one, err := outbox.EncodeTo(route, message.TypeExecutionRequested, payload, b.Now(), b.Source())
		one.Trace = traceHeader(at)
		return b.add(one, err)
	}
	if b.dispatches == nil {
		b.dispatches = make(map[int64][]message.Dispatch)
	}
	b.dispatches[g.Worker] = append(b.dispatches[g.Worker], payload)
	return nil
}

// composeBatches writes the dispatches to workers that read batches, in as few messages as the size
// limits allow.
func (b *Batch) composeBatches() error {
	for _, worker := range slices.Sorted(maps.Keys(b.dispatches)) {
		key := message.DispatchKey(worker)
		sent, err := message.Batches(message.TypeExecutionBatchRequested, b.dispatches[worker], b.Now(), b.Source())
		if err != nil {
			return fmt.Errorf("write the dispatches for %s: %w", key, err)
		}
		first := 0
		for _, one := range sent {
			m := outbox.Message{
				ID: one.ID, Exchange: message.ExchangeExecutions, RoutingKey: key, Type: one.Type, Body: one.Body,
			}
			if one.Items == 1 { // a message of several executions is in several traces
				m.Trace = traceHeader(b.dispatches[worker][first].TraceParent)
			}
			first += one.Items
			b.messages = append(b.messages, m)
		}
	}
	return nil
}

// updatedAt predicts execution.updated after this transaction's write. The trigger sets the start
// of the transaction, or the old value plus one microsecond if that is later.
func (b *Batch) updatedAt(before time.Time) time.Time {
	if next := before.Add(time.Microsecond); next.After(b.Ledger.Now) {
		return next.UTC()
	}
	return b.Now()
}

func (b *Batch) completed(e ending) (outbox.Message, error) {
	return outbox.Completed(store.ReadOutcomesRow{
		ID: e.execution, Action: &e.actionID, ActionRef: e.actionRef, Status: e.status, Result: e.result,
		FinishedAt: b.Now(),
	}, b.Now(), b.Source())
}

func (b *Batch) result(plan *Plan) Result {
	result := Result{
		Released: b.Ledger.Released(), Granted: len(b.Ledger.Granted()), Enqueued: b.Ledger.Enqueued(),
		Ended: len(b.endings) + len(b.stops), Unfilled: b.Ledger.Unfilled(), Moved: len(b.moves), RetryIn: b.soonest(),
		Starts: b.starts, Tasks: b.tasks, Made: len(b.newExecutions), Held: b.held,
	}
	for _, id := range result.Unfilled {
		action := b.Ledger.ActionOf(id)
		rule, _ := b.plan.Rule(&action, "")
		result.UnfilledOf = append(result.UnfilledOf, rule.ActionRef)
	}
	if b.repeated != nil {
		result.Repeated = b.repeated.Rows()
	}
	if after, ok := b.Ledger.Wake(); ok {
		result.Wake = max(after, time.Millisecond)
	}
	for _, id := range plan.ids {
		if _, ok := plan.rows[id]; !ok {
			result.Missing = append(result.Missing, id)
		}
		if b.left[id] {
			result.Left = append(result.Left, id)
			delete(b.left, id)
		}
	}
	return result
}

// observe records the wait of admitted executions and the run time of released ones.
func (b *Batch) observe(m *Metrics) {
	for _, g := range b.Ledger.Granted() {
		m.waited(g.ActionRef, b.Ledger.Clock.Sub(g.Created))
	}
	for _, e := range b.endings {
		if e.refused != "" {
			m.refused.WithLabelValues(e.refused).Inc()
		}
	}
	m.contradicting.Add(float64(len(b.contradictions)))
	for _, done := range b.ran {
		m.ran(done.actionRef, done.took, done.latency)
	}
}
