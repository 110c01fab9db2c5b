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

// metricsIntroduction has apostrophes in place of backquotes.
var metricsIntroduction = strings.ReplaceAll(`# Metrics

    curl -s localhost:8080/metrics | grep attune_

Which metrics has an engine? Names that end in '_total' are counters, the others gauges or, if so marked, histograms. Of
several replicas, add up the metrics that each counts for itself ('sum'). If a metric says that every replica shows the
same, take the largest ('max'). A gauge without a known value is not shown: unknown is not zero.

Attune publishes these: 'attune_execution_timeouts_total', 'attune_worker_downtime_seconds', 'attune_dead_letter_*',
'attune_requested_to_running_seconds', 'attune_worker_heartbeat_age_seconds', 'attune_workers' and
'attune_executions_repeated_total'.

This page is made from the code: 'go test ./core/engine -run MetricsDocumentation -update'.

| metric | what |
|---|---|
`, "'", "`")

// docs/metrics.md lists the metrics that an engine registers.
func TestMetricsDocumentation(t *testing.T) {
	t.Parallel()
	metrics := registered(t)
	var out strings.Builder
	out.WriteString(metricsIntroduction)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		m := metrics[name]
		require.NotEmpty(t, m.help, name)
		labels, kind := "", ""
		if m.labels != "" {
			labels = "{" + strings.ReplaceAll(m.labels, ", ", ",") + "}"
		}
		if m.kind == "histogram" {
			kind = " Histogram."
		}
		require.Equal(t, m.kind == "counter", strings.HasSuffix(name, "_total"), name)
		fmt.Fprintf(&out, "| `%s` | %s%s |\n", name+labels, strings.ReplaceAll(m.help, "|", "\\|"), kind)
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
