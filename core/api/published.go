package api

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
)

// Published has the dependencies of the published routes for executions, and of the emission of events. Without a store
// the routes do not exist.
type Published struct {
	Store     *store.Store
	Submitter *submit.Submitter
	// Signer verifies published tokens; nil, or one without a secret, refuses them.
	Signer *secret.Signer
}

// publishes adds the published routes for executions, with the paths, bodies, codes and both error
// formats of the published documents.
func (s *Server) publishes(mux *routes) {
	mux.Handle("GET /api/v1/executions", s.published(ScopeRead, s.listExecutions))
	mux.Handle("GET /api/v1/executions/{id}", s.published(ScopeRead, s.getExecution))
	mux.Handle("POST /api/v1/executions", s.published(ScopeSubmit, s.requestExecution))
	mux.Handle("POST /api/v1/executions/execute", s.published(ScopeSubmit, s.requestExecution))
	mux.Handle("POST /api/v1/events", s.guarded(ScopeSubmit, s.sameSite(s.answer(s.emit))))
	readers := func(next http.Handler) http.Handler { return s.guarded(ScopeRead, next) }
	read := func(path string, handle func(*http.Request, *caller) (int, any, error)) {
		mux.Handle("GET "+path, s.published(ScopeRead, handle))
	}
	for _, status := range lifecycle.Statuses { // a pattern would collide with those of one execution
		read("/api/v1/executions/status/"+string(status),
			s.listBy("status", func(*http.Request) string { return string(status) }))
	}
	read("/api/v1/executions/stats", s.executionStats)
	read("/api/v1/enforcements/{id}/executions",
		s.listBy("enforcement", func(r *http.Request) string { return r.PathValue("id") }))
	if s.deps.Acts != nil {
		mux.Handle("POST /api/v1/executions/{id}/cancel", s.published(ScopeOperate, s.cancel))
		mux.Handle("/api/v1/executions/{id}/cancel", s.guarded(ScopeOperate, s.only(writeOnly)))
	}
	mux.Handle("/api/v1/executions", readers(s.only(readWrite)))
	mux.Handle("/api/v1/executions/{id}", readers(s.only(readOnly)))
}

// caller is the client of a published route. The zero caller came over loopback without a required
// token.
type caller struct {
	// claims are the claims of a published token, nil for a token of ours.
	claims *secret.Claims
	// executor is the identity that executions of this caller act for, nil for none.
	executor *int64
	// name is the name of a token of ours.
	name string
}

// published answers a route in the published format, if the token permits it.
func (s *Server) published(scope Scope,
	handle func(r *http.Request, by *caller) (code int, body any, err error),
) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		var code int
		var body any
		by, err := s.identify(r, scope)
		switch {
		case err != nil:
		case protection.Check(r) != nil:
			err = &statusError{http.StatusForbidden, "a page of another site may not act here"}
		case s.open() && !namesThisMachine(r.Host):
			err = &statusError{http.StatusForbidden, errOtherName.Error()}
		default:
			code, body, err = handle(r, by)
		}
		if err != nil {
			s.refusePublished(w, r, err)
			return
		}
		s.write(w, r, code, body)
	})
}

// open reports whether the published routes require no token: on loopback, while neither our tokens
// nor the secret of published ones are configured.
func (s *Server) open() bool {
	return s.loopback() && s.tokens == nil && !s.deps.Published.Signer.Ready()
}

// identify authenticates the sender of a request, or refuses the request.
func (s *Server) identify(r *http.Request, scope Scope) (*caller, error) {
	if s.open() {
		return &caller{}, nil
	}
	text := bearer(r)
	cookie := text == ""
	if cookie {
		text = loginCookie(r)
	}
	if !cookie {
		if own, ok := s.ownToken(r, text); ok {
			if err := s.limit(r, own.actor(), true); err != nil {
				return nil, err
			}
			if !slices.Contains(own.scopes, scope) {
				return nil, &statusError{
					http.StatusForbidden,
					"token " + own.name + " does not have the scope " + string(scope),
				}
			}
			return &caller{name: own.name}, nil
		}
	}
	claims, err := s.deps.Published.Signer.Verify(text)
	name := ""
	if err == nil {
		name = (&caller{claims: &claims}).actor()
	}
	if limited := s.limit(r, name, true); limited != nil {
		return nil, limited
	}
	switch {
	case text == "":
		return nil, unauthorized("Missing authentication token")
	case errors.Is(err, secret.ErrExpired):
		return nil, unauthorized("Authentication token has expired")
	case err != nil:
		return nil, unauthorized("Invalid authentication token")
	}
	return s.recognise(r, &claims, scope)
}

// bearer returns the token of a request, empty without one.
func bearer(r *http.Request) string {
	method, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(method, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

// accessCookie holds the access token of a browser login.
const accessCookie = "attune_access_token"

// loginCookie returns the token of a login, empty without one. Browsers also send cookies with
// requests of other sites' pages, so it permits reads only.
func loginCookie(r *http.Request) string {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return ""
	}
	cookie, err := r.Cookie(accessCookie)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// recognise checks the subject of a valid token. It refuses the tokens of ended executions, and of
// deleted or frozen identities, before they expire.
func (s *Server) recognise(r *http.Request, claims *secret.Claims, scope Scope) (*caller, error) {
	by := &caller{claims: claims}
	switch claims.Type {
	case secret.ExecutionToken:
		id := claims.Execution.ExecutionID
		row, err := s.deps.Published.Store.TokenExecution(r.Context(), id)
		if errors.Is(err, sql.ErrNoRows) || err == nil && row.Status.Terminal() {
			return nil, unauthorized("The execution of this token has ended")
		}
		if err != nil {
			return nil, fmt.Errorf("read execution %d of a token: %w", id, err)
		}
		by.executor = row.Executor
		return by, nil
	case secret.AccessToken:
		id, err := strconv.ParseInt(claims.Subject, 10, 64)
		if err != nil {
			return nil, unauthorized("Invalid authentication token")
		}
		frozen, err := s.deps.Published.Store.TokenIdentity(r.Context(), id)
		if errors.Is(err, sql.ErrNoRows) || err == nil && frozen {
			return nil, unauthorized("The identity of this token does not exist or is frozen")
		}
		if err != nil {
			return nil, fmt.Errorf("read identity %d of a token: %w", id, err)
		}
		by.executor = &id
		return by, nil
	case secret.SensorToken, secret.WorkerToken:
		if scope == ScopeRead {
			return by, nil
		}
		return nil, &statusError{http.StatusForbidden, "a " + string(claims.Type) + " token may only read executions"}
	}
	return nil, unauthorized("A refresh token does not authenticate requests")
}

// orPublished lets published tokens read on a route of ours, beside our own tokens.
func (s *Server) orPublished(next http.Handler) http.Handler {
	own := s.guarded(ScopeRead, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := s.deps.Published.Signer.Verify(cmp.Or(bearer(r), loginCookie(r)))
		if s.deps.Published.Store == nil || err != nil && (s.tokens != nil || s.open()) {
			own.ServeHTTP(w, r)
			return
		}
		_, err = s.identify(r, ScopeRead)
		switch limited, ok := errors.AsType[*tooManyError](err); {
		case err == nil:
			next.ServeHTTP(w, r)
		case ok:
			retryAfter(w, http.StatusTooManyRequests, limited)
			s.problem(w, r, http.StatusTooManyRequests, limited.Error())
		case s.tokens == nil:
			s.refuse(w, r, err.Error())
		default:
			own.ServeHTTP(w, r)
		}
	})
}

// unauthorized refuses a token; a 401 has its own published format.
func unauthorized(why string) error { return &statusError{http.StatusUnauthorized, why} }

// refusePublished writes an error in the published format.
func (s *Server) refusePublished(w http.ResponseWriter, r *http.Request, err error) {
	status, detail := s.statusOf(r, err)
	retryAfter(w, status, err)
	code := strings.ToUpper(strings.ReplaceAll(http.StatusText(status), " ", "_"))
	if _, invalid := errors.AsType[*submit.InvalidParamsError](err); invalid {
		code = "VALIDATION_ERROR"
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="attune"`)
		s.write(w, r, status, map[string]any{"error": map[string]any{"code": status, "message": detail}})
		return
	}
	s.write(w, r, status, map[string]any{"error": detail, "code": code})
}
