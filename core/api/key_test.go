package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

// Requests with one Idempotency-Key create one thing, also at the same time at two replicas, and have one answer.
func TestRequestsWithAKeyCanBeRepeated(t *testing.T) {
	st := testkit.Store(t)
	apitest.Event(t, st)
	testkit.Action(t, st, "demo.login")
	var replicas []http.Handler
	for range 2 {
		replicas = append(replicas, api.New("127.0.0.1:0", api.Deps{
			Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow,
			Published: publishedOver(st),
		}).Handler())
	}
	post := func(replica int, path, key, body string) (int, string, float64) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+path,
			strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		replicas[replica].ServeHTTP(w, r)
		var answer struct {
			Data struct {
				ID float64 `json:"id"`
			} `json:"data"`
		}
		_ = json.Unmarshal(w.Body.Bytes(), &answer) // an error has no id
		return w.Code, w.Body.String(), answer.Data.ID
	}
	for path, c := range map[string]struct {
		table, body, wrong, other string
		created                   int
	}{
		"/api/v1/executions": {
			"execution", `{"action_ref":"demo.login","parameters":{"a":1}}`, `{"action_ref":"demo.none"}`,
			`{"action_ref":"demo.login","parameters":{"a":2}}`, http.StatusCreated,
		},
		"/api/v1/events": {
			"event", `{"trigger_ref":"demo.door","payload":{"state":"open"}}`, `{"trigger_ref":"demo.none"}`,
			`{"trigger_ref":"demo.door","payload":{"state":"shut"}}`, http.StatusOK,
		},
	} {
		count := func() int { return testkit.Count(t, st, "select count(*) from "+c.table) }
		before, key := count(), "key of "+c.table
		code, answer, _ := post(0, path, key, c.wrong)
		require.Equal(t, http.StatusNotFound, code, answer)

		const times = 16
		codes, answers, ids := make([]int, times), make([]string, times), make([]float64, times)
		var group sync.WaitGroup
		for i := range times {
			group.Go(func() { codes[i], answers[i], ids[i] = post(i%2, path, key, c.body) })
		}
		group.Wait()
		testkit.Exec(t, st, `update execution set status = 'completed', started_at = now(),
			result = '{"succeeded": true}', updated = now() + interval '1 minute'`)
		_, answer, _ = post(0, path, key, c.body)
		for i := range times {
			require.Equal(t, c.created, codes[i])
			require.Equal(t, answer, answers[i], "the first answer, whatever became of it since")
		}
		require.NotZero(t, ids[0])
		require.Equal(t, before+1, count())

		code, answer, _ = post(1, path, key, c.other)
		require.Equal(t, http.StatusUnprocessableEntity, code, answer)
		require.Contains(t, answer, "its Idempotency-Key came with another path or body within the last 24 hours")
		code, _, id := post(1, path, key+"2", c.body)
		require.Equal(t, c.created, code)
		require.NotEqual(t, ids[0], id) //nolint:testifylint // an id
		require.Equal(t, before+2, count())
		testkit.Exec(t, st, `update request_key set created = created - interval '24 hours' where key = $1`, key)
		code, _, id = post(0, path, key, c.other)
		require.Equal(t, c.created, code)
		require.NotEqual(t, ids[0], id) //nolint:testifylint // an id
		require.Equal(t, before+3, count())
		for _, wrong := range []string{strings.Repeat("x", 256), "ü", "a\tb"} {
			code, answer, _ = post(0, path, wrong, c.body)
			require.Equal(t, http.StatusBadRequest, code, answer)
		}
		for range 2 {
			code, _, _ = post(0, path, "", c.body)
			require.Equal(t, c.created, code)
		}
		require.Equal(t, before+5, count())
	}
	// Clients have keys of their own.
	submitter := submit.New(st, nil)
	first, err := submitter.Request(t.Context(), submit.Request{
		ActionRef: "demo.login", Key: &submit.Key{Client: "a", Text: "key of execution", Digest: []byte{1}},
	})
	require.NoError(t, err)
	require.False(t, first.Repeated)
}
