package api_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// TestAlertsAreServed: the open alerts, recent ones on request, and that no replica evaluates them.
func TestAlertsAreServed(t *testing.T) {
	st := testkit.Store(t)
	testkit.Exec(t, st, `insert into alert (rule, target, severity, summary, value, since, fired, cleared)
		values ('queue_length', 'demo.sleep', 'warning', 'demo.sleep 9000 deep', 9000, now() - interval '1 hour', now() - interval '1 hour', now())`)
	handler := handlerOver(t, st)
	type alert struct {
		Rule  string `json:"rule"`
		State string `json:"state"`
	}
	var answer struct {
		Data struct {
			Evaluated bool    `json:"evaluated"`
			Note      string  `json:"note"`
			Open      []alert `json:"open"`
			Recent    []alert `json:"recent"`
			Rules     []struct {
				Name string `json:"name"`
			} `json:"rules"`
		} `json:"data"`
	}
	code, _, body := ask(t, handler, "/api/v1/alerts")
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, json.Unmarshal(body, &answer))
	require.False(t, answer.Data.Evaluated)
	require.Contains(t, answer.Data.Note, "No replica of the engine evaluates")
	require.Equal(t, []alert{{"no_replica", "firing"}}, answer.Data.Open)
	require.Empty(t, answer.Data.Recent)
	require.NotEmpty(t, answer.Data.Rules)

	code, _, body = ask(t, handler, "/api/v1/alerts?history=true")
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, json.Unmarshal(body, &answer))
	require.Equal(t, []alert{{"queue_length", "cleared"}}, answer.Data.Recent)
	code, _, _ = ask(t, handler, "/api/v1/alerts?history=perhaps")
	require.Equal(t, http.StatusBadRequest, code)
}
