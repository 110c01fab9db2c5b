package recovery

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/handover"
	"github.com/attune-go/attune/core/placement"
)

// Stranded is an execution that was handed to a worker which will not start it.
type Stranded struct {
	Execution int64
	// Note, Worker and Attempt are set for a hand-over that the broker returned,
	// because the worker has no queue. Otherwise the worker fell silent.
	Note    int64
	Worker  int64
	Attempt int32
}

// Rehome is the step that finds another worker for executions that theirs will
// not start. In place when both workers fence attempts: what the old one may still
// have got is refused by it. Otherwise the old one could start it yet, so the row
// is closed and the work is repeated as a new row, which a late start cannot
// touch. Everything is judged under the locks: a worker that came back, or started
// the execution, keeps it (invariants S2, S9).
//
// For whom no fitting worker has room is left for the next round, which comes to
// them before it comes to those who wait in line: they keep their slot.
type Rehome struct {
	stranded []Stranded
	left     []Stranded
}

// NewRehome makes the step.
func NewRehome(stranded []Stranded) *Rehome { return &Rehome{stranded: stranded} }

// Executions implements handover.Step.
func (s *Rehome) Executions() []int64 {
	ids := make([]int64, len(s.stranded))
	for i, one := range s.stranded {
		ids[i] = one.Execution
	}
	return ids
}

// Plan implements handover.Step.
func (s *Rehome) Plan(ctx context.Context, plan *handover.Plan) error {
	var actions []int64
	for _, one := range s.stranded {
		row, ok := plan.Row(one.Execution)
		if !ok || row.Status != attune.StatusScheduled {
			continue
		}
		if row.AdmissionStateID != nil {
			plan.NeedQueue(*row.AdmissionStateID)
		}
		if row.Worker != nil {
			plan.NeedWorker(*row.Worker)
		}
		if row.Action != nil {
			actions = append(actions, *row.Action)
		}
	}
	return plan.LoadRules(ctx, actions, nil)
}

// Apply implements handover.Step.
func (s *Rehome) Apply(round *handover.Round) {
	s.left = s.left[:0]
	for _, one := range s.stranded {
		switch decided := s.rehome(round, one); {
		case !decided && len(s.left) < maxLeft:
			s.left = append(s.left, one)
		case decided && one.Note != 0:
			round.Settle(one.Note)
		}
	}
}

// maxLeft bounds who is tried again by the next round; the sweeps find the
// others again.
const maxLeft = 100

// Bounds of moving in place; beyond them the work is closed and repeated, and so
// waits in line like everybody else.
const (
	maxMoves        = 10 // hand-overs of one attempt
	displacedAtMost = 5 * time.Minute
)

// Left lists those for whom no worker had room. It is valid after the round.
func (s *Rehome) Left() []Stranded { return s.left }

// rehome reports whether nothing is left to do.
func (s *Rehome) rehome(round *handover.Round, one Stranded) bool {
	fact, ok := round.Ledger.Fact(one.Execution)
	if !ok || fact.Status != attune.StatusScheduled {
		return true
	}
	from := int64(0) // its worker's row was deleted
	if fact.Worker != nil {
		from = *fact.Worker
	}
	switch {
	case from == 0:
	case one.Note != 0 && (from != one.Worker || fact.Attempt != one.Attempt):
		return true // it has been handed over again since
	case one.Note == 0 && !round.Ledger.Gone(from):
		return true
	}
	waiter, ok := round.Waiter(fact)
	if !ok {
		return true
	}
	if from != 0 && fact.Holds != nil && fact.Attempt < maxMoves && round.Fences(from) {
		except := from
		if _, live := round.Ledger.Load(from); live {
			except = 0 // its queue is there again, and what was returned never reached it
		}
		switch verdict := round.Choose(waiter, true, except); verdict.Outcome {
		case placement.Placed:
			round.Move(waiter, from, verdict.Worker)
			return true
		case placement.Busy:
			if round.Now().Sub(fact.Updated) < displacedAtMost {
				return false // the next round tries again: somebody frees room
			}
		case placement.NoWorkers, placement.Incompatible:
		}
	}
	round.Stop(waiter, from, s.result(round, one, fact.Updated.UTC().Format("2006-01-02T15:04:05.000Z07:00"), from, waiter.ActionRef))
	return true
}

// result is what the row of a stranded execution says, in the words by which its
// repetition is decided.
func (s *Rehome) result(round *handover.Round, one Stranded, since string, worker int64, actionRef string) map[string]any {
	result := map[string]any{
		"error":     "Worker unavailable: it stopped sending heartbeats before it started the execution",
		"failed_by": "execution_timeout_monitor",
	}
	if one.Note != 0 {
		result["error"], result["failed_by"] = "Worker unavailable: it has no queue to take the execution from", "execution_dispatcher"
	}
	result["message"] = fmt.Sprintf("it was handed to worker %d at %s and never started", worker, since)
	result["action_ref"], result["original_status"] = actionRef, string(attune.StatusScheduled)
	result["worker_id"], result["failed_at"] = worker, round.Now()
	return result
}

var _ handover.Step = (*Rehome)(nil)
