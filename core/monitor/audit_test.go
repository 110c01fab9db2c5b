package monitor

import (
	"context"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

func TestAuditShowsTheNewestActsFirst(t *testing.T) {
	b := setup(t, nil)
	a, err := b.Audit(t.Context(), 0)
	require.NoError(t, err)
	require.True(t, a.Recorded)
	require.True(t, a.Current)
	require.Equal(t, testkit.Adopted(), a.Adopted)
	require.Zero(t, a.Replicas)
	require.Empty(t, a.List)

	testkit.Exec(t, b.Store, `insert into operator_audit (actor, source, action, target_type, target_id, target, reason, request, outcome, error)
		values ('ann', 'attune-tui', 'worker.cordon', 'worker', 7, 'worker-7', 'disk', '{"id": 7}', 'done', null),
		       ('bob', 'attune-executor', 'queue.clear', 'action', 4, 'demo.sleep', null, (select jsonb_agg(md5(random()::text)) from generate_series(1, 3000)), 'failed', 'gone')`)
	testkit.Exec(t, b.Store, `insert into engine_replica (id, host, version, pid, last_seen)
		values (gen_random_uuid(), 'a', '1', 1, now()), (gen_random_uuid(), 'b', '1', 2, now() - interval '1 hour')`)
	testkit.Exec(t, b.Store, `update attune_schema_origin set origin = 'adopted'`)
	a, err = b.Audit(t.Context(), 0)
	require.NoError(t, err)
	require.True(t, a.Adopted)
	require.Equal(t, int64(1), a.Replicas, "one has fallen silent")
	require.Len(t, a.List, 2)
	require.Equal(t, "queue.clear", a.List[0].Action)
	require.Equal(t, "gone", a.List[0].Error)
	require.Empty(t, a.List[0].Request, "it is too long to be read along")
	require.Equal(t, "ann", a.List[1].Actor)
	require.Equal(t, "disk", a.List[1].Reason)
	require.Equal(t, int64(7), *a.List[1].TargetID)
	require.JSONEq(t, `{"id": 7}`, string(a.List[1].Request))
	require.Zero(t, a.Next)
}

// A page of whole acts ends when its requests are large, and the next one goes on behind it.
func TestPagesOfLargeActsAreShort(t *testing.T) {
	b := setup(t, nil)
	testkit.Exec(t, b.Store, `insert into operator_audit (actor, action, request)
		select 'ann', 'queue.clear', jsonb_build_object('n', n, 'ids', repeat('x', 6 << 20)) from generate_series(1, 7) n`)
	var pages []int
	var ids []int64
	for below := int64(0); ; {
		a, err := b.WholeAudit(t.Context(), below)
		require.NoError(t, err)
		pages = append(pages, len(a.List))
		for _, entry := range a.List {
			require.Greater(t, len(entry.Request), 6<<20)
			ids = append(ids, entry.ID)
		}
		if below = a.Next; below == 0 {
			break
		}
	}
	require.Equal(t, []int{3, 3, 1}, pages)
	require.Equal(t, []int64{7, 6, 5, 4, 3, 2, 1}, ids)
	a, err := b.Audit(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, a.List, 7, "on a screen large requests are absent")
}

// Missing rights are known before an action is tried.
func TestALoginWithoutRightsIsReadOnly(t *testing.T) {
	databaseURL := testkit.Database(t)
	st := testkit.OpenStore(t, databaseURL)
	user := "viewer_" + strconv.FormatInt(time.Now().UnixNano(), 10)
	testkit.Exec(t, st, `CREATE ROLE `+user+` LOGIN`)
	t.Cleanup(func() {
		_, err := st.Pool().Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+user+`; DROP ROLE `+user)
		require.NoError(t, err)
	})
	testkit.Exec(t, st, `GRANT USAGE ON SCHEMA `+st.Schema()+` TO `+user+`; GRANT SELECT ON ALL TABLES IN SCHEMA `+
		st.Schema()+` TO `+user)
	parsed, err := url.Parse(databaseURL)
	require.NoError(t, err)
	parsed.User = url.User(user)
	viewer := New(Config{}, Deps{Store: testkit.OpenStore(t, parsed.String())})
	a, err := viewer.Audit(t.Context(), 0)
	require.NoError(t, err)
	require.Contains(t, a.ReadOnly, "the login "+user+" may not write here")
	testkit.Exec(t, st, `GRANT INSERT ON operator_audit TO `+user)
	a, err = viewer.Audit(t.Context(), 0)
	require.NoError(t, err)
	require.NotEmpty(t, a.ReadOnly, "the audit alone is not enough")
	testkit.Exec(t, st, `GRANT UPDATE ON execution TO `+user)
	a, err = viewer.Audit(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, a.ReadOnly)
}

func TestAuditIsBounded(t *testing.T) {
	b := setup(t, nil)
	testkit.Exec(t, b.Store,
		`insert into operator_audit (actor, action) select 'ann', 'queue.pause' from generate_series(1, 250)`)
	a, err := b.Audit(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, a.List, AuditBound)
	require.Greater(t, a.List[0].ID, a.List[AuditBound-1].ID)
	require.Equal(t, a.List[AuditBound-1].ID, a.Next)
	rest, err := b.Audit(t.Context(), a.Next)
	require.NoError(t, err)
	require.Equal(t, a.Next, rest.From)
	require.Len(t, rest.List, 50, "the older ones follow without a gap")
	require.Equal(t, a.Next-1, rest.List[0].ID)
	require.Zero(t, rest.Next)
	require.True(t, rest.Current, "every page says whether the schema is current")
}

func TestAuditSaysWhereNothingIsRecorded(t *testing.T) {
	b := setup(t, nil)
	testkit.Exec(t, b.Store, `drop table worker_probe cascade`)
	a, err := b.Audit(t.Context(), 0)
	require.NoError(t, err)
	require.True(t, a.Recorded)
	require.False(t, a.Current, "it was not migrated to this version")
	testkit.Exec(t, b.Store, `drop table operator_audit, attune_schema_origin cascade`)
	a, err = b.Audit(t.Context(), 0)
	require.NoError(t, err)
	require.False(t, a.Recorded)
	require.False(t, a.Current)
	require.Empty(t, a.List)
}
