package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/telemetry"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

// metric is one that an engine registers, whether or not it has series yet.
type metric struct{ kind, labels, help string }

var descText = regexp.MustCompile(
	`^Desc{fqName: "([^"]*)", help: (".*"), constLabels: {[^}]*}, variableLabels: {([^}]*)}`)

// metricsOf lists the metrics of every collector. Gather returns only series that exist, which is not enough here.
func metricsOf(t *testing.T, registry *prometheus.Registry) map[string]metric {
	t.Helper()
	field := reflect.ValueOf(registry).Elem().FieldByName("collectorsByID")
	require.True(t, field.IsValid())
	collectors, ok := reflect.TypeAssert[map[uint64]prometheus.Collector](reflect.NewAt(field.Type(),
		unsafe.Pointer(field.UnsafeAddr())).Elem())
	require.True(t, ok)
	found := map[string]metric{}
	for _, collector := range collectors {
		descs := make(chan *prometheus.Desc, 100)
		collector.Describe(descs)
		close(descs)
		for desc := range descs {
			parts := descText.FindStringSubmatch(desc.String())
			require.NotNil(t, parts, desc.String())
			if !strings.HasPrefix(parts[1], "attune_") {
				continue
			}
			var help string
			_, err := fmt.Sscanf(parts[2], "%q", &help)
			require.NoError(t, err)
			found[parts[1]] = metric{
				kind: kindOf(collector, parts[1]), labels: strings.ReplaceAll(parts[3], ",", ", "),
				help: help,
			}
		}
	}
	return found
}

func kindOf(collector prometheus.Collector, name string) string {
	switch collector.(type) {
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

func registered(t *testing.T) map[string]metric {
	t.Helper()
	registry := telemetry.NewRegistry()
	e, err := engine.New(t.Context(), config.Default(), engine.Deps{Logger: telemetry.Discard(), Registry: registry})
	require.NoError(t, err)
	found := metricsOf(t, registry)
	require.NoError(t, e.Stop(t.Context()))
	return found
}

// TestRulesNameMetricsThatExist: an expression about nothing never fires.
func TestRulesNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	metrics := registered(t)
	names, labels := regexp.MustCompile(`attune_[a-z_]+`),
		regexp.MustCompile(`by \(([a-z]+)\) \(?(?:rate\()?(attune_[a-z_]+)`)
	for rule, of := range config.Default().Alerts {
		for _, name := range names.FindAllString(of.PromQL(), -1) {
			require.Contains(t, metrics, name, "%s: %s", rule, of.PromQL())
		}
		for _, pair := range labels.FindAllStringSubmatch(of.PromQL(), -1) {
			require.Contains(t, strings.Split(metrics[pair[2]].labels, ", "), pair[1], "%s: %s", rule, of.PromQL())
		}
		require.NotEmpty(t, names.FindString(of.PromQL()), rule)
	}
}

const metricsIntroduction = `# Metrics

    curl -s localhost:8080/metrics | grep attune_

With this page you can look up every metric of an engine. ` + "`/metrics`" + ` also has those of the Go runtime and of the
process. Of several replicas, add up the metrics that each counts for itself (` + "`sum`" + `). If a metric says that every
replica shows the same, take the largest (` + "`max`" + `). A gauge without a known value is not shown: unknown is not zero. The
rules for Prometheus in [alerts/attune.rules.yml](alerts/attune.rules.yml) use these metrics; [alerts.md](alerts.md)
explains each.

Attune publishes these: the timeout rate (` + "`attune_execution_timeouts_total`" + `), worker downtime
(` + "`attune_worker_downtime_seconds`" + `), the depth, rate, latency and failures of dead letters (` + "`attune_dead_letter_*`" + `),
the time from request to start (` + "`attune_requested_to_running_seconds`" + `), gaps between heartbeats
(` + "`attune_worker_heartbeat_age_seconds`" + `), workers by health (` + "`attune_workers`" + `) and the rate of retries
(` + "`attune_executions_repeated_total`" + `).

This page is made from the code: ` + "`go test ./core/engine -run MetricsDocumentation -update`" + `.

| metric | type | labels | what |
|---|---|---|---|
`

// docs/metrics.md lists the metrics that an engine registers.
func TestMetricsDocumentation(t *testing.T) {
	t.Parallel()
	metrics := registered(t)
	var out strings.Builder
	out.WriteString(metricsIntroduction)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		m := metrics[name]
		require.NotEmpty(t, m.help, name)
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", name, m.kind, m.labels, strings.ReplaceAll(m.help, "|", "\\|"))
	}
	path := filepath.Join("..", "..", "docs", "metrics.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(page), out.String(), "run `go test ./core/engine -run MetricsDocumentation -update`")
	for _, name := range regexp.MustCompile("`(attune_[a-z_]+)`").FindAllStringSubmatch(metricsIntroduction, -1) {
		if !strings.HasSuffix(name[1], "_") {
			require.Contains(t, metrics, name[1], "the introduction names it")
		}
	}
}
