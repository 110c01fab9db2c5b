package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// Without tokens only requests under the name of this machine are answered.
func TestWithoutTokensOtherNamesAreRefused(t *testing.T) {
	t.Parallel()
	server := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), View: noView{}, Ready: failing,
		Published: publishedOver(&store.Store{}),
	})
	handler := server.Handler()
	for path, codes := range map[string][2]int{
		"/api/v1/queues": {http.StatusOK, http.StatusForbidden}, "/metrics": {http.StatusOK, http.StatusForbidden},
		"/api/v1/executions/x": {http.StatusBadRequest, http.StatusForbidden},
		"/nowhere":             {http.StatusNotFound, http.StatusForbidden},
		"/healthz":             {http.StatusOK, http.StatusOK},
		"/readyz":              {http.StatusServiceUnavailable, http.StatusServiceUnavailable},
	} {
		for i, host := range []string{"localhost:8080", "evil.example"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			require.Equal(t, codes[i], w.Code, "%s of %s: %s", path, host, w.Body)
			require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), path)
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"), path)
			if path == "/readyz" {
				require.Equal(t, i == 0, strings.Contains(w.Body.String(), "10.0.0.7"), "details are for this machine")
			}
		}
	}
}

// failingView fails every reading.
type failingView struct{ api.View }

func (failingView) Queues(context.Context, monitor.QueueFilter) (*monitor.Queues, error) {
	return nil, errors.New("the reading is broken")
}

// Failing requests log one line a second, with the number of skipped ones.
func TestFailingRequestsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		handler := api.New("127.0.0.1:0", api.Deps{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Gatherer: telemetry.NewRegistry(), View: failingView{},
		}).Handler()
		fail := func(n int) {
			for range n {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet,
					"http://127.0.0.1/api/v1/queues", http.NoBody))
				require.Equal(t, http.StatusInternalServerError, w.Code)
			}
		}
		fail(500)
		require.Equal(t, 1, strings.Count(log.String(), "A request could not be answered"), log.String())
		time.Sleep(time.Second)
		fail(1)
		require.Equal(t, 2, strings.Count(log.String(), "A request could not be answered"), log.String())
		require.Contains(t, log.String(), "skipped=499")
	})
}

// certificate writes a new certificate for 127.0.0.1 and returns its number.
func certificate(t *testing.T, certFile, keyFile string, number int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "attune"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	// Each is replaced in one step, as tools that renew certificates do.
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile:  {Type: "PRIVATE KEY", Bytes: raw},
	} {
		require.NoError(t, os.WriteFile(file+".new", pem.EncodeToMemory(block), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
}

// HTTP is served with TLS only. A new certificate is used from the next connection on; unreadable files leave the old
// one in force.
func TestCertificatesAreReadAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	deps := api.Deps{Logger: testkit.Logger(t), Gatherer: telemetry.NewRegistry(), CertFile: cert, KeyFile: key}
	require.ErrorContains(t, api.New("127.0.0.1:0", deps).Start(t.Context()), "executor.http.tls_cert_file")
	certificate(t, cert, key, 1)
	server := api.New("127.0.0.1:0", deps)
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)

	served := func() int64 {
		t.Helper()
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp",
			server.Addr())
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close()) }()
		secured, ok := conn.(*tls.Conn)
		require.True(t, ok)
		require.GreaterOrEqual(t, secured.ConnectionState().Version, uint16(tls.VersionTLS12))
		return secured.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, served())
	certificate(t, cert, key, 2)
	require.EqualValues(t, 2, served())
	require.NoError(t, os.WriteFile(cert, []byte("no certificate"), 0o600))
	require.EqualValues(t, 2, served(), "the old one stays in force")
	certificate(t, cert, key, 3)
	require.EqualValues(t, 3, served())

	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	for address, want := range map[string]int{
		"https://" + server.Addr(): http.StatusOK,
		"http://" + server.Addr():  http.StatusBadRequest,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/healthz", nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, address)
	}
}
