package broker

import (
	"bytes"
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

// credentials returns the login for the next request.
func (m *Management) credentials() (user, password string) {
	if m.login != nil {
		return m.login()
	}
	return m.user, m.password
}

// do makes one request that rabbit-hole lacks, and decodes its answer unless into is nil.
func (m *Management) do(ctx context.Context, method, path string, header http.Header, content []byte, into any) error {
	answer, err := m.ask(ctx, method, path, header, content)
	if into == nil {
		return err
	}
	broken := json.Unmarshal(answer, into) // the negative result of a health check has an answer, too
	if err == nil && broken != nil {
		return &ManagementError{StatusCode: http.StatusOK, Page: true, Reason: "no readable JSON: " + broken.Error()}
	}
	return err
}

// ask makes one request. The management plugin answers a read with 500 while a virtual host or its statistics are being
// created: the read is repeated.
func (m *Management) ask(
	ctx context.Context, method, path string, header http.Header, content []byte,
) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	for try := 0; ; try++ {
		answer, err = m.once(ctx, method, path, header, content)
		failure, _ := errors.AsType[*ManagementError](err)
		if failure == nil || failure.StatusCode != http.StatusInternalServerError || method != http.MethodGet ||
			try == len(retryPauses) {
			return answer, err
		}
		if !supervise.Sleep(ctx, retryPauses[try]) {
			return nil, ctx.Err()
		}
	}
}

// retryPauses are those before a read is repeated.
var retryPauses = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond}

// answerLimit bounds the size of one response.
const answerLimit = 64 << 20

func (m *Management) once(
	ctx context.Context, method, path string, header http.Header, content []byte,
) (answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, m.endpoint+"/api/"+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	user, password := m.credentials()
	request.SetBasicAuth(user, password)
	maps.Copy(request.Header, header)
	response, err := m.transport.RoundTrip(request)
	if err != nil {
		return nil, &ManagementError{Err: err}
	}
	defer func() { _ = response.Body.Close() }() // read to its end below
	if answer, err = io.ReadAll(io.LimitReader(response.Body, answerLimit)); err != nil {
		return nil, &ManagementError{Err: err}
	}
	failure := &ManagementError{StatusCode: response.StatusCode, User: user}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch page := kind == "text/html"; {
	case response.StatusCode >= 400 && page: // its text says less than the status
	case response.StatusCode >= 400:
		failure.Reason = reasonOf(answer)
	case response.StatusCode >= 300:
		failure.Reason = "to " + response.Header.Get("Location")
		if to, err := url.Parse(response.Header.Get("Location")); err == nil {
			failure.Reason = "to " + to.Redacted()
		}
	case page:
		failure.Page, failure.Reason = true, "a web page"
	default:
		return answer, nil
	}
	return answer, failure
}

// through runs one call of rabbit-hole.
func through[T any](ctx context.Context, m *Management, what string, call func(*rabbithole.Client) (T, error),
) (value T, err error) {
	client, err := rabbithole.NewTLSClient(m.endpoint, "", "", asked{ctx, m})
	if err == nil {
		value, err = call(client)
	}
	if failure, known := errors.AsType[*ManagementError](err); known {
		err = failure // without the words of the HTTP client
	} else if err != nil {
		err = &ManagementError{StatusCode: http.StatusOK, Page: true, Reason: "no readable JSON: " + err.Error()}
	}
	if err != nil {
		return value, fmt.Errorf("%s: %w", what, err)
	}
	return value, nil
}

// asked makes the requests of a client that knows no context, and closes every connection, like all others.
type asked struct {
	ctx context.Context //nolint:containedctx // that is its purpose; it lives for one call
	m   *Management
}

// RoundTrip implements http.RoundTripper.
func (a asked) RoundTrip(request *http.Request) (*http.Response, error) {
	var content []byte
	if request.Body != nil {
		var err error
		if content, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	path := strings.TrimPrefix(request.URL.String(), a.m.endpoint+"/api/")
	header := http.Header{"Content-Type": {"application/json"}}
	answer, err := a.m.ask(a.ctx, request.Method, path, header, content)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Body: io.NopCloser(bytes.NewReader(answer)), Header: http.Header{},
	}, nil
}

// get reads one resource of the API.
func get[T any](ctx context.Context, m *Management, what, path string) (value T, err error) {
	if err = m.do(ctx, http.MethodGet, path, nil, nil, &value); err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return value, nil
}

// within is the path of something in the virtual host.
func (m *Management) within(kind string, names ...string) string {
	path := kind + "/" + url.PathEscape(m.vhost)
	for _, name := range names {
		path += "/" + url.PathEscape(name)
	}
	return path
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
