package api

import (
	"net/http"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/triage"
)

// discarding selects the waiting dead letters that match the query.
func discarding(r *http.Request) (act.Request, error) {
	filter, _, err := readDeadLetterFilter(r)
	return act.Request{Kind: act.DiscardAllDeadLetters, Input: triage.DiscardRequest{
		Reason: filter.Reason, Action: filter.Action, Worker: filter.Worker, Type: filter.Type,
		Execution: filter.Execution, MaxAge: filter.MaxAge, MinAge: filter.MinAge,
	}}, err
}

// maxTake bounds the messages that one request takes.
const maxTake = 1_000_000

// taking selects messages in a queue of the broker.
func taking(r *http.Request) (act.Request, error) {
	q := queryOf(r)
	wish := triage.TakeRequest{Queue: q.Get("queue"), First: int(q.number("first", maxTake))}
	return act.Request{Kind: act.TakeDeadLetters, Input: wish}, q.err
}

func (s *Server) requeueDeadLetter(r *http.Request) (any, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		reasonBody
		Anyway bool `json:"anyway"`
	}
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	request := act.Request{Kind: act.RequeueDeadLetter, Target: act.Target{ID: id}, Anyway: body.Anyway}
	return s.do(r, request, body.Reason)
}
