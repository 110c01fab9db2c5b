package measure_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/measure"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// A small measurement runs all its executions to their ends, and its figures agree with them.
func TestRunMeasuresItsExecutions(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]measure.Config{
		"WithoutALimit": {Executions: 60, Actions: 3, Replicas: 1, Workers: 2, Concurrency: 10},
		"WithALimit":    {Executions: 60, Actions: 3, Limit: 2, Replicas: 2, Workers: 1, Concurrency: 10},
		"AList": {
			Executions: 30, Actions: 1, Limit: 5, Replicas: 2, Workers: 1, Concurrency: 10,
			Workflow: measure.List,
		},
		"AChain":  {Executions: 10, Actions: 1, Replicas: 1, Workers: 1, Concurrency: 10, Workflow: measure.Chain},
		"AtAPace": {Executions: 60, Actions: 1, Replicas: 1, Workers: 1, Concurrency: 10, Rate: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := testkit.Database(t)
			cfg.Profile = name
			begun := time.Now()
			report, err := measure.Run(testkit.Context(t), cfg, measure.Servers{
				DatabaseURL: database, Schema: testkit.Schema, AMQPURL: testkit.VHost(t),
				ManagementURL: testkit.ManagementURL(t),
			}, telemetry.Discard())
			require.NoError(t, err)

			require.Equal(t, cfg, report.Config)
			ended := cfg.Executions
			if cfg.Workflow != "" {
				ended++ // its own
				require.Positive(t, report.EarlyTask)
				require.Positive(t, report.LateTask)
			}
			require.EqualValues(t, ended, report.Completed)
			require.InDelta(t, float64(ended)/report.Seconds, report.PerSecond, 0.001)
			require.LessOrEqual(t, report.Seconds, time.Since(begun).Seconds())
			if cfg.Rate > 0 {
				require.Greater(t, report.Seconds, float64(cfg.Executions-1)/cfg.Rate, "requests were paced")
			}
			require.Positive(t, report.StartP50)
			require.LessOrEqual(t, report.StartP50, report.StartP95)
			require.LessOrEqual(t, report.StartP95, report.StartP99)
			require.Less(t, report.StartP99, report.Seconds, "nothing waited longer than the measurement took")
			if cfg.Limit > 0 && cfg.Workflow == "" {
				require.Positive(t, report.NextP50)
				require.LessOrEqual(t, report.NextP50, report.NextP99)
			} else if cfg.Workflow == "" {
				require.Zero(t, report.NextP99)
			}
			require.Positive(t, report.CommitsPerExecution)
			require.Positive(t, report.WALBytesPerExecution)
			require.GreaterOrEqual(t, report.HotRatio, 0.0)
			require.LessOrEqual(t, report.HotRatio, 1.0)
			require.NotEmpty(t, report.Machine.PostgreSQL)

			st := testkit.OpenStore(t, database)
			require.Equal(t, ended, testkit.Count(t, st, `SELECT count(*) FROM execution WHERE status = 'completed'`))
			testkit.Eventually(t, func() bool {
				return testkit.Count(t, st, `SELECT count(*) FROM execution_holder`) == 0
			}, 10*time.Second)

			var out bytes.Buffer
			measure.Print(&out, []measure.Report{report})
			require.Contains(t, out.String(), name)
		})
	}
}

// Servers that do not answer are an error, not a report.
func TestRunFailsWithoutServers(t *testing.T) {
	t.Parallel()
	_, err := measure.Run(testkit.Context(t), measure.Config{Executions: 1, Actions: 1}, measure.Servers{
		DatabaseURL: "postgres://nobody@127.0.0.1:1/none", Schema: testkit.Schema, AMQPURL: "amqp://127.0.0.1:1/",
	}, telemetry.Discard())
	require.ErrorContains(t, err, "migrate the database")
}
