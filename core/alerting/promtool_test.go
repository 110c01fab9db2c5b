package alerting_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/tui/keymap"
)

// series are the metrics of measures that have some of their own, with the target of the alert and the
// values, in the notation of promtool, of a bad and of a good half hour.
var series = map[string]struct{ metric, target, bad, good string }{
	"dead_letter_depth":   {`attune_dead_letter_queue_depth{replica="a"}`, "", "", ""},
	"dead_letter_rate":    {`attune_dead_letters_total{reason="expired",decision="waits"}`, "", "0+30x60", "0+1x60"},
	"installation_faults": {`attune_installation_faults{replica="a"}`, `replica="a",`, "", ""},
	"partitions_missing":  {`attune_partitions_missing{table="event"}`, `table="event",`, "", ""},
	"scheduled_overdue":   {`attune_scheduled_overdue`, "", "", ""},
	"workers_deactivated": {`attune_workers_deactivated_total`, "", "0+2x60", "0+0x60"},
}

type promTest struct {
	Interval string       `yaml:"interval"`
	Input    []promInput  `yaml:"input_series"`
	Exprs    []promSample `yaml:"promql_expr_test"`
	Name     string       `yaml:"name"`
}

type promInput struct{ Series, Values string }

type promSample struct {
	Expr     string       `yaml:"expr"`
	EvalTime string       `yaml:"eval_time"`
	Samples  []promResult `yaml:"exp_samples"`
}

type promResult struct {
	Labels string `yaml:"labels"`
	Value  int    `yaml:"value"`
}

// TestPrometheusEvaluatesTheRules runs Prometheus' own evaluation: each rule of the file fires beyond its
// limit, once the time has passed that it must hold, and is quiet at the limit.
func TestPrometheusEvaluatesTheRules(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: `make test-rules` installs it and runs this test")
	}
	rules := config.Default().Alerts
	file, err := alerting.RulesFile(rules)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "attune.rules.yml"), file, 0o600))
	// Prometheus evaluates all rules in each test, so a test has as many cases as it can: rules of one
	// measure need different values.
	var tests []promTest
	round := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		rule := rules[name]
		if !rule.Enabled {
			continue
		}
		n := round[rule.Measure]
		round[rule.Measure]++
		for len(tests) < 2*(n+1) {
			tests = append(tests, promTest{Interval: "15s", Name: []string{"bad", "good"}[len(tests)%2]})
		}
		addCases(&tests[2*n], &tests[2*n+1], name, rule)
	}
	cases, err := yaml.Marshal(map[string]any{
		"rule_files": []string{"attune.rules.yml"}, "evaluation_interval": "15s", "tests": tests,
	})
	require.NoError(t, err)
	path := filepath.Join(folder, "cases.yml")
	require.NoError(t, os.WriteFile(path, cases, 0o600))
	for _, args := range [][]string{{"check", "rules", "attune.rules.yml"}, {"test", "rules", "cases.yml"}} {
		command := exec.CommandContext(t.Context(), tool, args...)
		command.Dir = folder
		out, err := command.CombinedOutput()
		require.NoError(t, err, "promtool %v: %s", args, out)
	}
}

// addCases adds a bad half hour of a rule's measure, and a good one.
func addCases(bad, good *promTest, name string, rule *config.AlertRule) {
	metric, target := fmt.Sprintf("attune_measure{measure=%q,target=\"x\"}", rule.Measure), `target="x",`
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) + "x60" }
	well, ill := number(rule.Limit()), number(rule.Limit()*2+1)
	if rule.Below > 0 {
		ill = number(0)
	}
	if own, ok := series[rule.Measure]; ok {
		metric, target = own.metric, own.target
		if own.bad != "" {
			well, ill = own.good, own.bad
		}
	}
	firing := fmt.Sprintf("ALERTS{alertname=%q,alertstate=\"firing\"}", name)
	fires := fmt.Sprintf("ALERTS{alertname=%q,alertstate=\"firing\",%sseverity=%q}", name, target, rule.Severity)
	const late = "8m"
	bad.Input = append(bad.Input, promInput{Series: metric, Values: ill})
	bad.Exprs = append(bad.Exprs,
		promSample{Expr: firing, EvalTime: late, Samples: []promResult{{Labels: fires, Value: 1}}})
	if rule.For > 15*time.Second {
		bad.Exprs = append(bad.Exprs,
			promSample{Expr: firing, EvalTime: (rule.For - 15*time.Second).String(), Samples: []promResult{}})
	}
	good.Input = append(good.Input, promInput{Series: metric, Values: well})
	good.Exprs = append(good.Exprs, promSample{Expr: firing, EvalTime: late, Samples: []promResult{}})
}

// TestAlertsLeadToTheirPageAndView: the annotations of the file name a heading of the page and a view of
// the dashboard.
func TestAlertsLeadToTheirPageAndView(t *testing.T) {
	t.Parallel()
	file, err := alerting.RulesFile(config.Default().Alerts)
	require.NoError(t, err)
	var document struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(file, &document))
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "alerts.md"))
	require.NoError(t, err)
	var views []string
	for _, view := range keymap.Views {
		if !view.One {
			views = append(views, string(view.Scope))
		}
	}
	require.Greater(t, len(document.Groups[0].Rules), 40)
	for _, rule := range document.Groups[0].Rules {
		url, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "#")
		require.True(t, strings.HasSuffix(url, "/docs/alerts.md"), rule.Alert)
		require.Contains(t, string(page), "\n### `"+anchor+"`\n", rule.Alert)
		view, ok := strings.CutPrefix(rule.Annotations["dashboard"], "attune-tui --view ")
		require.True(t, ok, rule.Alert)
		require.Contains(t, views, view, rule.Alert)
	}
}
