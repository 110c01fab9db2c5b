package broker

import (
	"io"
	"net/http"
	"time"

	"github.com/attune-go/attune/core/supervise"
)

// patient asks again when the management plugin stumbles over a question that
// changes nothing: it answers 500 while a virtual host or its statistics are
// only half there. Every other answer is passed on as it is; a 503 among them,
// which is how a health check says no.
type patient struct{ transport http.RoundTripper }

// Pauses before a question is asked again.
var patientPauses = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond}

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.transport.RoundTrip(request)
	for _, pause := range patientPauses {
		if err != nil || request.Method != http.MethodGet || response.StatusCode != http.StatusInternalServerError {
			break
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, answerLimit)) // so that the connection can be used again
		_ = response.Body.Close()
		if !supervise.Sleep(request.Context(), pause) {
			return nil, request.Context().Err()
		}
		response, err = p.transport.RoundTrip(request.Clone(request.Context()))
	}
	return response, err
}
