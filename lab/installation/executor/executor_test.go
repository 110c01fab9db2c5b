package executor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/executor"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type database struct{ pool *pgxpool.Pool }

func (d database) Pool() *pgxpool.Pool { return d.pool }

// TestExecutorKeepsOrderAndLimit: six executions of an action with two slots run
// two at a time, in the order of their requests, and end.
func TestExecutorKeepsOrderAndLimit(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	url, wire := testkit.Installation(t, installation.Newest), testkit.VHost(t)
	pool, err := installation.Open(ctx, url, "attune", "test")
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	testkit.Exec(t, database{pool}, `INSERT INTO pack (ref, label, version) VALUES ('demo', 'Demo', '1.0.0')`)
	testkit.Exec(t, database{pool}, `INSERT INTO action (ref, pack, pack_ref, label, entrypoint)
		SELECT 'demo.sleep', id, ref, 'Sleep', 'sleep.sh' FROM pack`)
	testkit.Exec(t, database{pool}, `INSERT INTO policy (ref, action, action_ref, method, threshold, name)
		SELECT 'demo.two', id, ref, 'enqueue', 2, 'Two' FROM action`)
	testkit.Exec(t, database{pool},
		`INSERT INTO execution (action, action_ref) SELECT id, ref FROM action, generate_series(1, 6)`)

	e, err := executor.Start(ctx, url, wire)
	require.NoError(t, err)
	t.Cleanup(e.Stop)
	worker := testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{AMQPURL: wire, DatabaseURL: url, Concurrency: 4})
	for id := int64(1); id <= 6; id++ {
		require.NoError(t, e.Request(ctx, id))
	}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, database{pool}, "SELECT count(*) FROM execution WHERE status = 'completed'") == 6
	}, 30*time.Second, "all six complete")
	require.LessOrEqual(t, worker.MostAtOnce(), 2)
	var order []int64
	for _, run := range worker.Runs() {
		order = append(order, run.Job.ExecutionID)
	}
	require.Len(t, order, 6)
	slices.Sort(order)
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6}, order, "each runs once")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, database{pool}, "SELECT count(*) FROM execution_admission_entry") == 0
	}, 30*time.Second, "every slot is released")
	require.NoError(t, e.Err())
}
