package inquiry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// S16: an answer, an expiry and a cancellation exclude each other in the statements themselves, whatever was read
// before them.
func TestEndsOfAnInquiryExcludeEachOther(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "pk.guards")
	made := func(status, timeout string) (id int64) {
		execution := testkit.Execution(t, st, action).ID
		require.NoError(t, st.Pool().QueryRow(t.Context(), `INSERT INTO inquiry (execution, prompt, status, timeout_at)
			VALUES ($1, '?', $2::text::inquiry_status_enum, now() + $3::text::interval) RETURNING id`,
			execution, status, timeout).Scan(&id))
		return id
	}
	answer := func(id int64) int64 {
		n, err := st.RespondInquiry(t.Context(), store.RespondInquiryParams{ID: id, Response: []byte(`{}`)})
		require.NoError(t, err)
		return n
	}
	answered, late, open := made("responded", "-1 hour"), made("pending", "-1 hour"), made("pending", "1 hour")
	early := made("responded", "1 hour")
	require.Zero(t, answer(early), "an answer replaced another one")
	require.Zero(t, answer(late), "an answer came after the time")
	require.NoError(t, st.ExpireInquiries(t.Context(), []int64{answered, open}))
	require.NoError(t, st.CancelInquiries(t.Context(), []int64{answered}))
	require.Equal(t, 2, testkit.Count(t, st, `SELECT count(*) FROM inquiry WHERE status = 'responded'`))
	require.Equal(t, 2, testkit.Count(t, st, `SELECT count(*) FROM inquiry WHERE status = 'pending'`))
	require.Equal(t, int64(1), answer(open))
	require.NoError(t, st.ExpireInquiries(t.Context(), []int64{late}))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM inquiry WHERE status = 'timeout'`))
}

// A message names the responder only of an answer that has none.
func TestAMessageDoesNotReplaceAResponder(t *testing.T) {
	st := testkit.Store(t)
	var known, unknown, identity int64
	require.NoError(t, st.Pool().QueryRow(t.Context(),
		`INSERT INTO identity (login) VALUES ('eve') RETURNING id`).Scan(&identity))
	for responder, id := range map[string]*int64{"ann": &known, "": &unknown} {
		execution := testkit.Execution(t, st, testkit.Action(t, st, "pk.of"+responder)).ID
		require.NoError(t, st.Pool().QueryRow(t.Context(), `INSERT INTO inquiry (execution, prompt, status, responder)
			VALUES ($1, '?', 'responded', nullif($2, '')) RETURNING id`, execution, responder).Scan(id))
	}
	require.NoError(t, st.NoteResponders(t.Context(), []int64{known, unknown}, []int64{identity, identity}))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM inquiry WHERE id = $1 AND responded_by IS NULL`, known))
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM inquiry WHERE id = $1 AND responded_by = $2`,
		unknown, identity))
}
