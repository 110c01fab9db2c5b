package api

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/tracing"
)

// maxRequestBody bounds the body of a request for an execution.
const maxRequestBody = 2 << 20

// standardAccess is the permission set that permits the own action and pack.
const standardAccess = "standard"

// requestBody is the body of a request for an execution.
type requestBody struct {
	ActionRef               string                     `json:"action_ref"`
	Parameters              json.RawMessage            `json:"parameters"`
	EnvVars                 map[string]json.RawMessage `json:"env_vars"`
	PermissionSetRefs       []string                   `json:"permission_set_refs"`
	ArtifactRetentionPolicy string                     `json:"artifact_retention_policy"`
	ArtifactRetentionLimit  *int                       `json:"artifact_retention_limit"`
	placement.Own
}

// requestExecution requests an execution and answers it.
func (s *Server) requestExecution(r *http.Request, by *caller) (int, any, error) {
	key, err := keyOf(r, by.actor())
	if err != nil {
		return 0, nil, err
	}
	body, err := readRequest(r)
	if err != nil {
		return 0, nil, err
	}
	options := &submit.Options{
		Executor: by.executor, PermissionSetRefs: body.PermissionSetRefs, EnvVars: body.EnvVars,
		ArtifactRetentionPolicy: body.ArtifactRetentionPolicy,
		Own:                     body.Own.Given(),
	}
	if body.ArtifactRetentionLimit != nil {
		options.ArtifactRetentionLimit = *body.ArtifactRetentionLimit
	}
	if by.claims != nil && by.claims.Type == secret.ExecutionToken {
		options.Parent = &by.claims.Execution.ExecutionID
	}
	if err := s.permit(r, by, body); err != nil {
		return 0, nil, err
	}
	done, err := s.deps.Published.Submitter.Request(r.Context(), submit.Request{
		ActionRef: body.ActionRef, Params: body.Parameters, Options: options, Key: key(),
	})
	if err != nil {
		return 0, nil, err
	}
	if !done.Repeated {
		s.links(r.Context(), tracing.Execution, done.ID)
	}
	return s.asRequested(r, done)
}

// asRequested answers the execution in its first state, so that a repeated request has the same answer.
func (s *Server) asRequested(r *http.Request, done submit.Requested) (int, any, error) {
	if done.Repeated { // it may have a large result
		if err := s.awaitLarge(r.Context(), "execution", done.ID); err != nil {
			return 0, nil, err
		}
	}
	body, err := s.executionOf(r, done.ID)
	body.Status, body.Updated = lifecycle.StatusRequested, body.Created
	body.Worker, body.Result, body.StartedAt = nil, nil, nil
	return http.StatusCreated, map[string]any{"data": body}, err
}

// readRequest reads and checks a body. As published, it ignores unknown members.
func readRequest(r *http.Request) (*requestBody, error) {
	raw, err := readRaw(r, maxRequestBody)
	if err != nil {
		return nil, err
	}
	body := &requestBody{}
	if err := json.Unmarshal(raw, body); err != nil {
		if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
			return nil, &statusError{
				http.StatusUnprocessableEntity,
				"the body is not what this path takes: " + err.Error(),
			}
		}
		return nil, requestError("the body is not a JSON object")
	}
	switch limit := body.ArtifactRetentionLimit; {
	case body.ActionRef == "":
		return nil, &statusError{http.StatusUnprocessableEntity, "the body has no action_ref"}
	case !slices.Contains([]string{"", "versions", "days", "hours", "minutes"}, body.ArtifactRetentionPolicy):
		return nil, &statusError{
			http.StatusUnprocessableEntity, "artifact_retention_policy must be versions, days, hours or minutes",
		}
	case limit != nil && *limit <= 0:
		return nil, requestError("artifact_retention_limit must be greater than zero")
	}
	if _, err := (placement.Need{}).Override(body.Own); err != nil {
		return nil, requestError(err.Error())
	}
	return body, nil
}

// permit refuses a request if the caller may not execute the action, or lacks a wanted permission set.
func (s *Server) permit(r *http.Request, by *caller, body *requestBody) error {
	row, err := s.deps.Published.Store.PublishedAction(r.Context(), body.ActionRef)
	if errors.Is(err, sql.ErrNoRows) {
		return &statusError{http.StatusNotFound, fmt.Sprintf("Action '%s' not found", body.ActionRef)}
	}
	if err != nil {
		return fmt.Errorf("read action %s: %w", body.ActionRef, err)
	}
	action := grantedAction{id: row.ID, ref: row.Ref, pack: row.PackRef}
	defaults := row.DefaultExecutionPermissionSetRefs
	wanted := body.PermissionSetRefs
	if wanted == nil {
		wanted = defaults
	}
	switch {
	case by.claims == nil:
		return within(wanted, defaults)
	case by.claims.Type == secret.ExecutionToken:
		return permitExecution(by.claims.Execution, action, wanted)
	}
	return s.permitIdentity(r, *by.executor, action, wanted, defaults)
}

var errBeyond = &statusError{http.StatusForbidden, "Cannot execute action with permission sets beyond current access"}

// within refuses permission sets that are not among the allowed ones.
func within(wanted, allowed []string) error {
	for _, ref := range wanted {
		if !slices.Contains(allowed, ref) {
			return errBeyond
		}
	}
	return nil
}

// permitExecution lets an execution request actions of its own and its workflow's pack
// if it has standard access, with no more permission sets than its own.
func permitExecution(own *secret.TokenMetadata, action grantedAction, wanted []string) error {
	standard := slices.Contains(own.PermissionSetRefs, standardAccess) &&
		(slices.Contains(own.StandardAccessActionRefs, action.ref) ||
			slices.Contains(own.StandardAccessPackRefs, action.pack))
	if !standard {
		return &statusError{
			http.StatusForbidden,
			"an execution token may request only actions of its own pack, and only with the permission set standard",
		}
	}
	return within(wanted, own.PermissionSetRefs)
}

// permitIdentity checks the permission sets of an identity. In a schema without permission sets the
// identity may request everything, like our own tokens.
func (s *Server) permitIdentity(r *http.Request, identity int64, action grantedAction, wanted,
	defaults []string,
) error {
	st, ctx := s.deps.Published.Store, r.Context()
	known, err := st.HasPermissionSets(ctx)
	if err != nil {
		return fmt.Errorf("look for permission sets: %w", err)
	}
	if !known {
		return within(wanted, defaults)
	}
	rows, err := st.IdentityPermissionSets(ctx, identity)
	if err != nil {
		return fmt.Errorf("read the permission sets of identity %d: %w", identity, err)
	}
	held := permissions{refs: []string{standardAccess}}
	for _, row := range rows {
		held.refs = append(held.refs, row.Ref)
		held.grants = append(held.grants, readGrants(row.Grants)...)
	}
	if !held.execute(action) {
		return &statusError{http.StatusForbidden, "Insufficient permissions: actions:execute"}
	}
	others := slices.DeleteFunc(slices.Clone(wanted), func(ref string) bool { return slices.Contains(held.refs, ref) })
	if len(others) == 0 {
		return nil
	}
	sets, err := st.PermissionSetsByRef(ctx, others)
	if err != nil {
		return fmt.Errorf("read %d permission sets: %w", len(others), err)
	}
	for _, set := range sets {
		if held.cover(readGrants(set.Grants)) {
			others = slices.DeleteFunc(others, func(ref string) bool { return ref == set.Ref })
		}
	}
	return within(others, nil)
}
