package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHealth queries servers in every state.
func TestHealth(t *testing.T) {
	t.Parallel()
	answer := func(code int, body string) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				code = http.StatusNotFound
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		return server
	}
	call := func(environ []string, args ...string) (code int, stdout, stderr string) {
		var out, err strings.Builder
		code = execute(t.Context(), append([]string{"health"}, args...), environ, strings.NewReader(""), &out, &err)
		return code, out.String(), err.String()
	}

	ready := answer(http.StatusOK, `{"status":"ready","checks":[{"name":"database","ok":true}]}`)
	at := ready.Listener.Addr().String()
	code, out, _ := call(nil, "--address", at)
	require.Equal(t, exitDone, code)
	require.Equal(t, "ready\n", out)
	_, port, _ := strings.Cut(at, ":")
	code, _, _ = call([]string{
		"ATTUNE__EXECUTOR__HTTP__LISTEN=0.0.0.0:" + port, "ATTUNE__EXECUTOR__HTTP__TOKENS_FILE=/etc/attune/tokens",
	})
	require.Equal(t, exitDone, code, "a replica that listens on all addresses is queried on loopback")

	unwell := answer(http.StatusServiceUnavailable,
		`{"status":"not ready","checks":[{"name":"database","ok":true},{"name":"broker","ok":false,"detail":"connecting"}]}`)
	code, out, errors := call(nil, "--address", unwell.Listener.Addr().String(), "-o", "json")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, `"status": "not ready"`)
	require.Contains(t, errors, "/readyz is not ready: broker connecting\n")

	code, _, errors = call(nil, "--address", answer(http.StatusNotFound, `{}`).Listener.Addr().String())
	require.Equal(t, exitUnreachable, code)
	require.Contains(t, errors, "the answer is 404 Not Found")
	code, _, errors = call(nil, "--address", answer(http.StatusOK, `<html>`).Listener.Addr().String())
	require.Equal(t, exitUnreachable, code)
	require.Contains(t, errors, "read the answer of")
	code, _, errors = call(nil, "--address", "127.0.0.1:1") // another process may listen on the port of a closed server
	require.Equal(t, exitUnreachable, code)
	require.Contains(t, errors, "connection refused")

	code, _, errors = call(nil, "--address", "127.0.0.1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errors, `"127.0.0.1" is not HOST:PORT`)
	for listen, refusal := range map[string]string{
		"":            "executor.http.listen is empty",
		"127.0.0.1:0": "the replica takes a free port",
	} {
		path := filepath.Join(t.TempDir(), "attune.yaml")
		require.NoError(t, os.WriteFile(path, []byte("executor: {http: {listen: \""+listen+"\"}}\n"), 0o600))
		code, _, errors = call(nil, "--config", path)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errors, refusal)
	}
}

// The certificate of the replica is accepted although it names another host than loopback.
func TestHealthAcceptsTheCertificateOfTheReplica(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"ready","checks":[]}`))
	}))
	t.Cleanup(server.Close)
	var out, err strings.Builder
	code := execute(t.Context(), []string{"health"}, []string{
		"ATTUNE__EXECUTOR__HTTP__LISTEN=" + server.Listener.Addr().String(),
		"ATTUNE__EXECUTOR__HTTP__TLS_CERT_FILE=/etc/attune/tls.crt",
		"ATTUNE__EXECUTOR__HTTP__TLS_KEY_FILE=/etc/attune/tls.key",
	}, strings.NewReader(""), &out, &err)
	require.Equal(t, exitDone, code, err.String())
}
