package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// A replica refuses to start where another executor consumes, which it knows by its connection or by the number of
// consumers. The override starts it.
func TestRefusesToStartBesideAnotherExecutor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*config.Config)
		says   string
	}{
		"with management": {
			func(*config.Config) {},
			"executor.scheduler consumes " + message.QueueExecutionRequests,
		},
		"without management": {
			func(cfg *config.Config) { cfg.MessageQueue.ManagementURL = "" },
			"has 1 consumer, and 0 replicas run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			other := b.connect(t, "other").Consume(broker.ConsumerConfig{
				Queue: message.QueueExecutionRequests, Tag: "executor.scheduler", Prefetch: 10, MaxBatch: 10,
			})
			require.NoError(t, other.Start(testkit.Context(t)))
			t.Cleanup(other.Stop)
			management, err := broker.NewManagement(b.Management, testkit.VHostName(t, b.AMQP), time.Minute)
			require.NoError(t, err)
			t.Cleanup(management.Close)
			testkit.Eventually(t, func() bool {
				consumers, err := management.Consumers(testkit.Context(t))
				require.NoError(t, err)
				return len(consumers) == 1 && consumers[0].Connection != ""
			}, 20*time.Second, "the management API lists the consumer")

			cfg := b.config()
			c.change(cfg)
			e, err := engine.New(testkit.Context(t), cfg, engine.Deps{Logger: testkit.Logger(t)})
			require.NoError(t, err)
			err = e.Start(testkit.Context(t))
			var refused *engine.OtherExecutorError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "--beside")

			e, err = engine.New(testkit.Context(t), cfg, engine.Deps{Logger: testkit.Logger(t), Beside: true})
			require.NoError(t, err)
			require.NoError(t, e.Start(testkit.Context(t)))
			require.NoError(t, e.Stop(testkit.Context(t)))
		})
	}
}

// An alert names an executor that starts later.
func TestAnExecutorThatComesLaterIsNoticed(t *testing.T) {
	b := setup(t)
	b.engine(t, func(cfg *config.Config) { cfg.Alerts["other_executor"].For = 0 })
	other := b.connect(t, "other").Consume(broker.ConsumerConfig{
		Queue: message.QueueExecutionCompleted, Tag: "executor.completion", Prefetch: 10, MaxBatch: 10,
	})
	require.NoError(t, other.Start(testkit.Context(t)))
	t.Cleanup(other.Stop)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store,
			`SELECT count(*) FROM alert WHERE rule = 'other_executor' AND fired IS NOT NULL`) > 0
	}, 90*time.Second, "the check runs once a minute")
	var summary string
	require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t),
		`SELECT summary FROM alert WHERE rule = 'other_executor'`).Scan(&summary))
	require.Contains(t, summary, message.QueueExecutionCompleted)
}
