package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/attune-go/attune/core/supervise"
)

// ManagementError is an unsuccessful response of the management API.
type ManagementError struct {
	StatusCode int
	Reason     string
	// User is the login of the request.
	User string
	// Page says that the response is not one of a management API, such as a web page.
	Page bool
	// Err is why there was no response.
	Err error
}

// Unwrap returns why there was no response.
func (e *ManagementError) Unwrap() error { return e.Err }

// Error implements error.
func (e *ManagementError) Error() string {
	if e.Err != nil {
		return "ask the management API: " + e.Err.Error()
	}
	return fmt.Sprintf("the management API answered %d %s: %s", e.StatusCode, http.StatusText(e.StatusCode), e.Reason)
}

// Is makes errors.Is(err, ErrNotFound) true for a missing object.
func (e *ManagementError) Is(target error) bool {
	return target == ErrNotFound && e.StatusCode == http.StatusNotFound
}

// ErrNotFound matches errors about a missing object.
var ErrNotFound = errors.New("not found by the management API")

// Management reads and changes one virtual host through the management API. Its data is up to ten
// seconds old, unlike QueueState. It is safe for concurrent use; call Close when done.
type Management struct {
	endpoint  string
	host      string
	login     func() (user, password string) // reads the two below again; nil if they stay
	user      string
	password  string
	vhost     string
	timeout   time.Duration
	transport *http.Transport
	others    []string // addresses of further nodes
}

// NewManagement makes a client for a URL with credentials, such as http://user:secret@host:15672. The
// URL may name several nodes, separated by commas: the next one is used while one does not answer.
// Each call ends after the timeout or with its context.
func NewManagement(rawURL, vhost string, timeout time.Duration) (*Management, error) {
	each := nodes(rawURL)
	parsed, err := url.Parse(each[0])
	if err != nil {
		return nil, errors.New("the management URL cannot be read") // err would repeat its password
	}
	if parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, errors.New("the management URL needs http or https and a host")
	}
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	m := &Management{
		host: parsed.Hostname(), user: parsed.User.Username(), vhost: vhost, timeout: timeout,
		transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
			TLSHandshakeTimeout: timeout,
		},
	}
	m.password, _ = parsed.User.Password()
	parsed.User = nil
	for _, node := range each[1:] {
		other, err := url.Parse(node)
		if err != nil {
			return nil, errors.New("the management URL cannot be read")
		}
		port := map[string]string{"http": "80", "https": "443"}[other.Scheme]
		m.others = append(m.others, net.JoinHostPort(other.Hostname(), cmp.Or(other.Port(), port)))
		m.transport.DialContext = m.dial
	}
	m.endpoint = strings.TrimSuffix(strings.TrimSuffix(parsed.String(), "/"), "/api")
	return m, nil
}

// dial connects to an address, or to a further node if it does not answer. The nodes share the timeout.
func (m *Management) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: m.timeout / time.Duration(1+len(m.others))}
	var errs []error
	for _, node := range append([]string{address}, m.others...) {
		conn, err := dialer.DialContext(ctx, network, node)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Close ends idle connections; the client can still be used.
func (m *Management) Close() { m.transport.CloseIdleConnections() }

// contextTransport adds a context to the requests of a client that has none, and keeps their
// connections alive, which that client forbids.
type contextTransport struct {
	ctx       context.Context //nolint:containedctx // that is its purpose; it lives for one call
	transport http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c contextTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(c.ctx)
	request.Close = false
	return retrier{c.transport}.RoundTrip(request)
}

func (m *Management) client(ctx context.Context) (*rabbithole.Client, error) {
	user, password := m.credentials()
	return rabbithole.NewTLSClient(m.endpoint, user, password, contextTransport{ctx, m.transport})
}

// credentials returns the login for the next request.
func (m *Management) credentials() (user, password string) {
	if m.login != nil {
		return m.login()
	}
	return m.user, m.password
}

// through runs one rabbit-hole call with a deadline.
func through[T any](ctx context.Context, m *Management, what string,
	call func(*rabbithole.Client) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	var none T
	client, err := m.client(ctx)
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	value, err := call(client)
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, typed(err))
	}
	return value, nil
}

// typed converts rabbit-hole's errors to ours.
func typed(err error) error {
	var answer rabbithole.ErrorResponse
	if errors.As(err, &answer) {
		return &ManagementError{
			StatusCode: answer.StatusCode,
			Reason:     strings.TrimSpace(answer.Message + " " + answer.Reason),
		}
	}
	if _, known := errors.AsType[*ManagementError](err); known {
		return err
	}
	return &ManagementError{StatusCode: http.StatusOK, Page: true, Reason: "no readable JSON: " + err.Error()}
}

// foreign is the error of a response that no client of the API can read: a refused login, a redirect, a web page.
// Only a negative result of a health check is an answer with 503, and it is JSON.
func foreign(request *http.Request, response *http.Response) error {
	user, _, _ := request.BasicAuth()
	failure := &ManagementError{StatusCode: response.StatusCode, User: user}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch code := response.StatusCode; {
	case code >= 300 && code < 400:
		failure.Reason = "to " + response.Header.Get("Location")
		if to, err := url.Parse(response.Header.Get("Location")); err == nil {
			failure.Reason = "to " + to.Redacted()
		}
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code >= 300 && kind != "application/json":
		if kind == "text/html" {
			break // its text says less than the status
		}
		body, _ := io.ReadAll(io.LimitReader(response.Body, errorLimit)) // a part is enough
		failure.Reason = reasonOf(body)
	case code < 300 && kind == "text/html":
		failure.Page, failure.Reason = true, "a web page"
	default:
		return nil
	}
	return failure
}

// errorLimit bounds the body of an unsuccessful response.
const errorLimit = 4 << 10

// answerLimit bounds the size of one response.
const answerLimit = 64 << 20

// do makes one request that rabbit-hole lacks.
func (m *Management) do(ctx context.Context, method, path string, header http.Header, into any) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, m.endpoint+"/api/"+path, http.NoBody)
	if err != nil {
		return err
	}
	request.SetBasicAuth(m.credentials())
	maps.Copy(request.Header, header)
	response, err := retrier{m.transport}.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // read to its end below
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return &ManagementError{Err: err}
	}
	if response.StatusCode >= 300 {
		user, _, _ := request.BasicAuth()
		return &ManagementError{StatusCode: response.StatusCode, Reason: reasonOf(body), User: user}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return typed(err)
	}
	return nil
}

// get reads one resource of the API.
func get[T any](ctx context.Context, m *Management, what, path string) (value T, err error) {
	if err = m.do(ctx, http.MethodGet, path, nil, &value); err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return value, nil
}

// reasonOf finds the reason in the body of an error response.
func reasonOf(body []byte) string {
	var answer struct {
		Error  string `json:"error"`
		Reason any    `json:"reason"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return strings.TrimSpace(string(body[:min(len(body), 200)]))
	}
	if answer.Reason == nil {
		return answer.Error
	}
	return strings.TrimSpace(fmt.Sprint(answer.Error, " ", answer.Reason))
}

// retrier repeats a read that the management plugin answers with 500, which it does while a virtual
// host or its statistics are being created. It passes on every other response, even a 503, which is
// the negative result of a health check.
type retrier struct{ transport http.RoundTripper }

// retryPauses are those before a read is repeated.
var retryPauses = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond}

// RoundTrip implements http.RoundTripper.
func (r retrier) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.transport.RoundTrip(request)
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
		response, err = r.transport.RoundTrip(request.Clone(request.Context()))
	}
	if err != nil {
		return nil, &ManagementError{Err: err}
	}
	if err := foreign(request, response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}
