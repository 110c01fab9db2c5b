package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

func TestInquiriesAreListedAsDescribed(t *testing.T) {
	st := testkit.Store(t)
	handler := handlerOver(t, st)
	ada := testkit.Count(t, st, `INSERT INTO identity (login) VALUES ('ada') RETURNING id`)
	open, mine := apitest.Inquiry(t, st, "pending", 0), apitest.Inquiry(t, st, "pending", ada)
	answered := apitest.Inquiry(t, st, "responded", 0)
	testkit.Exec(t, st, `INSERT INTO inquiry_fault (execution, reason) SELECT min(id), 'malformed' FROM execution`)
	list := func(query string) (int, []int64, string) {
		code, _, body := ask(t, handler, "/api/v1/inquiries"+query)
		var page struct {
			Data struct {
				List []struct {
					ID int64 `json:"id"`
				} `json:"list"`
				Next string `json:"next"`
			} `json:"data"`
		}
		require.NoError(t, json.Unmarshal(body, &page))
		ids := []int64{}
		for _, one := range page.Data.List {
			ids = append(ids, one.ID)
		}
		return code, ids, page.Data.Next
	}
	for query, want := range map[string][]int64{
		"": {open, mine, answered}, "?status=pending": {open, mine}, "?status=responded,timeout": {answered},
		"?assigned_to=ada": {mine},
		"?action=pk.*":     {open, mine, answered}, "?action=core.*": {}, "?execution=1": {open},
	} {
		code, ids, _ := list(query)
		require.Equal(t, http.StatusOK, code, query)
		require.Equal(t, want, ids, query)
	}
	_, ids, next := list("?limit=2")
	require.Equal(t, []int64{open, mine}, ids)
	_, ids, _ = list("?limit=2&cursor=" + next)
	require.Equal(t, []int64{answered}, ids)
	for _, bad := range []string{
		"?status=open", "?limit=0", "?limit=501", "?cursor=7", "?execution=x",
		"?staus=pending",
	} {
		code, _, _ := list(bad)
		require.Equal(t, http.StatusBadRequest, code, bad)
	}
	for path, want := range map[string]int{fmt.Sprint(answered): 200, fmt.Sprint(open): 200, "999999": 404, "x": 400} {
		code, _, _ := ask(t, handler, "/api/v1/inquiries/"+path)
		require.Equal(t, want, code, path)
	}
}

func TestInquiriesAreAnsweredAsDescribed(t *testing.T) {
	st := testkit.Store(t)
	handler := acting(st)
	ada := testkit.Count(t, st, `INSERT INTO identity (login) VALUES ('ada') RETURNING id`)
	open, mine := apitest.Inquiry(t, st, "pending", 0), apitest.Inquiry(t, st, "pending", ada)
	cancelled := apitest.Inquiry(t, st, "cancelled", 0)
	late := apitest.Inquiry(t, st, "pending", 0)
	testkit.Exec(t, st, `UPDATE inquiry SET timeout_at = now() - interval '1 second' WHERE id = $1`, late)
	for _, c := range []struct {
		id     any
		body   string
		code   int
		detail string
	}{
		{open, `{"response": {"ok": "yes"}}`, 422, "ok"},
		{open, `{"response": null}`, 422, ""},
		{open, `{}`, 400, "no response"},
		{open, `{"response": {"ok": true}, "by": "me"}`, 400, "unknown field"},
		{open, `{"response": {"ok": true}, "reason": "fine"}`, 200, ""},
		{open, `{"response": {"ok": true}}`, 409, "answered already by http without a token at 20"},
		{mine, `{"response": {"ok": true}}`, 403, "assigned to ada"},
		{mine, `{"response": {"ok": true}, "as": "eve"}`, 403, "no identity with the login"},
		{mine, `{"response": {"ok": true}, "as": "ada"}`, 200, ""},
		{cancelled, `{"response": {"ok": true}}`, 409, "cancelled"},
		{late, `{"response": {"ok": true}}`, 409, "its time is over"},
		{999_999, `{"response": {"ok": true}}`, 404, "there is no inquiry 999999"},
		{"x", `{"response": 1}`, 400, "not a positive number"},
		{mine, strings.Repeat(" ", 70_000), 413, "the body exceeds"},
	} {
		code, _, answer := post(t, handler, fmt.Sprintf("/api/v1/inquiries/%v/respond", c.id), c.body)
		require.Equal(t, c.code, code, "%v %s: %v", c.id, c.body, answer)
		if c.detail != "" {
			require.Contains(t, answer["detail"], c.detail)
		}
	}
	require.Equal(t, 2, testkit.Count(t, st,
		`SELECT count(*) FROM operator_audit WHERE action = 'inquiry.respond' AND target_type = 'inquiry'`))
	require.Equal(t, 2, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE status = 'completed'`))
}
