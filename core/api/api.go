// Package api is the engine's HTTP API: liveness, readiness, metrics, what people read, and the actions of operators.
//
// /healthz answers while the process runs. /readyz answers 200 if every check passes and 503
// otherwise, with the failed checks and their reasons, in both cases as JSON. /metrics is the
// Prometheus registry. Below /api/v1 a result is {"data": …} and an error
// application/problem+json; the document /api/v1/openapi.yaml describes all of it. Every change is
// a POST, and runs the same code, with the same audit, as the command line. A GET on the path of a
// bulk action answers its plan.
//
// # Access
//
// /healthz and /readyz need no token wherever the server listens, because monitoring has no
// secrets. Beyond loopback /readyz omits the details of its checks, which may hold addresses.
// Beyond loopback everything else needs a bearer token, /metrics included. On loopback /metrics
// needs none, and the rest needs a token as soon as a file of tokens is configured. Missing paths
// need one like existing paths. Reads need the scope read, actions the scope operate; the audit
// names the token. A page of another site cannot act through a browser, even on loopback without
// tokens. Answers without a token on loopback require the name of this machine as the host;
// /healthz and /readyz accept any. Each token, and each address without a valid one, has a rate of
// requests (see rates.go).
//
// # Published executions
//
// Operations on executions have the formats of the published API, and accept its tokens beside
// ours (see published.go). Secret values are never shown.
//
// # On failure
//
// An unreachable database is a 503 with Retry-After. Internal errors are logged and not returned.
package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/triage"
)

// Check is one line of /readyz.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// Deps is what the server shows.
type Deps struct {
	// Ready runs the readiness checks. Its context ends with the request.
	Ready    func(ctx context.Context) []Check
	Gatherer prometheus.Gatherer
	Logger   *slog.Logger
	// View answers the reads below /api/v1; nil disables them.
	View View
	// Acts performs the actions below /api/v1, in the name of the client; nil disables them.
	Acts *triage.Triage
	// Published serves the published routes for executions; without a store they do not exist.
	Published Published
	// Rates limits the requests of clients.
	Rates Rates
	// Traces takes the spans of requests; nil without tracing.
	Traces Traces
	// TokensFile names the file of bearer tokens; empty without tokens.
	TokensFile string
	// CertFile and KeyFile are the PEM files of the certificate; empty is HTTP without TLS.
	// The server reads them again when they change.
	CertFile, KeyFile string
	// AnyPort takes a free port when that of the address is taken.
	AnyPort bool
	// About returns additional fields of /healthz; nil adds none.
	About func() map[string]any
	// Setting names the setting of the address; default executor.http.listen.
	Setting string
}

// Server is the HTTP listener, a supervise.Service. With an empty address it does not listen.
type Server struct {
	supervise.Base

	address  string
	deps     Deps
	tokens   *Tokens // nil without a file
	listener net.Listener
	server   *http.Server
	limiter  *limiter
	large    chan struct{} // has an element for each large answer that is being read
	failures quiet         // of the log
	limited  quiet         // of the log
	timeouts timeouts
}

// New makes a server for an address like 127.0.0.1:8080; port 0 is any free port.
func New(address string, deps Deps) *Server {
	return &Server{
		address: address, deps: deps, limiter: newLimiter(deps.Rates), large: make(chan struct{}, largeAtOnce),
		timeouts: timeouts{
			header: headerTimeout, read: requestTimeout, write: 2 * requestTimeout, idle: time.Minute,
		},
	}
}

const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 10 * time.Second
	// maxHeader bounds the line and the headers of a request.
	maxHeader = 64 << 10
)

// timeouts bound the parts of a request, and the time between two requests of a connection.
type timeouts struct{ header, read, write, idle time.Duration }

// ErrAddressTaken reports that another process listens on the address.
var ErrAddressTaken = errors.New("another process listens there: choose another port, port 0 takes any free one")

// Start implements supervise.Service. It fails if the address is taken, unless AnyPort is set.
func (s *Server) Start(ctx context.Context) error {
	return s.Launch(ctx, s.listen, s.serve)
}

func (s *Server) listen(ctx context.Context) error {
	if s.address == "" {
		return nil
	}
	if s.deps.TokensFile != "" {
		tokens, err := LoadTokens(s.deps.TokensFile, s.deps.Logger)
		if err != nil {
			return err
		}
		s.tokens = tokens
	}
	var certs *tls.Config
	if s.deps.CertFile != "" || s.deps.KeyFile != "" {
		var err error
		if certs, err = loadCertificates(s.deps.CertFile, s.deps.KeyFile, s.deps.Logger); err != nil {
			return err
		}
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.address)
	if taken := errors.Is(err, syscall.EADDRINUSE); taken && s.deps.AnyPort {
		listener, err = s.listenAnywhere(ctx)
	} else if taken {
		err = ErrAddressTaken // the system's error adds only the port's number
	}
	if err != nil {
		return fmt.Errorf("listen for HTTP on %s (%s): %w", s.address, cmp.Or(s.deps.Setting, "executor.http.listen"),
			err)
	}
	s.listener = listener
	s.server = &http.Server{
		Handler: s.Handler(), TLSConfig: certs, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: s.timeouts.header,
		ReadTimeout: s.timeouts.read, WriteTimeout: s.timeouts.write, IdleTimeout: s.timeouts.idle,
		ErrorLog: slog.NewLogLogger(s.deps.Logger.Handler(), slog.LevelDebug),
	}
	return nil
}

// listenAnywhere listens on a free port of the wanted host.
func (s *Server) listenAnywhere(ctx context.Context) (net.Listener, error) {
	host, _, err := net.SplitHostPort(s.address)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	s.deps.Logger.WarnContext(ctx, "Default HTTP port taken, listening on a free one",
		"default", s.address, "http", listener.Addr().String())
	return listener, nil
}

func (s *Server) serve(ctx context.Context) {
	if s.server == nil {
		<-ctx.Done()
		return
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), headerTimeout)
		defer cancel()
		if err := s.server.Shutdown(ctx); err != nil {
			s.deps.Logger.DebugContext(ctx, "HTTP requests cut off at shutdown", "error", err)
			s.server.Close() //nolint:errcheck // the server is done
		}
	}()
	serve := s.server.Serve
	if s.server.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.server.ServeTLS(l, "", "") }
	}
	if err := serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.deps.Logger.ErrorContext(ctx, "HTTP stopped", "error", err)
	}
	<-stopped
}

// Addr is the address on which the server listens, empty if it does not.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Handler is the server's routing, with the access rules of its address.
func (s *Server) Handler() http.Handler {
	mux := &routes{ServeMux: http.NewServeMux()}
	s.register(mux)
	return s.fence(s.traced(mux))
}

// routes is a ServeMux that knows its patterns.
type routes struct {
	*http.ServeMux

	patterns []string
}

// Handle adds a route.
func (m *routes) Handle(pattern string, handler http.Handler) {
	m.patterns = append(m.patterns, pattern)
	m.ServeMux.Handle(pattern, handler)
}

// HandleFunc adds a route.
func (m *routes) HandleFunc(pattern string, handle func(http.ResponseWriter, *http.Request)) {
	m.Handle(pattern, http.HandlerFunc(handle))
}

func (s *Server) register(mux *routes) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{}
		if s.deps.About != nil {
			answer = s.deps.About()
		}
		answer["status"] = "ok"
		s.write(w, r, http.StatusOK, answer)
	})
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", s.remote(ScopeRead, promhttp.HandlerFor(s.deps.Gatherer, promhttp.HandlerOpts{})))
	for _, open := range []string{"/healthz", "/readyz"} {
		mux.HandleFunc(open, s.only(readOnly))
	}
	mux.Handle("/metrics", s.remote(ScopeRead, s.only(readOnly)))
	if s.deps.View != nil {
		s.reads(mux)
	}
	if s.deps.Acts != nil {
		s.acts(mux)
	}
	if s.deps.Published.Store != nil {
		s.publishes(mux)
	}
	mux.Handle("/", s.guarded(ScopeRead, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.problem(w, r, http.StatusNotFound, "there is no "+r.Method+" on this path")
	})))
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), headerTimeout)
	defer cancel()
	checks := s.deps.Ready(ctx)
	code, status := http.StatusOK, "ready"
	open := s.loopback() && namesThisMachine(r.Host)
	for i, check := range checks {
		if !check.OK {
			code, status = http.StatusServiceUnavailable, "not ready"
		}
		if !open {
			checks[i].Detail = ""
		}
	}
	s.write(w, r, code, map[string]any{"status": status, "checks": checks})
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, code int, body any) {
	s.send(w, r, code, "application/json", body)
}

func (s *Server) send(w http.ResponseWriter, r *http.Request, code int, kind string, body any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // people read the JSON
	if err := encoder.Encode(body); err != nil {
		s.deps.Logger.DebugContext(r.Context(), "Answer could not be written", "path", r.URL.Path, "error", err)
	}
}

var _ supervise.Service = (*Server)(nil)
