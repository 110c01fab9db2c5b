package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

func TestEventsAreEmitted(t *testing.T) {
	st := testkit.Store(t)
	apitest.Event(t, st)
	handler := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(),
		View: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil), Ready: readyNow,
		Published: publishedOver(st),
	}).Handler()
	emit := func(body string) (int, map[string]any) {
		t.Helper()
		code, _, answer := post(t, handler, "/api/v1/events", body)
		return code, answer
	}
	code, answer := emit(`{"trigger_ref":"demo.door","payload":{"state":"open"},"rule_ref":"demo.rule"}`)
	require.Equal(t, http.StatusOK, code)
	data, ok := answer["data"].(map[string]any)
	require.True(t, ok)
	id := data["id"]
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from event where id = $1::float8::bigint and payload = '{"state":"open"}' and rule_ref = 'demo.rule'`, id))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from outbox where 'event.created' = any (routing_keys)`))

	for body, want := range map[string]struct {
		code   int
		detail string
	}{
		`{}`:                           {http.StatusBadRequest, "the body has no trigger_ref"},
		`{"trigger_ref":"demo.dor"}`:   {http.StatusNotFound, "there is no trigger demo.dor; the nearest is demo.door"},
		`{"trigger_ref":"demo.door"}`:  {http.StatusUnprocessableEntity, "the payload does not fit demo.door: state "},
		`{"trigger_ref":"x","more":1}`: {http.StatusBadRequest, "more"},
		`{"trigger_ref":"demo.door","payload":{"state":"x"},"rule_ref":"demo.none"}`: {
			http.StatusConflict,
			"there is no rule demo.none",
		},
		`{"trigger_ref":"demo.door","payload":"` + strings.Repeat("x", 1<<20) +
			`"}`: {http.StatusRequestEntityTooLarge, "1048576 are allowed"},
		`{"trigger_ref":"demo.door","payload":"` + strings.Repeat("x", 1<<20+64<<10) +
			`"}`: {http.StatusRequestEntityTooLarge, "the body exceeds"},
		`{"trigger_ref":"demo.door","payload":{"state":"open"}} {"trigger_ref":"demo.other"}`: {
			http.StatusBadRequest,
			"",
		},
	} {
		code, answer := emit(body)
		require.Equal(t, want.code, code, fmt.Sprint(answer))
		require.Contains(t, answer["detail"], want.detail)
	}
	require.Equal(t, 2, testkit.Count(t, st, `select count(*) from event`))
}
