package scheduler

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// moved is an execution that another worker receives while it keeps its slot.
type moved struct {
	candidate admission.Candidate
	from, to  int64
	cause     Cause
}

// stopped is an execution that is ended although a worker received it, because it never started.
type stopped struct {
	ending
	candidate admission.Candidate
	worker    int64
	cause     Cause
	cancel    bool // its worker could start it, now or after it returns
}

// taken is what a batch takes back from workers.
type taken struct {
	moves        []moved
	stops        []stopped
	handledNotes []int64 // notes of returned messages that the batch processed
	also         []statement
}

type statement struct {
	sql  string
	args []any
}

// Candidate returns an execution as placement needs it, from its row and its fact read under the
// locks.
func (b *Batch) Candidate(fact admission.Fact) (admission.Candidate, bool) {
	row, ok := b.plan.Row(fact.ID)
	if !ok {
		return admission.Candidate{}, false
	}
	return admission.Candidate{
		ExecutionID: row.ID, Status: fact.Status, ActionRef: row.ActionRef, Config: row.Config,
		Updated: fact.Updated, Created: row.Created, Requested: row.Requested, Attempt: fact.Attempt,
		Placement: placement.ReadOwn(row.Placement), Avoid: row.Avoid, ActionID: deref(row.Action), Cancel: row.Cancel,
	}, true
}

// Fences reports whether a worker refuses a dispatch of an attempt that was moved away from it.
func (b *Batch) Fences(worker int64) bool {
	w := b.fleet.Worker(worker)
	return w != nil && w.AttemptFence
}

// move hands a scheduled execution to another worker as its next attempt. It keeps its slot. Both
// workers must fence attempts.
func (b *Batch) move(w admission.Candidate, from, to int64, cause Cause) {
	if !b.Ledger.Move(w.ExecutionID, to, b.fleet.Worker(to).Most()) {
		b.Replan()
		return
	}
	b.fleet.Release(from)
	b.moves = append(b.moves, moved{candidate: w, from: from, to: to, cause: cause})
}

// stop ends a scheduled execution that its worker has not started. A worker that does not fence
// attempts runs every dispatch it still holds, whatever the row says. A silent worker may return
// before the dispatch expires in its queue. Such workers, and unknown ones, get a cancel message,
// which waits in their queue as long as the dispatch. A cancel for a dispatch that never arrives is
// harmless.
func (b *Batch) stop(w admission.Candidate, worker int64, why Reassignment) {
	b.stops = append(b.stops, stopped{
		candidate: w, worker: worker, cause: why.Cause, cancel: worker != 0 && !b.Fences(worker),
		ending: ending{
			execution: w.ExecutionID, actionID: w.ActionID, actionRef: w.ActionRef,
			status: lifecycle.StatusFailed, result: encode(why.Result),
		},
	})
	b.Ledger.End(w.ExecutionID, lifecycle.StatusFailed)
}

// Also runs a statement in the batch's transaction, after the executions are written. The statement
// must lock nothing that precedes executions in the lock order.
func (b *Batch) Also(sql string, args ...any) { b.also = append(b.also, statement{sql, args}) }

// Send publishes messages after the batch commits.
func (b *Batch) Send(messages ...outbox.Message) { b.more = append(b.more, messages...) }

// Source is the source_service of the batch's messages.
func (b *Batch) Source() string { return b.scheduler.cfg.Source }

// DeleteNote deletes the note of a returned message that is decided.
func (b *Batch) DeleteNote(note int64) { b.handledNotes = append(b.handledNotes, note) }

func (t *taken) writeMoves(p *store.Pipeline) {
	n := len(t.moves)
	if n == 0 {
		return
	}
	slices.SortFunc(t.moves,
		func(a, b moved) int { return cmp.Compare(a.candidate.ExecutionID, b.candidate.ExecutionID) })
	ids, from, to, attempts := make([]int64, n), make([]int64, n), make([]int64, n), make([]int32, n)
	for i, m := range t.moves {
		ids[i], from[i], to[i], attempts[i] = m.candidate.ExecutionID, m.from, m.to, m.candidate.Attempt+1
	}
	p.Exec(store.MoveExecutions, ids, from, to, attempts)
}

func (t *taken) writeStops(p *store.Pipeline) {
	n := len(t.stops)
	if n == 0 {
		return
	}
	slices.SortFunc(t.stops, func(a, b stopped) int { return cmp.Compare(a.execution, b.execution) })
	ids, workers, attempts, results := make([]int64, n), make([]int64, n), make([]int32, n), make([]json.RawMessage, n)
	for i, s := range t.stops {
		ids[i], workers[i], attempts[i], results[i] = s.execution, s.worker, s.candidate.Attempt, s.result
	}
	p.Exec(store.EndScheduled, ids, workers, attempts, results)
}

func (t *taken) writeLostWork(p *store.Pipeline) {
	var causes, outcomes, refs []string
	var ids, workers []int64
	var attempts []int32
	var handed []time.Time
	note := func(w admission.Candidate, worker int64, cause Cause, outcome string) {
		causes, outcomes, refs = append(causes, string(cause)), append(outcomes, outcome), append(refs, w.ActionRef)
		ids, workers = append(ids, w.ExecutionID), append(workers, worker)
		attempts, handed = append(attempts, w.Attempt), append(handed, w.Updated)
	}
	for _, m := range t.moves {
		note(m.candidate, m.from, m.cause, "moved")
	}
	for _, s := range t.stops {
		note(s.candidate, s.worker, s.cause, string(s.status))
	}
	if len(ids) > 0 {
		p.Exec(store.RecordLostWork, causes, outcomes, ids, attempts, refs, workers, handed)
	}
}

// composeTaken writes the messages about moved and stopped executions.
func (b *Batch) composeTaken() error {
	for _, m := range b.moves {
		if err := b.dispatch(admission.Granted{Candidate: m.candidate, Worker: m.to}); err != nil {
			return err
		}
	}
	for _, s := range b.stops {
		if err := b.add(b.completed(s.ending)); err != nil {
			return err
		}
		if !s.cancel {
			continue
		}
		route := message.Route{Exchange: message.ExchangeExecutions, Key: message.CancelKey(s.worker)}
		drop := message.ExecutionCancelRequested{ExecutionID: s.execution, WorkerID: s.worker}
		err := b.add(outbox.EncodeTo(route, message.TypeExecutionCancelRequested, drop, b.Now(), b.Source()))
		if err != nil {
			return err
		}
	}
	return nil
}

// composeOutcomes announces ends that no worker announced.
func (b *Batch) composeOutcomes() error {
	for _, o := range b.outcomes {
		if err := b.add(outbox.Completed(o, b.Now(), b.Source())); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) add(m outbox.Message, err error) error {
	if err == nil {
		b.messages = append(b.messages, m)
	}
	return err
}
