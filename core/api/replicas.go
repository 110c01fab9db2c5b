package api

import "net/http"

// replicas lists the replicas of the engine as they report themselves.
func (s *Server) replicas(r *http.Request) (any, error) {
	return s.deps.View.Replicas(r.Context())
}
