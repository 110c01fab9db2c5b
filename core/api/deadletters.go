package api

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// deadLetterFilters are the filters of dead letters, deadLetterParameters those of their list.
var (
	deadLetterFilters    = []string{"reason", "action", "worker", "type", "execution", "since", "older_than"}
	deadLetterParameters = append([]string{"open", "decided", "decision", "limit", "cursor"}, deadLetterFilters...)
)

// deadLetters answers a page of dead letters.
func (s *Server) deadLetters(r *http.Request) (any, error) {
	filter, cursor, err := readDeadLetterFilter(r)
	if err != nil {
		return nil, err
	}
	return s.deps.View.LedgerList(r.Context(), filter, cursor)
}

func readDeadLetterFilter(r *http.Request) (filter monitor.DeadLetterFilter, cursor int64, err error) {
	q := queryOf(r)
	filter = monitor.DeadLetterFilter{
		Open: q.flag("open"), Decided: q.flag("decided"), Decisions: q.words("decision"), Reason: q.Get("reason"),
		Action: q.Get("action"), Worker: q.Get("worker"), Type: q.Get("type"),
		MaxAge: q.age("since"), MinAge: q.age("older_than"), Execution: q.number("execution", maxID),
	}
	filter.Limit, cursor = q.page()
	return filter, cursor, cmp.Or(q.err, filter.Check())
}

// deadLetterStats answers the statistics of dead letters.
func (s *Server) deadLetterStats(r *http.Request) (any, error) {
	q := queryOf(r)
	window := q.age("since")
	if q.err != nil {
		return nil, q.err
	}
	return s.deps.View.LedgerStats(r.Context(), window)
}

func (s *Server) requeueDeadLetter(r *http.Request, operator *triage.Triage, id int64) (any, error) {
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
	} else if s.deps.View != nil {
		d, err := s.deps.View.DeadLetter(r.Context(), id)
		if err == nil && (d.Verdict.Advice == monitor.AdviseSend || d.Verdict.Advice == monitor.AdviseFix) {
			return nil, conflictf("%s: send anyway", d.Verdict.Why)
		}
	}
	receipt, err := requeue(r.Context(), id, body.Reason)
	return receipt, ofDeadLetter(id, err)
}

// ofDeadLetter returns the status of a refused action on a dead letter.
func ofDeadLetter(id int64, err error) error {
	already, isAlready := errors.AsType[*triage.AlreadyRetriedError](err)
	switch {
	case errors.Is(err, triage.ErrNoDeadLetter):
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
