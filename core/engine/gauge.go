package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/supervise"
)

const (
	// Interval is how often the queues are read.
	Interval = 10 * time.Second
	// keep is how long an old reading is shown without a newer one.
	keep = time.Minute
)

// gaugeReader reads the busiest actions; *monitor.Monitor is one.
type gaugeReader interface {
	Busiest(ctx context.Context) (*monitor.Busiest, error)
}

// gaugeDeps are the dependencies of a gauge.
type gaugeDeps struct {
	Reader  gaugeReader
	Logger  *slog.Logger
	Metrics *supervise.Metrics
	// Now is the local clock; nil means time.Now.
	Now func() time.Time
}

// gauge is a prometheus.Collector and, by its loop, a supervise.Service.
type gauge struct {
	*supervise.Loop

	reader gaugeReader
	now    func() time.Time

	mu sync.Mutex
	// last is the newest reading, from readAt; guarded by mu.
	last   *monitor.Busiest
	readAt time.Time
}

// newGauge makes the collector. It shows nothing before the first reading.
func newGauge(deps gaugeDeps) *gauge {
	g := &gauge{reader: deps.Reader, now: deps.Now}
	if g.now == nil {
		g.now = time.Now
	}
	g.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "queue gauges", Interval: Interval, Timeout: Interval, Jitter: 0.1, Tick: g.tick,
		Logger: deps.Logger, Metrics: deps.Metrics,
	})
	return g
}

func (g *gauge) tick(ctx context.Context) error {
	loads, err := g.reader.Busiest(ctx)
	if err != nil {
		return fmt.Errorf("read the queues for metrics: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last, g.readAt = loads, g.now()
	return nil
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("attune_queue_"+name, help, append([]string{"action"}, labels...), nil)
}

var (
	length = desc("length", "Executions that wait in the queues of an action.")
	active = desc("active", "Executions that hold a slot of the queues of an action.")
	limit  = desc("limit",
		"Limit in force for each queue of an action: one queue, or one for each group if the policy has "+
			"parameters; absent without a limit.")
	oldest = desc("oldest_waiting_seconds",
		"How long the longest waiting head of an action's queues has waited; 0 if no execution waits.")
	paused  = desc("paused", "1 while a queue of the action is paused.")
	blocked = desc("blocked",
		"Queues of the action with a free slot whose head waits for a shared limit or a worker.")
	ages = desc("waiting_age",
		"Executions in the longest queues that have waited for at most le seconds.", "le")
	enqueued = desc("enqueued_total",
		"Executions that ever entered the queues of an action, whether or not they had to wait.")
	completed = desc("completed_total", "Executions that ever released a slot of the queues of an action.")
)

func sharedDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("attune_limit_"+name, help, []string{"kind", "scope", "policy"}, nil)
}

var (
	sharedActive = sharedDesc("active", "Executions that hold a slot of a shared limit of a pack or of everything.")
	sharedMax    = sharedDesc("max", "Slots of a shared limit of a pack or of everything, as in force.")
)

// Describe implements prometheus.Collector.
func (g *gauge) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		length, active, limit, oldest, paused, blocked, ages, enqueued, completed,
		sharedActive, sharedMax,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauge) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	last, age := g.last, g.now().Sub(g.readAt)
	g.mu.Unlock()
	if last == nil || age > keep {
		return
	}
	for _, load := range last.List {
		send(out, load, last.At)
	}
	for _, s := range last.Shared {
		labels := []string{s.Kind, s.Name, s.PolicyRef}
		out <- prometheus.MustNewConstMetric(sharedActive, prometheus.GaugeValue, float64(s.Active), labels...)
		out <- prometheus.MustNewConstMetric(sharedMax, prometheus.GaugeValue, float64(s.Limit), labels...)
	}
}

func send(out chan<- prometheus.Metric, load monitor.ActionLoad, at time.Time) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value,
			append([]string{load.ActionRef}, labels...)...)
	}
	gauge(length, float64(load.Queued))
	gauge(active, float64(load.Active))
	if load.Limit != nil {
		gauge(limit, float64(*load.Limit))
	}
	waits := 0.0
	if load.Oldest != nil {
		waits = max(at.Sub(*load.Oldest).Seconds(), 0)
	}
	gauge(oldest, waits)
	gauge(paused, one(load.Paused))
	gauge(blocked, float64(load.Blocked))
	if load.Ages != nil {
		total := int64(0)
		for i, n := range load.Ages.Classes {
			total += n
			gauge(ages, float64(total), bound(i))
		}
	}
	out <- prometheus.MustNewConstMetric(enqueued, prometheus.CounterValue, float64(load.Enqueued), load.ActionRef)
	out <- prometheus.MustNewConstMetric(completed, prometheus.CounterValue, float64(load.Completed), load.ActionRef)
}

// bound is the upper bound of a class of ages, as the label le has it.
func bound(class int) string {
	if class >= len(monitor.AgeBounds) {
		return "+Inf"
	}
	return strconv.FormatFloat(monitor.AgeBounds[class].Seconds(), 'f', -1, 64)
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var (
	_ prometheus.Collector = (*gauge)(nil)
	_ supervise.Service    = (*gauge)(nil)
)
