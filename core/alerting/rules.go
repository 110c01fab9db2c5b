package alerting

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
)

// alertsPage explains each built-in rule under a heading with its name.
const alertsPage = "https://github.com/attune-go/attune/blob/main/docs/alerts.md"

// RulesFile writes the enabled rules as a rules file of Prometheus, the worst first.
func RulesFile(rules Rules) ([]byte, error) {
	names := slices.Sorted(maps.Keys(rules))
	slices.SortStableFunc(names, func(a, b string) int {
		return Level(rules[a].Severity).Rank() - Level(rules[b].Severity).Rank()
	})
	group := rulesGroup{Name: "attune", Rules: []promRule{}}
	for _, name := range names {
		if rules[name].Enabled {
			group.Rules = append(group.Rules, promRuleOf(name, rules[name]))
		}
	}
	var out bytes.Buffer
	out.WriteString("# Alert rules of Attune for Prometheus, made by `attune-executor alerts rules -o prometheus`\n" +
		"# from the same rules that the engine evaluates itself.\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(rulesDocument{Groups: []rulesGroup{group}}); err != nil {
		return nil, fmt.Errorf("write the rules file: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write the rules file: %w", err)
	}
	return out.Bytes(), nil
}

type rulesDocument struct {
	Groups []rulesGroup `yaml:"groups"`
}

type rulesGroup struct {
	Name  string     `yaml:"name"`
	Rules []promRule `yaml:"rules"`
}

type promRule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func promRuleOf(name string, rule *config.AlertRule) promRule {
	measure, _ := config.MeasureNamed(rule.Measure)
	target := "target"
	if measure.Label != "" {
		target = measure.Label
	}
	value := "{{ $value }}"
	switch measure.Unit {
	case config.UnitSeconds:
		value = "{{ $value | humanizeDuration }}"
	case config.UnitRatio:
		value = "{{ $value | humanizePercentage }}"
	case config.UnitPerMinute:
		value = "{{ $value | humanize }} per minute"
	case config.UnitCount:
	}
	fill := func(text string) string {
		return config.Fill(text, "{{ $labels."+target+" }}", value, measure.Format(rule.Limit()), "")
	}
	summary, hint := rule.Words()
	one := promRule{
		Alert: name, Expr: rule.PromQL(), Labels: map[string]string{"severity": rule.Severity},
		Annotations: map[string]string{"summary": fill(summary), "description": measure.About + " " + measure.Why},
	}
	if hint = strings.TrimSpace(strings.TrimSuffix(fill(hint), ":")); hint != "" {
		one.Annotations["hint"] = hint
	}
	if measure.View != "" {
		one.Annotations["dashboard"] = "attune-tui --view " + measure.View
	}
	if _, builtin := config.Default().Alerts[name]; builtin {
		one.Annotations["runbook_url"] = alertsPage + "#" + name
	}
	if rule.For > 0 {
		one.For = promDuration(rule.For)
	}
	return one
}

// promDuration writes a duration as Prometheus does, in whole units.
func promDuration(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	default:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	}
}
