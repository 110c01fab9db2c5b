package scheduler

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/store"
)

// RequestStep takes execution.requested: it finds the queue of each execution that is
// still requested, and admits it and hands it over, lets it wait, or refuses it.
//
// An execution that is no longer requested, already waits, or already holds a slot is
// left alone, so that a message may come any number of times to any number of replicas
// (invariants S1, S2). Requests are served in the order of their delivery. The message
// only says which row to read.
type RequestStep struct {
	ids  []int64
	move bool
	late map[int64]bool          // requests that a sweep found
	said map[int64]Hint          // what messages say of the executions
	keys map[int64]admission.Key // the queue of each execution that may enter one
	// asking are the questions of executions that only ask a person.
	asking map[int64]*inquiry.Opening
	// stale are executions whose claim nobody has finished for too long.
	stale []int64
}

// ClaimAge is how long a claim may stay unfinished before it is put back.
const ClaimAge = 30 * time.Second

// NewRequestStep makes the step for these executions, in the order they were requested.
func NewRequestStep(ids []int64) *RequestStep { return &RequestStep{ids: ids} }

// WithLate says which of the executions were found by a sweep, since their requests were
// lost. In a queue they go before the executions that were requested after them.
func (s *RequestStep) WithLate(ids []int64) *RequestStep {
	s.late = make(map[int64]bool, len(ids))
	for _, id := range ids {
		s.late[id] = true
	}
	return s
}

// WithHints gives the step what messages say of executions. The rows decide.
func (s *RequestStep) WithHints(said map[int64]Hint) *RequestStep {
	s.said = said
	return s
}

// NewMoveStep makes the step for executions that wait in a queue which is no longer
// theirs, because the parameters of its policy have changed: they go to the end
// of the right one, in the order given. How long that line may be does not
// matter, since nobody is added to those who wait.
func NewMoveStep(ids []int64) *RequestStep { return &RequestStep{ids: ids, move: true} }

// Executions implements Step.
func (s *RequestStep) Executions() []int64 { return s.ids }

// Hint implements Hinted.
func (s *RequestStep) Hint(ctx context.Context, plan *Plan) (bool, error) {
	if s.move || len(s.said) < len(s.ids) {
		return false, nil
	}
	hints := make([]Hint, len(s.ids))
	for i, id := range s.ids {
		hints[i] = s.said[id]
	}
	if err := plan.LoadHinted(ctx, hints); err != nil {
		return false, err
	}
	for i, id := range s.ids {
		if hints[i].ActionRef == inquiry.Action || !plan.Spare(id).HintAdmission(hints[i]) {
			return false, nil
		}
	}
	return true, nil
}

// Optimistic implements Optimistic.
func (s *RequestStep) Optimistic() bool { return !s.move && len(s.late)+len(s.asking) == 0 }

// Plan implements Step: it finds every execution's action, limits and
// group, and so its queue.
func (s *RequestStep) Plan(ctx context.Context, plan *Plan) error {
	s.keys = make(map[int64]admission.Key, len(s.ids))
	if err := s.readQuestions(ctx, plan); err != nil {
		return err
	}
	var actions []int64
	var refs []string
	for _, id := range s.ids {
		row, ok := plan.Row(id)
		if !ok {
			continue
		}
		if row.Action != nil {
			actions = append(actions, *row.Action)
		} else {
			refs = append(refs, row.ActionRef)
		}
	}
	if err := plan.LoadRules(ctx, actions, refs); err != nil {
		return err
	}
	for _, id := range s.ids {
		if row, ok := plan.Row(id); ok {
			s.planOne(plan, row)
		}
	}
	return nil
}

// readQuestions prepares the questions of those that only ask a person. The first
// time a workflow opens them itself; these are repetitions, and what people request.
func (s *RequestStep) readQuestions(ctx context.Context, plan *Plan) (err error) {
	var asking []int64
	for _, id := range s.ids {
		if row, ok := plan.Row(id); ok && row.ActionRef == inquiry.Action && row.Status == attune.StatusRequested {
			asking = append(asking, id)
		}
	}
	s.asking = nil
	if len(asking) > 0 {
		s.asking, err = inquiry.Begin(ctx, plan.Queries(), asking)
	}
	return err
}

func (s *RequestStep) planOne(plan *Plan, row store.ReadBatchExecutionsRow) {
	needs := plan.Firm()
	if !s.move {
		needs = plan.Spare(row.ID)
	}
	if row.Waits != 0 {
		needs.Queue(row.Waits) // it may have to leave the line
		if !s.move {
			return
		}
	}
	rule, ok := plan.Rule(row.Action, row.ActionRef)
	if !ok || rule.Workflow || s.asking[row.ID] != nil || row.Status != attune.StatusRequested {
		return
	}
	s.keys[row.ID] = needs.Admission(rule, row.Config)
}

// Apply implements Step.
func (s *RequestStep) Apply(batch *Batch) {
	s.stale = s.stale[:0]
	for _, id := range s.ids {
		fact, ok := batch.Ledger.Fact(id)
		switch {
		case !ok:
			// No row: the caller learns it from the batch's result.
		case batch.Left(id):
			// Another batch holds its queue: it is asked for again.
		case fact.Status == attune.StatusScheduling && batch.Now().Sub(fact.Updated) > ClaimAge:
			s.stale = append(s.stale, id)
		case fact.Status != attune.StatusRequested:
			batch.Ledger.Withdraw(id) // cancelled while it waited; otherwise nothing
		case fact.Holds != nil:
			// Admitted already.
		case s.early(batch, id):
			// A repetition whose time has not come: a timer brings it.
		case fact.Waits == nil && !s.move:
			s.admit(batch, id, fact)
		case fact.Waits != nil && s.move:
			s.moveTo(batch, id, fact)
		}
	}
}

// Stale lists requested executions whose claim nobody has finished for longer
// than ClaimAge: they are to be put back and asked for again. It is valid after
// the batch.
func (s *RequestStep) Stale() []int64 { return s.stale }

// early reports whether an execution is a repetition that waits for its time. One
// whose time has come begins here.
func (s *RequestStep) early(batch *Batch, id int64) bool {
	row, ok := batch.Row(id)
	if !ok || row.Due.Unix() == 0 {
		return false
	}
	if row.Due.After(batch.Now()) {
		return true
	}
	batch.Begin(id)
	return false
}

// moveTo takes an execution from the queue it waits in to the one it belongs to.
func (s *RequestStep) moveTo(batch *Batch, id int64, fact admission.Fact) {
	key, planned := s.keys[id]
	if !planned {
		return // its action is gone; the line it is in serves it
	}
	queue, ok := batch.Queue(key)
	if !ok || queue == *fact.Waits || !batch.Ledger.Withdraw(id) {
		return
	}
	s.admit(batch, id, fact)
}

func (s *RequestStep) admit(batch *Batch, id int64, fact admission.Fact) {
	row, _ := batch.Row(id)
	if opening := s.asking[id]; opening != nil {
		askPerson(batch, row, opening)
		return
	}
	rule, ok := batch.Rule(row.Action, row.ActionRef)
	if !ok {
		batch.Fail(id, deref(row.Action), row.ActionRef, "action not found", "the action of the execution does not exist")
		return
	}
	if batch.RefuseDeep(id, rule.ActionID, row.ActionRef, row.Config) {
		return
	}
	if rule.Workflow {
		batch.StartWorkflow(id) // policies are not applied to it, and it takes no slot
		return
	}
	key, planned := s.keys[id]
	if !planned {
		batch.Replan() // it stood in a line when it was read
		return
	}
	waiter := admission.Waiter{
		ExecutionID: id, Status: fact.Status, ActionID: rule.ActionID, ActionRef: row.ActionRef,
		Config: row.Config, Updated: fact.Updated, Created: row.Created, Attempt: fact.Attempt,
		Selector: row.WorkerSelector, Tolerations: row.WorkerTolerations, Affinity: row.WorkerAffinity, Avoid: row.Avoid,
	}
	batch.Enter(waiter, rule, Entry{
		Key: key, Priority: row.Priority, Repetition: row.Retry, Late: s.late[id], Moved: s.move,
	})
}

// askPerson puts a question to people; its execution runs without a worker and a slot.
func askPerson(batch *Batch, row store.ReadBatchExecutionsRow, opening *inquiry.Opening) {
	if len(opening.Faults) > 0 {
		batch.Fail(row.ID, deref(row.Action), row.ActionRef, opening.Faults[0].Reason, opening.Faults[0].Reason)
		return
	}
	for _, statement := range opening.Statements() {
		batch.Also(statement.SQL, statement.Args...)
	}
	messages, err := opening.Messages(batch.Now(), batch.Source())
	if err == nil { // texts and numbers always encode
		batch.Send(messages...)
	}
	batch.Ledger.End(row.ID, attune.StatusRunning)
}

func deref(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

var _ Hinted = (*RequestStep)(nil)
