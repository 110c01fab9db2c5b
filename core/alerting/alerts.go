package alerting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// AlertLoop is the engine's loop that evaluates the rules.
const AlertLoop = "alerts"

// The bounds of a read of alerts.
const (
	alertRows     = 500
	alertHistory  = 100
	alertOverview = 50
	// evaluatedWithin is the highest age of the newest evaluation by a live replica.
	evaluatedWithin = time.Minute
	// unevaluatedAfter is how long an alert is not evaluated before the list says so.
	unevaluatedAfter = time.Minute
)

// The states of an alert and of a rule.
const (
	AlertFiring   = "firing"
	AlertPending  = "pending" // holds, but not for as long as the rule requires
	AlertCleared  = "cleared"
	RuleQuiet     = "quiet"
	RuleDisabled  = "disabled"
	RuleUnknown   = "unknown" // its measure is unknown
	RuleUnwatched = "unwatched"
)

// Alert is a condition of a rule for a target, present or past.
type Alert struct {
	ID       int64      `json:"id,omitempty"`
	Rule     string     `json:"rule"`
	Target   string     `json:"target,omitempty"`
	Severity Level      `json:"severity"`
	State    string     `json:"state"`
	Summary  string     `json:"summary"`
	Hint     string     `json:"hint,omitempty"`
	Value    float64    `json:"value"`
	Since    time.Time  `json:"since"`
	Fired    *time.Time `json:"fired"`
	Cleared  *time.Time `json:"cleared"`
	// Seen is its newest evaluation. NotEvaluated is set while its measure is unknown: it then
	// neither continues nor ends.
	Seen         time.Time `json:"seen"`
	NotEvaluated bool      `json:"not_evaluated,omitempty"`
	// Behind says that another alert about the same target is worse.
	Behind bool `json:"behind,omitempty"`
	// Times counts its firings of the last day including this one; 0 if they were not counted.
	Times int64 `json:"times,omitempty"`
	// Measure is the name of the measure, Of the kind of its targets, such as queue; empty for the
	// whole installation. Shown is the value with its unit.
	Measure string `json:"measure,omitempty"`
	Of      string `json:"of,omitempty"`
	Shown   string `json:"value_text,omitempty"`
	// View and Filter open the dashboard at the target.
	View   string `json:"view"`
	Filter string `json:"filter,omitempty"`
}

// Alerts are the present and past alerts.
type Alerts struct {
	monitor.Reading
	// Evaluated says whether a live replica evaluates the rules, EvaluatedAt when it last did.
	Evaluated   bool       `json:"evaluated"`
	EvaluatedAt *time.Time `json:"evaluated_at"`
	// QuietSince is when the last alert cleared; nil while one is open, or if none has fired.
	QuietSince *time.Time `json:"quiet_since,omitempty"`
	// Note says what else a reader of the list must know.
	Note string `json:"note,omitempty"`
	// Open are the alerts whose condition holds, the worst first. Recent are cleared ones, the
	// newest first.
	Open   []Alert `json:"open"`
	Recent []Alert `json:"recent"`
	// Others are findings of the overview without a rule: unwell workers, failed and paused
	// workflows, open inquiries.
	Others []Finding `json:"others,omitempty"`
	// Rules are all rules with their states.
	Rules []AlertRule `json:"rules"`

	ruleOf Rules // the rules of Open
	// gone are the conditions of replicas that no replica can store: that none is alive.
	gone []Condition
}

// AlertRule is a rule with its state.
type AlertRule struct {
	Name     string  `json:"name"`
	Measure  string  `json:"measure"`
	Severity Level   `json:"severity"`
	Above    float64 `json:"above"`
	Below    float64 `json:"below,omitempty"`
	// Limit is the threshold in words.
	Limit  string        `json:"limit"`
	For    time.Duration `json:"for_ns"`
	Target string        `json:"target,omitempty"`
	// State is the worst state of its alerts: firing, pending, unknown or quiet; disabled, or
	// unwatched while it is not evaluated.
	State string `json:"state"`
	// About and Why explain the measure, Expression is the PromQL.
	About      string `json:"about"`
	Why        string `json:"why"`
	Expression string `json:"expression"`
}

// Alerts reads the alerts as the replicas stored them. That no replica is alive is an alert too.
func (m *Reader) Alerts(ctx context.Context) (*Alerts, error) {
	a := &Alerts{Open: []Alert{}, Recent: []Alert{}}
	var o *Overview
	err := m.Read(ctx, "alerts", &a.Reading, func(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
		read, err := m.readAlerts(ctx, tx, s, a.At, alertRows)
		if err != nil {
			return err
		}
		if read == nil {
			o, err = m.aside(ctx, tx, s, a.At)
			return err
		}
		read.Reading = a.Reading
		*a = *read
		if a.Recent, err = store.Rows[Alert](ctx, tx, store.ListPastAlerts, alertHistory); err != nil {
			return fmt.Errorf("list past alerts: %w", err)
		}
		for i := range a.Recent {
			m.measured(&a.Recent[i])
		}
		if o, err = m.aside(ctx, tx, s, a.At); err != nil {
			return err
		}
		return a.count(ctx, tx)
	})
	if err != nil {
		return a, err
	}
	if !a.Evaluated {
		m.addGone(a)
	}
	a.Rules = m.ruleStates(a)
	told := findings(worstFirst(a.verdicts()))
	for _, one := range complete(told, o, nil) {
		if one.Rule == "" {
			a.Others = append(a.Others, one)
		}
	}
	return a, nil
}

// aside reads the findings of the overview without a rule.
func (m *Reader) aside(ctx context.Context, tx *store.Tx, s monitor.Shape, at time.Time) (*Overview, error) {
	o := &Overview{StaleAfter: m.Config().StaleAfter}
	o.At = at
	var err error
	if o.everyWorker, _, err = monitor.ReadWorkers(ctx, tx, s); err != nil {
		return nil, err
	}
	o.Flows, err = monitor.ReadFlows(ctx, tx, s)
	return o, err
}

// readAlerts reads the open alerts; nil where the schema has none.
func (m *Reader) readAlerts(ctx context.Context, tx *store.Tx, s monitor.Shape, now time.Time,
	bound int64,
) (*Alerts, error) {
	if !s.Ours {
		return nil, nil //nolint:nilnil // there is nothing to read, which is no fault
	}
	replicas, err := m.ReadReplicas(ctx, tx, s, now)
	if err != nil {
		return nil, err
	}
	a := &Alerts{Open: []Alert{}, Recent: []Alert{}}
	a.At = now
	if a.evaluation(replicas, now); !a.Evaluated {
		a.gone = m.rules.gone(replicas, 0)
	}
	if a.Open, err = store.Rows[Alert](ctx, tx, store.ListAlerts, bound); err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	for i := range a.Open {
		one := &a.Open[i]
		m.measured(one)
		one.NotEvaluated = !a.Evaluated || now.Sub(one.Seen) > unevaluatedAfter
	}
	a.order(m.rules)
	if len(a.Open) > 0 || !a.Evaluated {
		return a, nil
	}
	quiet, err := tx.FindQuiet(ctx)
	if err != nil {
		return nil, fmt.Errorf("find when the last alert cleared: %w", err)
	}
	if quiet.Unix() > 0 {
		a.QuietSince = &quiet
	}
	return a, nil
}

// evaluation finds the newest evaluation. Only a live replica's counts: stored alerts of a dead one
// say nothing about now. A replica evaluates within seconds of its start.
func (a *Alerts) evaluation(replicas *monitor.Replicas, now time.Time) {
	if replicas == nil {
		return
	}
	for i := range replicas.List {
		r := &replicas.List[i]
		a.Evaluated = a.Evaluated || r.Starting(now)
		if _, ticks := r.Loops[AlertLoop]; !ticks || r.Details.Loops[AlertLoop].Error != "" {
			continue
		}
		at := now.Add(-r.Silence(AlertLoop))
		if a.EvaluatedAt == nil || at.After(*a.EvaluatedAt) {
			a.EvaluatedAt = &at
		}
		a.Evaluated = a.Evaluated || r.Alive() && now.Sub(at) <= evaluatedWithin
	}
}

// measured copies the texts of the measure.
func (m *Reader) measured(a *Alert) {
	a.View = "overview"
	if of, ok := m.rules.measure(a.Rule); ok {
		a.View, a.Filter = of.View, of.FilterOf(a.Target)
		a.Measure, a.Of, a.Shown = of.Name, of.Each, of.Format(a.Value)
	}
}

// alertTimes bounds the counted alerts and their rules and targets.
const alertTimes = 2_000

// count counts the firings of each alert within a day. An open alert counts at least once, although
// it may have begun earlier.
func (a *Alerts) count(ctx context.Context, tx *store.Tx) error {
	rows, err := tx.CountAlertTimes(ctx, alertTimes)
	if err != nil {
		return fmt.Errorf("count how often alerts have fired: %w", err)
	}
	times := make(map[string]int64, len(rows))
	for _, r := range rows {
		times[key(r.Rule, r.Target)] = r.N
	}
	for i := range a.Open {
		one := &a.Open[i]
		if one.Times = times[key(one.Rule, one.Target)]; one.Fired != nil {
			one.Times = max(one.Times, 1)
		}
	}
	for i := range a.Recent {
		a.Recent[i].Times = times[key(a.Recent[i].Rule, a.Recent[i].Target)]
	}
	return nil
}

// order sorts alerts, the worst first, and marks less severe ones about the same measure and target.
func (a *Alerts) order(rules Rules) {
	rank := func(one Alert) int {
		if one.State == AlertFiring {
			return one.Severity.Rank()
		}
		return len(levels) + one.Severity.Rank()
	}
	slices.SortStableFunc(a.Open, func(x, y Alert) int { return rank(x) - rank(y) })
	seen := map[string]bool{}
	for i := range a.Open {
		if of, ok := rules.measure(a.Open[i].Rule); ok {
			about := key(of.Subject(), a.Open[i].Target)
			a.Open[i].Behind, seen[about] = seen[about], true
		}
	}
	a.ruleOf = rules
}

// gone are the conditions of replicas that hold when none is alive.
func (r Rules) gone(replicas *monitor.Replicas, waiting int64) []Condition {
	if replicas == nil {
		return nil
	}
	all, only := newMeasures(), newMeasures()
	all.replicas(replicas, waiting)
	only.Samples["replicas"] = all.Samples["replicas"]
	return EvaluateAll(r, only)
}

// addGone adds that no replica is alive, before all stored alerts, and says how old they are.
func (m *Reader) addGone(a *Alerts) {
	a.Note = "No replica of the engine evaluates the alerts: these are the stored ones."
	if a.EvaluatedAt != nil {
		a.Note = "No replica of the engine evaluates the alerts: these are the stored ones, as of " +
			phrase.Span(a.At.Sub(*a.EvaluatedAt)) + " ago."
	}
	var open []Alert
	for _, c := range a.gone {
		one := Alert{
			Rule: c.Rule, Target: c.Target, Severity: c.Severity, State: AlertFiring, Summary: c.Summary, Hint: c.Hint,
			Value: c.Value, Since: a.At, Seen: a.At,
		}
		if c.since != nil {
			one.Since = *c.since
		}
		m.measured(&one)
		a.Open = slices.DeleteFunc(a.Open, func(stored Alert) bool { return stored.Rule == c.Rule })
		open = append(open, one)
	}
	a.Open = append(open, a.Open...)
}

// ruleStates sets the state of every rule.
func (m *Reader) ruleStates(a *Alerts) []AlertRule {
	states, unknown := map[string]string{}, map[string]bool{}
	for _, one := range slices.Backward(a.Open) { // a firing alert comes last and wins
		states[one.Rule] = one.State
		if rule := m.rules[one.Rule]; rule != nil && rule.Measure == "unmeasured" {
			unknown[one.Target] = true
		}
	}
	rules := m.rules
	list := make([]AlertRule, 0, len(rules))
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		one := describe(name, rules[name])
		switch {
		case !rules[name].Enabled:
			one.State = RuleDisabled
		case unknown[one.Measure]:
			one.State = RuleUnknown
		case states[name] != "":
			one.State = states[name]
		case !a.Evaluated:
			one.State = RuleUnwatched
		}
		list = append(list, one)
	}
	return list
}

// DescribeRules lists rules by name without their states.
func DescribeRules(rules Rules) []AlertRule {
	list := make([]AlertRule, 0, len(rules))
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		one := describe(name, rules[name])
		if !rules[name].Enabled {
			one.State = RuleDisabled
		}
		list = append(list, one)
	}
	return list
}

func describe(name string, rule *config.AlertRule) AlertRule {
	measure, _ := config.MeasureNamed(rule.Measure)
	word := "above "
	if rule.Below > 0 {
		word = "below "
	}
	return AlertRule{
		Name: name, Measure: rule.Measure, Severity: Level(rule.Severity), Above: rule.Above, Below: rule.Below,
		For: rule.For, Target: rule.Target, Limit: word + measure.Format(rule.Limit()), State: RuleQuiet,
		About: measure.About, Why: measure.Why, Expression: rule.PromQL(),
	}
}

// verdicts are the open alerts as conditions. A pending alert matters less.
func (a *Alerts) verdicts() []Condition {
	var list []Condition
	for _, one := range a.Open {
		v := Condition{
			Rule: one.Rule, Target: one.Target, Severity: one.Severity, Value: one.Value, Summary: one.Summary,
			Hint: one.Hint,
			// used if the rule is unknown
			view: one.View, filter: one.Filter, since: &one.Since, subject: "rule " + one.Rule,
		}
		if of, ok := a.ruleOf.measure(one.Rule); ok {
			v.subject = of.Subject()
		}
		if one.State == AlertPending {
			v.Severity = LevelInfo
			if rule := a.ruleOf[one.Rule]; rule != nil {
				v.Hint = fmt.Sprintf("not for %s yet; %s", phrase.Span(rule.For), v.Hint)
			}
		}
		if one.NotEvaluated {
			v.Hint = fmt.Sprintf("not evaluated since %s, %s ago; %s", one.Seen.UTC().Format("15:04:05Z"),
				phrase.Since(one.Seen, a.At), v.Hint)
			if !a.Evaluated && v.Severity == LevelCritical {
				v.Severity = LevelWarning // what held then may not hold now
			}
		}
		list = append(list, v)
	}
	return list
}
