package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// maxWorkflows bounds a page of workflows.
const maxWorkflows = 500

// workflows answers a page of workflows.
func (s *Server) workflows(r *http.Request) (any, error) {
	query := r.URL.Query()
	f := monitor.WorkflowFilter{Action: query.Get("action")}
	if words := query.Get("status"); words != "" {
		f.Statuses = strings.Split(words, ",")
	}
	var err error
	if f.Paused, err = flag(r, "paused"); err != nil {
		return nil, err
	}
	limit, err := numberOf(r, "limit", maxWorkflows)
	if err != nil {
		return nil, err
	}
	f.Limit = int(limit)
	cursor, err := numberOf(r, "cursor", 1<<62)
	if err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, requestError(err.Error())
	}
	return s.deps.View.Workflows(r.Context(), f, cursor)
}

// workflow answers one workflow, known by the execution that it runs for.
func (s *Server) workflow(r *http.Request) (any, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	detail, err := s.deps.View.Workflow(r.Context(), id)
	if none, isNone := errors.AsType[*monitor.NoWorkflowError](err); isNone {
		return nil, &statusError{http.StatusNotFound, none.Error()}
	}
	return detail, err
}

// workflowBody is what an act on a workflow takes.
type workflowBody struct {
	Reason string `json:"reason"`
}

func (s *Server) pauseWorkflow(r *http.Request, operator *triage.Triage, id int64) (any, error) {
	var body workflowBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	receipt, err := operator.PauseWorkflow(r.Context(), id, body.Reason)
	return receipt, ofWorkflow(id, err)
}

func (s *Server) resumeWorkflow(r *http.Request, operator *triage.Triage, id int64) (any, error) {
	var body workflowBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	receipt, err := operator.ResumeWorkflow(r.Context(), id, body.Reason)
	return receipt, ofWorkflow(id, err)
}

func (s *Server) cancelWorkflow(r *http.Request, operator *triage.Triage, id int64) (any, error) {
	var body workflowBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	receipt, err := operator.CancelWorkflow(r.Context(), id, body.Reason)
	if receipt == nil {
		return nil, ofWorkflow(id, err)
	}
	return s.cancelled(r, id, receipt, err)
}

// ofWorkflow gives what refuses an act on a workflow its answer.
func ofWorkflow(id int64, err error) error {
	ended, hasEnded := errors.AsType[*triage.WorkflowEndedError](err)
	switch {
	case errors.Is(err, triage.ErrNoWorkflow):
		return &statusError{http.StatusNotFound, "there is no workflow " + strconv.FormatInt(id, 10)}
	case hasEnded:
		return conflictf("%s", ended.Error())
	}
	return err
}
