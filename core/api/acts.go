package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"

	"github.com/attune-go/attune/core/bounds"
	"github.com/attune-go/attune/core/triage"
)

// maxActBody bounds the body of an action, and maxReason its reason.
const (
	maxActBody = 64 << 10
	maxReason  = 2000
)

// reasonedAct is an action on one thing, whose body holds only a reason.
type reasonedAct func(ctx context.Context, operator *triage.Triage, id int64, reason string) (any, error)

// refusing makes an action whose refusals get their status by of.
func refusing[R any](
	do func(operator *triage.Triage, ctx context.Context, id int64, reason string) (*R, error),
	of func(id int64, err error) error,
) reasonedAct {
	return func(ctx context.Context, operator *triage.Triage, id int64, reason string) (any, error) {
		receipt, err := do(operator, ctx, id, reason)
		return receipt, of(id, err)
	}
}

// acts adds the actions.
func (s *Server) acts(mux *http.ServeMux) {
	act := func(path string, handle func(r *http.Request, operator *triage.Triage, id int64) (any, error)) {
		guarded := func(next http.Handler) http.Handler { return s.guarded(ScopeOperate, next) }
		mux.Handle("POST "+path, guarded(s.sameSite(s.answer(func(r *http.Request) (any, error) {
			if err := onlyParameters(r, nil); err != nil {
				return nil, err
			}
			id, err := idOf(r)
			if err != nil {
				return nil, err
			}
			return handle(r, s.deps.Acts.As(actorOf(r)), id)
		}))))
		mux.Handle(path, guarded(s.only(writeOnly)))
	}
	reasoned := func(path string, do reasonedAct) {
		act(path, func(r *http.Request, operator *triage.Triage, id int64) (any, error) {
			var body reasonBody
			if err := readAct(r, &body, &body.Reason); err != nil {
				return nil, err
			}
			return do(r.Context(), operator, id, body.Reason)
		})
	}
	act("/api/v1/dead-letters/{id}/requeue", s.requeueLetter)
	act("/api/v1/inquiries/{id}/respond", s.respond)
	reasoned("/api/v1/executions/{id}/retry", refusing((*triage.Triage).RetryExecution, ofExecution))
	reasoned("/api/v1/dead-letters/{id}/discard", refusing((*triage.Triage).Discard, ofLetter))
	reasoned("/api/v1/workflows/{id}/pause", refusing((*triage.Triage).PauseWorkflow, ofWorkflow))
	reasoned("/api/v1/workflows/{id}/resume", refusing((*triage.Triage).ResumeWorkflow, ofWorkflow))
	reasoned("/api/v1/workflows/{id}/cancel", s.cancelWorkflow)
	for _, one := range workerActs {
		reasoned("/api/v1/workers/{id}/"+string(one), s.actOnWorker(one))
	}
	readers := func(next http.Handler) http.Handler { return s.guarded(ScopeRead, next) }
	worker := byID(s.worker)
	mux.Handle("GET /api/v1/workers/{id}", readers(s.answer(func(r *http.Request) (any, error) {
		if err := onlyParameters(r, nil); err != nil {
			return nil, err
		}
		return worker(r)
	})))
	mux.Handle("/api/v1/workers/{id}", readers(s.only(readOnly)))
}

// sameSite refuses requests that a page of another site sends through a browser.
func (s *Server) sameSite(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := protection.Check(r); err != nil {
			s.problem(w, r, http.StatusForbidden, "a page of another site may not act here")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func namesThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// actorKey is the context key of the name of a request's token.
type actorKey struct{}

// actorOf is the name of the client in audits.
func actorOf(r *http.Request) string {
	if name, ok := r.Context().Value(actorKey{}).(string); ok {
		return "token " + name
	}
	return "http without a token"
}

func withActor(r *http.Request, name string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), actorKey{}, name))
}

// statusError is an error with its status.
type statusError struct {
	code   int
	detail string
}

// Error returns the detail.
func (e *statusError) Error() string { return e.detail }

func conflictf(format string, args ...any) error {
	return &statusError{http.StatusConflict, fmt.Sprintf(format, args...)}
}

func missing(what string, id int64) error {
	return &statusError{http.StatusNotFound, fmt.Sprintf("there is no %s %d", what, id)}
}

// readBody decodes the JSON object of a body, and refuses unknown members and text after it. A missing body is an
// empty object.
func readBody(r *http.Request, into any, most int64) error {
	raw, err := readRaw(r, most)
	if err != nil || len(raw) == 0 {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(into)
	if _, end := decoder.Token(); err == nil && !errors.Is(end, io.EOF) {
		err = errors.New("there is text after the object")
	}
	if err != nil {
		return requestError("the body is not what this path takes: " + err.Error())
	}
	return nil
}

// readRaw reads a body: JSON, or empty.
func readRaw(r *http.Request, most int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return nil, &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body exceeds %d bytes", most)}
	}
	if err != nil {
		return nil, requestError("the body could not be read")
	}
	if err := bounds.JSON("", raw); err != nil {
		return nil, &statusError{http.StatusUnprocessableEntity, "the body: " + err.Error()}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); len(raw) > 0 &&
		(err != nil || kind != "application/json") {
		return nil, &statusError{http.StatusUnsupportedMediaType, "a body must be application/json"}
	}
	return raw, nil
}

// ofExecution returns the status of a refused action on an execution.
func ofExecution(id int64, err error) error {
	already, isAlready := errors.AsType[*triage.AlreadyRetriedError](err)
	switch {
	case isAlready:
		return conflictf("%s", already.Error())
	case errors.Is(err, triage.ErrNotEnded):
		return conflictf("execution %d has not ended", id)
	case errors.Is(err, triage.ErrNoExecution):
		return missing("execution", id)
	}
	return err
}

// reasonBody is the body of an action.
type reasonBody struct {
	Reason string `json:"reason"`
}

// readAct reads a body with a reason in it.
func readAct(r *http.Request, into any, reason *string) error {
	if err := readBody(r, into, maxActBody); err != nil {
		return err
	}
	if len(*reason) > maxReason {
		return requestError(fmt.Sprintf("the reason exceeds %d bytes", maxReason))
	}
	return nil
}
