package liveness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Limits of one request to a worker's health endpoint.
const (
	endpointTimeout = 2 * time.Second
	endpointBody    = 64 << 10
	endpointHops    = 3
)

// endpointResult is the result of one request to a worker's health endpoint.
type endpointResult struct {
	took time.Duration
	// answered is true when an HTTP response came, whatever its status.
	answered bool
	err      string // what is wrong, for users; empty if nothing is
}

// newClient makes the client for health endpoints: it uses no proxy, keeps few connections and
// follows no redirect to another host.
func newClient() *http.Client {
	transport := &http.Transport{
		MaxIdleConns: 64, MaxIdleConnsPerHost: 1, IdleConnTimeout: 2 * time.Minute,
		MaxResponseHeaderBytes: endpointBody,
	}
	return &http.Client{
		Transport: transport, Timeout: endpointTimeout,
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			if to.URL.Host != via[0].URL.Host || !web(to.URL) {
				return errors.New("leads to another host")
			}
			if len(via) > endpointHops {
				return errors.New("leads in circles")
			}
			return nil
		},
	}
}

func web(u *url.URL) bool { return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" }

// requestEndpoint requests the health endpoint of a worker. A response that names another worker id
// comes from another program.
func requestEndpoint(ctx context.Context, client *http.Client, address string, worker int64) *endpointResult {
	begin := time.Now()
	result := &endpointResult{}
	result.err = result.request(ctx, client, address, worker)
	result.took = time.Since(begin)
	return result
}

func (l *endpointResult) request(ctx context.Context, client *http.Client, address string, worker int64) string {
	target, err := url.Parse(address)
	if err != nil || !web(target) {
		return "is no http or https address"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return "is no http or https address"
	}
	response, err := client.Do(request)
	if err != nil {
		return "does not answer (" + short(err) + ")"
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, endpointBody+1))
	if err != nil {
		return "does not answer to the end (" + short(err) + ")"
	}
	if len(body) > endpointBody {
		l.answered = true
		return fmt.Sprintf("answers with more than %d bytes", endpointBody)
	}
	var said struct {
		Worker int64 `json:"worker_id"`
	}
	if json.Unmarshal(body, &said) == nil && said.Worker != 0 && said.Worker != worker {
		return fmt.Sprintf("is that of worker %d", said.Worker)
	}
	l.answered = true
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Sprintf("says %d", response.StatusCode)
	}
	return ""
}

// short is the innermost part of an error; the outer parts are always the same.
func short(err error) string {
	var timeout interface{ Timeout() bool }
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return "nothing within " + endpointTimeout.String()
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}
