package scheduler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

func connectStatus(t *testing.T, vhost string) *broker.Broker {
	t.Helper()
	wire := broker.New(broker.Config{URL: vhost, ConnectionName: "progress"}, testkit.Logger(t), nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	return wire
}

func publishStatus(t *testing.T, wire *broker.Broker, bodies ...[]byte) {
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

func statusReport(t *testing.T, status string) []byte {
	t.Helper()
	body, err := message.New(message.TypeExecutionStatusChanged, message.ExecutionStatusChanged{
		ExecutionID: 1, ActionRef: "core.echo", PreviousStatus: "scheduled", NewStatus: status,
		ChangedAt: time.Now().UTC(),
	}, time.Now(), "test").Encode()
	require.NoError(t, err)
	return body
}

func queueState(t *testing.T, wire *broker.Broker, queue string) broker.QueueState {
	t.Helper()
	state, err := wire.QueueState(testkit.Context(t), queue)
	require.NoError(t, err)
	return state
}

// Reports are counted by status and acknowledged. Unreadable ones become dead letters and delay no other.
func TestReportsAreCountedAndUnreadableOnesDeadLettered(t *testing.T) {
	vhost := testkit.VHost(t)
	look, wire := connectStatus(t, vhost), connectStatus(t, vhost)
	require.NoError(t, look.DeclareExecutor(testkit.Context(t)))
	registry := prometheus.NewRegistry()
	stopped := make(chan []int64, 1)
	consumer := wire.Consume(broker.ConsumerConfig{Queue: message.QueueExecutionStatus, Prefetch: 10, MaxBatch: 4})
	reports := scheduler.NewStatusReports(consumer,
		func(_ context.Context, executions []int64) { stopped <- executions }, testkit.Logger(t),
		scheduler.NewStatusMetrics(registry))
	require.NoError(t, consumer.Start(testkit.Context(t)))
	require.NoError(t, reports.Start(testkit.Context(t)))
	t.Cleanup(reports.Stop)

	publishStatus(t, look, statusReport(t, "running"), []byte("not JSON"), statusReport(t, "running"),
		[]byte(`{"payload":{}}`),
		statusReport(t, "completed"), statusReport(t, "whatever a stranger says"))
	testkit.Eventually(t, func() bool { return queueState(t, look, message.QueueDeadLetter).Ready == 2 },
		10*time.Second)
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
	require.Empty(t, stopped)

	// Cancelled and stopping executions are passed on.
	for _, status := range []string{"canceling", "cancelled"} {
		publishStatus(t, look, statusReport(t, status))
		require.Equal(t, []int64{1}, <-stopped)
	}

	// Acknowledged reports do not return when the consumer stops.
	reports.Stop()
	consumer.Stop()
	wire.Stop()
	testkit.Eventually(t, func() bool { return queueState(t, look, message.QueueExecutionStatus).Consumers == 0 },
		10*time.Second)
	require.Zero(t, queueState(t, look, message.QueueExecutionStatus).Ready)
	require.Equal(t, 2, queueState(t, look, message.QueueDeadLetter).Ready)
}

// Without metrics reports are taken all the same.
func TestReportsAreTakenWithoutMetrics(t *testing.T) {
	wire := connectStatus(t, testkit.VHost(t))
	require.NoError(t, wire.DeclareExecutor(testkit.Context(t)))
	publishStatus(t, wire, statusReport(t, "running"))
	require.Equal(t, 1, queueState(t, wire, message.QueueExecutionStatus).Ready)
	consumer := wire.Consume(broker.ConsumerConfig{Queue: message.QueueExecutionStatus})
	reports := scheduler.NewStatusReports(consumer, func(context.Context, []int64) {}, testkit.Logger(t), nil)
	require.NoError(t, consumer.Start(testkit.Context(t)))
	require.NoError(t, reports.Start(testkit.Context(t)))
	testkit.Eventually(t, func() bool { return queueState(t, wire, message.QueueExecutionStatus).Ready == 0 },
		10*time.Second)
	reports.Stop() // processes delivered reports, and ends
	consumer.Stop()
	testkit.Eventually(t, func() bool { return queueState(t, wire, message.QueueExecutionStatus).Consumers == 0 },
		10*time.Second)
	require.Zero(t, queueState(t, wire, message.QueueExecutionStatus).Ready)
}
