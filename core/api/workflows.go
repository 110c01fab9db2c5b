package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/attune-go/attune/core/monitor"
)

// workflows answers a page of workflows.
func (s *Server) workflows(r *http.Request) (any, error) {
	q := queryOf(r)
	filter := monitor.WorkflowFilter{
		Statuses: q.words("status"), Action: q.Get("action"), Paused: q.flag("paused"),
	}
	var cursor int64
	filter.Limit, cursor = q.page()
	if q.err != nil {
		return nil, q.err
	}
	return s.deps.View.Workflows(r.Context(), filter, cursor)
}

// workflow answers the workflow of an execution.
func (s *Server) workflow(ctx context.Context, execution int64) (*monitor.WorkflowDetail, error) {
	detail, err := s.deps.View.Workflow(ctx, execution)
	if none, isNone := errors.AsType[*monitor.NoWorkflowError](err); isNone {
		return nil, &statusError{http.StatusNotFound, none.Error()}
	}
	return detail, err
}
