package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/triage"
)

// cancel stops an execution and answers in the published format, with the receipt beside the
// execution. Unknown query parameters and members of the body are refused, because a misspelt one
// would stop too much or too little.
func (s *Server) cancel(r *http.Request, by *caller) (int, any, error) {
	if err := onlyParameters(r, nil); err != nil {
		return 0, nil, err
	}
	id, err := idOf(r)
	if err != nil {
		return 0, nil, err
	}
	var body struct {
		Reason string
		Tree   bool
	}
	if err := readMembers(r, maxActBody, map[string]any{"reason": &body.Reason, "tree": &body.Tree}); err != nil {
		return 0, nil, err
	}
	if err := s.permitCancel(r, by, id); err != nil {
		return 0, nil, err
	}
	kind := act.CancelExecution
	if body.Tree {
		kind = act.CancelTree
	}
	receipt, err := s.operatorOf(by.actor()).Do(r.Context(), act.OnIDs(kind, id), body.Reason)
	switch p, _ := errors.AsType[*act.Problem](err); {
	case p != nil && p.Kind == act.Missing:
		return 0, nil, &statusError{http.StatusNotFound, fmt.Sprintf("Execution with ID %d not found", id)}
	case p != nil && p.Kind == act.Refused:
		stopped, _ := receipt.Data.(*triage.CancelReceipt)
		return 0, nil, conflictf("Execution %d is in status '%s' and cannot be cancelled", id,
			stopped.Executions[0].Status)
	case err != nil:
		return 0, nil, s.actProblem(r, receipt, err)
	}
	execution, err := s.executionOf(r, id)
	return http.StatusOK, map[string]any{"data": execution, "receipt": receipt.Data}, err
}

// permitCancel lets an execution token stop its own execution and its descendants. As published, an
// access token may stop every execution.
func (s *Server) permitCancel(r *http.Request, by *caller, id int64) error {
	if by.claims == nil || by.claims.Type != secret.ExecutionToken {
		return nil
	}
	within, err := s.deps.Published.Store.ExecutionWithin(r.Context(), by.claims.Execution.ExecutionID, id)
	if err != nil {
		return fmt.Errorf("read what execution %d is below: %w", id, err)
	}
	if !within {
		return &statusError{
			http.StatusForbidden,
			"an execution token may cancel only its own execution and those below it",
		}
	}
	return nil
}

// actor is the name of the client in audits.
func (c *caller) actor() string {
	switch {
	case c.name != "":
		return "token " + c.name
	case c.claims == nil:
		return "http without a token"
	case c.claims.Type == secret.ExecutionToken:
		return fmt.Sprintf("execution %d", c.claims.Execution.ExecutionID)
	}
	return fmt.Sprintf("%s (identity %s)", cmp.Or(c.claims.Login, "access token"), c.claims.Subject)
}
