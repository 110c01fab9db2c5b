package progress_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/progress"
	"github.com/attune-go/attune/core/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func connect(t *testing.T, vhost string) *broker.Broker {
	t.Helper()
	wire := broker.New(broker.Config{URL: vhost, ConnectionName: "progress"}, testkit.Logger(t), nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	return wire
}

func publish(t *testing.T, wire *broker.Broker, bodies ...[]byte) {
	t.Helper()
	messages := make([]broker.Message, len(bodies))
	for i, body := range bodies {
		messages[i] = broker.Message{
			ID: "report", Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionStatusChanged,
			Type: message.TypeExecutionStatusChanged, Body: body,
		}
	}
	for _, outcome := range wire.Publisher().Publish(testkit.Context(t), messages) {
		require.NoError(t, outcome.Err)
	}
}

func report(t *testing.T, status string) []byte {
	t.Helper()
	body, err := message.New(message.TypeExecutionStatusChanged, message.ExecutionStatusChanged{
		ExecutionID: 1, ActionRef: "core.echo", PreviousStatus: "scheduled", NewStatus: status, ChangedAt: time.Now().UTC(),
	}, time.Now(), "test").Encode()
	require.NoError(t, err)
	return body
}

func state(t *testing.T, wire *broker.Broker, queue string) broker.QueueState {
	t.Helper()
	state, err := wire.QueueState(testkit.Context(t), queue)
	require.NoError(t, err)
	return state
}

// Reports are counted by status and taken for good; what cannot be read goes
// to the dead letters and holds up nothing.
func TestReportsAreCountedAndUnreadableOnesDeadLettered(t *testing.T) {
	t.Parallel()
	vhost := testkit.VHost(t)
	look, wire := connect(t, vhost), connect(t, vhost)
	require.NoError(t, look.DeclareExecutor(testkit.Context(t)))
	registry := prometheus.NewRegistry()
	consumer := wire.Consume(broker.ConsumerConfig{Queue: message.QueueExecutionStatus, Prefetch: 10, MaxBatch: 4})
	reports := progress.New(consumer, testkit.Logger(t), progress.NewMetrics(registry))
	require.NoError(t, consumer.Start(testkit.Context(t)))
	require.NoError(t, reports.Start(testkit.Context(t)))
	t.Cleanup(reports.Stop)

	publish(t, look, report(t, "running"), []byte("not JSON"), report(t, "running"), []byte(`{"payload":{}}`),
		report(t, "completed"), report(t, "whatever a stranger says"))
	testkit.Eventually(t, func() bool { return state(t, look, message.QueueDeadLetter).Ready == 2 }, 10*time.Second)
	want := `
		# HELP attune_status_reports_total Reports of workers about the status of executions.
		# TYPE attune_status_reports_total counter
		attune_status_reports_total{status="completed"} 1
		attune_status_reports_total{status="running"} 2
		attune_status_reports_total{status="unknown"} 1
	`
	var differs error
	testkit.Eventually(t, func() bool {
		differs = testutil.GatherAndCompare(registry, strings.NewReader(want))
		return differs == nil
	}, 10*time.Second)
	require.NoError(t, differs)

	// What was acknowledged does not come back when the consumer goes.
	reports.Stop()
	consumer.Stop()
	wire.Stop()
	testkit.Eventually(t, func() bool { return state(t, look, message.QueueExecutionStatus).Consumers == 0 }, 10*time.Second)
	require.Zero(t, state(t, look, message.QueueExecutionStatus).Ready)
	require.Equal(t, 2, state(t, look, message.QueueDeadLetter).Ready)
}

// Without metrics reports are taken all the same.
func TestReportsAreTakenWithoutMetrics(t *testing.T) {
	t.Parallel()
	wire := connect(t, testkit.VHost(t))
	require.NoError(t, wire.DeclareExecutor(testkit.Context(t)))
	publish(t, wire, report(t, "running"))
	require.Equal(t, 1, state(t, wire, message.QueueExecutionStatus).Ready)
	consumer := wire.Consume(broker.ConsumerConfig{Queue: message.QueueExecutionStatus})
	reports := progress.New(consumer, testkit.Logger(t), nil)
	require.NoError(t, consumer.Start(testkit.Context(t)))
	require.NoError(t, reports.Start(testkit.Context(t)))
	testkit.Eventually(t, func() bool { return state(t, wire, message.QueueExecutionStatus).Ready == 0 }, 10*time.Second)
	reports.Stop() // takes what it was given, and ends
	consumer.Stop()
	testkit.Eventually(t, func() bool { return state(t, wire, message.QueueExecutionStatus).Consumers == 0 }, 10*time.Second)
	require.Zero(t, state(t, wire, message.QueueExecutionStatus).Ready)
}
