package alerting

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/attune-go/attune/core/store"
)

const (
	// shownFor is how long a snapshot is shown when no newer one comes.
	shownFor = time.Minute
	// shownTargets bounds the series of one measure to the largest values.
	shownTargets = 20
	// countPage is how many decisions one tick counts.
	countPage = 10_000
)

var (
	measureDesc = prometheus.NewDesc("attune_measure",
		"What alert rules watch, by measure; of measures with targets the largest values. Every replica shows the same.", []string{"measure", "target"}, nil)
	depthDesc = prometheus.NewDesc("attune_dead_letter_queue_depth",
		"Undecided dead letters, on the broker and in the ledger. Every replica shows the same.",
		nil, nil)
	overdueDesc = prometheus.NewDesc("attune_scheduled_overdue",
		"Executions scheduled for longer than they may, of the oldest and newest unfinished. Every replica shows the same.", nil, nil)
	timeoutsDesc = prometheus.NewDesc("attune_execution_timeouts_total",
		"Executions that ended because they were not begun or not ended in time, by cause, since this replica began. Every replica counts all.", []string{"cause"}, nil)
	lostDesc = prometheus.NewDesc("attune_lost_work_total",
		"Decisions about work that a worker did not do, by cause and outcome, since this replica began. Every replica counts all.", []string{"cause", "outcome"}, nil)
	firingDesc = prometheus.NewDesc("attune_alerts_firing",
		"Alerts that fire, by rule and severity. Every replica shows the same.", []string{"rule", "severity"}, nil)
)

// timeoutCauses are the causes that are timeouts.
var timeoutCauses = []string{"scheduled_timeout", "action_timeout", "dead_letter"}

// metrics shows the newest snapshot. A scrape does not read the database.
type metrics struct {
	rules Rules

	mu       sync.Mutex
	measured *Measures // guarded by mu, as the following
	at       time.Time
	firing   map[[2]string]float64
	lost     map[[2]string]float64

	// mark is the newest counted decision; only the loop uses it.
	mark   int64
	marked bool
}

func newMetrics(rules Rules) *metrics {
	m := &metrics{rules: rules, lost: map[[2]string]float64{}}
	for _, cause := range timeoutCauses {
		m.lost[[2]string{cause, "failed"}] = 0 // a rate needs a first value
	}
	return m
}

// read stores a snapshot and counts the decisions since the last one.
func (m *metrics) read(ctx context.Context, st *store.Store, measured *Measures) error {
	rows, err := st.CountFiring(ctx)
	if err != nil {
		return fmt.Errorf("count the alerts that fire: %w", err)
	}
	firing := map[[2]string]float64{}
	for name, rule := range m.rules {
		if rule.Enabled {
			firing[[2]string{name, rule.Severity}] = 0
		}
	}
	for _, row := range rows {
		firing[[2]string{row.Rule, row.Severity}] = float64(row.N)
	}
	if !m.marked {
		marks, err := st.AlertMarks(ctx)
		if err != nil {
			return fmt.Errorf("find where counting begins: %w", err)
		}
		m.mark, m.marked = marks.Lost, true
	}
	decisions, err := st.CountLostWorkSince(ctx, m.mark, countPage)
	if err != nil {
		return fmt.Errorf("count decisions about lost work: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.measured, m.at, m.firing = measured, time.Now(), firing
	for _, row := range decisions {
		m.lost[[2]string{row.Cause, row.Outcome}] += float64(row.N)
		m.mark = max(m.mark, row.Last)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{measureDesc, depthDesc, overdueDesc, timeoutsDesc, lostDesc, firingDesc} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	timeouts := map[string]float64{}
	for key, n := range m.lost {
		out <- prometheus.MustNewConstMetric(lostDesc, prometheus.CounterValue, n, key[0], key[1])
		if slices.Contains(timeoutCauses, key[0]) && key[1] != "moved" {
			timeouts[key[0]] += n
		}
	}
	for cause, n := range timeouts {
		out <- prometheus.MustNewConstMetric(timeoutsDesc, prometheus.CounterValue, n, cause)
	}
	if m.measured == nil || time.Since(m.at) > shownFor {
		return // unknown is not 0
	}
	for key, n := range m.firing {
		out <- prometheus.MustNewConstMetric(firingDesc, prometheus.GaugeValue, n, key[0], key[1])
	}
	for _, one := range []struct {
		measure string
		desc    *prometheus.Desc
	}{{"dead_letter_depth", depthDesc}, {"scheduled_overdue", overdueDesc}} {
		if value, known := m.measured.Value(one.measure); known {
			out <- prometheus.MustNewConstMetric(one.desc, prometheus.GaugeValue, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.measured.Samples)) {
		collectMeasure(out, name, m.measured.Samples[name])
	}
}

func collectMeasure(out chan<- prometheus.Metric, name string, samples []Sample) {
	sorted := slices.Clone(samples)
	slices.SortStableFunc(sorted, func(a, b Sample) int { return cmp.Compare(b.Value, a.Value) })
	seen := map[string]bool{}
	for _, s := range sorted {
		target := plain(s.Target)
		if seen[target] || len(seen) == shownTargets {
			continue
		}
		seen[target] = true
		out <- prometheus.MustNewConstMetric(measureDesc, prometheus.GaugeValue, s.Value, name, target)
	}
}

var _ prometheus.Collector = (*metrics)(nil)
