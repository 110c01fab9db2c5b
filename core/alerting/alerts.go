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

// AlertLoop is the name of the loop of the engine that evaluates the rules.
const AlertLoop = "alerts"

// The bounds of what is read about alerts.
const (
	alertRows     = 500
	alertHistory  = 100
	alertOverview = 50
	// evaluatedWithin is how old the newest evaluation of a live replica may be.
	evaluatedWithin = time.Minute
	// unevaluatedAfter is how long an alert has not been evaluated before that is
	// said.
	unevaluatedAfter = time.Minute
)

// The states of an alert and of a rule.
const (
	AlertFiring   = "firing"
	AlertPending  = "pending" // the condition holds, but not for as long as the rule asks
	AlertCleared  = "cleared"
	RuleQuiet     = "quiet"
	RuleDisabled  = "disabled"
	RuleUnknown   = "unknown" // its measure cannot be read
	RuleUnwatched = "unwatched"
)

// Alert is a condition of a rule that holds for a target, or has held.
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
	// Seen is the newest evaluation of it. NotEvaluated is set while its measure
	// cannot be read: it then neither goes on nor ends.
	Seen         time.Time `json:"seen"`
	NotEvaluated bool      `json:"not_evaluated,omitempty"`
	// Behind says that another alert about the same is worse.
	Behind bool `json:"behind,omitempty"`
	// Times is how often it has fired within the last day, this time included; zero
	// where nobody has counted.
	Times int64 `json:"times,omitempty"`
	// Measure is what is measured, Of what each value is of, such as queue or worker;
	// empty for the installation as a whole. Shown is the value in its unit.
	Measure string `json:"measure,omitempty"`
	Of      string `json:"of,omitempty"`
	Shown   string `json:"value_text,omitempty"`
	// View is the view of the dashboard that shows more, and Filter what narrows it.
	View   string `json:"view"`
	Filter string `json:"filter,omitempty"`
}

// Alerts is what is wrong and what was.
type Alerts struct {
	monitor.Reading
	// Evaluated says whether a live replica of the engine evaluates the rules, and
	// EvaluatedAt when the newest evaluation was; nil if none is known.
	Evaluated   bool       `json:"evaluated"`
	EvaluatedAt *time.Time `json:"evaluated_at"`
	// Judged says that this program evaluated the rules itself because no replica does.
	Judged bool `json:"judged,omitempty"`
	// Note says what else must be known to read the rest rightly; empty if nothing.
	Note string `json:"note,omitempty"`
	// Open are the alerts whose condition holds, the worst first; Recent those that
	// fired and have ended, the newest first.
	Open   []Alert `json:"open"`
	Recent []Alert `json:"recent"`
	// Others is what the overview says needs attention besides, as no rule tells of it: unwell
	// workers, failed and paused workflows, open questions.
	Others []Finding `json:"others,omitempty"`
	// Rules are all rules and how they are.
	Rules []AlertRule `json:"rules"`

	ruleOf Rules // what Open was judged by
}

// AlertRule is a rule and how it is.
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
	// State is the worst of its alerts: firing, pending, unknown, quiet; or disabled,
	// or unwatched while nobody evaluates it.
	State string `json:"state"`
	// About and Why say what is measured and what it means, Expression is the PromQL.
	About      string `json:"about"`
	Why        string `json:"why"`
	Expression string `json:"expression"`
}

// Alerts reads the alerts and how old they are. While no replica of the engine
// evaluates the rules they are judged here, at once, by what can be read.
func (m *Reader) Alerts(ctx context.Context) (*Alerts, error) {
	a := &Alerts{Open: []Alert{}, Recent: []Alert{}}
	var o *Overview
	err := m.Read(ctx, "alerts", &a.Reading, func(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
		read, err := m.readAlerts(ctx, tx, s, a.At, alertRows)
		if err != nil || read == nil {
			return err
		}
		read.Reading = a.Reading
		*a = *read
		past, err := tx.ListPastAlerts(ctx, alertHistory)
		if err != nil {
			return fmt.Errorf("list past alerts: %w", err)
		}
		for i := range past {
			a.Recent = append(a.Recent, m.alertOf(&past[i]))
		}
		if o, err = m.aside(ctx, tx, s, a.At); err != nil {
			return err
		}
		return a.count(ctx, tx)
	})
	if err != nil {
		return a, err
	}
	var measured *Measures
	if !a.Evaluated {
		if measured, err = m.judgeHere(ctx, a); err != nil {
			return a, err
		}
	}
	a.Rules = m.ruleStates(a, measured)
	told := findings(worstFirst(a.verdicts()))
	for _, one := range complete(told, o, nil) {
		if one.Rule == "" {
			a.Others = append(a.Others, one)
		}
	}
	return a, nil
}

// aside reads what the overview tells without a rule.
func (m *Reader) aside(ctx context.Context, tx *store.Tx, s monitor.Shape, at time.Time) (*Overview, error) {
	o := &Overview{StaleAfter: m.Config().StaleAfter}
	o.At = at
	floor, err := tx.MonitorFloor(ctx, monitor.RecentWindow.Seconds())
	if err != nil {
		return nil, fmt.Errorf("find where the recent executions begin: %w", err)
	}
	if o.everyWorker, _, err = monitor.ReadWorkers(ctx, tx, s); err != nil {
		return nil, err
	}
	o.Flows, err = monitor.ReadFlows(ctx, tx, s, floor)
	return o, err
}

// readAlerts reads the open alerts; nil where the schema has none.
func (m *Reader) readAlerts(ctx context.Context, tx *store.Tx, s monitor.Shape, now time.Time,
	bound int64) (*Alerts, error) {
	if !s.Shared {
		return nil, nil //nolint:nilnil // there is nothing to read, which is no fault
	}
	there, err := tx.AlertSchema(ctx)
	if err != nil || !there {
		return nil, err
	}
	replicas, err := m.ReadReplicas(ctx, tx, s, now)
	if err != nil {
		return nil, err
	}
	a := &Alerts{Open: []Alert{}, Recent: []Alert{}}
	a.evaluation(replicas, now)
	rows, err := tx.ListAlerts(ctx, bound)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	for i := range rows {
		one := m.alertOf(&rows[i])
		one.NotEvaluated = a.Evaluated && now.Sub(one.Seen) > unevaluatedAfter
		a.Open = append(a.Open, one)
	}
	a.order(m.rules)
	return a, nil
}

// evaluation finds the newest evaluation. It counts only if its replica is alive: the
// alerts that a dead replica stored say nothing about now. A replica that has just
// started evaluates within seconds.
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

func (m *Reader) alertOf(row *store.Alert) Alert {
	one := Alert{
		ID: row.ID, Rule: row.Rule, Target: row.Target, Severity: Level(row.Severity), Summary: row.Summary,
		Hint:  row.Hint,
		Value: row.Value, Since: row.Since, Fired: row.Fired, Cleared: row.Cleared, Seen: row.Seen, State: AlertPending,
	}
	switch {
	case row.Cleared != nil:
		one.State = AlertCleared
	case row.Fired != nil:
		one.State = AlertFiring
	}
	m.measured(&one)
	return one
}

// measured takes over what the measure of its rule says of an alert.
func (m *Reader) measured(a *Alert) {
	a.View = "overview"
	if of, ok := m.rules.measure(a.Rule); ok {
		a.View, a.Filter = of.View, of.FilterOf(a.Target)
		a.Measure, a.Of, a.Shown = of.Name, of.Each, of.Format(a.Value)
	}
}

// alertTimes bounds the alerts that are counted, and the rules and targets they are
// of.
const alertTimes = 2_000

// count says of each alert how often it has fired within a day. What is open fires
// for the first time at least, since when it began may be longer ago.
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

// order puts the worst first and says which are behind others: about the same
// measure and target, but less bad.
func (a *Alerts) order(rules Rules) {
	rank := func(one Alert) int {
		if one.State == AlertFiring {
			return one.Severity.rank()
		}
		return len(levels) + one.Severity.rank()
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

// judgeHere evaluates the rules without the engine.
func (m *Reader) judgeHere(ctx context.Context, a *Alerts) (*Measures, error) {
	a.Note = "No replica of the engine evaluates the alerts. What holds now was judged by this program, without waiting for as long as rules ask"
	if a.EvaluatedAt != nil {
		a.Note = fmt.Sprintf("%s; the newest evaluation is %s old", a.Note, phrase.Span(a.At.Sub(*a.EvaluatedAt)))
	}
	a.Note += "."
	measured, err := m.Measure(ctx)
	if err != nil {
		return nil, err
	}
	begun := map[string]Alert{}
	for _, one := range a.Open {
		begun[key(one.Rule, one.Target)] = one
	}
	a.Open = []Alert{}
	held := Cut(JudgeAll(m.rules, measured), func(v Condition) bool {
		_, open := begun[key(v.Rule, v.Target)]
		return open
	})
	for _, v := range held {
		one := Alert{
			Rule: v.Rule, Target: v.Target, Severity: v.Severity, State: AlertFiring, Summary: v.Summary, Hint: v.Hint,
			Value: v.Value, Since: a.At, Seen: a.At,
		}
		m.measured(&one)
		if before, ok := begun[key(v.Rule, v.Target)]; ok {
			one.ID, one.Since, one.Fired, one.Times = before.ID, before.Since, before.Fired, before.Times
		} else if v.since != nil {
			one.Since = *v.since
		}
		a.Open = append(a.Open, one)
	}
	m.holdAlerts(a)
	a.order(m.rules)
	a.Judged = true
	return measured, nil
}

// holdAlerts has alerts that nobody wrote down, and whose beginning no row tells, begin
// when this program found them first.
func (m *Reader) holdAlerts(a *Alerts) {
	var found []string
	var which []int
	for i := range a.Open {
		if one := &a.Open[i]; one.Since.Equal(a.At) {
			found, which = append(found, key(one.Rule, one.Target)), append(which, i)
		}
	}
	for i, since := range m.memory.Hold("alert\x1f", found, a.At) {
		a.Open[which[i]].Since = since
	}
}

// ruleStates says of every rule how it is.
func (m *Reader) ruleStates(a *Alerts, measured *Measures) []AlertRule {
	states, unknown := map[string]string{}, map[string]bool{}
	for _, one := range slices.Backward(a.Open) { // firing last, which stays
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
		case measured != nil && !measured.Known(one.Measure):
			one.State = RuleUnwatched
		}
		list = append(list, one)
	}
	return list
}

// DescribeRules lists rules by name as they are written, whatever their alerts are.
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

// verdicts are the open alerts as findings need them: those that do not fire yet
// matter less.
func (a *Alerts) verdicts() []Condition {
	var list []Condition
	for _, one := range a.Open {
		v := Condition{
			Rule: one.Rule, Target: one.Target, Severity: one.Severity, Value: one.Value, Summary: one.Summary,
			Hint: one.Hint,
			// until the rule is known
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
			v.Hint = "not evaluated since " + one.Seen.UTC().Format("15:04:05Z") + "; " + v.Hint
		}
		list = append(list, v)
	}
	return list
}

// knows says whether an open alert is about the measure.
func (a *Alerts) knows(measure string) bool {
	return slices.ContainsFunc(a.Open, func(one Alert) bool {
		of, ok := a.ruleOf.measure(one.Rule)
		return ok && of.Name == measure
	})
}
