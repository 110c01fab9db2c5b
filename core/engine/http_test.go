package engine_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/lab/testkit"
)

// A replica serves the queues of the API and their metrics.
func TestAReplicaServesQueuesAndTheirMetrics(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "demo.sleep")
	testkit.Policy(t, b.store, action, 3)
	testkit.State(t, b.store, action, 3)
	e := b.engine(t, func(c *config.Config) { c.Executor.HTTP.Listen = "127.0.0.1:0" })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+e.Addr()+path, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, string(body)
	}
	code, body := get("/api/v1/queues?action=demo")
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, `"action_ref":"demo.sleep"`)
	require.Contains(t, body, fmt.Sprintf(`"max_queued":%d`, 10_000), "the configuration reaches the view")
	testkit.Eventually(t, func() bool {
		_, body = get("/metrics")
		return strings.Contains(body, `attune_queue_limit{action="demo.sleep"} 3`)
	}, 20*time.Second)
}
