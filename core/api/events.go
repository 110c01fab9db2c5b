package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/attune-go/attune/core/bounds"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/submit"
)

// maxEvents bounds a page of events or enforcements, maxEventBody the body of one
// that is emitted.
const (
	maxEvents    = 500
	maxEventBody = submit.MaxPayload + 64<<10
)

// Emitter stores events with their messages; *submit.Submitter is one.
type Emitter interface {
	EmitEvent(ctx context.Context, event submit.Event) (submit.Emitted, error)
}

// Emits lets events be emitted. It must be called before Start.
func (s *Server) Emits(emitter Emitter) { s.emitter = emitter }

// emits adds what emits events.
func (s *Server) emits(mux *http.ServeMux) {
	mux.Handle("POST /api/v1/events", s.guarded(ScopeSubmit, s.sameSite(s.answer(func(r *http.Request) (any, error) {
		if err := onlyParameters(r, nil); err != nil {
			return nil, err
		}
		return s.emit(r)
	}))))
}

// emitBody is what an event takes.
type emitBody struct {
	Trigger string          `json:"trigger_ref"`
	Payload json.RawMessage `json:"payload"`
	Rule    string          `json:"rule_ref"`
	// Execution is the one whose action emits it; 0 for none.
	Execution int64 `json:"execution_id"`
}

// emittedEvent is the answer.
type emittedEvent struct {
	ID         int64  `json:"id"`
	TriggerRef string `json:"trigger_ref"`
	// Enabled is whether the trigger is: a disabled one fires nothing.
	Enabled bool   `json:"trigger_enabled"`
	Created string `json:"created"`
}

func (s *Server) emit(r *http.Request) (any, error) {
	var body emitBody
	if err := readBodyUpTo(r, &body, maxEventBody); err != nil {
		return nil, err
	}
	if body.Trigger == "" {
		return nil, requestError("the body has no trigger_ref")
	}
	done, err := s.emitter.EmitEvent(r.Context(), submit.Event{
		TriggerRef: body.Trigger, Payload: body.Payload, RuleRef: body.Rule, Execution: body.Execution,
	})
	if err != nil {
		return nil, emitProblem(err)
	}
	return emittedEvent{ID: done.ID, TriggerRef: done.TriggerRef, Enabled: done.Enabled,
		Created: done.Created.UTC().Format("2006-01-02T15:04:05.999999Z")}, nil
}

// emitProblem returns the status of an invalid event.
func emitProblem(err error) error {
	unknown, isUnknown := errors.AsType[*submit.UnknownTriggerError](err)
	mismatch, isMismatch := errors.AsType[*submit.RuleMismatchError](err)
	invalid, isInvalid := errors.AsType[*submit.InvalidPayloadError](err)
	tooDeep, isTooDeep := errors.AsType[*bounds.Error](err)
	switch {
	case isTooDeep:
		return &statusError{http.StatusUnprocessableEntity, tooDeep.Error()}
	case isUnknown:
		return &statusError{http.StatusNotFound, unknown.Error()}
	case isMismatch:
		return conflictf("%s", mismatch.Error())
	case isInvalid:
		return &statusError{http.StatusUnprocessableEntity, invalid.Error()}
	case errors.Is(err, submit.ErrPayload):
		return &statusError{http.StatusRequestEntityTooLarge, err.Error()}
	}
	return err
}

// page reads the limit and the cursor of a list.
func page(r *http.Request) (limit int, cursor int64, err error) {
	many, err := numberOf(r, "limit", maxEvents)
	if err != nil {
		return 0, 0, err
	}
	cursor, err = numberOf(r, "cursor", 1<<62)
	return int(many), cursor, err
}

// events answers a page of events.
func (s *Server) events(r *http.Request) (any, error) {
	limit, cursor, err := page(r)
	if err != nil {
		return nil, err
	}
	return s.deps.View.Events(r.Context(), monitor.EventFilter{Trigger: r.URL.Query().Get("trigger"), Limit: limit},
		cursor)
}

// event answers one event, with what came of it for every rule.
func (s *Server) event(r *http.Request) (any, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	return s.deps.View.EventDetail(r.Context(), id)
}

// enforcements answers a page of enforcements.
func (s *Server) enforcements(r *http.Request) (any, error) {
	limit, cursor, err := page(r)
	if err != nil {
		return nil, err
	}
	f := monitor.EnforcementFilter{Rule: r.URL.Query().Get("rule"), Status: r.URL.Query().Get("status"), Limit: limit}
	if f.Event, err = numberOf(r, "event", 1<<62); err != nil {
		return nil, err
	}
	list, err := s.deps.View.Enforcements(r.Context(), f, cursor)
	if errors.Is(err, monitor.ErrFilter) {
		return nil, requestError(err.Error())
	}
	return list, err
}

// rules answers a page of rules.
func (s *Server) rules(r *http.Request) (any, error) {
	return s.deps.View.Rules(r.Context(), r.URL.Query().Get("trigger"), r.URL.Query().Get("cursor"))
}

// rule answers one rule.
func (s *Server) rule(r *http.Request) (any, error) {
	return s.deps.View.Rule(r.Context(), r.PathValue("ref"))
}
