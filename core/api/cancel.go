package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/attune-go/attune/core/token"
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
		reasonBody
		Tree bool `json:"tree"`
	}
	if err := readAct(r, &body, &body.Reason); err != nil {
		return 0, nil, err
	}
	if err := s.permitCancel(r, by, id); err != nil {
		return 0, nil, err
	}
	request := triage.CancelRequest{IDs: []int64{id}, Tree: body.Tree, Reason: body.Reason}
	receipt, err := s.deps.Acts.As(by.actor()).Cancel(r.Context(), &triage.CancelPlan{CancelRequest: request})
	switch {
	case err != nil || receipt.Acted() > 0 || receipt.Moving > 0:
		_, err = s.cancelled(r.Context(), id, receipt, err)
	case receipt.Missing > 0:
		err = &statusError{http.StatusNotFound, fmt.Sprintf("Execution with ID %d not found", id)}
	default:
		err = conflictf("Execution %d is in status '%s' and cannot be cancelled", id, receipt.Executions[0].Status)
	}
	if err != nil {
		return 0, nil, err
	}
	execution, err := s.executionOf(r, id)
	return http.StatusOK, map[string]any{"data": execution, "receipt": receipt}, err
}

// permitCancel lets an execution token stop its own execution and its descendants. As published, an
// access token may stop every execution.
func (s *Server) permitCancel(r *http.Request, by *caller, id int64) error {
	if by.claims == nil || by.claims.Type != token.Execution {
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
	case c.claims.Type == token.Execution:
		return fmt.Sprintf("execution %d", c.claims.Execution.ExecutionID)
	}
	return fmt.Sprintf("%s (identity %s)", cmp.Or(c.claims.Login, "access token"), c.claims.Subject)
}

// cancelled answers a cancellation by its outcome.
func (s *Server) cancelled(
	ctx context.Context, id int64, receipt *triage.CancelReceipt, err error,
) (any, error) {
	switch {
	case err != nil && receipt.Acted() > 0:
		s.deps.Logger.WarnContext(ctx, "Cancellation interrupted", "execution_id", id, "done",
			receipt.Acted(), "error", err)
		return nil, &statusError{
			http.StatusServiceUnavailable,
			fmt.Sprintf("interrupted after %d executions: send the same request again", receipt.Acted()),
		}
	case err != nil:
		return nil, err
	case receipt.Acted() > 0:
		return receipt, nil
	case receipt.Missing > 0:
		return nil, missing("execution", id)
	case receipt.Moving > 0:
		return nil, conflictf("execution %d changed during every try: send the same request again", id)
	}
	return nil, conflictf("execution %d has ended (%s)", id, receipt.Executions[0].Status)
}
