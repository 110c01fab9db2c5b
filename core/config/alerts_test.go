package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
			`max by (target) (attune_measure{measure="execution_timeouts"}) > 10`,
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

// A list of alerts in the published form has the effect of the rules of these names.
func TestAlertsInThePublishedForm(t *testing.T) {
	t.Parallel()
	cfg := load(t, `
alerts:
  - name: high_execution_timeout_rate
    condition: execution_timeouts > 20 per minute
    severity: critical
  - {name: no_active_workers, condition: active_workers == 0, severity: critical}
  - {name: dlq_buildup, condition: dlq_depth > 100}
  - {name: mine, condition: scheduled_executions_older_than_5min > 3, severity: info}
`)
	for name, want := range map[string]string{
		"high_execution_timeout_rate": "execution_timeouts above 20 critical",
		"no_active_workers":           "active_workers below 1 critical", "dlq_buildup": "dead_letter_depth above 100 warning",
		"mine": "scheduled_overdue above 3 info", "stale_executions": "scheduled_overdue above 0 warning",
	} {
		rule, side := cfg.Alerts[name], "above"
		if rule.Below > 0 {
			side = "below"
		}
		require.True(t, rule.Enabled, name)
		require.Equal(t, want, fmt.Sprintf("%s %s %g %s", rule.Measure, side, rule.Limit(), rule.Severity), name)
	}
	require.Contains(t, cfg.Source("alerts.mine.above"), ":8")
	for _, wrong := range []string{
		"- {name: x, condition: cpu > 3}", "- {name: x, condition: active_workers < 3}", "- {condition: dlq_depth > 1}",
		"- dlq_depth > 1",
	} {
		_, err := config.Load(write(t, "alerts:\n  "+wrong+"\n"), nil)
		require.ErrorContains(t, err,
			":2: this alert has no name or no published condition: write alerts.NAME with the keys measure, above or below")
	}
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
	cfg = load(t, "worker: { heartbeat_interval: 20 }\n")
	require.Equal(t, time.Minute, cfg.Executor.StaleAfter(), "three times what the workers are told")
	require.Equal(t, "derived from worker.heartbeat_interval", cfg.Source("executor.heartbeat_interval"))
	cfg = load(t, "worker: { heartbeat_interval: 20 }\nexecutor: { heartbeat_interval: 30 }\n")
	require.Equal(t, 90*time.Second, cfg.Executor.StaleAfter())
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
