package alerting

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/config"
)

// Level is how much a finding matters: the severity of its rule.
type Level string

// The levels, worst first.
const (
	LevelCritical Level = "critical"
	LevelWarning  Level = "warning"
	LevelInfo     Level = "info"
)

var levels = []Level{LevelCritical, LevelWarning, LevelInfo}

// Rank orders levels, the worst first.
func (l Level) Rank() int { return slices.Index(levels, l) }

// Rules are alert rules by name.
type Rules map[string]*config.AlertRule

// measure is the measure of a rule; false if either is unknown.
func (r Rules) measure(rule string) (config.Measure, bool) {
	if r[rule] == nil {
		return config.Measure{}, false
	}
	return config.MeasureNamed(r[rule].Measure)
}

// key identifies the alert of a rule about a target.
func key(rule, target string) string { return rule + "\x1f" + target }

// Condition is a rule's condition that holds for a target.
type Condition struct {
	Rule     string
	Target   string
	Severity Level
	Value    float64
	Summary  string
	Hint     string
	// For is how long it must hold before the alert fires.
	For time.Duration

	subject, view, filter string // of the measure
	since                 *time.Time
}

// VerdictsPerRule bounds the alerts of one rule.
const VerdictsPerRule = 100

// Cut keeps the worst VerdictsPerRule conditions of each rule, and those with an open alert, so that
// alerts do not alternate with the order of values.
func Cut(all []Condition, open func(Condition) bool) []Condition {
	stays, taken := make([]bool, len(all)), map[string]int{}
	for i, one := range all {
		if open(one) {
			stays[i] = true
			taken[one.Rule]++
		}
	}
	var left []Condition
	for i, one := range all {
		if !stays[i] && taken[one.Rule] < VerdictsPerRule {
			stays[i] = true
			taken[one.Rule]++
		}
		if stays[i] {
			left = append(left, one)
		}
	}
	return left
}

// EvaluateAll lists all conditions that hold, by rule, the worst first.
func EvaluateAll(rules Rules, m *Measures) []Condition {
	var found []Condition
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if rule := rules[name]; rule.Enabled {
			found = append(found, assessRule(name, rule, m)...)
		}
	}
	return found
}

func assessRule(name string, rule *config.AlertRule, m *Measures) []Condition {
	measure, ok := config.MeasureNamed(rule.Measure)
	if !ok {
		return nil
	}
	summary, hint := rule.Words()
	var found []Condition
	for _, s := range m.Samples[rule.Measure] {
		if !rule.Holds(s.Value) || !rule.Covers(s.Target) {
			continue
		}
		value, limit, hint := measure.Format(s.Value), measure.Format(rule.Limit()), hint
		if s.Hint != "" && rule.Hint == "" {
			hint = s.Hint
		}
		summary := summary
		if s.Summary != "" && rule.Summary == "" {
			summary = s.Summary
		}
		found = append(found, Condition{
			Rule: name, Target: s.Target, Severity: Level(rule.Severity), Value: s.Value, For: rule.For,
			Summary: config.Fill(summary, s.Target, value, limit, s.Detail),
			Hint:    config.Fill(hint, s.Target, value, limit, s.Detail),
			subject: measure.Subject(), view: measure.View, filter: measure.FilterOf(s.Target), since: s.Since,
		})
	}
	slices.SortStableFunc(found, func(a, b Condition) int {
		if rule.Below > 0 {
			a, b = b, a
		}
		return cmp.Compare(b.Value, a.Value)
	})
	return found
}

// worstFirst sorts conditions, and of several rules about one measure and target keeps the worst.
func worstFirst(found []Condition) []Condition {
	slices.SortStableFunc(found, func(a, b Condition) int { return a.Severity.Rank() - b.Severity.Rank() })
	seen := map[string]bool{}
	return slices.DeleteFunc(found, func(v Condition) bool {
		about := key(v.subject, v.Target)
		had := seen[about]
		seen[about] = true
		return had
	})
}
