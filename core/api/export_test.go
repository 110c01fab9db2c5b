package api

import (
	"net/http"
	"time"
)

// Patterns are the patterns of all routes.
func (s *Server) Patterns() []string {
	mux := &routes{ServeMux: http.NewServeMux()}
	s.register(mux)
	return mux.patterns
}

// UseTokens makes the server require these tokens without listening.
func (s *Server) UseTokens(tokens *Tokens) { s.tokens = tokens }

// OpenAPI is the description of the whole API, as YAML.
func OpenAPI() []byte { return openAPI }

// Clients is how many clients the limiter remembers.
func (s *Server) Clients() int {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	return s.limiter.recent.Len()
}

// MaxClients is how many clients the limiter remembers at most.
const MaxClients = maxClients

// MaxHeader bounds the headers of a request.
const MaxHeader = maxHeader

// Timeouts are those of a request: for its headers, for all of it, and for its answer.
func (s *Server) Timeouts() (header, read, write time.Duration) {
	return s.server.ReadHeaderTimeout, s.server.ReadTimeout, s.server.WriteTimeout
}

// SetTimeouts sets the timeouts of the next start.
func (s *Server) SetTimeouts(header, read, idle time.Duration) {
	s.timeouts.header, s.timeouts.read, s.timeouts.idle = header, read, idle
}
