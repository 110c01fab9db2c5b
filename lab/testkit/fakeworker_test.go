package testkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

const waitTimeout = time.Minute

// workerBundle is an engine reduced to a channel: it dispatches executions to a fake worker and reads its reports.
type workerBundle struct {
	t         *testing.T
	cfg       testkit.FakeWorkerConfig
	pool      *pgxpool.Pool
	channel   *amqp.Channel
	completed <-chan amqp.Delivery
	action    testkit.ActionRow
}

func (b *workerBundle) Pool() *pgxpool.Pool { return b.pool }

func setupWorker(t *testing.T) *workerBundle {
	t.Helper()
	b := &workerBundle{t: t, cfg: testkit.FakeWorkerConfig{DatabaseURL: testkit.Database(t), AMQPURL: testkit.VHost(t)}}
	config, err := pgxpool.ParseConfig(b.cfg.DatabaseURL)
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["search_path"] = testkit.Schema
	b.pool, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(b.pool.Close)
	conn, err := amqp.Dial(b.cfg.AMQPURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	b.channel, err = conn.Channel()
	require.NoError(t, err)
	require.NoError(t, b.channel.ExchangeDeclare("attune.executions", "topic", true, false, false, false, nil))
	queue, err := b.channel.QueueDeclare("", false, false, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, b.channel.QueueBind(queue.Name, "execution.completed", "attune.executions", false, nil))
	b.completed, err = b.channel.Consume(queue.Name, "", true, true, false, false, nil)
	require.NoError(t, err)
	b.action = testkit.Action(t, b, "demo.act")
	return b
}

func (b *workerBundle) dispatch(w *testkit.FakeWorker) int64 {
	b.t.Helper()
	execution := testkit.Execution(b.t, b, b.action, func(e *testkit.ExecutionRow) {
		e.Status, e.Worker = lifecycle.StatusScheduled, &w.ID
	})
	b.send("execution.dispatch.worker.%d", w.ID, execution.ID)
	return execution.ID
}

func (b *workerBundle) send(key string, worker, execution int64) {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{
		"message_id": uuid.NewString(), "message_type": "ExecutionRequested", "timestamp": time.Now().UTC(),
		"payload": map[string]any{"execution_id": execution, "worker_id": worker, "action_ref": "demo.act"},
	})
	require.NoError(b.t, err)
	require.NoError(b.t, b.channel.PublishWithContext(b.t.Context(), "attune.executions", fmt.Sprintf(key, worker),
		true, false, amqp.Publishing{Body: body}))
}

func (b *workerBundle) reports(n int) {
	b.t.Helper()
	for range n {
		select {
		case <-b.completed:
		case <-time.After(waitTimeout):
			require.Fail(b.t, "no execution.completed")
		}
	}
}

func (b *workerBundle) becomes(execution int64, status lifecycle.Status) {
	b.t.Helper()
	testkit.Eventually(b.t, func() bool { return testkit.StatusOf(b.t, b, execution) == status }, waitTimeout,
		"execution %d does not become %s", execution, status)
}

func TestFakeWorkerRunsADispatch(t *testing.T) {
	b := setupWorker(t)
	worker := testkit.StartFakeWorker(t, b.cfg)

	execution := b.dispatch(worker)
	b.reports(1)
	require.Equal(t, lifecycle.StatusCompleted, testkit.StatusOf(t, b, execution))
	testkit.Eventually(t, func() bool { return len(worker.Runs()) == 1 && !worker.Runs()[0].End.IsZero() }, waitTimeout)
	require.Equal(t, execution, worker.Runs()[0].Job.ExecutionID)
	require.NoError(t, worker.Stop(t.Context()))
	require.Equal(t, 1,
		testkit.Count(t, b, `select count(*) from worker where id = $1 and status = 'inactive'`, worker.ID))
}

func TestFakeWorkerKeepsItsIDWhenItComesBack(t *testing.T) {
	b := setupWorker(t)
	b.cfg.Name = "comes-back"
	first := testkit.StartFakeWorker(t, b.cfg)
	first.Kill()
	require.Equal(t, first.ID, testkit.StartFakeWorker(t, b.cfg).ID)
}

func TestFakeWorkerMisbehaves(t *testing.T) {
	t.Parallel()

	t.Run("never answers", func(t *testing.T) {
		t.Parallel()
		b := setupWorker(t)
		b.cfg.Behave = func(context.Context, testkit.Job) testkit.Answer { return testkit.Answer{Never: true} }
		worker := testkit.StartFakeWorker(t, b.cfg)
		execution := b.dispatch(worker)
		b.becomes(execution, lifecycle.StatusRunning)
		require.True(t, worker.Runs()[0].End.IsZero())
	})

	t.Run("answers twice", func(t *testing.T) {
		t.Parallel()
		b := setupWorker(t)
		b.cfg.Behave = func(context.Context, testkit.Job) testkit.Answer {
			return testkit.Answer{Status: "failed", Times: 2}
		}
		execution := b.dispatch(testkit.StartFakeWorker(t, b.cfg))
		b.reports(2)
		require.Equal(t, lifecycle.StatusFailed, testkit.StatusOf(t, b, execution))
	})

	t.Run("dies while it runs", func(t *testing.T) {
		t.Parallel()
		b := setupWorker(t)
		started := make(chan struct{})
		b.cfg.Behave = func(ctx context.Context, _ testkit.Job) testkit.Answer {
			close(started)
			<-ctx.Done()
			return testkit.Answer{}
		}
		worker := testkit.StartFakeWorker(t, b.cfg)
		execution := b.dispatch(worker)
		<-started
		worker.Kill()
		require.Equal(t, lifecycle.StatusRunning, testkit.StatusOf(t, b, execution), "a dead worker wrote")
	})

	t.Run("is cancelled", func(t *testing.T) {
		t.Parallel()
		b := setupWorker(t)
		started := make(chan struct{})
		b.cfg.Behave = func(ctx context.Context, _ testkit.Job) testkit.Answer {
			close(started)
			<-ctx.Done()
			return testkit.Answer{}
		}
		worker := testkit.StartFakeWorker(t, b.cfg)
		execution := b.dispatch(worker)
		<-started
		b.send("execution.cancel.worker.%d", worker.ID, execution)
		b.becomes(execution, lifecycle.StatusCancelled)
	})
}
