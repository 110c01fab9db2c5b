package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// maxInquiries bounds a page of inquiries.
const maxInquiries = 500

// inquiryParameters are the filters of the list of inquiries.
var inquiryParameters = []string{"status", "execution", "assigned_to", "action", "limit", "cursor"}

// inquiries answers a page of inquiries, the open ones first.
func (s *Server) inquiries(r *http.Request) (any, error) {
	query := r.URL.Query()
	f := monitor.InquiryFilter{AssignedTo: query.Get("assigned_to"), Action: query.Get("action")}
	if words := query.Get("status"); words != "" {
		f.Statuses = strings.Split(words, ",")
	}
	var err error
	if f.Execution, err = numberOf(r, "execution", 1<<62); err != nil {
		return nil, err
	}
	limit, err := numberOf(r, "limit", maxInquiries)
	if err != nil {
		return nil, err
	}
	f.Limit = int(limit)
	page, err := s.deps.View.Inquiries(r.Context(), f, query.Get("cursor"))
	if errors.Is(err, monitor.ErrFilter) {
		return nil, requestError(err.Error())
	}
	return page, err
}

// inquiry answers one inquiry.
func (s *Server) inquiry(r *http.Request) (any, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	return s.deps.View.Inquiry(r.Context(), id)
}

// respondBody is what an answer takes.
type respondBody struct {
	Response json.RawMessage `json:"response"`
	// As is the login of the identity in whose name it is given.
	As     string `json:"as"`
	Reason string `json:"reason"`
}

func (s *Server) respond(r *http.Request, operator *triage.Triage, id int64) (any, error) {
	var body respondBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	if len(body.Response) == 0 {
		return nil, requestError("the body has no response")
	}
	receipt, err := operator.Answer(r.Context(),
		triage.AnswerOrder{Inquiry: id, Response: body.Response, As: body.As, Note: body.Reason})
	refused, isRefused := errors.AsType[*triage.AnswerRefusedError](err)
	switch {
	case errors.Is(err, triage.ErrNoInquiry):
		return nil, &statusError{http.StatusNotFound, "there is no inquiry " + strconv.FormatInt(id, 10)}
	case isRefused && refused.Reason == triage.AnswerUnfit:
		return nil, &statusError{http.StatusUnprocessableEntity, refused.Error()}
	case isRefused && (refused.Reason == triage.AnswerNotYours || refused.Reason == triage.AnswerUnknown):
		return nil, &statusError{http.StatusForbidden, refused.Error()}
	case isRefused:
		return nil, conflictf("%s", refused.Error())
	}
	return receipt, err
}
