package api

import (
	"errors"
	"net/http"

	"github.com/attune-go/attune/core/monitor"
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
