package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// maxLetters bounds a page of dead letters.
const maxLetters = 500

// letterParameters are the filters of the list of dead letters.
var letterParameters = []string{
	"open", "decided", "decision", "reason", "action", "worker", "type", "execution", "since", "older_than", "limit",
	"cursor",
}

// letters answers a page of dead letters.
func (s *Server) letters(r *http.Request) (any, error) {
	filter, cursor, err := letterFilter(r)
	if err != nil {
		return nil, err
	}
	return s.deps.View.LedgerList(r.Context(), filter, cursor)
}

func letterFilter(r *http.Request) (f monitor.DeadLetterFilter, cursor int64, err error) {
	query := r.URL.Query()
	f.Reason, f.Action, f.Worker, f.Type = query.Get("reason"), query.Get("action"), query.Get("worker"),
		query.Get("type")
	if words := query.Get("decision"); words != "" {
		f.Decisions = strings.Split(words, ",")
	}
	if f.Open, err = flag(r, "open"); err != nil {
		return f, 0, err
	}
	if f.Decided, err = flag(r, "decided"); err != nil {
		return f, 0, err
	}
	if f.MaxAge, err = ageOf(r, "since"); err != nil {
		return f, 0, err
	}
	if f.MinAge, err = ageOf(r, "older_than"); err != nil {
		return f, 0, err
	}
	if f.Execution, err = numberOf(r, "execution", 1<<62); err != nil {
		return f, 0, err
	}
	limit, err := numberOf(r, "limit", maxLetters)
	if err != nil {
		return f, 0, err
	}
	f.Limit = int(limit)
	if cursor, err = numberOf(r, "cursor", 1<<62); err != nil {
		return f, 0, err
	}
	if err := f.Check(); err != nil {
		return f, 0, requestError(err.Error())
	}
	return f, cursor, nil
}

// ageOf reads a time such as 90s or 12h of the query, zero when it is not there.
func ageOf(r *http.Request, name string) (time.Duration, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	age, err := time.ParseDuration(text)
	if err != nil || age <= 0 {
		return 0, requestError(name + " must be a time such as 90s or 12h")
	}
	return age, nil
}

// numberOf reads a positive number of the query, zero when it is not there.
func numberOf(r *http.Request, name string, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, requestError(name + " must be a number from 1 to " + strconv.FormatInt(most, 10))
	}
	return n, nil
}

// letter answers one dead letter.
func (s *Server) letter(r *http.Request) (any, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	return s.deps.View.Letter(r.Context(), id)
}

// letterBody is what an act on a dead letter takes.
type letterBody struct {
	Reason string `json:"reason"`
}

func (s *Server) requeueLetter(r *http.Request, operator *triage.Triage, id int64) (any, error) {
	var body struct {
		letterBody
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

func (s *Server) discardLetter(r *http.Request, operator *triage.Triage, id int64) (any, error) {
	var body letterBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	receipt, err := operator.Discard(r.Context(), id, body.Reason)
	return receipt, ofLetter(id, err)
}

// ofLetter gives what refuses an act on a dead letter its answer.
func ofLetter(id int64, err error) error {
	already, isAlready := errors.AsType[*triage.AlreadyRetriedError](err)
	switch {
	case errors.Is(err, triage.ErrNoLetter):
		return &statusError{http.StatusNotFound, "there is no dead letter " + strconv.FormatInt(id, 10)}
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
