package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/attune-go/attune/core/tracing"
)

// Traces is where the spans of requests go; tracing.Requests implements it.
type Traces interface {
	tracing.Sink
	// Sample begins a trace.
	Sample() tracing.Context
	// Begins returns the first span of the trace of a new row.
	Begins(ctx context.Context, kind tracing.Kind, row int64) (tracing.Context, error)
}

// tracedRequest is the span of a request before its end.
type tracedRequest struct{ links []tracing.Context }

type tracedKey struct{}

// traced gives requests below /api/v1 a span. It continues the trace of the client, and so do the
// executions and events that the request makes. Without a client's trace it is a trace of its own,
// linked to theirs.
func (s *Server) traced(next http.Handler) http.Handler {
	if s.deps.Traces == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/v1/") {
			next.ServeHTTP(w, r)
			return
		}
		begun := time.Now()
		at := s.deps.Traces.Sample()
		client := tracing.Parse(r.Header.Get(tracing.Header))
		ctx := r.Context()
		if client.Valid() {
			at = tracing.Context{Trace: client.Trace, Span: at.Span, Sampled: client.Sampled}
			ctx = tracing.With(ctx, client)
		}
		request := &tracedRequest{}
		inner := r.WithContext(context.WithValue(ctx, tracedKey{}, request))
		answer := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(answer, inner)
		route := inner.Pattern
		if route == "" {
			route = r.Method
		}
		span := tracing.Span{
			Context: at, Parent: client.Span, Name: route, Role: tracing.Server, Start: begun, End: time.Now(),
			Links: request.links,
			Attrs: []tracing.Attr{
				{Key: "http.request.method", Value: r.Method},
				{Key: "http.route", Value: route},
				{Key: "http.response.status_code", Value: int64(answer.code)},
			},
		}
		if answer.code >= http.StatusInternalServerError {
			span.Failure = http.StatusText(answer.code)
		}
		s.deps.Traces.Offer(span)
	})
}

// links links the span of a request to the trace of a row that it made.
func (s *Server) links(ctx context.Context, kind tracing.Kind, row int64) {
	request, ok := ctx.Value(tracedKey{}).(*tracedRequest)
	if !ok {
		return
	}
	at, err := s.deps.Traces.Begins(ctx, kind, row)
	if err != nil {
		s.deps.Logger.DebugContext(ctx, "Span of a request has no link", "error", err)
		return
	}
	request.links = append(request.links, at)
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter

	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap serves http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
