package alerting_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/config"
)

var update = flag.Bool("update", false, "rewrite docs/alerts/attune.rules.yml")

// TestRulesFile keeps the committed rules file equal to the built-in rules, and in
// the shape that Prometheus reads.
func TestRulesFile(t *testing.T) {
	t.Parallel()
	file, err := alerting.RulesFile(config.Default().Alerts)
	require.NoError(t, err)
	path := filepath.Join("..", "..", "docs", "alerts", "attune.rules.yml")
	if *update {
		require.NoError(t, os.WriteFile(path, file, 0o644))
	}
	committed, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(committed), string(file), "run `go test ./core/alerting -run RulesFile -update`")

	var document struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(file)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&document))
	require.Len(t, document.Groups, 1)
	names := map[string]bool{}
	for _, rule := range document.Groups[0].Rules {
		require.Regexp(t, `^[a-z_]+$`, rule.Alert)
		require.False(t, names[rule.Alert])
		names[rule.Alert] = true
		require.Regexp(t, `^(\d+[smh])?$`, rule.For, rule.Alert)
		require.Contains(t, []string{"critical", "warning", "info"}, rule.Labels["severity"])
		require.NotEmpty(t, rule.Annotations["summary"])
		require.Regexp(t, ` [<>] [0-9.]+`, rule.Expr)
		require.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), rule.Expr)
		require.Equal(t, strings.Count(rule.Expr, "{"), strings.Count(rule.Expr, "}"), rule.Expr)
		require.NotContains(t, rule.Expr, "%", rule.Alert)
		for _, text := range rule.Annotations {
			bare := regexp.MustCompile(`{{[^{}]*}}`).ReplaceAllString(text, "")
			require.NotContains(t, bare, "{", "%s: %s", rule.Alert, text)
		}
	}
	require.Len(t, names, len(config.Default().Alerts))
}

// TestARuleSwitchedOffIsNotWritten.
func TestARuleSwitchedOffIsNotWritten(t *testing.T) {
	t.Parallel()
	rules := config.Default().Alerts
	rules["topology"].Enabled = false
	file, err := alerting.RulesFile(rules)
	require.NoError(t, err)
	require.NotContains(t, string(file), "alert: topology\n")
}

// docs/alerts.md explains each built-in rule, and no other.
func TestEveryRuleIsExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "alerts.md"))
	require.NoError(t, err)
	var explained []string
	for _, heading := range regexp.MustCompile("(?m)^### `([a-z_]+)`$").FindAllStringSubmatch(string(page), -1) {
		explained = append(explained, heading[1])
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(config.Default().Alerts)), explained)
	measured := map[string]bool{"failure_ratio": true} // for rules of users
	for _, rule := range config.Default().Alerts {
		measured[rule.Measure] = true
	}
	for _, m := range config.Measures() {
		require.True(t, measured[m.Name], "no rule watches %s", m.Name)
	}
}
