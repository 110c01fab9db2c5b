package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
)

// limited is a server that others reach, with the tokens ann and bot, which may read.
func limited(t *testing.T, rates api.Rates, logger *slog.Logger) *api.Server {
	t.Helper()
	deps := publishedOver(&store.Store{})
	deps.Signer = secret.NewSigner([]byte(jwtSecret))
	server := api.New("192.0.2.7:8080", api.Deps{
		Logger: logger, Gatherer: telemetry.NewRegistry(), View: noView{}, Ready: readyNow, Rates: rates,
		Published: deps,
	})
	tokens, err := api.LoadTokens(tokenFile(t, "ann read "+hash("s3cret")+"\nbot read "+hash("other")), logger)
	require.NoError(t, err)
	server.UseTokens(tokens)
	return server
}

// from sends a request from an address.
func from(t *testing.T, handler http.Handler, address, path, secret string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	r.RemoteAddr = address
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// A busy token is refused until its bucket has refilled. Other tokens, metrics and health are not affected.
func TestATokenHasARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		handler := limited(t, api.Rates{PerToken: 5, Unauthorized: 1}, logger).Handler()
		get := func(path, secret string) *httptest.ResponseRecorder {
			return from(t, handler, "198.51.100.1:999", path, secret)
		}
		for range 10 { // two seconds of the rate at once
			require.Equal(t, http.StatusOK, get("/api/v1/queues", "s3cret").Code)
		}
		for range 3 {
			w := get("/api/v1/queues", "s3cret")
			require.Equal(t, http.StatusTooManyRequests, w.Code)
			require.Equal(t, "1", w.Header().Get("Retry-After"))
			require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
			require.JSONEq(t, `{"type": "about:blank", "title": "Too Many Requests", "status": 429,
				"detail": "too many requests: try again in 1 s", "instance": "/api/v1/queues"}`, w.Body.String())
		}
		w := get("/api/v1/executions/x", "s3cret")
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.JSONEq(t, `{"error": "too many requests: try again in 1 s", "code": "TOO_MANY_REQUESTS"}`, w.Body.String(),
			"published routes have their own form")
		for path, secret := range map[string]string{
			"/metrics": "s3cret", "/healthz": "", "/readyz": "", "/api/v1/queues": "other",
		} {
			require.Equal(t, http.StatusOK, get(path, secret).Code, path)
		}
		require.Equal(t, 1, strings.Count(log.String(), "A client exceeds its rate of requests"), log.String())
		require.Contains(t, log.String(), `token="token ann"`)

		time.Sleep(time.Second)
		for range 5 {
			require.Equal(t, http.StatusOK, get("/api/v1/queues", "s3cret").Code)
		}
		require.Equal(t, http.StatusTooManyRequests, get("/api/v1/queues", "s3cret").Code)
	})
}

// An address that guesses gets a few answers a second, and none about a right guess beyond these. A token that it has
// used before is not locked out, as behind a proxy, and other addresses do not notice.
func TestGuessingATokenIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handler := limited(t, api.Rates{Unauthorized: 3}, telemetry.Discard()).Handler()
		const proxy, other = "198.51.100.1:999", "198.51.100.2:999"
		code := func(address, path, secret string) int { return from(t, handler, address, path, secret).Code }
		require.Equal(t, http.StatusOK, code(proxy, "/api/v1/queues", "s3cret"))
		answers := map[int]int{}
		for i := range 100 {
			path := []string{
				"/api/v1/queues", "/metrics", "/api/v1/executions/1", "/nowhere",
				"/api/v1/actions/a.b/queue-stats",
			}[i%5]
			answers[code("198.51.100.1:"+fmt.Sprint(1000+i), path, fmt.Sprint("guess", i))]++
		}
		require.Equal(t, map[int]int{http.StatusUnauthorized: 6, http.StatusTooManyRequests: 94}, answers)
		require.Equal(t, http.StatusTooManyRequests, code(proxy, "/api/v1/queues", "other"), "a right guess")
		require.Equal(t, http.StatusTooManyRequests, code(proxy, "/api/v1/executions/x", "other"))
		require.Equal(t, http.StatusOK, code(proxy, "/api/v1/queues", "s3cret"), "it was used here before")
		require.Equal(t, http.StatusOK, code(proxy, "/metrics", "s3cret"))
		require.Equal(t, http.StatusOK, code(proxy, "/healthz", ""))
		require.Equal(t, http.StatusUnauthorized, code(other, "/api/v1/queues", ""))
		require.Equal(t, http.StatusOK, code(other, "/api/v1/queues", "other"))

		time.Sleep(time.Second)
		require.Equal(t, http.StatusOK, code(proxy, "/api/v1/queues", "other"))
	})
}

// However many addresses send requests, a bounded number is remembered; the hosts of one IPv6 network are one client.
func TestLimitsRememberABoundedNumberOfClients(t *testing.T) {
	t.Parallel()
	server := limited(t, api.Rates{PerToken: 1, Unauthorized: 1}, telemetry.Discard())
	handler := server.Handler()
	for i := range 3 * api.MaxClients {
		from(t, handler, fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "/api/v1/queues", "wrong")
		require.LessOrEqual(t, server.Clients(), api.MaxClients)
	}
	require.Equal(t, api.MaxClients, server.Clients())
	codes := map[int]int{}
	for i := range 20 {
		codes[from(t, handler, fmt.Sprintf("[2001:db8::%x]:1", i+1), "/api/v1/queues", "wrong").Code]++
	}
	require.Positive(t, codes[http.StatusTooManyRequests], "%v", codes)
}

// Without limits, and where no token is required, requests are not counted.
func TestWithoutLimitsNoRequestIsRefused(t *testing.T) {
	t.Parallel()
	off := limited(t, api.Rates{}, telemetry.Discard())
	open := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), View: noView{},
		Rates: api.Rates{PerToken: 1, Unauthorized: 1}, Published: publishedOver(&store.Store{}),
	})
	for server, want := range map[*api.Server]int{off: http.StatusUnauthorized, open: http.StatusOK} {
		handler := server.Handler()
		for range 100 {
			require.Equal(t, want, from(t, handler, "127.0.0.1:1", "http://127.0.0.1/api/v1/queues", "").Code)
			code := from(t, handler, "127.0.0.1:1", "http://127.0.0.1/api/v1/executions/x", "").Code
			require.NotEqual(t, http.StatusTooManyRequests, code)
		}
		require.Zero(t, open.Clients())
	}
}

// A published token has a rate of its own, also on our route that accepts it.
func TestAPublishedTokenHasARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := limited(t, api.Rates{PerToken: 2, Unauthorized: 5}, telemetry.Discard())
		issued := published(t, secret.SensorToken, "core.timer")
		handler := server.Handler()
		codes := map[int]int{}
		for range 50 {
			codes[from(t, handler, "198.51.100.1:1", "/api/v1/executions/x", issued).Code]++
		}
		require.Equal(t, map[int]int{http.StatusBadRequest: 4, http.StatusTooManyRequests: 46}, codes)
		w := from(t, handler, "198.51.100.1:1", "/api/v1/actions/a.b/queue-stats", issued)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.NotEmpty(t, w.Header().Get("Retry-After"))
	})
}

// Headers are bounded in size and in time, and so are bodies.
func TestSlowAndHugeRequestsAreCutOff(t *testing.T) {
	t.Parallel()
	deps := api.Deps{Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), View: noView{}, Ready: readyNow}
	begin := func(timeout time.Duration) func(text string) (*http.Response, error) {
		server := api.New("127.0.0.1:0", deps)
		server.SetTimeouts(timeout, timeout, timeout)
		require.NoError(t, server.Start(t.Context()))
		t.Cleanup(server.Stop)
		return func(text string) (*http.Response, error) {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Addr())
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close()) }()
			require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
			_, err = conn.Write([]byte(text))
			require.NoError(t, err)
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				require.NoError(t, answer.Body.Close())
			}
			return answer, err
		}
	}
	server := api.New("127.0.0.1:0", deps)
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	header, read, write := server.Timeouts()
	require.Equal(t, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second},
		[]time.Duration{header, read, write})

	// A pause of this process must not exceed the timeouts of requests that are answered.
	send := begin(time.Minute)
	answer, err := send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + strings.Repeat("x", 2*api.MaxHeader))
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
	answer, err = send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode)

	answer, err = begin(50 * time.Millisecond)("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Sl")
	if err == nil { // the server may say why before it closes the connection
		require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	}
}

// A body that never ends does not hold a handler longer than the timeout of a request.
func TestASlowBodyIsCutOff(t *testing.T) {
	t.Parallel()
	server := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Published: publishedOver(&store.Store{}),
	})
	server.SetTimeouts(time.Minute, 200*time.Millisecond, time.Minute) // only the body is late
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	conn, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), "tcp", server.Addr())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = fmt.Fprint(conn, "POST /api/v1/executions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
		"Content-Length: 1000\r\n\r\n{\"action_ref\":")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	var body map[string]any
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&body))
	require.Equal(t, "the body could not be read", body["error"])
}
