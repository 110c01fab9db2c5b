package inquiry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/attune-go/attune/core/store"
)

// Metrics are the metrics of inquiries.
type Metrics struct {
	open      *prometheus.GaugeVec // without labels, so that Reset hides an unknown number
	oldest    *prometheus.GaugeVec
	late      *prometheus.GaugeVec
	responses prometheus.Counter
	endings   *prometheus.CounterVec
}

// NewMetrics registers the metrics, unless registerer is nil.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	auto := promauto.With(registerer)
	gauge := func(name, help string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, nil)
	}
	m := &Metrics{
		open:   gauge("attune_inquiries_open", "Open inquiries."),
		oldest: gauge("attune_inquiry_oldest_seconds", "Age of the oldest open inquiry."),
		late:   gauge("attune_inquiries_late", "Open inquiries with less than a fifth of their time left."),
		responses: auto.NewCounter(prometheus.CounterOpts{
			Name: "attune_inquiry_responses_total", Help: "Messages about answers that this replica has processed.",
		}),
		endings: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "attune_inquiries_ended_total",
			Help: "Inquiries that this replica has ended, or found ended without a message, by status.",
		}, []string{"status"}),
	}
	for _, status := range []Status{Responded, Expired, Cancelled} {
		m.endings.WithLabelValues(string(status))
	}
	return m
}

func (m *Metrics) count(row store.CountOpenInquiriesRow) {
	m.open.WithLabelValues().Set(float64(row.Open))
	m.oldest.WithLabelValues().Set(row.OldestSeconds)
	m.late.WithLabelValues().Set(float64(row.Late))
}

// unknown hides the numbers of the last count.
func (m *Metrics) unknown() {
	m.open.Reset()
	m.oldest.Reset()
	m.late.Reset()
}
