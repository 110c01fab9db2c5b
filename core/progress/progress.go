// Package progress takes execution.status.changed, which workers send while
// an execution moves. The rows are the truth and are written by whoever made
// the change, so a report changes nothing by itself: it is read, counted and
// acknowledged. A report that cannot be read is dead-lettered.
package progress

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/supervise"
)

// Metrics counts reports. A nil *Metrics counts nothing.
type Metrics struct{ reports *prometheus.CounterVec }

// NewMetrics registers the metrics of reports.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{reports: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "attune_status_reports_total", Help: "Reports of workers about the status of executions.",
	}, []string{"status"})}
	reg.MustRegister(m.reports)
	return m
}

// Reports is the service that reads them.
type Reports struct {
	supervise.Base

	consumer *broker.Consumer
	logger   *slog.Logger
	metrics  *Metrics
}

// New makes the service on a consumer of the status queue.
func New(consumer *broker.Consumer, logger *slog.Logger, metrics *Metrics) *Reports {
	return &Reports{consumer: consumer, logger: logger, metrics: metrics}
}

// Start implements supervise.Service.
func (r *Reports) Start(ctx context.Context) error { return r.Launch(ctx, nil, r.run) }

func (r *Reports) run(ctx context.Context) {
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

func (r *Reports) read(ctx context.Context, batch *broker.Batch) {
	for i := range batch.Deliveries {
		delivery := &batch.Deliveries[i]
		envelope, err := message.Decode[message.ExecutionStatusChanged](delivery.Body)
		if err != nil {
			r.logger.WarnContext(ctx, "Status report dead-lettered", "message_id", delivery.MessageID, "reason", err)
			delivery.GiveUp(ctx, err, 1)
			continue
		}
		if r.metrics != nil {
			r.metrics.reports.WithLabelValues(label(envelope.Payload.NewStatus)).Inc()
		}
	}
	if err := batch.Ack(); err != nil {
		r.logger.DebugContext(ctx, "Status reports could not be acknowledged", "error", err)
	}
}
