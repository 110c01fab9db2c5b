package migrations_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// workQueue makes a work queue with items of the given states, the first of them a day old.
func workQueue(t *testing.T, conn *pgx.Conn, ref string, enabled bool, states ...string) {
	t.Helper()
	id := one[int64](t, conn, `INSERT INTO work_queue (ref, label, dispatch_action_ref, enabled) VALUES ($1, $1, 'jobs.run', $2) RETURNING id`, ref, enabled)
	for i, state := range states {
		exec(t, conn, `INSERT INTO work_queue_item (queue, queue_ref, status, payload, enqueue_source, created)
			VALUES ($1, $2, $3::text::work_queue_item_status_enum, '{}', 'api', '2026-01-02T03:04:05Z'::timestamptz + $4 * interval '1 day')`, id, ref, state, i)
	}
}

func TestWorkQueuesAreNamedAndRefuseAdoptionUnlessAccepted(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t, installation.Newest)
	workQueue(t, conn, "jobs.import", true, "queued", "retry", "leased", "completed", "failed", "skipped", "cancelled")
	workQueue(t, conn, "jobs.mail", true)
	workQueue(t, conn, "jobs.off", false, "queued")
	workQueue(t, conn, "jobs.under_way", false, "completed", "leased")
	before := shape(t, conn)

	oldest, second := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 3, 3, 4, 5, 0, time.UTC)
	want := []migrations.WorkQueue{
		{Ref: "jobs.import", Enabled: true, Waiting: 2, Leased: 1, Oldest: &oldest},
		{Ref: "jobs.mail", Enabled: true},
		{Ref: "jobs.under_way", Leased: 1, Oldest: &second},
	}
	planned, err := migrations.Check(ctx, opts)
	require.NoError(t, err)
	require.Empty(t, planned.Differences)
	require.Equal(t, want, planned.WorkQueues)

	_, err = migrations.Up(ctx, opts)
	var refused *migrations.WorkQueuesError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, want, refused.Queues)
	require.ErrorContains(t, err, `schema attune has work queues that this engine does not dispatch:
  work queue jobs.import: 2 items wait, 1 are leased, the oldest since 2026-01-02T03:04:05Z
  work queue jobs.mail: 0 items wait, 0 are leased
  work queue jobs.under_way: 0 items wait, 1 are leased, it is disabled, the oldest since 2026-01-03T03:04:05Z`)
	require.Equal(t, before, shape(t, conn), "a refusal changes nothing")

	opts.WithoutWorkQueues = true
	up, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.True(t, up.Adopted)
	require.Equal(t, want, up.WorkQueues)

	opts.WithoutWorkQueues = false
	again, err := migrations.Up(ctx, opts)
	require.NoError(t, err, "an adopted schema is not asked about again")
	require.Empty(t, again.WorkQueues)
	planned, err = migrations.Check(ctx, opts)
	require.NoError(t, err)
	require.Empty(t, planned.WorkQueues)
}

func TestSchemaWithoutWorkQueuesIsAdoptedWithoutAsking(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*testing.T) (migrations.Options, *pgx.Conn){
		"no queue": func(t *testing.T) (migrations.Options, *pgx.Conn) {
			t.Helper()
			return foreign(t, installation.Newest)
		},
		"disabled and drained": func(t *testing.T) (migrations.Options, *pgx.Conn) {
			t.Helper()
			opts, conn := foreign(t, installation.Newest)
			workQueue(t, conn, "jobs.off", false, "queued", "completed")
			return opts, conn
		},
		"no tables": func(t *testing.T) (migrations.Options, *pgx.Conn) {
			t.Helper()
			return foreign(t, installation.Shape{
				Date:    installation.Newest.Date,
				Without: []installation.Migration{installation.WorkQueues},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts, _ := build(t)
			planned, err := migrations.Check(testkit.Context(t), opts)
			require.NoError(t, err)
			require.Empty(t, planned.WorkQueues)
			up, err := migrations.Up(testkit.Context(t), opts)
			require.NoError(t, err)
			require.True(t, up.Adopted)
		})
	}
}

func TestActionsWhoseColumnsThePublishedExecutorIgnoresAreNamed(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts, conn := foreign(t, installation.Newest)
	exec(t, conn, `INSERT INTO action (ref, pack, pack_ref, label, entrypoint, max_retries, timeout_seconds)
		SELECT 'core.a' || g, id, ref, 'l', 'e', CASE WHEN g % 2 = 0 THEN g ELSE 0 END, CASE WHEN g > 11 THEN 60 END FROM pack, generate_series(10, 34) g`)
	planned, err := migrations.Check(ctx, opts)
	require.NoError(t, err)
	require.Len(t, planned.Ignored.Actions, 20)
	require.EqualValues(t, 4, planned.Ignored.More)
	line := planned.Ignored.String()
	require.Contains(t, line,
		"core.a10 (max_retries 10), core.a12 (max_retries 12, timeout_seconds 60), core.a13 (timeout_seconds 60), ")
	require.Contains(t, line, " and 4 more; executor.retry.honour_action_max_retries and executor.honour_action_timeout_seconds decide about them")
	up, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.Equal(t, planned.Ignored, up.Ignored)
	again, err := migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.Empty(t, again.Ignored.String())
}
