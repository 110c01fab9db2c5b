package engine_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/lab/testkit"
)

// Alerts are raised, served and measured by the rules of the configuration, and cleared when their condition is
// over.
func TestAReplicaEvaluatesTheAlerts(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "demo.sleep")
	testkit.State(t, b.store, action, 3, func(r *testkit.StateRow) { r.Queued, r.Paused = 4, true })
	e := b.engine(t, func(c *config.Config) {
		c.Executor.HTTP.Listen = "127.0.0.1:0"
		c.Alerts["no_active_workers"].For = 0
		c.Alerts["forgotten_pause"] = &config.AlertRule{
			Enabled: true, Measure: "queue_paused", Above: 3,
			Severity: "warning", Target: "demo.sleep",
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+e.Addr()+path, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return string(body)
	}
	states := func() (found map[string]string, evaluated bool) {
		var answer struct {
			Data struct {
				Evaluated bool `json:"evaluated"`
				Open      []struct {
					Rule  string `json:"rule"`
					State string `json:"state"`
				} `json:"open"`
			} `json:"data"`
		}
		require.NoError(t, json.Unmarshal([]byte(get("/api/v1/alerts")), &answer))
		found = map[string]string{}
		for _, one := range answer.Data.Open {
			found[one.Rule] = one.State
		}
		return found, answer.Data.Evaluated
	}
	testkit.Eventually(t, func() bool {
		found, evaluated := states()
		return evaluated && found["forgotten_pause"] == "firing" && found["no_active_workers"] == "firing"
	}, 30*time.Second)
	testkit.Eventually(t, func() bool {
		return strings.Contains(get("/metrics"), `attune_alerts_firing{rule="forgotten_pause",severity="warning"} 1`)
	}, 30*time.Second)
	metrics := get("/metrics")
	require.Contains(t, metrics, `attune_measure{measure="active_workers",target=""} 0`)
	require.Contains(t, metrics, "attune_dead_letter_queue_depth 0")
	require.Contains(t, metrics, `attune_alerts_firing{rule="dlq_routes_lost",severity="critical"} 0`)
	require.NotContains(t, metrics, `attune_measure{measure="unmeasured",target="`, "everything can be measured")

	b.worker(t, "w1", 1)
	testkit.Eventually(t, func() bool { found, _ := states(); return found["no_active_workers"] == "" }, 30*time.Second)
	require.Equal(t, 1, testkit.Count(t, b.store,
		`select count(*) from alert where rule = 'no_active_workers' and cleared is not null`))
}
