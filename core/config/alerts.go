package config

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/phrase"
)

// AlertRule raises an alert while a measure stays beyond a threshold.
type AlertRule struct {
	// Evaluate this rule.
	Enabled bool `key:"enabled"`
	// Measure that the rule compares; docs/alerts.md explains each.
	Measure string `key:"measure"`
	// The alert is raised above this value: seconds for ages and waits, a share of 1 for ratios.
	Above float64 `key:"above" range:"0..1000000000000"`
	// The alert is raised below this value; with 0, above counts instead.
	Below float64 `key:"below" range:"0..1000000000000"`
	// How long the value must stay there before the alert fires. If it is too short, a value that swings around the
	// threshold fires again and again.
	For time.Duration `key:"for" range:"0s..24h"`
	// Severity of the alert.
	Severity string `key:"severity" oneof:"info warning critical"`
	// Action, queue, worker, replica or table that the rule is limited to; all if empty.
	Target string `key:"target"`
	// Text of the alert, with {target}, {value}, {limit} and {detail}; that of the measure if empty.
	Summary string `key:"summary"`
	// What to do, with the same placeholders; that of the measure if empty.
	Hint string `key:"hint"`
	// PromQL expression in the rules file; derived from the other keys if empty.
	Expression string `key:"expression"`
}

// Unit is the unit of a measure's values.
type Unit string

// Units of measures.
const (
	UnitCount     Unit = "count"
	UnitSeconds   Unit = "seconds"
	UnitRatio     Unit = "ratio"
	UnitPerMinute Unit = "per minute"
)

// Servers is a set of the servers that a measure needs.
type Servers int

// Servers of measures.
const (
	FromDatabase Servers = 1 << iota
	FromBroker
)

// MeasuresFrom names the measures that need a server, alone or with the other one.
func MeasuresFrom(server Servers) (names []string) {
	for _, m := range Measures() {
		if m.From&server != 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

// Measure is the only declaration of a value that alert rules compare, with its built-in rules. Package alerting reads
// the value.
type Measure struct {
	Name string
	Unit Unit
	// Each names the kind of target with a value of its own; empty for one value of the installation.
	Each string
	// About says what is measured, Why what a bad value means.
	About, Why string
	// Summary and Hint are the default texts of alerts, with the placeholders of a rule.
	Summary, Hint string
	// View is the dashboard view with more details, narrowed by Filter: {target} stands for the target, {action} for
	// the action of a queue.
	View, Filter string
	// From are the servers without which the value is unknown.
	From Servers
	// Like is another measure of the same thing; of alerts about one thing lists show only the worst.
	Like string
	// Series is the PromQL of the values, with %s for the matcher of a target; empty for attune_measure, which has
	// every measure. Label is the label of the target, "target" if empty.
	Series, Label string
	// Absent says that a missing series means zero.
	Absent bool
	// Rules are the built-in rules about it by name.
	Rules map[string]*AlertRule
}

// MeasureNamed finds a measure by name.
func MeasureNamed(name string) (Measure, bool) {
	for _, m := range measures {
		if m.Name == name {
			return m, true
		}
	}
	return Measure{}, false
}

// Measures lists every measure in the order of the names.
func Measures() []Measure {
	list := slices.Clone(measures)
	slices.SortFunc(list, func(a, b Measure) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Subject is equal for measures of one thing.
func (m Measure) Subject() string { return cmp.Or(m.Like, m.Name) }

// FilterOf returns the filter of View for a target.
func (m Measure) FilterOf(target string) string {
	action, _, _ := strings.Cut(target, " ")
	return strings.NewReplacer("{target}", target, "{action}", action).Replace(m.Filter)
}

// PromQL is the expression that is true while the rule's condition holds.
func (r AlertRule) PromQL() string {
	if r.Expression != "" {
		return r.Expression
	}
	m, _ := MeasureNamed(r.Measure)
	matcher := ""
	if r.Target != "" && m.Each != "" {
		matcher = cmp.Or(m.Label, "target") + "=" + strconv.Quote(r.Target)
	}
	var value string
	switch {
	case m.Series != "" && matcher == "":
		value = strings.ReplaceAll(strings.ReplaceAll(m.Series, "{%s}", ""), ",%s", "")
	case m.Series != "":
		value = strings.ReplaceAll(m.Series, "%s", matcher)
	default:
		if matcher != "" {
			matcher = "," + matcher
		}
		value = fmt.Sprintf("max by (target) (attune_measure{measure=%q%s})", m.Name, matcher)
	}
	operator := " > "
	if r.Below > 0 {
		operator = " < "
	}
	expression := value + operator + strconv.FormatFloat(r.Limit(), 'f', -1, 64)
	if m.Absent && r.Holds(0) {
		expression += fmt.Sprintf(" or absent(attune_measure{measure=%q})", m.Name)
	}
	return expression
}

// Limit is the threshold: Below if set, Above otherwise.
func (r AlertRule) Limit() float64 { return cmp.Or(r.Below, r.Above) }

// Holds reports whether a value is beyond the threshold.
func (r AlertRule) Holds(value float64) bool {
	if r.Below > 0 {
		return value < r.Below
	}
	return value > r.Above
}

// Covers reports whether the rule applies to a target. A rule for an action applies to the queues of all its groups.
func (r AlertRule) Covers(target string) bool {
	return r.Target == "" || r.Target == target || strings.HasPrefix(target, r.Target+" ")
}

// Words returns the texts of the rule's alerts with their placeholders.
func (r AlertRule) Words() (summary, hint string) {
	m, _ := MeasureNamed(r.Measure)
	return cmp.Or(r.Summary, m.Summary), cmp.Or(r.Hint, m.Hint)
}

// counted matches the singular and plural of a text: {letter waits|letters wait}.
var counted = regexp.MustCompile(`\{([^{}|]*)\|([^{}|]*)\}`)

// Fill replaces the placeholders of a text, and {one|many} by one if the value is 1.
func Fill(text, target, value, limit, detail string) string {
	words := "$2"
	if value == "1" {
		words = "$1"
	}
	text = counted.ReplaceAllString(text, words)
	text = strings.NewReplacer("{target}", target, "{value}", value, "{limit}", limit, "{detail}", detail).Replace(text)
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), ":"))
}

// Format writes a value with its unit.
func (m Measure) Format(value float64) string {
	switch m.Unit {
	case UnitSeconds:
		d := time.Duration(value * float64(time.Second))
		if d < time.Second {
			return d.Round(time.Millisecond).String()
		}
		return DurationText(d.Round(time.Second))
	case UnitRatio:
		return strconv.FormatFloat(math.Round(value*1000)/10, 'f', -1, 64) + " %"
	case UnitPerMinute:
		return strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64) + " per minute"
	default:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
}

// defaultAlerts are the built-in rules. Published are the names and thresholds of high_execution_timeout_rate,
// no_active_workers, dlq_buildup and stale_executions, the length and the bands of queues and those of dead letters;
// no_active_workers additionally leaves a worker time to start.
func defaultAlerts() map[string]*AlertRule {
	rules := map[string]*AlertRule{}
	for _, m := range measures {
		for name, builtin := range m.Rules {
			rule := *builtin
			rule.Measure = m.Name
			rules[name] = &rule
		}
	}
	return rules
}

// publishedMeasures are the measures of published conditions.
var publishedMeasures = map[string]string{
	"execution_timeouts": "execution_timeouts", "active_workers": "active_workers", "dlq_depth": "dead_letter_depth",
	"scheduled_executions_older_than_5min": "scheduled_overdue",
}

var publishedCondition = regexp.MustCompile(`^(\w+) (> (\d+)|== 0)( per minute)?$`)

// namedAlerts turns alerts in the published form, a list of name, condition and severity, into rules by name.
func namedAlerts(path string, root *yaml.Node) error {
	at := slices.IndexFunc(root.Content, func(n *yaml.Node) bool { return n.Value == "alerts" })
	if at < 0 || at%2 != 0 || root.Content[at+1].Kind != yaml.SequenceNode {
		return nil
	}
	list := root.Content[at+1]
	rules := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: list.Line}
	for _, item := range list.Content {
		var given struct{ Name, Condition, Severity string }
		err := item.Decode(&given)
		parts := publishedCondition.FindStringSubmatch(given.Condition)
		if err != nil || given.Name == "" || parts == nil || publishedMeasures[parts[1]] == "" {
			return fmt.Errorf("%s:%d: this alert has no name or no published condition: write alerts.NAME with the keys"+
				" measure, above or below, and severity", path, item.Line)
		}
		threshold, value := "above", parts[3]
		if value == "" { // == 0
			threshold, value = "below", "1"
		}
		name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: given.Name, Line: item.Line}
		rule := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: item.Line}
		for _, pair := range [][2]string{
			{"measure", publishedMeasures[parts[1]]}, {threshold, value},
			{"severity", cmp.Or(given.Severity, "warning")},
		} {
			rule.Content = append(rule.Content,
				&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: pair[0], Line: item.Line},
				&yaml.Node{Kind: yaml.ScalarNode, Value: pair[1], Line: item.Line})
		}
		rules.Content = append(rules.Content, name, rule)
	}
	root.Content[at+1] = rules
	return nil
}

// checkMeasure refuses an unknown measure.
func (s setting) checkMeasure() error {
	name := s.value.String()
	if _, ok := MeasureNamed(name); ok {
		return nil
	}
	names := make([]string, len(measures))
	for i, m := range Measures() {
		names[i] = m.Name
	}
	if near := phrase.Nearest(name, names); near != "" {
		return fmt.Errorf("%q is not a measure; the nearest is %s", name, near)
	}
	return fmt.Errorf("%q is not one of %s", name, strings.Join(names, ", "))
}

// followAlerts derives keys of alert rules from other keys, unless the rule sets them.
func (l *loader) followAlerts() {
	c := l.cfg
	if rule := c.Alerts["worker_heartbeat"]; rule != nil && c.sources["alerts.worker_heartbeat.above"] == "" &&
		rule.Measure == "heartbeat_age" {
		if limit := c.Executor.StaleAfter().Seconds(); limit != rule.Above {
			rule.Above = limit
			c.sources["alerts.worker_heartbeat.above"] = "derived from executor.heartbeat_interval"
		}
	}
}
