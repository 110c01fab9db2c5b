package broker

import (
	"io"
	"net/http"
	"time"

	"github.com/attune-go/attune/core/supervise"
)

// retrier repeats a read that the management plugin answers with 500, which it does while a virtual
// host or its statistics are being created. It passes on every other response, even a 503, which is
// the negative result of a health check.
type retrier struct{ transport http.RoundTripper }

// Pauses before a read is repeated.
var retryPauses = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond}

// RoundTrip implements http.RoundTripper.
func (p retrier) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.transport.RoundTrip(request)
	for _, pause := range retryPauses {
		if err != nil || request.Method != http.MethodGet || response.StatusCode != http.StatusInternalServerError {
			break
		}
		// so that the connection can be used again
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, answerLimit))
		_ = response.Body.Close()
		if !supervise.Sleep(request.Context(), pause) {
			return nil, request.Context().Err()
		}
		response, err = p.transport.RoundTrip(request.Clone(request.Context()))
	}
	return response, err
}
