package api

import (
	"database/sql"
	"errors"
	"net/http"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/tracing"
)

// maxEventBody bounds the body of an emitted event.
const maxEventBody = submit.MaxPayload + 64<<10

// emittedEvent is the answer to an emission.
type emittedEvent struct {
	ID         int64  `json:"id"`
	TriggerRef string `json:"trigger_ref"`
	// Enabled reports whether the trigger is enabled: a disabled one fires nothing.
	Enabled bool   `json:"trigger_enabled"`
	Created string `json:"created"`
}

func (s *Server) emit(r *http.Request) (any, error) {
	if err := onlyParameters(r, nil); err != nil {
		return nil, err
	}
	key, err := keyOf(r, actorOf(r))
	if err != nil {
		return nil, err
	}
	var event submit.Event
	if err := readMembers(r, maxEventBody, map[string]any{
		"trigger_ref": &event.TriggerRef, "payload": &event.Payload, "rule_ref": &event.RuleRef,
		"execution_id": &event.Execution, // whose action emits the event
	}); err != nil {
		return nil, err
	}
	if event.TriggerRef == "" {
		return nil, requestError("the body has no trigger_ref")
	}
	event.Key = key()
	done, err := s.deps.Published.Submitter.EmitEvent(r.Context(), event)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &statusError{http.StatusNotFound, "the event of this Idempotency-Key has been deleted"}
	}
	if err != nil {
		return nil, err
	}
	if !done.Repeated {
		s.links(r.Context(), tracing.Event, done.ID)
	}
	return emittedEvent{
		ID: done.ID, TriggerRef: done.TriggerRef, Enabled: done.Enabled,
		Created: done.Created.UTC().Format("2006-01-02T15:04:05.999999Z"),
	}, nil
}

// events answers a page of events.
func (s *Server) events(r *http.Request) (any, error) {
	q := queryOf(r)
	limit, cursor := q.page()
	if q.err != nil {
		return nil, q.err
	}
	return s.deps.View.Events(r.Context(), monitor.EventFilter{Trigger: q.Get("trigger"), Limit: limit}, cursor)
}

// enforcements answers a page of enforcements.
func (s *Server) enforcements(r *http.Request) (any, error) {
	q := queryOf(r)
	limit, cursor := q.page()
	filter := monitor.EnforcementFilter{
		Rule: q.Get("rule"), Status: q.Get("status"), Event: q.number("event", maxID), Limit: limit,
	}
	if q.err != nil {
		return nil, q.err
	}
	return s.deps.View.Enforcements(r.Context(), filter, cursor)
}
