package monitor_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
)

// TestItems reads the items that another program wrote, and the usage of a policy.
func TestItems(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	st := testkit.Store(t)
	m := monitor.New(monitor.Config{}, monitor.Deps{Store: st})
	build := testkit.Action(t, st, "demo.build", func(row *testkit.ActionRow) {
		row.ParamSchema = map[string]any{"token": map[string]any{
			"type": "string", "secret": true,
			"default": "hunter2",
		}}
	})
	policy := func(ref string, action *int64, pack *int64) {
		testkit.Exec(t, st, `insert into policy (ref, name, method, threshold, action, action_ref, pack)
			values ($1, $1, 'enqueue', 2, $2, (select ref from action where id = $2), $3)`, ref, action, pack)
	}
	policy("demo.one", &build.ID, nil)
	policy("demo.newer", &build.ID, nil)
	policy("demo.pack", nil, &build.PackID)
	policy("ops.all", nil, nil)
	testkit.Exec(t, st, `insert into execution_admission_state (action_id, group_key, max_concurrent, active_count, queued_count)
		values ($1, null, 2, 2, 3)`, build.ID)

	page, err := m.Policies(ctx, "demo", "")
	require.NoError(t, err)
	var got [][3]string
	for _, one := range page.List {
		got = append(got, [3]string{one.Ref, one.Scope, one.NewerRef})
	}
	require.Equal(t,
		[][3]string{{"demo.newer", "action", ""}, {"demo.one", "action", "demo.newer"}, {"demo.pack", "pack", ""}}, got)
	page, err = m.Policies(ctx, "", "demo.pack")
	require.NoError(t, err)
	require.Equal(t, "ops.all", page.List[0].Ref, "behind the cursor")
	for _, ref := range []string{"demo.one", "demo.pack", "ops.all"} {
		detail, err := m.Policy(ctx, ref)
		require.NoError(t, err)
		require.Len(t, detail.Queues, 1, ref)
		require.Equal(t, []int64{2, 3}, []int64{detail.Queues[0].Active, detail.Queues[0].Queued})
	}

	action, err := m.Action(ctx, "demo.build")
	require.NoError(t, err)
	require.Equal(t, int64(3), action.Holds.Queued)
	require.Len(t, action.Policies, 3, "the newest of each scope")
	require.NotContains(t, string(action.ParamSchema), "hunter2")
	pack, err := m.Pack(ctx, "demo")
	require.NoError(t, err)
	require.Equal(t, 3, pack.PackItem.Policies)
	text, err := json.Marshal(pack)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	_, err = m.Trigger(ctx, "demo.none")
	require.ErrorIs(t, err, monitor.ErrNotFound)
}
