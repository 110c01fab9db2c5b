package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
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
	for _, of := range act.All() {
		if of.Route.Path != "" {
			s.act(mux, of)
		}
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

// act adds the route of an act.
func (s *Server) act(mux *routes, of *act.Act) {
	path, parameters := "/api/v1/"+of.Route.Path, []string{}
	if of.Route.Plans {
		for i := range of.Fields {
			if of.Fields[i].HTTP {
				parameters = append(parameters, of.Fields[i].Member())
			}
		}
	}
	handle := func(answer func(r *http.Request) (any, error)) http.Handler {
		return s.answer(func(r *http.Request) (any, error) {
			if err := onlyParameters(r, parameters); err != nil {
				return nil, err
			}
			return answer(r)
		})
	}
	mux.Handle("POST "+path, s.guarded(ScopeOperate, s.sameSite(handle(func(r *http.Request) (any, error) {
		body, err := readActBody(r, of)
		if err != nil {
			return nil, err
		}
		if of.Route.Plans || of.Route.Confirms {
			return s.confirmed(r, body)
		}
		receipt, err := s.operator(r).Do(r.Context(), body.Request, body.Request.Reason)
		return s.received(r, receipt, err)
	}))))
	allowed := writeOnly
	if of.Route.Plans {
		allowed = readWrite
		mux.Handle("GET "+path, s.guarded(ScopeRead, handle(func(r *http.Request) (any, error) {
			request, err := readTarget(r, of)
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
	}
	s.others(mux, path, allowed)
}

// actBody is what the body of an act asks for.
type actBody struct {
	act.Request
	Confirm string
}

// readTarget reads the target in the path, and the parameters of an act that plans.
func readTarget(r *http.Request, of *act.Act) (request act.Request, err error) {
	request = act.Request{Kind: of.Kind, Values: map[string]string{}}
	if strings.Contains(of.Route.Path, "{id}") {
		if request.Target.ID, err = idOf(r); err != nil {
			return request, err
		}
	}
	request.Target.Ref = r.PathValue("ref")
	request.Target.Action = request.Target.Ref
	query := r.URL.Query()
	for i := range of.Fields {
		if f := &of.Fields[i]; of.Route.Plans && query.Get(f.Member()) != "" {
			request.Values[f.Name] = query.Get(f.Member())
		}
	}
	return request, nil
}

// readActBody reads the target and the body of an act. It refuses unknown members.
func readActBody(r *http.Request, of *act.Act) (*actBody, error) {
	request, err := readTarget(r, of)
	if err != nil {
		return nil, err
	}
	body, ids, id := &actBody{Request: request}, []int64{}, int64(0)
	into := map[string]any{"reason": &body.Reason}
	if of.Route.Plans || of.Route.Confirms {
		into["confirm"] = &body.Confirm
	}
	if of.Insists != "" {
		into["anyway"] = &body.Anyway
	}
	if of.Route.IDs != "" {
		into[of.Route.IDs] = &ids
	}
	if of.Route.ID != "" {
		into[of.Route.ID] = &id
	}
	fields := of.Fields
	if of.Route.Plans {
		fields = nil // they are parameters
	}
	for i := range fields {
		f := &fields[i]
		switch {
		case !f.HTTP:
		case f.Type == act.Number:
			into[f.Member()] = new(*int64)
		case f.Type == act.Document:
			into[f.Member()] = new(json.RawMessage)
		default:
			into[f.Member()] = new(string)
		}
	}
	if err := readMembers(r, maxActBody, into); err != nil {
		return nil, err
	}
	for i := range fields {
		f, text := &fields[i], ""
		switch value := into[f.Member()].(type) {
		case **int64:
			if *value != nil {
				text = strconv.FormatInt(**value, 10)
			}
		case *json.RawMessage:
			text = string(*value)
		case *string:
			text = *value
		}
		switch {
		case text != "":
			body.Values[f.Name] = text
		case f.Required:
			return nil, requestError("the body has no " + f.Member())
		}
	}
	switch {
	case of.Route.IDs != "" && len(ids) == 0:
		return nil, requestError("the body has no " + of.Route.IDs)
	case of.Route.ID != "" && id == 0:
		return nil, requestError("the body has no " + of.Route.ID)
	case of.Route.IDs != "":
		body.OnIDs(ids)
	case of.Route.ID != "":
		body.Target.ID = id
	}
	return body, nil
}

// operator acts in the name of the client.
func (s *Server) operator(r *http.Request) *act.Operator { return s.operatorOf(actorOf(r)) }

func (s *Server) operatorOf(actor string) *act.Operator {
	return act.New(act.Config{}, s.deps.Acts.As(actor), s.deps.View)
}

// confirmed carries out an action if the body confirms its plan.
func (s *Server) confirmed(r *http.Request, body *actBody) (any, error) {
	operator := s.operator(r)
	plan, err := operator.Plan(r.Context(), body.Request)
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

// readMembers decodes the members of a JSON object, and refuses unknown members and text after it. A missing body is an
// empty object.
func readMembers(r *http.Request, most int64, into map[string]any) error {
	raw, err := readRaw(r, most)
	if err != nil || len(raw) == 0 {
		return err
	}
	var members map[string]json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(raw))
	err = decoder.Decode(&members)
	if _, end := decoder.Token(); err == nil && !errors.Is(end, io.EOF) {
		err = errors.New("there is text after the object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch to := into[name]; {
		case err != nil:
		case to == nil:
			err = fmt.Errorf("json: unknown field %q", name)
		default:
			err = json.Unmarshal(members[name], to)
		}
	}
	if err != nil {
		return requestError("the body is not what this path takes: " + err.Error())
	}
	if reason, ok := into["reason"].(*string); ok && len(*reason) > maxReason {
		return requestError(fmt.Sprintf("the reason exceeds %d bytes", maxReason))
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
