package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
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

func (s *Server) cancelWorkflow(
	ctx context.Context, operator *triage.Triage, id int64, reason string,
) (any, error) {
	receipt, err := operator.CancelWorkflow(ctx, id, reason)
	if receipt == nil {
		return nil, ofWorkflow(id, err)
	}
	return s.cancelled(ctx, id, receipt, err)
}

// ofWorkflow returns the status of a refused action on a workflow.
func ofWorkflow(id int64, err error) error {
	ended, hasEnded := errors.AsType[*triage.WorkflowEndedError](err)
	switch {
	case errors.Is(err, triage.ErrNoWorkflow):
		return missing("workflow", id)
	case hasEnded:
		return conflictf("%s", ended.Error())
	}
	return err
}
