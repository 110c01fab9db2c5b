package alerting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// Interval is how often the rules are evaluated.
const Interval = 10 * time.Second

// lock is the lock of the replica that judges.
const lock = "alerts"

// Measurer reads the measures of the rules; *Reader is one.
type Measurer interface {
	Measure(ctx context.Context) (*Measures, error)
}

// Config selects the rules and the interval.
type Config struct {
	Rules Rules
	// Interval is the time between two evaluations; 0 means the constant Interval.
	Interval time.Duration
}

// Deps are the dependencies of a Loop.
type Deps struct {
	Store *store.Store
	View  Measurer
	// Logger receives a record when an alert fires and when it clears.
	Logger *slog.Logger
	// Registry receives the metrics; nil for none.
	Registry prometheus.Registerer
	Metrics  *supervise.Metrics
}

// Loop evaluates the rules. It is a supervise.Service.
type Loop struct {
	*supervise.Loop

	rules Rules
	// pause is how long a replica does not count what ended after another has.
	pause   time.Duration
	store   *store.Store
	view    Measurer
	logger  *slog.Logger
	metrics *metrics
	// minute wakes the loop at the end of the minute, so that what waits is recorded as of then.
	minute *time.Timer
}

// New returns a Loop.
func New(cfg Config, deps Deps) *Loop {
	if cfg.Interval <= 0 {
		cfg.Interval = Interval
	}
	l := &Loop{
		rules: cfg.Rules, pause: cfg.Interval / 2, store: deps.Store, view: deps.View, logger: deps.Logger,
		metrics: newMetrics(cfg.Rules),
	}
	if deps.Registry != nil {
		deps.Registry.MustRegister(l.metrics)
	}
	l.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: AlertLoop, Interval: cfg.Interval, Timeout: 20 * time.Second, MaxBackoff: 15 * time.Second, Jitter: 0.1,
		Tick: l.Tick, Logger: deps.Logger, Metrics: deps.Metrics,
	})
	l.minute = time.AfterFunc(time.Minute, l.Wake) // each tick sets it
	return l
}

// Tick records the activity, measures for the metrics, and evaluates the rules unless another replica does.
func (l *Loop) Tick(ctx context.Context) error {
	rest, err := RecordActivity(ctx, l.store, l.pause)
	if rest > 0 {
		l.minute.Reset(rest + minuteSlack)
	}
	// Without new counts the other rules are still evaluated.
	return errors.Join(err, l.evaluate(ctx))
}

const (
	// minuteSlack is how long after the end of a minute it is recorded, so that clocks may differ.
	minuteSlack = 50 * time.Millisecond
	// minuteQueues bounds the queues that are recorded one by one.
	minuteQueues = 500
)

// RecordActivity counts the executions that were requested and that ended in the last minutes into activity_minute,
// unless another replica does or has within pause. The first call after the end of a minute also records what waits
// and runs. It returns how long the running minute lasts, and 0 if another replica records.
func RecordActivity(ctx context.Context, st *store.Store, pause time.Duration) (rest time.Duration, err error) {
	err = st.Tx(ctx, "record the activity", func(ctx context.Context, tx *store.Tx) error {
		won, err := tx.TryLoopLock(ctx, "activity")
		if err != nil || !won {
			return err
		}
		if err := tx.ForgetFuture(ctx); err != nil {
			return err
		}
		if err := tx.CountActivity(ctx, pause.Seconds()); err != nil {
			return err
		}
		seconds, err := tx.RecordDepths(ctx, monitor.MinuteSettled.Seconds(), minuteQueues)
		rest = time.Duration(seconds * float64(time.Second))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("record the activity of the last minutes: %w", err)
	}
	return rest, nil
}

func (l *Loop) evaluate(ctx context.Context) error {
	// Measuring also asks the broker and may take seconds, so no transaction waits for it.
	measured, err := l.view.Measure(ctx)
	if err != nil {
		return fmt.Errorf("evaluate the alert rules: measure: %w", err)
	}
	var changed changes
	err = l.store.Tx(ctx, "alerts", func(ctx context.Context, tx *store.Tx) error {
		changed = changes{}
		won, err := tx.TryLoopLock(ctx, lock)
		if err != nil || !won {
			return err
		}
		// Rows that another replica wrote since may follow a newer snapshot, which this older one
		// must not overwrite.
		since, err := tx.AlertsWrittenSince(ctx, measured.At)
		if err != nil || since {
			return err
		}
		changed, err = l.write(ctx, tx, measured)
		return err
	})
	if err != nil {
		return fmt.Errorf("evaluate the alert rules: %w", err)
	}
	l.tell(ctx, changed)
	return l.metrics.read(ctx, l.store, measured)
}

// changes are the reported changes of one evaluation.
type changes struct {
	fired   []store.RaiseAlertsRow
	cleared []store.ClearAlertsRow
}

// keyOf is the key of a condition's alert.
func keyOf(c Condition) string { return key(c.Rule, plain(c.Target)) }

// openBound bounds the open alerts of one evaluation; later ones end the others.
const openBound = 20_000

// write updates the table to the conditions that hold.
func (l *Loop) write(ctx context.Context, tx *store.Tx, measured *Measures) (changed changes, err error) {
	open, err := tx.OpenAlerts(ctx, openBound)
	if err != nil {
		return changed, fmt.Errorf("read the open alerts: %w", err)
	}
	opened := make(map[string]bool, len(open))
	for _, row := range open {
		opened[key(row.Rule, row.Target)] = true
	}
	all := EvaluateAll(l.rules, measured)
	holds := make(map[string]bool, len(all)) // including conditions beyond the bound of their rule
	for _, c := range all {
		holds[keyOf(c)] = true
	}
	p := raising(Cut(all, func(c Condition) bool { return opened[keyOf(c)] }))
	if len(p.Rules) > 0 {
		raised, err := tx.RaiseAlerts(ctx, p)
		if err != nil {
			return changed, fmt.Errorf("raise %d alerts: %w", len(p.Rules), err)
		}
		for _, row := range raised {
			if row.News {
				changed.fired = append(changed.fired, row)
			}
		}
		if err := l.announce(ctx, tx, changed.fired); err != nil {
			return changed, err
		}
	}
	changed.cleared, err = l.end(ctx, tx, measured, holds, open)
	return changed, err
}

// raising are the rows of conditions.
func raising(conditions []Condition) (p store.RaiseAlertsParams) {
	raises := make(map[string]bool, len(conditions))
	for _, c := range conditions {
		target, key := plain(c.Target), keyOf(c)
		if raises[key] {
			continue // two conditions with one key
		}
		raises[key] = true
		p.Rules, p.Targets, p.Keys = append(p.Rules, c.Rule), append(p.Targets, target), append(p.Keys, key)
		p.Severities, p.Values = append(p.Severities, string(c.Severity)), append(p.Values, c.Value)
		p.Summaries, p.Hints = append(p.Summaries, plain(c.Summary)), append(p.Hints, plain(c.Hint))
		p.Helds = append(p.Helds, c.For.Seconds())
	}
	return p
}

// end clears alerts whose condition no longer holds. Alerts with an unknown measure stay.
func (l *Loop) end(
	ctx context.Context, tx *store.Tx, measured *Measures, holds map[string]bool, open []store.OpenAlertsRow,
) ([]store.ClearAlertsRow, error) {
	var fired, pending []int64
	for _, row := range open {
		rule := l.rules[row.Rule]
		watched := rule != nil && rule.Enabled
		if holds[key(row.Rule, row.Target)] || watched && !measured.Known(rule.Measure) {
			continue
		}
		if row.Fired {
			fired = append(fired, row.ID)
		} else {
			pending = append(pending, row.ID)
		}
	}
	if len(pending) > 0 {
		if _, err := tx.ForgetAlerts(ctx, pending); err != nil {
			return nil, fmt.Errorf("forget %d alerts that did not fire: %w", len(pending), err)
		}
	}
	if len(fired) == 0 {
		return nil, nil
	}
	cleared, err := tx.ClearAlerts(ctx, fired)
	if err != nil {
		return nil, fmt.Errorf("clear %d alerts: %w", len(fired), err)
	}
	return cleared, nil
}

// plain removes characters that the database does not store.
func plain(text string) string { return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "?") }

// tell logs the changes.
func (l *Loop) tell(ctx context.Context, changed changes) {
	for _, row := range changed.fired {
		level := slog.LevelWarn
		if row.Severity == string(LevelInfo) {
			level = slog.LevelInfo
		}
		l.logger.Log(ctx, level, "Alert fires", "rule", row.Rule, "target", row.Target, "severity", row.Severity,
			"value", row.Value, "summary", row.Summary, "since", row.Since.UTC())
	}
	for _, row := range changed.cleared {
		l.logger.InfoContext(ctx, "Alert cleared", "rule", row.Rule, "target", row.Target, "severity", row.Severity,
			"value", row.Value, "summary", row.Summary, "fired_for",
			time.Duration(row.Lasted*float64(time.Second)).Round(time.Second).String())
	}
}

var _ supervise.Service = (*Loop)(nil)
