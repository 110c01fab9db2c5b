package api

import (
	"net/http"

	"github.com/attune-go/attune/core/alerting"
)

// alerts lists the open alerts, recent ones, and the rules.
func (s *Server) alerts(r *http.Request) (any, error) {
	history, err := flag(r, "history")
	if err != nil {
		return nil, err
	}
	all, err := s.deps.View.Alerts(r.Context())
	if err != nil {
		return nil, err
	}
	if !history {
		all.Recent = []alerting.Alert{}
	}
	return all, nil
}
