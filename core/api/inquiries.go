package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// inquiryParameters are the filters of the list of inquiries.
var inquiryParameters = []string{"status", "execution", "assigned_to", "action", "limit", "cursor"}

// inquiries answers a page of inquiries, the open ones first.
func (s *Server) inquiries(r *http.Request) (any, error) {
	q := queryOf(r)
	filter := monitor.InquiryFilter{
		Statuses: q.words("status"), Execution: q.number("execution", maxID), AssignedTo: q.Get("assigned_to"),
		Action: q.Get("action"), Limit: int(q.number("limit", maxPage)),
	}
	if q.err != nil {
		return nil, q.err
	}
	page, err := s.deps.View.Inquiries(r.Context(), filter, q.Get("cursor"))
	if errors.Is(err, monitor.ErrFilter) {
		return nil, requestError(err.Error())
	}
	return page, err
}

// respondBody is the body of an answer.
type respondBody struct {
	Response json.RawMessage `json:"response"`
	// As is the login of the answering identity.
	As     string `json:"as"`
	Reason string `json:"reason"`
}

func (s *Server) respond(r *http.Request) (any, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	var body respondBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	if len(body.Response) == 0 {
		return nil, requestError("the body has no response")
	}
	return s.do(r, act.Request{
		Kind: act.AnswerInquiry, Target: act.Target{ID: id},
		Input: triage.AnswerRequest{Response: body.Response, As: body.As},
	}, body.Reason)
}
