package scheduler

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
)

// StatusMetrics counts reports.
type StatusMetrics struct{ reports *prometheus.CounterVec }

// NewStatusMetrics registers the metrics of reports.
func NewStatusMetrics(reg prometheus.Registerer) *StatusMetrics {
	return &StatusMetrics{reports: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "attune_status_reports_total", Help: "Reports of workers about the status of executions.",
	}, []string{"status"})}
}

// StatusReports reads execution.status.changed, which workers send while an execution moves. The
// worker writes the row itself, so a report changes nothing: it is counted and acknowledged. An
// unreadable report is dead-lettered. Other programs cancel workflows by their row and such a report.
type StatusReports struct {
	supervise.Base

	consumer *broker.Consumer
	stopped  func(ctx context.Context, executions []int64)
	logger   *slog.Logger
	metrics  *StatusMetrics
}

// NewStatusReports makes the service on a consumer of the status queue. It calls stopped with the executions that are
// said to be cancelled or to be stopping.
func NewStatusReports(
	consumer *broker.Consumer, stopped func(ctx context.Context, executions []int64), logger *slog.Logger,
	metrics *StatusMetrics,
) *StatusReports {
	return &StatusReports{consumer: consumer, stopped: stopped, logger: logger,
		metrics: cmp.Or(metrics, NewStatusMetrics(nil))}
}

// Start implements supervise.Service.
func (r *StatusReports) Start(ctx context.Context) error { return r.Launch(ctx, nil, r.run) }

func (r *StatusReports) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case batch, ok := <-r.consumer.Batches():
			if !ok {
				return
			}
			r.read(ctx, batch)
		}
	}
}

func (r *StatusReports) read(ctx context.Context, batch *broker.Batch) {
	var stopped []int64
	for i := range batch.Deliveries {
		delivery := &batch.Deliveries[i]
		envelope, err := message.Decode[message.ExecutionStatusChanged](delivery.Body)
		if err != nil {
			r.logger.WarnContext(telemetry.Often(ctx), "Status report dead-lettered",
				"message_id", delivery.MessageID, "reason", err)
			delivery.GiveUp(ctx, err, 1)
			continue
		}
		status, err := lifecycle.ParseStatus(envelope.Payload.NewStatus)
		if err != nil {
			status = "unknown" // limits the labels to the known statuses
		}
		if status == lifecycle.StatusCanceling || status == lifecycle.StatusCancelled {
			stopped = append(stopped, envelope.Payload.ExecutionID)
		}
		r.metrics.reports.WithLabelValues(string(status)).Inc()
	}
	if len(stopped) > 0 {
		r.stopped(ctx, stopped)
	}
	if err := batch.Ack(); err != nil {
		r.logger.DebugContext(ctx, "Status reports could not be acknowledged", "error", err)
	}
}
