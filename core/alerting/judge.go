package alerting

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/config"
)

// Level says how much a finding matters. It is the severity of its rule.
type Level string

// The levels, worst first.
const (
	LevelCritical Level = "critical"
	LevelWarning  Level = "warning"
	LevelInfo     Level = "info"
)

var levels = []Level{LevelCritical, LevelWarning, LevelInfo}

// rank orders levels, the worst first.
func (l Level) rank() int { return slices.Index(levels, l) }

// Rules are alert rules by name.
type Rules map[string]*config.AlertRule

// measure is what a rule watches; false for a rule or a measure that is not known.
func (r Rules) measure(rule string) (config.Measure, bool) {
	if r[rule] == nil {
		return config.Measure{}, false
	}
	return config.MeasureNamed(r[rule].Measure)
}

// key names the alert of a rule about a target.
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

// VerdictsPerRule bounds how many alerts one rule raises.
const VerdictsPerRule = 100

// Judge says which conditions hold, of each rule those with the worst values. It is
// a pure function of a snapshot: a rule whose measure is not known holds for
// nothing, and Known tells whether that means anything. Rules that are switched off
// are left out.
func Judge(rules Rules, m *Measures) []Condition {
	return Cut(JudgeAll(rules, m), func(Condition) bool { return false })
}

// Cut leaves of each rule's conditions VerdictsPerRule, those with the worst values;
// but those whose alert is open stay, so that alerts do not come and go by the order
// of values.
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

// JudgeAll says which conditions hold, however many, by rule and the worst first.
func JudgeAll(rules Rules, m *Measures) []Condition {
	var found []Condition
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if rule := rules[name]; rule.Enabled {
			found = append(found, judgeRule(name, rule, m)...)
		}
	}
	return found
}

func judgeRule(name string, rule *config.AlertRule, m *Measures) []Condition {
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

// worstFirst orders verdicts for people, and of several rules about one measure
// and target leaves the worst.
func worstFirst(found []Condition) []Condition {
	slices.SortStableFunc(found, func(a, b Condition) int { return a.Severity.rank() - b.Severity.rank() })
	seen := map[string]bool{}
	return slices.DeleteFunc(found, func(v Condition) bool {
		about := key(v.subject, v.Target)
		had := seen[about]
		seen[about] = true
		return had
	})
}
