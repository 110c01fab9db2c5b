package engine

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/attune-go/attune/core/monitor"
)

// outage records the start of a present failure, and the last failure.
type outage struct {
	mu    sync.Mutex
	since time.Time              // zero while it works; guarded by mu
	past  *monitor.ReplicaOutage // the last outage that ended; guarded by mu
}

// note records the result of the last try.
func (o *outage) note(err error) {
	now := time.Now().UTC()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil && o.since.IsZero():
		o.since = now
	case err == nil && !o.since.IsZero():
		o.past, o.since = &monitor.ReplicaOutage{From: o.since, Until: now}, time.Time{}
	}
}

// began is when the outage began, zero without one.
func (o *outage) began() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since
}

// last is the last outage that ended, nil without one.
func (o *outage) last() *monitor.ReplicaOutage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.past
}

// health exports the checks of /readyz as metrics, evaluated at every scrape.
type health struct{ engine *Engine }

var (
	readyDesc = prometheus.NewDesc("attune_ready", "1 while a check of /readyz passes.", []string{"check"}, nil)
	awayDesc  = prometheus.NewDesc("attune_database_away_seconds",
		"How long the database has been away, 0 while it answers.", nil, nil)
	blockDesc = prometheus.NewDesc("attune_broker_blocked_seconds",
		"How long the broker has accepted no messages, 0 while it does.", nil, nil)
	faultDesc = prometheus.NewDesc("attune_installation_faults",
		"Consumers and loops of this replica whose statements the database refuses, because a relation, a column, "+
			"a function, an index or a privilege is missing.",
		[]string{"replica"}, nil)
	batchDesc = prometheus.NewDesc("attune_round_under_way_seconds",
		"How long the oldest running batch has run, 0 without one.", nil, nil)
)

// Describe implements prometheus.Collector.
func (h *health) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{readyDesc, awayDesc, blockDesc, batchDesc, faultDesc} {
		descs <- desc
	}
}

// scrapeTimeout is the timeout of a scrape for the database.
const scrapeTimeout = 2 * time.Second

// Collect implements prometheus.Collector.
func (h *health) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout) //nolint:forbidigo // scrapes have none
	defer cancel()
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, check := range h.engine.Ready(ctx) {
		value := 0.0
		if check.OK {
			value = 1
		}
		send(readyDesc, value, check.Name)
	}
	send(awayDesc, secondsSince(h.engine.report.away.began()))
	blocked := 0.0
	for _, link := range h.engine.broker.Links() {
		if link.Blocked {
			blocked = max(blocked, secondsSince(link.Since))
		}
	}
	send(blockDesc, blocked)
	since, _ := h.engine.hot.underWay()
	send(batchDesc, secondsSince(since))
	send(faultDesc, float64(len(h.engine.gate.Faults())), h.engine.id.String()[:8])
}

func secondsSince(begin time.Time) float64 {
	if begin.IsZero() {
		return 0
	}
	return max(time.Since(begin).Seconds(), 0)
}
