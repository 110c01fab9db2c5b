package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
)

// On an installation with hypertables a replica serves as on any other: events, histories and the audit log get
// their rows, in chunks, and the retention leaves the chunks alone.
func TestAReplicaServesAnInstallationWithHypertables(t *testing.T) {
	b := setupOn(t, testkit.HypertableDatabase(t))
	testkit.Exec(t, b.store, `insert into event (trigger_ref, created) select 'old.tick', now() - n * interval '1 day'
		from generate_series(10, 40) n`)
	testkit.Exec(t, b.store, `select public.compress_chunk(c) from public.show_chunks('event', interval '7 days') c`)
	chunks := testkit.Count(t, b.store, `select count(*) from timescaledb_information.chunks`)
	require.Greater(t, chunks, 30)
	b.door(t, 2)
	b.engine(t, listening)
	b.worker(t, "w1", 10)
	b.request(t, "core.echo", 5, `{"message": "x"}`)
	b.request(t, "core.fail", 1, `{}`)
	for range 3 {
		b.emit(t, 1)
	}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from execution where status in ('completed', 'failed')`) >= 9 &&
			testkit.Count(t, b.store, `select count(*) from execution_holder`) == 0
	}, 30*time.Second)
	for _, table := range []string{"event", "execution_history", "audit_event", "worker_history"} {
		require.Positive(t, testkit.Count(t, b.store, "select count(*) from "+table), table)
		require.Zero(t, testkit.Count(t, b.store, "select count(*) from only "+table),
			"%s has its rows in chunks", table)
	}
	testkit.Invariants(t, b.store)
	view := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: b.store}), nil, nil)
	testkit.Eventually(t, func() bool {
		all, err := view.Replicas(testkit.Context(t))
		require.NoError(t, err)
		return all.Total == 1 && !all.List[0].Loops["partitions"].IsZero() &&
			!all.List[0].Loops["retention rows"].IsZero()
	}, 30*time.Second, "the retention has run")
	require.Equal(t, chunks, testkit.Count(t, b.store, `select count(*) from timescaledb_information.chunks`))
	require.Equal(t, 31, testkit.Count(t, b.store, `select count(*) from event where trigger_ref = 'old.tick'`))
}
