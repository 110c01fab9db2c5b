package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
)

func measureNames() string {
	var names []string
	for _, m := range config.Measures() {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

func TestEveryMeasureIsDeclaredInFull(t *testing.T) {
	t.Parallel()
	for _, m := range config.Measures() {
		for _, text := range []string{m.About, m.Why, m.Summary, m.Hint, m.View, string(m.Unit)} {
			require.NotEmpty(t, text, m.Name)
		}
		require.Equal(t, m.Name == "unmeasured", m.From == 0, "%s is read from a server", m.Name)
		_, ok := config.MeasureNamed(m.Subject())
		require.True(t, ok, m.Name)
	}
}

// The published rules have their names and thresholds.
func TestPublishedRules(t *testing.T) {
	t.Parallel()
	rules := config.Default().Alerts
	for name, want := range map[string]struct {
		expression string
		severity   string
	}{
		"high_execution_timeout_rate": {
			"sum(max by (cause) (rate(attune_execution_timeouts_total[2m]))) * 60 > 10",
			"warning",
		},
		"no_active_workers": {`max by (target) (attune_measure{measure="active_workers"}) < 1`, "critical"},
		"dlq_buildup":       {"max(attune_dead_letter_queue_depth) > 100", "warning"},
		"stale_executions":  {"max(attune_scheduled_overdue) > 0", "warning"},
	} {
		require.Contains(t, rules, name)
		require.Equal(t, want.expression, rules[name].PromQL(), name)
		require.Equal(t, want.severity, rules[name].Severity, name)
	}
	for name, limit := range map[string]float64{
		"dlq_depth_warning": 10, "dlq_depth_critical": 100, "dlq_rate_warning": 5, "dlq_rate_critical": 20,
	} {
		require.False(t, rules[name].Holds(limit), name)
		require.True(t, rules[name].Holds(limit+1), name)
	}
	require.False(t, rules["worker_queue_warning"].Holds(49))
	require.True(t, rules["worker_queue_warning"].Holds(50))
	require.True(t, rules["worker_queue_critical"].Holds(100))
}

func TestRuleExpressions(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]config.AlertRule{
		`max by (target) (attune_measure{measure="head_wait",target="mail.send"}) > 30`:                          {Measure: "head_wait", Above: 30, Target: "mail.send"},
		`max by (table) (attune_partitions_missing{table="event"}) > 0`:                                          {Measure: "partitions_missing", Target: "event"},
		`max by (table) (attune_partitions_missing) > 0`:                                                         {Measure: "partitions_missing"},
		`max by (target) (attune_measure{measure="replicas"}) < 2 or absent(attune_measure{measure="replicas"})`: {Measure: "replicas", Below: 2},
		`up == 0`: {Measure: "replicas", Expression: "up == 0"},
	} {
		require.Equal(t, want, rule.PromQL())
	}
}

func TestARuleForAnActionCoversItsGroups(t *testing.T) {
	t.Parallel()
	rule := config.AlertRule{Target: "mail.send"}
	require.True(t, rule.Covers("mail.send"))
	require.True(t, rule.Covers(`mail.send {"to":"a"}`))
	require.False(t, rule.Covers("mail.sender"))
	require.True(t, config.AlertRule{}.Covers("anything"))
}

func TestValuesHaveTheirUnits(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]struct {
		unit  config.Unit
		value float64
	}{
		"12.5 %": {config.UnitRatio, 0.1251}, "4m11s": {config.UnitSeconds, 251.2}, "10m": {config.UnitSeconds, 600},
		"0.4 per minute": {config.UnitPerMinute, 0.4}, "7": {config.UnitCount, 7},
	} {
		require.Equal(t, want, config.Measure{Unit: of.unit}.Format(of.value))
	}
	require.Equal(t, "w is lost: why", config.Fill("{target} is lost: {detail}", "w", "", "", "why"))
	require.Equal(t, "w is lost", config.Fill("{target} is lost: {detail}", "w", "", "", ""))
}

// The alert and the liveness of workers share one limit.
func TestTheHeartbeatRuleFollowsTheHeartbeat(t *testing.T) {
	t.Parallel()
	cfg := load(t, "executor: { heartbeat_interval: 10 }\n")
	require.InDelta(t, 30, cfg.Alerts["worker_heartbeat"].Above, 0)
	require.Equal(t, "derived from executor.heartbeat_interval", cfg.Source("alerts.worker_heartbeat.above"))
	cfg = load(t, "executor: { heartbeat_interval: 10 }\nalerts: { worker_heartbeat: { above: 300 } }\n")
	require.InDelta(t, 300, cfg.Alerts["worker_heartbeat"].Above, 0)
}

func TestTextsHaveSingulars(t *testing.T) {
	t.Parallel()
	m, ok := config.MeasureNamed("dead_letter_depth")
	require.True(t, ok)
	require.Equal(t, "1 dead letter waits", config.Fill(m.Summary, "", "1", "", ""))
	require.Equal(t, "11 dead letters wait", config.Fill(m.Summary, "", "11", "", ""))
	require.Equal(t, "{{ $value }} dead letters wait", config.Fill(m.Summary, "", "{{ $value }}", "", ""))
}
