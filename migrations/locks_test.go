package migrations_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// waits counts the tries of a migration and keeps the newest attributes.
type waits struct {
	slog.Handler
	tries atomic.Int64
	held  atomic.Value // by which pid
}

func (w *waits) Enabled(context.Context, slog.Level) bool { return true }

func (w *waits) Handle(_ context.Context, record slog.Record) error {
	if record.Message == "A migration waits for a lock and is tried again" {
		record.Attrs(func(a slog.Attr) bool {
			if a.Key == "held_by_pid" {
				w.held.Store(a.Value.Int64())
			}
			return true
		})
		w.tries.Add(1)
	}
	return nil
}

// TestWritersGoOnWhileAMigrationWaits: up and down behind a transaction that has
// read execution stall writers for no longer than a try, again and again, and
// come through when it ends.
func TestWritersGoOnWhileAMigrationWaits(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts := migrations.Options{URL: testkit.Installation(t, installation.Newest), Schema: testkit.Schema}
	const rows = 20_000 // the long course has 2,000,000
	setup := connect(t, opts)
	exec(t, setup, "INSERT INTO pack (ref, label, version) VALUES ('demo', 'Demo', '1.0.0')")
	exec(t, setup, `INSERT INTO action (ref, pack, pack_ref, label, entrypoint) SELECT 'demo.echo', id, ref, 'Echo', 'echo.sh' FROM pack`)
	exec(t, setup, "SET session_replication_role = replica") // no history of rows that only fill the table
	exec(t, setup, `INSERT INTO execution (action, action_ref, status, config, result)
		SELECT a.id, a.ref, 'completed', '{"n": 1}', '{"exit_code": 0}' FROM action a, generate_series(1, $1)`, rows)
	exec(t, setup, "SET session_replication_role = origin")
	exec(t, setup, "INSERT INTO execution (action, action_ref) SELECT id, ref FROM action")
	exec(t, setup, "ANALYZE execution")
	live := one[int64](t, setup, "SELECT max(id) FROM execution")

	exec(t, setup, "CREATE TABLE public.control AS SELECT 1 AS n")
	writing, stop := context.WithCancel(ctx)
	executions, control := new(stalls), new(stalls) // no migration touches the second table: the machine stalls it
	var writers sync.WaitGroup
	for log, write := range map[*stalls]string{
		executions: fmt.Sprintf("UPDATE execution SET started_at = now() WHERE id = %d", live),
		control:    "UPDATE public.control SET n = n + 1",
	} {
		conn := connect(t, opts)
		writers.Go(func() { log.run(writing, t, conn, write) })
	}
	t.Cleanup(func() { stop(); writers.Wait() }) // before the connections are closed

	reader := connect(t, opts)
	pid := one[int64](t, reader, "SELECT pg_backend_pid()::bigint")
	for _, direction := range []struct {
		name string
		run  func(migrations.Options) (migrations.Result, error)
	}{
		{"up", func(o migrations.Options) (migrations.Result, error) { return migrations.Up(ctx, o) }},
		{"down", func(o migrations.Options) (migrations.Result, error) { return migrations.Down(ctx, o, 0) }},
	} {
		seen := new(waits)
		opts.Logger = slog.New(seen)
		exec(t, reader, "BEGIN")
		one[int64](t, reader, "SELECT id FROM execution LIMIT 1")
		done := make(chan error, 1)
		go func() { _, err := direction.run(opts); done <- err }()
		testkit.Eventually(t, func() bool { return seen.tries.Load() >= 3 }, 60*time.Second, "it tries again and again")
		require.Equal(t, pid, seen.held.Load(), "it says who holds the lock")
		exec(t, reader, "COMMIT")
		require.NoError(t, <-done, direction.name)
	}
	stop()
	writers.Wait()
	longest, _ := executions.take()
	machine, _ := control.take()
	t.Logf("longest stall of a writer with %d executions: %s; of a writer of another table: %s", rows, longest, machine)
	require.Less(t, longest, machine+3*time.Second, "far below one wait of the past")
}

// busyTables are written all the time while an installation runs.
var busyTables = []string{
	"enforcement", "event", "execution", "execution_admission_entry", "execution_admission_state", "inquiry",
	"queue_stats", "worker",
	"workflow_execution", "workflow_task_dispatch",
}

// TestAMigrationThatWaitsHoldsNoBusyTable: a transaction that held one busy table while
// it waits for another would stall writers for several tries, not for one.
func TestAMigrationThatWaitsHoldsNoBusyTable(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "let each migration wait for a busy table; another test has writers go on")
	ctx := testkit.Context(t)
	opts := migrations.Options{
		URL: testkit.Installation(t, installation.Newest), Schema: testkit.Schema, LockTimeout: 30 * time.Second,
	}
	setup := connect(t, opts)
	holders := map[int64]*holder{}
	writing, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for _, table := range append([]string{"action", "pack", "policy", "rule", "runtime", "trigger"}, busyTables...) {
		h := &holder{table: table, conn: connect(t, opts), release: make(chan struct{}, 1)}
		holders[one[int64](t, h.conn, "SELECT pg_backend_pid()::bigint")] = h
		exec(t, h.conn, "BEGIN")
		exec(t, h.conn, "LOCK TABLE "+table+" IN ROW EXCLUSIVE MODE")
		writers.Go(func() { h.run(writing) })
	}
	t.Cleanup(func() { stop(); writers.Wait() }) // before the connections are closed
	for _, direction := range []struct {
		name string
		run  func() (migrations.Result, error)
	}{
		{"up", func() (migrations.Result, error) { return migrations.Up(ctx, opts) }},
		{"down", func() (migrations.Result, error) { return migrations.Down(ctx, opts, 0) }},
	} {
		done := make(chan error, 1)
		go func() { _, err := direction.run(); done <- err }()
		waited := 0
		testkit.Eventually(t, func() bool {
			rows, err := setup.Query(ctx, `SELECT b.pid::bigint, left(a.query, 300),
					coalesce((SELECT string_agg(l.relation::regclass::text, ', ') FROM pg_locks l
						WHERE l.pid = a.pid AND l.granted AND l.relation = ANY ($1::text[]::regclass[])
						  AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')), '')
				FROM pg_stat_activity a CROSS JOIN LATERAL unnest(pg_blocking_pids(a.pid)) AS b (pid)
				WHERE a.datname = current_database() AND a.application_name = 'attune-migrate'`, busyTables)
			require.NoError(t, err)
			var by int64
			var query, held string
			_, err = pgx.ForEachRow(rows, []any{&by, &query, &held}, func() error {
				if h := holders[by]; h != nil {
					waited++
					require.Empty(t, held, "%s: waits for %s with: %s", direction.name, h.table, query)
					select {
					case h.release <- struct{}{}:
					default: // it is about to
					}
				}
				return nil
			})
			require.NoError(t, err)
			select {
			case err := <-done:
				require.NoError(t, err, direction.name)
				return true
			default:
				return false
			}
		}, 3*time.Minute, "%s comes through", direction.name)
		require.Greater(t, waited, 10, "%s has met the writers", direction.name)
	}
}

// holder is a writer of a table, which ends its transaction on request and begins another.
type holder struct {
	table   string
	conn    *pgx.Conn
	release chan struct{}
}

func (h *holder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.release:
		}
		if _, err := h.conn.Exec(ctx, "COMMIT; BEGIN; LOCK TABLE "+h.table+" IN ROW EXCLUSIVE MODE"); err != nil {
			return // the test is over
		}
	}
}

// TestAMigrationThatCommitsInParts: when such a file cannot go on, its parts are taken back with the adoption; when it
// can again, it goes on from them.
func TestAMigrationThatCommitsInParts(t *testing.T) {
	t.Parallel()
	for blocked, part := range map[string]string{
		"runtime": "column policy.kind",             // in parts of a transaction
		"rule":    "relation attune_execution_live", // without a transaction
	} {
		t.Run(blocked, func(t *testing.T) {
			t.Parallel()
			ctx := testkit.Context(t)
			opts, conn := foreign(t, installation.Newest)
			before := shape(t, conn)
			reader := connect(t, opts)
			exec(t, reader, "BEGIN")
			exec(t, reader, "LOCK TABLE "+blocked+" IN ROW EXCLUSIVE MODE")
			opts.LockTimeout = 50 * time.Millisecond

			hasty := opts
			hasty.WaitTimeout = 200 * time.Millisecond
			_, err := migrations.Up(ctx, hasty)
			require.ErrorContains(t, err, "a lock on "+blocked+" is held by pid")
			require.Equal(t, before, shape(t, conn), "taken back")

			seen := new(waits)
			opts.Logger = slog.New(seen)
			done := make(chan error, 1)
			go func() { _, err := migrations.Up(ctx, opts); done <- err }()
			testkit.Eventually(t, func() bool { return seen.tries.Load() >= 2 }, time.Minute, "it tries again")
			require.Contains(t, shape(t, conn), part, "a part is committed")
			exec(t, reader, "COMMIT")
			require.NoError(t, <-done)
			_, err = migrations.Down(ctx, opts, 0)
			require.NoError(t, err)
			require.Equal(t, before, shape(t, conn), "handed back as it was")
		})
	}
}

// TestStallsOfWritersAtTwoMillionExecutions measures the stalls of writers during adoption and hand-back, by table,
// with and without a transaction that reads executions.
func TestStallsOfWritersAtTwoMillionExecutions(t *testing.T) {
	testkit.NeedsSlow(t, "measure the stalls of writers with 2,000,000 executions")
	testkit.Alone(t)
	ctx, stopWriters := context.WithCancel(t.Context())
	opts := migrations.Options{URL: testkit.Installation(t, installation.Newest), Schema: testkit.Schema}
	fill(t, opts, 2_000_000)
	exec(t, connect(t, opts), "CREATE TABLE public.control AS SELECT 1 AS n")

	const control = "control, which no migration touches"
	writers := make(map[string]*stalls)
	var running sync.WaitGroup
	for table, write := range map[string]string{
		"execution":                 "UPDATE execution SET started_at = now() WHERE id = (SELECT max(id) FROM execution)",
		"execution_admission_state": "UPDATE execution_admission_state SET total_enqueued = total_enqueued + 1",
		"worker":                    "UPDATE worker SET last_heartbeat = now()",
		"enforcement":               "UPDATE enforcement SET resolved_at = now()",
		"inquiry":                   "UPDATE inquiry SET timeout_at = now()",
		"workflow_execution":        "UPDATE workflow_execution SET pause_reason = NULL",
		control:                     "UPDATE control SET n = n + 1",
	} {
		conn, log := connect(t, opts), new(stalls)
		writers[table] = log
		running.Go(func() { log.run(ctx, t, conn, write) })
	}
	reader := connect(t, opts)
	for _, direction := range []struct {
		name string
		run  func() (migrations.Result, error)
	}{
		{"up", func() (migrations.Result, error) { return migrations.Up(t.Context(), opts) }},
		{"down", func() (migrations.Result, error) { return migrations.Down(t.Context(), opts, 0) }},
	} {
		seen := new(waits)
		opts.Logger = slog.New(seen)
		exec(t, reader, "BEGIN")
		one[int64](t, reader, "SELECT id FROM execution LIMIT 1")
		done := make(chan error, 1)
		go func() { _, err := direction.run(); done <- err }()
		testkit.Eventually(t, func() bool { return seen.tries.Load() >= 3 }, time.Minute, "it tries again and again")
		exec(t, reader, "COMMIT")
		require.NoError(t, <-done, direction.name)
		busy, _ := writers[control].take()
		for table, log := range writers {
			longest, all := log.take()
			t.Logf("%s: the longest stall of %s is %s; above 100 ms: %v", direction.name, table, longest, all)
			require.Less(t, longest, busy+200*time.Millisecond,
				"%s stalls writers of %s; the machine itself stalled by %s", direction.name, table, busy)
		}
	}
	stopWriters()
	running.Wait()
}

func fill(t *testing.T, opts migrations.Options, rows int) {
	t.Helper()
	conn := connect(t, opts)
	do := func(sql string, args ...any) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql, args...) // it may take minutes
		require.NoError(t, err)
	}
	do("INSERT INTO pack (ref, label, version) VALUES ('demo', 'Demo', '1.0.0')")
	do(`INSERT INTO action (ref, pack, pack_ref, label, entrypoint) SELECT 'demo.echo', id, ref, 'Echo', 'echo.sh' FROM pack`)
	found, err := conn.Query(t.Context(), `SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
		FROM pg_index WHERE indrelid = 'execution'::regclass AND NOT indisprimary`)
	require.NoError(t, err)
	indexes, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (index [2]string, err error) {
		err = row.Scan(&index[0], &index[1])
		return index, err
	})
	require.NoError(t, err)
	for _, index := range indexes {
		do("DROP INDEX " + index[0])
	}
	do("SET session_replication_role = replica") // no history of rows that only fill the table
	do(`INSERT INTO execution (action, action_ref, status, config, result, created, updated)
		SELECT a.id, a.ref, 'completed', '{"n": 1}', '{"exit_code": 0}', now() - interval '1 minute' * n, now() - interval '1 minute' * n
		FROM action a, generate_series(1, $1) AS n`, rows)
	do("SET session_replication_role = origin")
	for _, index := range indexes {
		do(index[1])
	}
	do("INSERT INTO execution (action, action_ref) SELECT id, ref FROM action")
	do("INSERT INTO worker (name, worker_type, worker_role) VALUES ('w1', 'local', 'action')")
	do("INSERT INTO execution_admission_state (action_id, max_concurrent) SELECT id, 2 FROM action")
	do(`INSERT INTO policy (ref, action, action_ref, method, threshold, name)
		SELECT 'demo.two', id, ref, 'enqueue', 2, 'two' FROM action`)
	do("INSERT INTO enforcement (rule_ref, trigger_ref, payload) VALUES ('demo.rule', 'demo.trigger', '{}')")
	do("INSERT INTO inquiry (execution, prompt) SELECT max(id), 'Go on?' FROM execution")
	do("VACUUM ANALYZE execution")
}

// stalls are the durations of writes to one table.
type stalls struct {
	mu      sync.Mutex
	longest time.Duration
	long    []time.Duration
}

func (l *stalls) take() (longest time.Duration, long []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	longest, long = l.longest, l.long
	l.longest, l.long = 0, nil
	return longest, long
}

func (l *stalls) run(ctx context.Context, t *testing.T, conn *pgx.Conn, write string) {
	_, err := conn.Exec(t.Context(), "SET synchronous_commit = off") // the disk is not measured
	for err == nil && ctx.Err() == nil {
		begin := time.Now()
		_, err = conn.Exec(t.Context(), write)
		took := time.Since(begin)
		l.mu.Lock()
		l.longest = max(l.longest, took)
		if took > 100*time.Millisecond {
			l.long = append(l.long, took.Round(time.Millisecond))
		}
		l.mu.Unlock()
		time.Sleep(2 * time.Millisecond) // the machine has other work
	}
	if err != nil {
		t.Error(err)
	}
}

// TestAnInterruptedIndexBuildIsBuiltAgain: IF NOT EXISTS would take the broken
// index for the one that is wanted.
func TestAnInterruptedIndexBuildIsBuiltAgain(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts := migrations.Options{URL: testkit.AdoptedDatabase(t), Schema: testkit.Schema}
	_, err := migrations.Down(ctx, opts, 107)
	require.NoError(t, err)
	conn := connect(t, opts)
	exec(t, conn, "CREATE INDEX attune_execution_action ON execution (action, id)")
	exec(t, conn, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'attune_execution_action'::regclass")
	_, err = migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.True(t,
		one[bool](t, conn, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'attune_execution_action'::regclass"))
}
