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

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/jsonvalue"
)

// maxActBody bounds the body of an action, and maxReason its reason.
const (
	maxActBody = 64 << 10
	maxReason  = 2000
)

// acts adds the actions.
func (s *Server) acts(mux *routes) {
	post := func(path string, handle operatorAct) {
		s.action(mux, path, handle)
		s.others(mux, path, writeOnly)
	}
	for path, kind := range map[string]act.Kind{
		"executions/{id}/retry": act.RetryExecution, "dead-letters/{id}/discard": act.DiscardDeadLetter,
		"dead-letters/{id}/reopen": act.UndoDeadLetters, "dead-letters/{id}/return": act.ReturnDeadLetters,
		"workflows/{id}/pause": act.PauseWorkflow, "workflows/{id}/resume": act.ResumeWorkflow,
		"workflows/{id}/cancel": act.CancelWorkflow, "workers/{id}/cordon": act.CordonWorker,
		"workers/{id}/uncordon": act.UncordonWorker, "workers/{id}/drain": act.DrainWorker,
		"workers/{id}/forget": act.ForgetWorker,
	} {
		post("/api/v1/"+path, s.reasoned(kind))
	}
	post("/api/v1/dead-letters/{id}/requeue", s.requeueDeadLetter)
	post("/api/v1/inquiries/{id}/respond", s.respond)
	for verb, kind := range map[string]act.Kind{
		"pause": act.PauseQueue, "resume": act.ResumeQueue, "limit": act.LimitQueue, "reset": act.ResetQueue,
	} {
		post("/api/v1/actions/{ref}/queues/"+verb, s.overrideQueues(kind))
	}
	for verb, kind := range map[string]act.Kind{
		"front": act.FrontExecution, "lane": act.LaneExecution, "put-back": act.PutBackExecutions,
	} {
		post("/api/v1/executions/"+verb, s.moveExecutions(kind))
	}
	s.planned(mux, "/api/v1/actions/{ref}/queues/clear", clearing, "group", "older_than")
	s.planned(mux, "/api/v1/queues/repair", repairing, "action")
	s.planned(mux, "/api/v1/dead-letters/discard-all", discarding, deadLetterFilters...)
	s.planned(mux, "/api/v1/dead-letters/take", taking, "queue", "first")
	post("/api/v1/dead-letters/purge", func(r *http.Request) (any, error) {
		return s.confirmed(r, act.Request{Kind: act.PurgeBroker})
	})
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

// operatorAct is an action in the name of the client.
type operatorAct func(r *http.Request) (any, error)

// action adds the POST of an action.
func (s *Server) action(mux *routes, path string, handle operatorAct, parameters ...string) {
	mux.Handle("POST "+path, s.guarded(ScopeOperate, s.sameSite(s.answer(func(r *http.Request) (any, error) {
		if err := onlyParameters(r, parameters); err != nil {
			return nil, err
		}
		return handle(r)
	}))))
}

// planned adds a bulk action: GET answers its plan, and POST carries it out. Both have the same parameters.
func (s *Server) planned(
	mux *routes, path string, read func(r *http.Request) (act.Request, error), parameters ...string,
) {
	s.action(mux, path, func(r *http.Request) (any, error) {
		request, err := read(r)
		if err != nil {
			return nil, err
		}
		return s.confirmed(r, request)
	}, parameters...)
	mux.Handle("GET "+path, s.guarded(ScopeRead, s.answer(func(r *http.Request) (any, error) {
		if err := onlyParameters(r, parameters); err != nil {
			return nil, err
		}
		request, err := read(r)
		if err != nil {
			return nil, err
		}
		plan, err := s.operator(r).Plan(r.Context(), request)
		switch {
		case err != nil:
			return nil, s.actProblem(r, nil, err)
		case plan.Data == nil:
			return nil, s.actProblem(r, nil, plan.Problem)
		}
		return plan.Data, nil
	})))
	s.others(mux, path, readWrite)
}

// operator acts in the name of the client.
func (s *Server) operator(r *http.Request) *act.Operator { return s.operatorOf(actorOf(r)) }

func (s *Server) operatorOf(actor string) *act.Operator {
	return act.New(act.Config{}, s.deps.Acts.As(actor), s.deps.View)
}

// do carries out an action that needs no confirmation.
func (s *Server) do(r *http.Request, request act.Request, reason string) (any, error) {
	receipt, err := s.operator(r).Do(r.Context(), request, reason)
	return s.received(r, receipt, err)
}

// reasoned makes an action on one thing, whose body holds only a reason.
func (s *Server) reasoned(kind act.Kind) operatorAct {
	return func(r *http.Request) (any, error) {
		id, err := idOf(r)
		if err != nil {
			return nil, err
		}
		var body reasonBody
		if err := readAct(r, &body, &body.Reason); err != nil {
			return nil, err
		}
		return s.do(r, act.Request{Kind: kind, Target: act.Target{ID: id}}, body.Reason)
	}
}

// confirmed carries out an action if the body confirms its plan.
func (s *Server) confirmed(r *http.Request, request act.Request) (any, error) {
	var body confirmBody
	if err := readAct(r, &body, &body.Reason); err != nil {
		return nil, err
	}
	operator := s.operator(r)
	plan, err := operator.Plan(r.Context(), request)
	switch {
	case err != nil:
		return nil, s.actProblem(r, nil, err)
	case plan.Run == nil:
		return nil, s.actProblem(r, nil, plan.Problem)
	case body.Confirm != plan.Confirm:
		return nil, conflictf(`%s: send "confirm": %q to do it`, plan.Title, plan.Confirm)
	}
	receipt, err := operator.Run(r.Context(), plan, body.Reason, nil)
	return s.received(r, receipt, err)
}

// received answers the receipt of an action, or why it was not done.
func (s *Server) received(r *http.Request, receipt *act.Receipt, err error) (any, error) {
	if err == nil && receipt.Problem != nil && receipt.Problem.Kind == act.Stopped {
		err = receipt.Problem
	}
	if err != nil {
		return nil, s.actProblem(r, receipt, err)
	}
	return receipt.Data, nil
}

// ofProblems are the statuses of problems. The others are told as any error of a server is.
var ofProblems = map[act.ProblemKind]int{
	act.Unchanged: http.StatusConflict, act.Refused: http.StatusConflict, act.Missing: http.StatusNotFound,
	act.Conflict: http.StatusConflict, act.Forbidden: http.StatusForbidden, act.Invalid: http.StatusBadRequest,
	act.Unfit: http.StatusUnprocessableEntity, act.Unreachable: http.StatusServiceUnavailable,
}

// actProblem gives an error of an action its status.
func (s *Server) actProblem(r *http.Request, receipt *act.Receipt, err error) error {
	p, known := errors.AsType[*act.Problem](err)
	if receipt != nil && receipt.Done > 0 {
		s.deps.Logger.WarnContext(r.Context(), "Action interrupted", "path", r.URL.Path, "done", receipt.Done,
			"error", err)
		return &statusError{http.StatusServiceUnavailable,
			fmt.Sprintf("interrupted after %d: send the same request again", receipt.Done)}
	}
	if !known {
		return err
	}
	status, told := ofProblems[p.Kind]
	switch {
	case !told:
		return p.Err
	case p.Kind == act.Unreachable:
		s.deps.Logger.WarnContext(r.Context(), "Broker needed for an action does not answer", "path", r.URL.Path,
			"error", err)
		return &statusError{status, broker.Trouble(p.Err).Fact}
	case p.Anyway:
		return &statusError{status, p.Text + ": send anyway"}
	}
	return &statusError{status, p.Text}
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

// reasonBody is the body of an action, confirmBody that of a bulk action.
type (
	reasonBody struct {
		Reason string `json:"reason"`
	}
	confirmBody struct {
		reasonBody
		Confirm string `json:"confirm"`
	}
)

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
