package broker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics measures a Broker.
type Metrics struct {
	connected   *prometheus.GaugeVec
	blocked     *prometheus.GaugeVec
	connects    *prometheus.CounterVec
	published   *prometheus.CounterVec
	confirm     prometheus.Histogram
	outstanding prometheus.Gauge
	subscribed  *prometheus.GaugeVec
	delivered   *prometheus.CounterVec
	settled     *prometheus.CounterVec
	batch       *prometheus.HistogramVec
}

// NewMetrics registers the metrics; with a nil registerer they are not exported.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	auto := promauto.With(registerer)
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &Metrics{
		connected: gauge("attune_broker_connected", "1 while the connection is up.", "connection"),
		blocked: gauge("attune_broker_blocked", "1 while the broker accepts no messages on the connection.",
			"connection"),
		connects:  counter("attune_broker_connects_total", "Attempts to connect, by outcome.", "connection", "outcome"),
		published: counter("attune_broker_published_total", "Messages passed to the publisher, by outcome.", "outcome"),
		confirm: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "attune_broker_confirm_seconds", Help: "Time from publishing a message to its confirmation.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 15},
		}),
		outstanding: auto.NewGauge(prometheus.GaugeOpts{
			Name: "attune_broker_unconfirmed", Help: "Messages published and not yet confirmed.",
		}),
		subscribed: gauge("attune_broker_subscribed", "1 while this process consumes the queue.", "queue"),
		delivered:  counter("attune_broker_delivered_total", "Messages delivered, by queue.", "queue", "redelivered"),
		settled:    counter("attune_broker_settled_total", "Settled deliveries, by queue and outcome.", "queue", "how"),
		batch: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "attune_broker_batch_messages", Help: "Messages in a received batch.",
			Buckets: []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000},
		}, []string{"queue"}),
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func (m *Metrics) up(connection string, up bool) {
	m.connected.WithLabelValues(connection).Set(flag(up))
	if !up {
		m.blocked.WithLabelValues(connection).Set(0)
	}
}

func (m *Metrics) block(connection string, blocked bool) {
	m.blocked.WithLabelValues(connection).Set(flag(blocked))
}

func (m *Metrics) connect(connection string, err error) {
	outcome := "connected"
	if err != nil {
		outcome = "failed"
	}
	m.connects.WithLabelValues(connection, outcome).Inc()
}

func (m *Metrics) sent() {
	m.outstanding.Inc()
}

func (m *Metrics) resolved(status Status, took time.Duration) {
	m.outstanding.Dec()
	if status != Unknown {
		m.confirm.Observe(took.Seconds())
	}
}

func (m *Metrics) outcomes(outcomes []Outcome) {
	for _, outcome := range outcomes {
		m.published.WithLabelValues(outcome.Status.String()).Inc()
	}
}

func (m *Metrics) subscribe(queue string, on bool) {
	m.subscribed.WithLabelValues(queue).Set(flag(on))
}

func (m *Metrics) countDelivered(queue string, size, again int) {
	m.delivered.WithLabelValues(queue, "false").Add(float64(size - again))
	m.delivered.WithLabelValues(queue, "true").Add(float64(again))
	m.batch.WithLabelValues(queue).Observe(float64(size))
}

func (m *Metrics) settle(queue, how string, n int) {
	if n > 0 {
		m.settled.WithLabelValues(queue, how).Add(float64(n))
	}
}
