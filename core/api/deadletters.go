package api

import (
	"errors"
	"net/http"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// letterParameters are the filters of the list of dead letters.
var letterParameters = []string{
	"open", "decided", "decision", "reason", "action", "worker", "type", "execution", "since", "older_than", "limit",
	"cursor",
}

// letters answers a page of dead letters.
func (s *Server) letters(r *http.Request) (any, error) {
	q := queryOf(r)
	filter := monitor.DeadLetterFilter{
		Open: q.flag("open"), Decided: q.flag("decided"), Decisions: q.words("decision"), Reason: q.Get("reason"),
		Action: q.Get("action"), Worker: q.Get("worker"), Type: q.Get("type"),
		MaxAge: q.age("since"), MinAge: q.age("older_than"), Execution: q.number("execution", maxID),
	}
	var cursor int64
	filter.Limit, cursor = q.page()
	if q.err != nil {
		return nil, q.err
	}
	if err := filter.Check(); err != nil {
		return nil, requestError(err.Error())
	}
	return s.deps.View.LedgerList(r.Context(), filter, cursor)
}

func (s *Server) requeueLetter(r *http.Request, operator *triage.Triage, id int64) (any, error) {
	var body struct {
		reasonBody
		Anyway bool `json:"anyway"`
	}
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	requeue := operator.RequeueIfUseful
	if body.Anyway {
		requeue = operator.Requeue
	}
	receipt, err := requeue(r.Context(), id, body.Reason)
	return receipt, ofLetter(id, err)
}

// ofLetter returns the status of a refused action on a dead letter.
func ofLetter(id int64, err error) error {
	already, isAlready := errors.AsType[*triage.AlreadyRetriedError](err)
	switch {
	case errors.Is(err, triage.ErrNoLetter):
		return missing("dead letter", id)
	case isAlready:
		return conflictf("%s", already.Error())
	case errors.Is(err, triage.ErrUseless):
		return conflictf("%s: send anyway", err.Error())
	case errors.Is(err, triage.ErrDecided), errors.Is(err, triage.ErrNoMessage):
		return conflictf("%s", err.Error())
	case errors.Is(err, triage.ErrNotEnded), errors.Is(err, triage.ErrNoExecution):
		return conflictf("dead letter %d: %s", id, err.Error())
	}
	return err
}
