package retention_test

import (
	"context"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/retention"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/lab/testkit"
)

// tick runs a loop once and returns its outcome.
func tick(t *testing.T, loop *supervise.Loop) error {
	t.Helper()
	require.NoError(t, loop.Start(testkit.Context(t)))
	testkit.Eventually(t, func() bool { return !loop.LastTick().IsZero() }, 30*time.Second)
	loop.Stop()
	return loop.LastError()
}

func partitions(t *testing.T, st *store.Store, cfg retention.PartitionsConfig) (*supervise.Loop, *prometheus.Registry) {
	registry := prometheus.NewRegistry()
	return retention.NewPartitions(cfg, st, testkit.Logger(t), retention.NewMetrics(registry), nil).Loop, registry
}

func coverage(t *testing.T, st *store.Store, table string) retention.Coverage {
	t.Helper()
	all, err := retention.ReadCoverage(testkit.Context(t), st)
	require.NoError(t, err)
	require.Len(t, all, 5)
	for _, c := range all {
		if c.Table == table {
			return c
		}
	}
	require.Fail(t, "no coverage", table)
	return retention.Coverage{}
}

// old attaches a partition of one day, of the given age in days, with one row.
func old(t *testing.T, st *store.Store, table, column, name string, days int) {
	t.Helper()
	testkit.Exec(t, st, `DO $do$ BEGIN EXECUTE format('CREATE TABLE `+name+` PARTITION OF `+table+` FOR VALUES FROM (%L) TO (%L)',
		date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '24 hours' * `+itoa(days)+`,
		date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '24 hours' * `+itoa(days-1)+`); END $do$`)
	testkit.Exec(t, st, `INSERT INTO `+table+` (`+column+`, operation, entity_id) SELECT
		date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '24 hours' * `+itoa(days)+`, 'INSERT', 1`)
}

func itoa(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }

func exists(t *testing.T, st *store.Store, name string) bool {
	t.Helper()
	return testkit.Count(t, st, `SELECT count(*) FROM pg_class WHERE relname = $1`, name) == 1
}

func TestPartitionsAreMadeAheadAndTakeTheirRowsAlong(t *testing.T) {
	st := testkit.OwnStore(t)
	full := coverage(t, st, "execution_history")
	require.True(t, full.Partitioned)
	require.Zero(t, full.Missing)
	require.Greater(t, full.Ahead, 7*24*time.Hour)
	require.Equal(t, "execution_history_default", full.Default)
	require.Zero(t, coverage(t, st, "worker_history").Missing)

	// No partition was made for days, so all rows are in the default one.
	for _, table := range []string{"execution_history", "worker_history"} {
		testkit.Exec(t, st, `DO $do$ DECLARE c text; BEGIN FOR c IN SELECT inhrelid::regclass::text FROM pg_inherits i
			WHERE inhparent = '`+table+`'::regclass AND inhrelid::regclass::text NOT LIKE '%_default'
			LOOP EXECUTE 'DROP TABLE ' || c; END LOOP; END $do$`)
	}
	require.Equal(t, 8, coverage(t, st, "execution_history").Missing)
	require.Zero(t, coverage(t, st, "execution_history").Ahead)
	testkit.Exec(t, st, `INSERT INTO execution_history (time, operation, entity_id) VALUES
		(now(), 'INSERT', 1), (now() + interval '2 days', 'INSERT', 2), (now() - interval '3 days', 'INSERT', 3), (now() - interval '50 days', 'INSERT', 4)`)

	loop, registry := partitions(t, st, retention.PartitionsConfig{})
	require.NoError(t, tick(t, loop))
	require.Equal(t, full, coverageRounded(t, st, full))
	require.Zero(t, coverage(t, st, "worker_history").Missing)
	require.Equal(t, 3, testkit.Count(t, st, `SELECT count(*) FROM execution_history`),
		"partitions beyond their retention are dropped")
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM execution_history_default`),
		"partitions before today stay")
	got, err := testutil.GatherAndCount(registry, "attune_partitions_missing", "attune_partitions_ahead_days")
	require.NoError(t, err)
	require.Equal(t, 10, got)
	require.Equal(t, 1, metric(t, registry, "attune_partitions_default_rows", "execution_history"))
	require.Equal(t, 0, metric(t, registry, "attune_partitions_missing", "execution_history"))
	require.Greater(t, metric(t, registry, "attune_partitions_ahead_days", "execution_history"), 6)
	require.Equal(t, 1, metric(t, registry, "attune_retention_removed_total", "execution_history"))
}

// coverageRounded is the present coverage plus the time since then.
func coverageRounded(t *testing.T, st *store.Store, then retention.Coverage) retention.Coverage {
	t.Helper()
	now := coverage(t, st, then.Table)
	require.InDelta(t, then.Ahead.Hours(), now.Ahead.Hours(), 1)
	now.Ahead = then.Ahead
	return now
}

// metric reads a metric; -1 without one.
func metric(t *testing.T, registry *prometheus.Registry, name, label string) int {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return int(m.GetGauge().GetValue() + m.GetCounter().GetValue())
			}
		}
	}
	return -1
}

// The end of a partition counts: it is dropped when all of it is too old.
func TestOldPartitionsAreDroppedWhole(t *testing.T) {
	st := testkit.OwnStore(t)
	for _, days := range []int{4, 3, 2} {
		old(t, st, "execution_history", "time", "days_"+itoa(days), days)
	}
	// days_02 ends at most 48 h ago, days_03 between 48 and 72 h ago.
	loop, registry := partitions(t, st, retention.PartitionsConfig{History: 48 * time.Hour})
	require.NoError(t, tick(t, loop))
	require.False(t, exists(t, st, "days_04"))
	require.False(t, exists(t, st, "days_03"))
	require.True(t, exists(t, st, "days_02"))
	require.Equal(t, 2, metric(t, registry, "attune_retention_removed_total", "execution_history partitions"))
}

// Audit rows are kept for 90 days, whatever the retention of the histories.
func TestAuditPartitionsAreKeptForAQuarter(t *testing.T) {
	st := testkit.OwnStore(t)
	for _, days := range []int{92, 88} {
		testkit.Exec(t, st, `DO $do$ BEGIN EXECUTE format('CREATE TABLE audit_`+itoa(days)+` PARTITION OF audit_event
			FOR VALUES FROM (%L) TO (%L)', now() - interval '24 hours' * `+itoa(days)+`,
			now() - interval '24 hours' * `+itoa(days-1)+`); END $do$`)
	}
	loop, _ := partitions(t, st, retention.PartitionsConfig{History: 48 * time.Hour, Events: 48 * time.Hour})
	require.NoError(t, tick(t, loop))
	require.False(t, exists(t, st, "audit_92"))
	require.True(t, exists(t, st, "audit_88"))
}

// A reader of hours delays the drop and blocks no writer.
func TestALongReaderDoesNotBlockWriters(t *testing.T) {
	st := testkit.OwnStore(t)
	old(t, st, "execution_history", "time", "read_for_long", 40)
	reader := testkit.Begin(t, st)
	defer func() { _ = reader.Rollback(t.Context()) }()
	_, err := reader.Exec(t.Context(), `SELECT count(*) FROM execution_history`)
	require.NoError(t, err)

	loop, _ := partitions(t, st, retention.PartitionsConfig{})
	require.NoError(t, loop.Start(testkit.Context(t)))
	defer loop.Stop()
	longest := time.Duration(0)
	for loop.LastTick().IsZero() {
		begun := time.Now()
		testkit.Exec(t, st, `INSERT INTO execution_history (operation, entity_id) VALUES ('INSERT', 7)`)
		longest = max(longest, time.Since(begun))
	}
	require.Less(t, longest, 30*time.Second)
	require.ErrorContains(t, loop.LastError(), "another transaction holds a lock for too long")
	require.True(t, exists(t, st, "read_for_long"))

	require.NoError(t, reader.Rollback(t.Context()))
	loop.Wake()
	testkit.Eventually(t, func() bool { return !exists(t, st, "read_for_long") }, 10*time.Second)
}

func TestReplicasMakePartitionsTogether(t *testing.T) {
	databaseURL := testkit.OwnDatabase(t)
	st := testkit.OpenStore(t, databaseURL)
	testkit.Exec(t, st, `DO $do$ DECLARE c text; BEGIN FOR c IN SELECT inhrelid::regclass::text FROM pg_inherits i
		WHERE inhparent = 'event'::regclass AND inhrelid::regclass::text NOT LIKE '%_default'
		LOOP EXECUTE 'DROP TABLE ' || c; END LOOP; END $do$`)
	for _, days := range []int{40, 41, 42} {
		old(t, st, "execution_history", "time", "old_"+itoa(days), days)
	}
	var loops []*supervise.Loop
	for range 3 {
		loop, _ := partitions(t, testkit.OpenStore(t, databaseURL),
			retention.PartitionsConfig{Interval: 20 * time.Millisecond})
		require.NoError(t, loop.Start(testkit.Context(t)))
		t.Cleanup(loop.Stop)
		loops = append(loops, loop)
	}
	testkit.Eventually(t, func() bool {
		return coverage(t, st, "event").Missing == 0 && !exists(t, st, "old_40") && !exists(t, st, "old_41") &&
			!exists(t, st, "old_42")
	}, 20*time.Second)
	for _, loop := range loops {
		last := loop.LastTick()
		testkit.Eventually(t, func() bool { return loop.LastTick().After(last) && loop.LastError() == nil },
			20*time.Second)
	}
}

// For a user without rights the log names the needed grant, once, and the metric counts the missing partitions.
func TestWithoutRightsMissingPartitionsShow(t *testing.T) {
	databaseURL := testkit.OwnDatabase(t)
	st := testkit.OpenStore(t, databaseURL)
	testkit.Exec(t, st, `DROP TABLE event_p`+time.Now().UTC().Add(48*time.Hour).Format("20060102"))
	user := "guest_" + strconv.FormatInt(time.Now().UnixNano(), 10)
	testkit.Exec(t, st, `CREATE ROLE `+user+` LOGIN`)
	t.Cleanup(func() {
		_, err := st.Pool().Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+user+`; DROP ROLE `+user)
		require.NoError(t, err)
	})
	schema := st.Schema()
	testkit.Exec(t, st, `GRANT USAGE ON SCHEMA `+schema+` TO `+user+
		`; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA `+schema+` TO `+user)
	parsed, err := url.Parse(databaseURL)
	require.NoError(t, err)
	parsed.User = url.User(user)
	guest := testkit.OpenStore(t, parsed.String())

	loop, registry := partitions(t, guest, retention.PartitionsConfig{})
	require.NoError(t, tick(t, loop))
	require.Equal(t, 1, metric(t, registry, "attune_partitions_missing", "event"))
	require.Equal(t, 1, coverage(t, st, "event").Missing)
	require.InDelta(t, 36, coverage(t, st, "event").Ahead.Hours(), 12.1)
}

// In an existing installation they are hypertables or plain tables, which belong to the installation.
func TestTablesThatAreNotPartitionedAreLeftAlone(t *testing.T) {
	st := testkit.OwnStore(t)
	testkit.Exec(t, st, `DROP TABLE event; CREATE TABLE event (id bigint, created timestamptz); INSERT INTO event VALUES (1, now() - interval '1 year')`)
	loop, registry := partitions(t, st, retention.PartitionsConfig{})
	require.NoError(t, tick(t, loop))
	require.False(t, coverage(t, st, "event").Partitioned)
	require.Zero(t, coverage(t, st, "event").Missing)
	require.Equal(t, 1, testkit.Count(t, st, `SELECT count(*) FROM event`))
	got, err := testutil.GatherAndCount(registry, "attune_partitions_missing")
	require.NoError(t, err)
	require.Equal(t, 4, got)
}

// Without a default partition a gap refuses rows; retention makes it.
func TestADefaultPartitionIsMadeWhereThereIsNone(t *testing.T) {
	st := testkit.OwnStore(t)
	testkit.Exec(t, st, `DROP TABLE audit_event_default`)
	loop, _ := partitions(t, st, retention.PartitionsConfig{})
	require.NoError(t, tick(t, loop))
	require.Equal(t, "audit_event_default", coverage(t, st, "audit_event").Default)
}

// A table with the name of a partition that is none belongs to another owner; the metric shows the gap.
func TestAGapBehindAForeignTableShows(t *testing.T) {
	st := testkit.OwnStore(t)
	name := "event_p" + time.Now().UTC().Add(72*time.Hour).Format("20060102")
	testkit.Exec(t, st, `ALTER TABLE event DETACH PARTITION `+name)
	last := "event_p" + time.Now().UTC().Add(7*24*time.Hour).Format("20060102")
	testkit.Exec(t, st, `DROP TABLE `+last)
	loop, registry := partitions(t, st, retention.PartitionsConfig{})
	require.ErrorContains(t, tick(t, loop), "already exists")
	require.True(t, exists(t, st, name))
	require.True(t, exists(t, st, last), "one that cannot be made does not keep the others from it")
	require.Equal(t, 1, metric(t, registry, "attune_partitions_missing", "event"))
}

// gone drops the partitions of a table but the default one.
func gone(t *testing.T, st *store.Store, table string) {
	t.Helper()
	testkit.Exec(t, st, `DO $do$ DECLARE c text; BEGIN FOR c IN SELECT inhrelid::regclass::text FROM pg_inherits i
		WHERE inhparent = '`+table+`'::regclass AND inhrelid::regclass::text NOT LIKE '%_default'
		LOOP EXECUTE 'DROP TABLE ' || c; END LOOP; END $do$`)
}

// While others write into the default partition, today's partition is made, and no row is lost or refused.
func TestThePartitionOfTodayIsMadeWhileItIsWrittenTo(t *testing.T) {
	st := testkit.OwnStore(t)
	gone(t, st, "execution_history")
	var written atomic.Int64
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := st.Pool().Exec(context.WithoutCancel(t.Context()), `INSERT INTO execution_history (operation, entity_id) SELECT 'INSERT', 1 FROM generate_series(1, 20)`)
				if err == nil {
					written.Add(20)
				}
				noError(t, err)
			}
		})
	}
	testkit.Eventually(t, func() bool { return written.Load() > 2000 }, 20*time.Second)
	loop, _ := partitions(t, st, retention.PartitionsConfig{Interval: 20 * time.Millisecond})
	require.NoError(t, loop.Start(testkit.Context(t)))
	testkit.Eventually(t, func() bool { // a tick gives up if a writer holds its lock for too long
		return !loop.LastTick().IsZero() && loop.LastError() == nil
	}, 20*time.Second)
	loop.Stop()
	close(stop)
	writers.Wait()
	require.Zero(t, coverage(t, st, "execution_history").Missing)
	require.EqualValues(t, written.Load(), testkit.Count(t, st, `SELECT count(*) FROM execution_history`))
	require.Zero(t, testkit.Count(t, st, `SELECT count(*) FROM execution_history_default`))
}

func noError(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

// Very many rows would block writers for too long: they stay, and the next days get their partitions all the same.
func TestVeryManyRowsStayInTheDefaultPartition(t *testing.T) {
	st := testkit.OwnStore(t)
	gone(t, st, "execution_history")
	testkit.Exec(t, st,
		`INSERT INTO execution_history (operation, entity_id) SELECT 'INSERT', 1 FROM generate_series(1, 20001)`)
	loop, registry := partitions(t, st, retention.PartitionsConfig{})
	require.ErrorContains(t, tick(t, loop), "more than 20000 rows")
	require.Equal(t, 1, metric(t, registry, "attune_partitions_missing", "execution_history"))
	require.Equal(t, 20_001, metric(t, registry, "attune_partitions_default_rows", "execution_history"))
}

// A long reader delays the creation too, and blocks no writer.
func TestALongReaderPutsOffTheMaking(t *testing.T) {
	st := testkit.OwnStore(t)
	gone(t, st, "execution_history")
	reader := testkit.Begin(t, st)
	defer func() { _ = reader.Rollback(t.Context()) }()
	_, err := reader.Exec(t.Context(), `SELECT count(*) FROM execution_history`)
	require.NoError(t, err)
	loop, _ := partitions(t, st, retention.PartitionsConfig{})
	require.NoError(t, loop.Start(testkit.Context(t)))
	defer loop.Stop()
	longest := time.Duration(0)
	for loop.LastTick().IsZero() {
		begun := time.Now()
		testkit.Exec(t, st, `INSERT INTO execution_history (operation, entity_id) VALUES ('INSERT', 7)`)
		longest = max(longest, time.Since(begun))
	}
	require.Less(t, longest, 30*time.Second)
	require.ErrorContains(t, loop.LastError(), "another transaction holds a lock for too long")
	require.NoError(t, reader.Rollback(t.Context()))
	loop.Wake()
	testkit.Eventually(t, func() bool { return coverage(t, st, "execution_history").Missing == 0 }, 10*time.Second)
}
