package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/telemetry"
)

func readyNow(context.Context) []api.Check { return []api.Check{{Name: "all", OK: true}} }

// failing is a check with an address in its detail.
func failing(context.Context) []api.Check {
	return []api.Check{{Name: "database", Detail: "10.0.0.7:5432 refused"}}
}

func TestBeyondLoopbackReadinessKeepsItsDetails(t *testing.T) {
	t.Parallel()
	for address, told := range map[string]bool{
		"0.0.0.0:0": false, "127.0.0.1:0": true, "localhost:0": true,
		"[::]:0": false,
	} {
		handler := api.New(address,
			api.Deps{Ready: failing, Gatherer: telemetry.NewRegistry(), Logger: telemetry.Discard()}).Handler()
		code, _, body := ask(t, handler, "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Contains(t, string(body), `"database"`)
		require.Equal(t, told, strings.Contains(string(body), "10.0.0.7"), address)
	}
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// noView has empty answers: only the guard is tested.
type noView struct{ api.View }

func (noView) Queues(context.Context, monitor.QueueFilter) (*monitor.Queues, error) {
	return &monitor.Queues{}, nil
}

func (noView) Scopes(context.Context, string) (*monitor.Scopes, error) { return &monitor.Scopes{}, nil }

// listening starts a server on the address and returns a function that sends requests.
func listening(t *testing.T, address, tokens string) func(path, secret string) int {
	t.Helper()
	server := api.New(address, api.Deps{
		Ready: readyNow, Gatherer: telemetry.NewRegistry(), Logger: telemetry.Discard(), View: noView{},
		TokensFile: tokens,
	})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(server.Stop)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return func(path, secret string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.Addr()+path, nil)
		require.NoError(t, err)
		if secret != "" {
			request.Header.Set("Authorization", "Bearer "+secret)
		}
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
}

func tokenFile(t testing.TB, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
	return path
}

func TestBeyondLoopbackEverythingButHealthNeedsAToken(t *testing.T) {
	t.Parallel()
	file := tokenFile(t, "\uFEFF# tokens of the test\r\n\nann read "+hash("s3cret")+"\r\nbot submit,operate "+hash("other")+"\n")
	get := listening(t, "0.0.0.0:0", file)
	for _, path := range []string{"/healthz", "/readyz"} {
		require.Equal(t, http.StatusOK, get(path, ""), path)
	}
	for _, path := range []string{"/metrics", "/api/v1/queues", "/api/v1/openapi.yaml"} {
		require.Equal(t, http.StatusUnauthorized, get(path, ""), path)
		require.Equal(t, http.StatusUnauthorized, get(path, "wrong"), path)
		require.Equal(t, http.StatusForbidden, get(path, "other"), "%s: the token may not read", path)
		require.Equal(t, http.StatusOK, get(path, "s3cret"), path)
	}
	require.Equal(t, http.StatusUnauthorized, get("/api/v1/nothing", ""), "unknown paths are not revealed either")
	require.Equal(t, http.StatusNotFound, get("/api/v1/nothing", "s3cret"))

	require.Equal(t, http.StatusUnauthorized, listening(t, "0.0.0.0:0", "")("/api/v1/queues", "s3cret"),
		"without tokens every request is refused")
}

func TestOnLoopbackTokensAreRequiredIfThereAreAny(t *testing.T) {
	t.Parallel()
	open := listening(t, "127.0.0.1:0", "")
	require.Equal(t, http.StatusOK, open("/api/v1/queues", ""))
	closed := listening(t, "127.0.0.1:0", tokenFile(t, "ann read "+hash("s3cret")))
	require.Equal(t, http.StatusUnauthorized, closed("/api/v1/queues", ""))
	require.Equal(t, http.StatusOK, closed("/api/v1/queues", "s3cret"))
	require.Equal(t, http.StatusOK, closed("/metrics", ""), "as it was")
}

func TestTokensAreReadAgainWhenTheirFileChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		file := tokenFile(t, "ann read "+hash("old"))
		tokens, err := api.LoadTokens(file, logger)
		require.NoError(t, err)
		server := api.New("127.0.0.1:0",
			api.Deps{Ready: readyNow, Gatherer: telemetry.NewRegistry(), Logger: logger, View: noView{}})
		server.UseTokens(tokens)
		handler := server.Handler()
		get := func(secret string) int { return from(t, handler, "127.0.0.1:1", "/api/v1/queues", secret).Code }
		require.Equal(t, http.StatusOK, get("old"))
		require.NoError(t, os.WriteFile(file, []byte("ann read "+hash("newer-one")+"\n"), 0o600))
		time.Sleep(time.Second)
		require.Equal(t, http.StatusOK, get("newer-one"))
		require.Equal(t, http.StatusUnauthorized, get("old"))

		require.NoError(t, os.WriteFile(file, []byte("ann everything\n"), 0o600))
		time.Sleep(time.Second)
		require.Equal(t, http.StatusOK, get("newer-one"), "an invalid file changes no token")
		require.Contains(t, log.String(), "the last ones stay in force")
	})
}

func TestAWrongFileOfTokensIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"ann read":                    ":1: a line has three fields",
		"ann look " + hash("x"):       `:1: scope "look" is unknown`,
		"\nann read s3cret":           ":2: the SHA-256 of token ann is not 64 hexadecimal digits",
		"ann read " + hash("x")[:60]:  "is not 64 hexadecimal digits",
		"ann read," + " " + hash("x"): `scope "" is unknown`,
	}
	for lines, want := range cases {
		_, err := api.LoadTokens(tokenFile(t, lines), telemetry.Discard())
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "s3cret", "it may be a token in the wrong place")
	}
	server := api.New("127.0.0.1:0",
		api.Deps{Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), TokensFile: "/nowhere/tokens"})
	require.ErrorContains(t, server.Start(t.Context()), "executor.http.tokens_file")
}
