package scheduler

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// RequestStep handles execution.requested: it finds the queue of each requested execution and
// admits it, queues it, or refuses it.
//
// It leaves alone an execution that is no longer requested, already waits, or already holds a slot,
// so any number of deliveries to any number of replicas is safe (invariants S1, S2). It serves
// requests in the order of their delivery. The message only says which row to read.
type RequestStep struct {
	ids  []int64
	move bool
	late map[int64]bool          // a sweep found these requests
	said map[int64]Hint          // what messages say about the executions
	keys map[int64]admission.Key // the queue of each execution that may enter one
	// asking are the inquiries of executions that only ask a person.
	asking map[int64]*inquiry.Opening
	// stale are executions whose claim stayed unfinished for too long.
	stale []int64
}

// ClaimAge is how long a claim may stay unfinished before it is put back.
const ClaimAge = 30 * time.Second

// NewRequestStep makes the step for these executions, in the order of their requests.
func NewRequestStep(ids []int64) *RequestStep { return &RequestStep{ids: ids} }

// WithLate marks executions that a sweep found because their requests were lost. In a queue they go
// before executions that were requested after them.
func (s *RequestStep) WithLate(ids []int64) *RequestStep {
	s.late = make(map[int64]bool, len(ids))
	for _, id := range ids {
		s.late[id] = true
	}
	return s
}

// WithHints gives the step what messages say about executions. The rows decide.
func (s *RequestStep) WithHints(said map[int64]Hint) *RequestStep {
	s.said = said
	return s
}

// NewMoveStep makes the step for executions that wait in the wrong queue, because the parameters of
// their policy changed. They go to the end of the right queue, in the given order. Its length limit
// does not apply, because the number of waiting executions stays the same.
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

// Plan implements Step: it finds the action, the limits and the group of every execution, and so
// its queue.
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

// readQuestions prepares the inquiries of executions that only ask a person. Workflows open the
// first one themselves; these are retries and requests of users.
func (s *RequestStep) readQuestions(ctx context.Context, plan *Plan) (err error) {
	var asking []int64
	for _, id := range s.ids {
		if row, ok := plan.Row(id); ok && row.ActionRef == inquiry.Action && row.Status == lifecycle.StatusRequested {
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
		needs.Queue(row.Waits) // it may have to leave the queue
		if !s.move {
			return
		}
	}
	rule, ok := plan.Rule(row.Action, row.ActionRef)
	if !ok || rule.Workflow || s.asking[row.ID] != nil || row.Status != lifecycle.StatusRequested {
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
			// No row: Result.Missing tells the caller.
		case batch.Left(id):
			// Another batch holds its queue: the caller requests it again.
		case fact.Status == lifecycle.StatusScheduling && batch.Now().Sub(fact.Updated) > ClaimAge:
			s.stale = append(s.stale, id)
		case fact.Status != lifecycle.StatusRequested:
			batch.Ledger.Withdraw(id) // cancelled while it waited; otherwise this does nothing
		case fact.Holds != nil:
			// Admitted already.
		case s.early(batch, id):
			// A retry that is not due yet: a timer brings it again.
		case fact.Waits == nil && !s.move:
			s.admit(batch, id, fact)
		case fact.Waits != nil && s.move:
			s.moveTo(batch, id, fact)
		}
	}
}

// Stale lists executions whose claim stayed unfinished for longer than ClaimAge: the caller puts
// them back and requests them again. It is valid after the batch.
func (s *RequestStep) Stale() []int64 { return s.stale }

// early reports whether an execution is a retry that is not due yet. It begins a retry
// that is due.
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

// moveTo moves an execution from the queue in which it waits to its own.
func (s *RequestStep) moveTo(batch *Batch, id int64, fact admission.Fact) {
	key, planned := s.keys[id]
	if !planned {
		return // its action is deleted; its present queue serves it
	}
	if queue, ok := batch.Queue(key); ok && queue != *fact.Waits && batch.Ledger.Withdraw(id) {
		s.admit(batch, id, fact)
	}
}

func (s *RequestStep) admit(batch *Batch, id int64, fact admission.Fact) {
	row, _ := batch.Row(id)
	if opening := s.asking[id]; opening != nil {
		askPerson(batch, row, opening)
		return
	}
	rule, ok := batch.Rule(row.Action, row.ActionRef)
	if !ok {
		batch.Fail(id, deref(row.Action), row.ActionRef, "action not found",
			"the action of the execution does not exist")
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
		batch.Replan() // it waited in a queue when it was read
		return
	}
	candidate, _ := batch.Candidate(fact)
	candidate.ActionID = rule.ActionID
	batch.Enter(candidate, rule, Entry{
		Key: key, Priority: row.Priority, Retry: row.Retry, Late: s.late[id], Moved: s.move,
	})
}

// askPerson opens an inquiry; its execution runs without a worker and a slot.
func askPerson(batch *Batch, row store.ReadBatchExecutionsRow, opening *inquiry.Opening) {
	if len(opening.Faults) > 0 {
		batch.Fail(row.ID, deref(row.Action), row.ActionRef, opening.Faults[0].Reason, opening.Faults[0].Reason)
		return
	}
	batch.openInquiries(opening)
	batch.Ledger.End(row.ID, lifecycle.StatusRunning)
}

func (b *Batch) openInquiries(opening *inquiry.Opening) {
	for _, statement := range opening.Statements() {
		b.Also(statement.SQL, statement.Args...)
	}
	messages, err := opening.Messages(b.Now(), b.Source())
	if err == nil { // texts and numbers always encode
		b.Send(messages...)
	}
}

func deref(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

var _ Hinted = (*RequestStep)(nil)
