package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// confirmBody is the body of a bulk action.
type confirmBody struct {
	reasonBody
	Confirm string `json:"confirm"`
}

// confirmed refuses a bulk action whose body does not repeat a text that depends on its plan.
func (b confirmBody) confirmed(want, what string) error {
	if b.Confirm == want {
		return nil
	}
	return conflictf(`%s: send "confirm": %q to do it`, what, want)
}

// overrideQueues changes all queues of an action, or that of a group.
func overrideQueues(act triage.Act) operatorAct {
	return func(r *http.Request, operator *triage.Triage) (any, error) {
		var body struct {
			reasonBody
			Group string `json:"group"`
			Limit *int   `json:"limit"`
		}
		if err := readAct(r, &body, &body.Reason); err != nil {
			return nil, err
		}
		order := triage.Override{
			Target: triage.Target{Action: r.PathValue("ref"), Group: body.Group}, Act: act, Reason: body.Reason,
		}
		switch {
		case act == triage.Limit && body.Limit == nil:
			return nil, requestError("the body has no limit")
		case act == triage.Limit:
			order.Limit = *body.Limit
		case body.Limit != nil:
			return nil, requestError("only queues/limit takes a limit")
		}
		receipt, err := operator.Override(r.Context(), order)
		return receipt, ofTarget(err)
	}
}

// planClear answers how many waiting executions of an action's queues a clearing would cancel.
func planClear(r *http.Request, operator *triage.Triage) (any, error) {
	plan, err := clearing(r, operator)
	return plan, err
}

func clearing(r *http.Request, operator *triage.Triage) (*triage.ClearPlan, error) {
	q := queryOf(r)
	request := triage.ClearRequest{
		Target: triage.Target{Action: r.PathValue("ref"), Group: q.Get("group")}, OlderThan: q.age("older_than"),
	}
	if q.err != nil {
		return nil, q.err
	}
	plan, err := operator.PlanClear(r.Context(), request)
	return plan, ofTarget(err)
}

// clearQueues cancels the waiting executions of an action's queues.
func (s *Server) clearQueues(r *http.Request, operator *triage.Triage) (any, error) {
	var body confirmBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	plan, err := clearing(r, operator)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%s of %s would be cancelled",
		phrase.Plural(plan.Waiting, "waiting execution", "waiting executions"), plan.Target)
	if err := body.confirmed(plan.Action, what); err != nil {
		return nil, err
	}
	plan.Reason = body.Reason
	receipt, err := operator.Clear(r.Context(), plan)
	return receipt, s.interrupted(r, err, receipt.Cancelled, "executions")
}

// interrupted returns the status of an action of many rows that failed after it had changed some of them.
func (s *Server) interrupted(r *http.Request, err error, done int, what string) error {
	if err == nil || done == 0 {
		return err
	}
	s.deps.Logger.WarnContext(r.Context(), "Action interrupted", "path", r.URL.Path, "done", done, "error", err)
	return &statusError{
		http.StatusServiceUnavailable, fmt.Sprintf("interrupted after %d %s: send the same request again", done, what),
	}
}

// planRepair answers which counters of queues differ from the facts.
func planRepair(r *http.Request, operator *triage.Triage) (any, error) {
	receipt, err := operator.PlanRepair(r.Context(), r.URL.Query().Get("action"))
	return receipt, ofTarget(err)
}

// repairQueues corrects them.
func repairQueues(r *http.Request, operator *triage.Triage) (any, error) {
	var body reasonBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	receipt, err := operator.Repair(r.Context(), r.URL.Query().Get("action"), body.Reason)
	return receipt, ofTarget(err)
}

// ofTarget returns the status of a refused action on queues.
func ofTarget(err error) error {
	target, isTarget := errors.AsType[*triage.TargetError](err)
	switch {
	case errors.Is(err, triage.ErrLimit):
		return requestError(err.Error())
	case !isTarget:
		return err
	case errors.Is(target, triage.ErrGroup):
		return requestError(target.Error())
	}
	return &statusError{http.StatusNotFound, target.Error()}
}
