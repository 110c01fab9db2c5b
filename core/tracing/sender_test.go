package tracing_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func span() tracing.Span {
	return tracing.Span{
		Context: tracing.Context{Trace: tracing.RandomID(), Span: tracing.RandomSpan(), Sampled: true}, Name: "x",
		Role: tracing.Internal, Start: time.Now(), End: time.Now(),
	}
}

type counts struct{ registry *prometheus.Registry }

func (c counts) of(t *testing.T, outcome string) int {
	t.Helper()
	families, err := c.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if one.GetLabel()[0].GetValue() == outcome {
				return int(one.GetCounter().GetValue())
			}
		}
	}
	return 0
}

func newSender(t *testing.T, cfg tracing.Config) (*tracing.Sender, counts) {
	t.Helper()
	registry := prometheus.NewRegistry()
	s, err := tracing.NewSender(cfg, nil, telemetry.Discard(), tracing.NewMetrics(registry))
	require.NoError(t, err)
	return s, counts{registry}
}

// A full queue drops spans and counts them; nothing ever waits.
func TestAFullQueueDropsAndNeverBlocks(t *testing.T) {
	t.Parallel()
	s, spans := newSender(t, tracing.Config{Endpoint: "http://127.0.0.1:1", Ratio: 1})
	for range 5000 { // it has not started, as if the collector never answered
		s.Offer(span())
	}
	require.Equal(t, 5000-4096, spans.of(t, "dropped"))
	unsampled := span()
	unsampled.Context.Sampled = false
	s.Offer(unsampled)
	require.Equal(t, 5000-4096, spans.of(t, "dropped"), "unsampled spans do not count")
}

// A collector that was down gets the spans when it is back. Refused spans are dropped.
func TestSpansReachACollectorThatComesBack(t *testing.T) {
	t.Parallel()
	var answer atomic.Int64
	answer.Store(http.StatusServiceUnavailable)
	var asked atomic.Int64
	var token atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		token.Store(r.Header.Get("Authorization"))
		asked.Add(1)
		w.WriteHeader(int(answer.Load()))
	}))
	defer server.Close()
	headers := filepath.Join(t.TempDir(), "headers")
	require.NoError(t, os.WriteFile(headers, []byte("\uFEFF# a comment\r\n\r\nAuthorization: Bearer a:b\r\n"), 0o600))
	s, spans := newSender(t, tracing.Config{Endpoint: server.URL + "/", Ratio: 1, HeadersFile: headers})
	require.NoError(t, s.Start(t.Context()))
	defer s.Stop()
	s.Offer(span())
	eventually(t, func() bool { return asked.Load() > 0 })
	require.Zero(t, spans.of(t, "sent")+spans.of(t, "dropped"))
	answer.Store(http.StatusOK)
	eventually(t, func() bool { return spans.of(t, "sent") == 1 })
	require.Equal(t, "Bearer a:b", token.Load())
	answer.Store(http.StatusBadRequest)
	require.NoError(t, os.WriteFile(headers, []byte("Authorization: Bearer c:d\n"), 0o600))
	s.Offer(span())
	eventually(t, func() bool { return spans.of(t, "dropped") == 1 })
	require.Equal(t, "Bearer c:d", token.Load(), "the file is read again")
}

// The errors about a collector, which are logged, do not have the password in its address.
func TestNoPasswordOfTheCollectorIsLogged(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusBadRequest, 0} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
		}))
		defer server.Close()
		logged := make(chan string, 64)
		logger, err := telemetry.NewLogger(lines(logged), "debug", "json")
		require.NoError(t, err)
		s, err := tracing.NewSender(tracing.Config{
			Endpoint: strings.Replace(server.URL, "://", "://anna:geheim-word@", 1), Ratio: 1,
		}, nil, logger, tracing.NewMetrics(prometheus.NewRegistry()))
		require.NoError(t, err)
		require.NoError(t, s.Start(t.Context()))
		s.Offer(span())
		line := <-logged
		s.Stop()
		require.Contains(t, line, server.Listener.Addr().String())
		require.NotContains(t, line, "geheim")
	}
}

// lines passes on written lines, as long as there is room.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

// Stop sends queued spans.
func TestStopSendsQueuedSpans(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer server.Close()
	s, spans := newSender(t, tracing.Config{Endpoint: server.URL, Ratio: 1})
	require.NoError(t, s.Start(t.Context()))
	for range 700 {
		s.Offer(span())
	}
	s.Stop()
	require.Equal(t, 700, spans.of(t, "sent"))
}

func TestAWrongHeadersFileIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "headers")
	require.NoError(t, os.WriteFile(file, []byte("Authorization Bearer\n"), 0o600))
	for _, name := range []string{file, file + ".missing"} {
		_, err := tracing.NewSender(tracing.Config{Endpoint: "http://x", HeadersFile: name}, nil, telemetry.Discard(),
			nil)
		require.ErrorContains(t, err, "telemetry.headers_file")
	}
}

func eventually(t *testing.T, done func() bool) {
	t.Helper()
	require.Eventually(t, done, 30*time.Second, 10*time.Millisecond)
}
