package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/triage"
)

// planDiscard answers which waiting dead letters match the query.
func planDiscard(r *http.Request, operator *triage.Triage) (any, error) {
	plan, err := discarding(r, operator, "")
	return plan, err
}

func discarding(r *http.Request, operator *triage.Triage, note string) (*triage.DiscardPlan, error) {
	filter, _, err := readDeadLetterFilter(r)
	if err != nil {
		return nil, err
	}
	return operator.PlanDiscard(r.Context(), triage.DiscardRequest{
		Reason: filter.Reason, Action: filter.Action, Worker: filter.Worker, Type: filter.Type,
		Execution: filter.Execution, MaxAge: filter.MaxAge, MinAge: filter.MinAge, Note: note,
	})
}

// discardDeadLetters discards the waiting dead letters that match the query.
func (s *Server) discardDeadLetters(r *http.Request, operator *triage.Triage) (any, error) {
	var body confirmBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	plan, err := discarding(r, operator, body.Reason)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d waiting dead letters would be discarded", plan.DeadLetters)
	if err := body.confirmed(fmt.Sprintf("discard %d", plan.DeadLetters), what); err != nil {
		return nil, err
	}
	receipt, err := operator.DiscardMany(r.Context(), plan)
	return receipt, s.interrupted(r, ofRun(err), receipt.Discarded, "dead letters")
}

// planTake answers how many messages of a queue of the broker a take would move into the ledger.
func (s *Server) planTake(r *http.Request, operator *triage.Triage) (any, error) {
	plan, err := s.taking(r, operator, "")
	return plan, err
}

// maxTake bounds the messages that one request takes.
const maxTake = 1_000_000

func (s *Server) taking(r *http.Request, operator *triage.Triage, note string) (*triage.TakePlan, error) {
	q := queryOf(r)
	request := triage.TakeRequest{Queue: q.Get("queue"), First: int(q.number("first", maxTake)), Note: note}
	if q.err != nil {
		return nil, q.err
	}
	plan, err := operator.PlanTake(r.Context(), request)
	return plan, s.ofBroker(r.Context(), err)
}

// takeDeadLetters takes messages from a queue of the broker into the ledger.
func (s *Server) takeDeadLetters(r *http.Request, operator *triage.Triage) (any, error) {
	var body reasonBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	plan, err := s.taking(r, operator, body.Reason)
	if err != nil {
		return nil, err
	}
	receipt, err := operator.Take(r.Context(), plan)
	if receipt == nil {
		return nil, s.ofBroker(r.Context(), err)
	}
	return receipt, s.interrupted(r, s.ofBroker(r.Context(), err), receipt.Taken, "messages")
}

// purgeWord confirms a purge, as in the dashboard.
const purgeWord = "purge for good"

// purgeDeadLetters makes the broker delete the messages in its queue of dead letters.
func (s *Server) purgeDeadLetters(r *http.Request, operator *triage.Triage) (any, error) {
	var body confirmBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	if err := body.confirmed(purgeWord, "the broker would delete all messages of its queue of dead letters"); err != nil {
		return nil, err
	}
	receipt, err := operator.PurgeBroker(r.Context(), "", body.Reason)
	if err != nil {
		return nil, s.ofBroker(r.Context(), err)
	}
	return receipt, nil
}

// ofBroker returns the status of a refused action on the broker's queues.
func (s *Server) ofBroker(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, triage.ErrQueueMissing):
		return &statusError{http.StatusNotFound, err.Error()}
	case errors.Is(err, triage.ErrFewMessages):
		return conflictf("%s", err.Error())
	case errors.Is(err, triage.ErrNoBroker), errors.Is(err, broker.ErrNotConnected):
		s.deps.Logger.WarnContext(ctx, "Queue of the broker cannot be acted upon", "error", err)
		return &statusError{http.StatusServiceUnavailable, broker.Trouble(err).Fact}
	}
	return ofRun(err)
}

// ofRun returns the status of an action that another operator keeps from beginning.
func ofRun(err error) error {
	if locked, ok := errors.AsType[*triage.LockedError](err); ok {
		return conflictf("another operator acts on the dead letters: %s", locked.Error())
	}
	return err
}

// oneDeadLetter runs an act on many dead letters for one of them, whose refusal is the answer. unchanged is the answer
// about a dead letter that the act leaves as it is.
func oneDeadLetter(
	unchanged string,
	run func(operator *triage.Triage, ctx context.Context, ids []int64, reason string) (*triage.RunReceipt, error),
) reasonedAct {
	return func(ctx context.Context, operator *triage.Triage, id int64, reason string) (any, error) {
		receipt, err := run(operator, ctx, []int64{id}, reason)
		switch {
		case err != nil:
			return nil, ofRun(err)
		case receipt.Done == 1:
			return receipt, nil
		}
		for _, note := range receipt.Notes {
			if note.Failed || triage.Refused(note.Err) {
				return nil, ofDeadLetter(id, note.Err)
			}
		}
		return nil, conflictf("%s", fmt.Sprintf(unchanged, id))
	}
}
