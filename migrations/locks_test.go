package migrations_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/installation"
	"github.com/attune-go/attune/core/testkit"
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
	const rows = 200_000
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

	writer := connect(t, opts)
	stop, stopped := make(chan struct{}), make(chan time.Duration)
	go func() {
		var longest time.Duration
		for {
			select {
			case <-stop:
				stopped <- longest
				return
			default:
			}
			begin := time.Now()
			_, err := writer.Exec(ctx, "UPDATE execution SET started_at = now() WHERE id = $1", live)
			if err != nil {
				t.Error(err)
			}
			longest = max(longest, time.Since(begin))
		}
	}()

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
	close(stop)
	longest := <-stopped
	t.Logf("longest stall of a writer with %d executions: %s", rows, longest)
	require.Less(t, longest, 3*time.Second, "far below one wait of the past")
}

// TestAnInterruptedIndexBuildIsBuiltAgain: IF NOT EXISTS would take the broken
// index for the one that is wanted.
func TestAnInterruptedIndexBuildIsBuiltAgain(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts := migrations.Options{URL: testkit.AdoptedDatabase(t), Schema: testkit.Schema}
	_, err := migrations.Down(ctx, opts, 31)
	require.NoError(t, err)
	conn := connect(t, opts)
	exec(t, conn, "CREATE INDEX attune_execution_action ON execution (action, id)")
	exec(t, conn, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'attune_execution_action'::regclass")
	_, err = migrations.Up(ctx, opts)
	require.NoError(t, err)
	require.True(t, one[bool](t, conn, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'attune_execution_action'::regclass"))
}
