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
	"strings"

	"github.com/attune-go/attune/core/jsonvalue"
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

// operatorAct is an action in the name of the client.
type operatorAct func(r *http.Request, operator *triage.Triage) (any, error)

// action adds the POST of an action.
func (s *Server) action(mux *routes, path string, handle operatorAct, parameters ...string) {
	mux.Handle("POST "+path, s.guarded(ScopeOperate, s.sameSite(s.answer(func(r *http.Request) (any, error) {
		if err := onlyParameters(r, parameters); err != nil {
			return nil, err
		}
		return handle(r, s.deps.Acts.As(actorOf(r)))
	}))))
}

// planned adds a bulk action: GET answers its plan, and POST carries it out. Both have the same parameters.
func (s *Server) planned(mux *routes, path string, plan, do operatorAct, parameters ...string) {
	s.action(mux, path, do, parameters...)
	mux.Handle("GET "+path, s.guarded(ScopeRead, s.answer(func(r *http.Request) (any, error) {
		if err := onlyParameters(r, parameters); err != nil {
			return nil, err
		}
		return plan(r, s.deps.Acts)
	})))
	s.others(mux, path, readWrite)
}

// others answers the other methods of a path. Beside the path of one thing each needs its own pattern.
func (s *Server) others(mux *routes, path, allowed string) {
	if strings.Contains(path, "{") {
		mux.Handle(path, s.guarded(ScopeOperate, s.only(allowed)))
		return
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if method != http.MethodGet || allowed == writeOnly {
			mux.Handle(method+" "+path, s.guarded(ScopeOperate, s.only(allowed)))
		}
	}
}

// acts adds the actions.
func (s *Server) acts(mux *routes) {
	post := func(path string, handle operatorAct) {
		s.action(mux, path, handle)
		s.others(mux, path, writeOnly)
	}
	act := func(path string, handle func(r *http.Request, operator *triage.Triage, id int64) (any, error)) {
		post(path, func(r *http.Request, operator *triage.Triage) (any, error) {
			id, err := idOf(r)
			if err != nil {
				return nil, err
			}
			return handle(r, operator, id)
		})
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
	act("/api/v1/dead-letters/{id}/requeue", s.requeueDeadLetter)
	act("/api/v1/inquiries/{id}/respond", s.respond)
	reasoned("/api/v1/executions/{id}/retry", refusing((*triage.Triage).RetryExecution, ofExecution))
	reasoned("/api/v1/dead-letters/{id}/discard", refusing((*triage.Triage).Discard, ofDeadLetter))
	reasoned("/api/v1/dead-letters/{id}/reopen",
		oneDeadLetter("dead letter %d is not discarded, or does not exist", (*triage.Triage).Reopen))
	reasoned("/api/v1/dead-letters/{id}/return",
		oneDeadLetter("dead letter %d stays as it is", (*triage.Triage).ReturnDeadLetters))
	reasoned("/api/v1/workflows/{id}/pause", refusing((*triage.Triage).PauseWorkflow, ofWorkflow))
	reasoned("/api/v1/workflows/{id}/resume", refusing((*triage.Triage).ResumeWorkflow, ofWorkflow))
	reasoned("/api/v1/workflows/{id}/cancel", s.cancelWorkflow)
	for _, one := range workerActs {
		reasoned("/api/v1/workers/{id}/"+string(one), s.actOnWorker(one))
	}
	for _, one := range []triage.Act{triage.Pause, triage.Resume, triage.Limit, triage.Reset} {
		post("/api/v1/actions/{ref}/queues/"+string(one), overrideQueues(one))
	}
	for _, one := range []triage.MoveAct{triage.MoveFront, triage.MoveLane, triage.MoveBack} {
		post("/api/v1/executions/"+string(one), moveExecutions(one))
	}
	s.planned(mux, "/api/v1/actions/{ref}/queues/clear", planClear, s.clearQueues, "group", "older_than")
	s.planned(mux, "/api/v1/queues/repair", planRepair, repairQueues, "action")
	s.planned(mux, "/api/v1/dead-letters/discard-all", planDiscard, s.discardDeadLetters, deadLetterFilters...)
	s.planned(mux, "/api/v1/dead-letters/take", s.planTake, s.takeDeadLetters, "queue", "first")
	post("/api/v1/dead-letters/purge", s.purgeDeadLetters)
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
	if err := jsonvalue.Check("", raw); err != nil {
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
