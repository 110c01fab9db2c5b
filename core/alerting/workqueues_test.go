package alerting_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
)

func TestItemsOfWorkQueuesAreCountedWithTheirAge(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{
		"own":     testkit.Database,
		"adopted": testkit.AdoptedDatabase,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := testkit.OpenStore(t, database(t))
			m := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil)
			ctx := testkit.Context(t)
			none, err := m.WorkQueues(ctx)
			require.NoError(t, err)
			require.Empty(t, none.List)
			e := testkit.Execution(t, st, testkit.Action(t, st, "jobs.run"))
			other := testkit.Execution(t, st, testkit.Action(t, st, "jobs.other"))
			workItems(t, st, e.ID, 5)

			read, err := m.WorkQueues(ctx)
			require.NoError(t, err)
			require.Len(t, read.List, 2, "ended items and items of a disabled queue do not wait")
			require.Equal(t, "jobs.import", read.List[0].Ref)
			require.Equal(t, monitor.Count{Value: 5}, read.List[0].Waiting)
			require.Equal(t, monitor.Count{Value: 1}, read.List[0].Leased)
			require.WithinDuration(t, read.At.Add(-48*time.Hour), read.List[0].Oldest, time.Minute)
			require.Equal(t, "jobs.off", read.List[1].Ref)
			require.Equal(t, monitor.Count{}, read.List[1].Waiting)
			require.Equal(t, "7 items wait in 2 work queues, the oldest for 2d", read.Words())

			o, err := m.Overview(ctx)
			require.NoError(t, err)
			require.Equal(t, read.List, o.WorkQueues)
			measured, err := m.Measure(ctx)
			require.NoError(t, err)
			var texts []string
			for _, c := range alerting.EvaluateAll(config.Default().Alerts, measured) {
				texts = append(texts, c.Summary+", "+c.Hint)
			}
			require.Contains(t, strings.Join(texts, "\n"),
				"6 items of work queue jobs.import wait, for an engine that dispatches them: "+
					"5 items wait, 1 is leased, the oldest for 2d")

			// Only the execution of a work queue names it.
			const lease = "Work queue jobs.import dispatched it with 1 item. This engine does not settle them: they stay leased when it ends."
			why, err := m.Why(ctx, e.ID)
			require.NoError(t, err)
			require.Contains(t, why.Lines, lease)
			shown, err := m.Execution(ctx, e.ID)
			require.NoError(t, err)
			require.Equal(t, lease, shown.WorkQueue)
			why, err = m.Why(ctx, other.ID)
			require.NoError(t, err)
			require.NotContains(t, strings.Join(why.Lines, "\n"), "ork queue")
		})
	}
}

// TestManyItemsOfWorkQueuesAreCountedUpToABoundThroughAnIndex: the read costs the same
// however many items there are, waiting or ended.
func TestManyItemsOfWorkQueuesAreCountedUpToABoundThroughAnIndex(t *testing.T) {
	st := testkit.OpenStore(t, testkit.AdoptedDatabase(t))
	workItems(t, st, 1, 10_500)
	testkit.Exec(t, st, `insert into work_queue_item (queue, queue_ref, payload, enqueue_source, status)
		select id, ref, '{}', 'api', 'completed' from work_queue, generate_series(1, 60000) where ref = 'jobs.done'`)
	testkit.Exec(t, st, `analyze work_queue_item`)
	m := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil)
	read, err := m.WorkQueues(testkit.Context(t))
	require.NoError(t, err)
	require.Equal(t, monitor.Count{Value: 10_000, AtLeast: true}, read.List[0].Waiting)
	require.Equal(t, "at least 10002 items wait in 2 work queues, the oldest for 2d", read.Words())
	require.NoError(t, st.ReadTx(testkit.Context(t), "work queues", func(ctx context.Context, tx *store.Tx) error {
		scans := func() (n int64) {
			require.NoError(t, tx.QueryRow(ctx,
				`select seq_scan from pg_stat_xact_user_tables where relname = 'work_queue_item'`).Scan(&n))
			return n
		}
		before := scans()
		rows, err := tx.ViewWorkQueues(ctx, 10_000, 100)
		require.Len(t, rows, 2)
		require.Equal(t, before, scans(), "items are read by an index")
		return err
	}))
}

func TestWithoutTablesOrAdoptionNoWorkQueueIsReported(t *testing.T) {
	bare := testkit.OpenStore(t, testkit.AdoptedDatabase(t))
	testkit.Exec(t, bare, `drop table work_queue_dispatch, work_queue_item, work_queue`)
	e := testkit.Execution(t, bare, testkit.Action(t, bare, "jobs.run"))
	m := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: bare}), nil, nil)
	read, err := m.WorkQueues(testkit.Context(t))
	require.NoError(t, err)
	require.Empty(t, read.List)
	_, err = m.Why(testkit.Context(t), e.ID)
	require.NoError(t, err)
	measured, err := m.Measure(testkit.Context(t))
	require.NoError(t, err)
	require.True(t, measured.Known("work_queue_items"))

	// Before the schema is adopted another executor dispatches the items.
	foreign := testkit.OpenStore(t, testkit.Installation(t, installation.Newest))
	workItems(t, foreign, 7, 3)
	read, err = alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: foreign}), nil,
		nil).WorkQueues(testkit.Context(t))
	require.NoError(t, err)
	require.Empty(t, read.List)
}

// workItems fills work queues: n waiting items in jobs.import with the oldest two days
// old and one leased to an execution, one leased item in a disabled queue, and what
// does not wait.
func workItems(t *testing.T, st *store.Store, execution int64, n int) {
	t.Helper()
	testkit.Exec(t, st, `insert into work_queue (ref, label, dispatch_action_ref, enabled) values
		('jobs.import', 'l', 'jobs.run', true), ('jobs.off', 'l', 'jobs.run', false), ('jobs.done', 'l', 'jobs.run', true)`)
	testkit.Exec(t, st, `insert into work_queue_item (queue, queue_ref, payload, enqueue_source, status, priority, created)
		select id, ref, '{}', 'api', (array['queued', 'retry'])[g % 2 + 1]::work_queue_item_status_enum, g % 3, now() - interval '2 days' + g * interval '1 second'
		from work_queue, generate_series(0, $1::int - 1) g where ref = 'jobs.import'`, n)
	testkit.Exec(t, st, `insert into work_queue_item (queue, queue_ref, payload, enqueue_source, status, leased_execution, created)
		select id, ref, '{}', 'api', 'leased', case ref when 'jobs.import' then $1 else $1 + 1000000 end, now() - interval '1 hour' from work_queue where ref <> 'jobs.done'`, execution)
	testkit.Exec(t, st, `insert into work_queue_item (queue, queue_ref, payload, enqueue_source, status)
		select id, ref, '{}', 'api', s::work_queue_item_status_enum from work_queue, unnest(array['completed', 'failed', 'skipped', 'cancelled']) s where ref = 'jobs.done'`)
	testkit.Exec(t, st, `insert into work_queue_item (queue, queue_ref, payload, enqueue_source, status) select id, ref, '{}', 'api', 'queued' from work_queue where ref = 'jobs.off'`)
	testkit.Exec(t, st, `insert into work_queue_dispatch (queue, queue_ref, execution, status, leased_item_count) select id, ref, $1, 'dispatched', 1 from work_queue where ref = 'jobs.import'`, execution)
}
