package alerting_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// fakeProbe is a broker with the answers of a test.
type fakeProbe struct {
	mu                    sync.Mutex
	depth                 int64
	lost, missing, others []string
	alarms                []string
	err                   error
}

func (p *fakeProbe) set(change func(*fakeProbe)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *fakeProbe) QueueDepth(_ context.Context, queue string) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if queue != monitor.DeadLetterQueue {
		return 0, p.err
	}
	return p.depth, p.err
}

func (p *fakeProbe) LostRoutes(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost, p.err
}

func (p *fakeProbe) Missing(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missing, p.err
}

func (p *fakeProbe) OtherExecutors(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.others, p.err
}

func (p *fakeProbe) Alarms(context.Context) ([]string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alarms, true, p.err
}

// edited is a monitor whose measures a test changes.
type edited struct {
	*alerting.Reader

	edit func(*alerting.Measures)
}

func (e *edited) Measure(ctx context.Context) (*alerting.Measures, error) {
	m, err := e.Reader.Measure(ctx)
	if err == nil && e.edit != nil {
		e.edit(m)
	}
	return m, err
}

type bundle struct {
	t     *testing.T
	store *store.Store
	probe *fakeProbe
	view  *edited
	loop  *alerting.Loop
	log   *bytes.Buffer
	// unread fails the dashboard's read of the checks.
	unread bool
}

// setup makes a loop over rules that need not hold for long.
func setup(t *testing.T, rules alerting.Rules) *bundle {
	t.Helper()
	return setupOn(t, testkit.Store(t), rules)
}

func setupOn(t *testing.T, st *store.Store, rules alerting.Rules) *bundle {
	t.Helper()
	b := &bundle{t: t, store: st, probe: &fakeProbe{}, log: &bytes.Buffer{}}
	b.view = &edited{Reader: alerting.NewReader(monitor.New(monitor.Config{MaxQueued: 10_000},
		monitor.Deps{Store: b.store}), rules, b.probe)}
	b.loop = b.another(rules)
	return b
}

// another makes a further replica's loop.
func (b *bundle) another(rules alerting.Rules) *alerting.Loop {
	return alerting.New(alerting.Config{Rules: rules}, alerting.Deps{
		Store: b.store, View: b.view, Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	})
}

// shortened are the built-in rules, all enabled, with every wait shortened to at most
// a millisecond.
func shortened() alerting.Rules {
	rules := config.Default().Alerts
	for _, rule := range rules {
		rule.Enabled = true
		rule.For = min(rule.For, time.Millisecond)
	}
	return rules
}

func (b *bundle) tick() {
	b.t.Helper()
	require.NoError(b.t, b.loop.Tick(b.t.Context()))
}

// state is how the rule's alert about a target is: empty when there is none.
func (b *bundle) state(rule, target string) string {
	b.t.Helper()
	return testkitText(b.t, b.store, `select coalesce((select case when cleared is not null then 'cleared' when fired is not null then 'firing' else 'pending' end
		from alert where rule = $1 and target = $2 order by id desc limit 1), '')`, rule, target)
}

func testkitText(t *testing.T, st *store.Store, sql string, args ...any) (text string) {
	t.Helper()
	require.NoError(t, st.Pool().QueryRow(t.Context(), sql, args...).Scan(&text))
	return text
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	testkit.Exec(b.t, b.store, sql, args...)
}

// TestEveryRuleFiresAndClears: of each built-in rule the condition is made true and
// false again, on a database.
func TestEveryRuleFiresAndClears(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, slices.Collect(maps.Keys(config.Default().Alerts)), slices.Collect(maps.Keys(cases)),
		"each rule has its case")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := testkit.Store
			if c.own {
				open = testkit.OwnStore
			}
			b := setupOn(t, open(t), shortened())
			c.make(b)
			b.tick()
			if config.Default().Alerts[name].For > 0 {
				require.Equal(t, "pending", b.state(name, c.target), "it has not held for long enough")
				require.NotContains(t, b.log.String(), "rule="+name+" ")
				b.tick()
			}
			require.Equal(t, "firing", b.state(name, c.target))
			require.Contains(t, b.log.String(), `msg="Alert fires" rule=`+name+" ")
			text := testkitText(t, b.store,
				`select summary || ' / ' || hint from alert where rule = $1 and cleared is null`, name)
			require.NotContains(t, text, "{", "every placeholder is filled")
			b.requireShown(name, c.target)
			c.undo(b)
			b.tick()
			require.Equal(t, "cleared", b.state(name, c.target), text)
			require.Contains(t, b.log.String(), `msg="Alert cleared" rule=`+name+" ")
		})
	}
}

// TestQuietInstallationsRaiseNothing: with a worker and a replica nothing fires.
func TestQuietInstallationsRaiseNothing(t *testing.T) {
	b := setup(t, shortened())
	testkit.Worker(t, b.store, "w1")
	testkit.Worker(t, b.store, "stopped",
		func(r *testkit.WorkerRow) { r.Status, r.HeartbeatAge = "inactive", time.Hour })
	b.replica(0, "{}", "{}")
	b.tick()
	b.tick()
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from alert`))
}

// An unknown measure changes no alert but raises its own.
func TestUnknownMeasuresNeitherFireNorClear(t *testing.T) {
	b := setup(t, shortened())
	b.probe.set(func(p *fakeProbe) { p.depth = 50 })
	b.tick()
	require.Equal(t, "firing", b.state("dlq_depth_warning", ""))
	seen := testkitText(t, b.store, `select seen::text from alert where rule = 'dlq_depth_warning'`)

	b.probe.set(func(p *fakeProbe) { p.depth, p.err = 0, errors.New("cut off") })
	b.tick()
	b.tick()
	require.Equal(t, "firing", b.state("dlq_depth_warning", ""), "no reading clears it")
	require.Equal(t, seen, testkitText(t, b.store, `select seen::text from alert where rule = 'dlq_depth_warning'`),
		"it was not evaluated since")
	require.Equal(t, "firing", b.state("unmeasured", "dead_letter_depth"))
	require.Empty(t, b.state("dlq_depth_critical", ""))

	b.probe.set(func(p *fakeProbe) { p.err = nil })
	b.tick()
	require.Equal(t, "cleared", b.state("dlq_depth_warning", ""))
	require.Equal(t, "cleared", b.state("unmeasured", "dead_letter_depth"))
}

// TestThreeReplicasRaiseOneAlert: however many loops, one row; and the alert
// outlives the replica that raised it, with the time since when it holds.
func TestThreeReplicasRaiseOneAlert(t *testing.T) {
	rules := shortened()
	b := setup(t, rules)
	b.addDeadLetters(11)
	b.log = nil // the loops would write to it at once
	quiet := func() *alerting.Loop {
		return alerting.New(alerting.Config{Rules: rules},
			alerting.Deps{Store: b.store, View: b.view, Logger: telemetry.Discard()})
	}
	loops := []*alerting.Loop{quiet(), quiet(), quiet()}
	var all sync.WaitGroup
	for _, loop := range loops {
		all.Go(func() {
			for range 5 {
				if err := loop.Tick(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, loops[0].Tick(t.Context()))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from alert where rule = 'dlq_depth_warning'`))
	since := testkitText(t, b.store, `select since::text from alert where rule = 'dlq_depth_warning'`)
	require.NoError(t, quiet().Tick(t.Context()), "another replica takes over")
	require.Equal(t, since, testkitText(t, b.store, `select since::text from alert where rule = 'dlq_depth_warning'`))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from alert where rule = 'dlq_depth_warning'`))
}

// TestAConditionThatDoesNotLastLeavesNothing: for is the only hysteresis.
func TestAConditionThatDoesNotLastLeavesNothing(t *testing.T) {
	b := setup(t,
		alerting.Rules{"slow": {
			Enabled: true, Measure: "dead_letter_depth", Above: 1, For: time.Hour,
			Severity: "warning",
		}})
	b.addDeadLetters(2)
	b.tick()
	b.tick()
	require.Equal(t, "pending", b.state("slow", ""))
	b.exec(`update alert set since = now() - interval '61 minutes'`)
	b.tick()
	require.Equal(t, "firing", b.state("slow", ""))
	b.noDeadLetters()
	b.tick()
	b.addDeadLetters(2)
	b.tick()
	require.Equal(t, "pending", b.state("slow", ""), "it begins again")
	b.noDeadLetters()
	b.tick()
	require.Equal(t, "cleared", b.state("slow", ""))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from alert`))
}

// TestRulesOfUsers: a rule that a user adds is evaluated for its target only; one
// that is disabled or removed clears its alerts.
func TestRulesOfUsers(t *testing.T) {
	rules := alerting.Rules{"mail_wait": {
		Enabled: true, Measure: "queue_length", Above: 5, Severity: "critical", Target: "demo.mail",
		Summary: "mail: {target} has {value} of {limit}",
	}}
	b := setup(t, rules)
	for _, ref := range []string{"demo.mail", "demo.mailer"} {
		testkit.State(t, b.store, testkit.Action(t, b.store, ref), 2, func(r *testkit.StateRow) { r.Queued = 9 })
	}
	b.tick()
	require.Equal(t, "mail: demo.mail has 9 of 5", testkitText(t, b.store, `select summary from alert`))
	require.NoError(t, b.another(alerting.Rules{}).Tick(t.Context()))
	require.Equal(t, "cleared", b.state("mail_wait", "demo.mail"))
}

// TestAlertsAreReadWithTheirAge reads the table, and evaluates the rules while no replica does.
func TestAlertsAreReadWithTheirAge(t *testing.T) {
	b := setup(t, shortened())
	b.addDeadLetters(11)
	b.replica(0, `{"alerts": "2026-01-01T00:00:00Z"}`,
		`{"clock": "2026-01-01T00:00:03Z", "loops": {"alerts": {"patience_ns": 60000000000}}}`)
	b.tick()
	b.tick()
	a, err := b.view.Alerts(t.Context())
	require.NoError(t, err)
	require.True(t, a.Evaluated)
	require.InDelta(t, 3, a.At.Sub(*a.EvaluatedAt).Seconds(), 20)
	require.Empty(t, a.Note)
	require.Equal(t, "no_active_workers", a.Open[0].Rule)
	require.Equal(t, "active_workers", a.Open[0].Measure)
	require.Equal(t, "0", a.Open[0].Shown)
	require.EqualValues(t, 1, a.Open[0].Times)
	require.Equal(t, 1, a.Firing(alerting.LevelCritical))
	behind := map[string]bool{}
	states := map[string]string{}
	for _, one := range a.Open {
		behind[one.Rule] = one.Behind
	}
	for _, rule := range a.Rules {
		states[rule.Name] = rule.State
	}
	require.Equal(t, map[string]bool{"no_active_workers": false, "dlq_depth_warning": false, "dlq_waiting": true},
		behind)
	require.Equal(t, "firing", states["dlq_waiting"])
	require.Equal(t, "quiet", states["dlq_buildup"])

	o, err := b.view.Overview(t.Context())
	require.NoError(t, err)
	var texts []string
	for _, f := range alerting.Attention(o, nil) {
		texts = append(texts, string(f.Level)+" "+f.Text)
	}
	require.Equal(t, []string{"critical 0 workers take work", "warning 11 dead letters wait"}, texts,
		"the dashboard shows the alerts")

	b.noDeadLetters()
	b.tick()
	b.exec(`delete from engine_replica`)
	a, err = b.view.Alerts(t.Context())
	require.NoError(t, err)
	require.False(t, a.Evaluated)
	require.Contains(t, a.Note, "No replica of the engine evaluates")
	require.Len(t, a.Recent, 2)
	require.EqualValues(t, 1, a.Recent[0].Times)
	rules := []string{}
	for _, one := range a.Open {
		rules = append(rules, one.Rule)
	}
	require.Contains(t, rules, "no_replica")
}

// TestAlertsCountHowOftenTheyFired: within a day, this time included. Pending ones
// do not count.
func TestAlertsCountHowOftenTheyFired(t *testing.T) {
	b := setup(t, shortened())
	b.exec(`insert into alert (rule, target, severity, summary, value, since, fired, cleared) values
		('worker_heartbeat', 'w1', 'warning', 's', 1, now() - interval '23 hours', now() - interval '23 hours', now() - interval '22 hours'),
		('worker_heartbeat', 'w1', 'warning', 's', 1, now() - interval '2 hours', now() - interval '2 hours', now() - interval '1 hour'),
		('worker_heartbeat', 'w2', 'warning', 's', 1, now() - interval '2 hours', now() - interval '2 hours', now() - interval '1 hour'),
		('worker_heartbeat', 'w1', 'warning', 's', 1, now() - interval '25 hours', now() - interval '25 hours', now() - interval '24 hours')`)
	b.exec(`insert into alert (rule, target, severity, summary, value, since, fired) values
		('worker_heartbeat', 'w1', 'warning', 's', 1, now(), now()), ('worker_heartbeat', 'w3', 'warning', 's', 1, now(), null),
		('worker_suspect', 'w4', 'warning', 's', 1, now() - interval '3 days', now() - interval '3 days')`)
	b.replica(0, `{"alerts": "2026-01-01T00:00:00Z"}`,
		`{"clock": "2026-01-01T00:00:03Z", "loops": {"alerts": {"patience_ns": 60000000000}}}`)
	a, err := b.view.Alerts(t.Context())
	require.NoError(t, err)
	times := map[string]int64{}
	for _, one := range a.Open {
		times[one.Target] = one.Times
	}
	require.Equal(t, map[string]int64{"w1": 3, "w3": 0, "w4": 1}, times)
	for _, one := range a.Recent {
		require.Equal(t, map[string]int64{"w1": 3, "w2": 1}[one.Target], one.Times)
		require.Equal(t, "worker", one.Of)
	}
}

// TestMetricsHaveTheMeasures.
func TestMetricsHaveTheMeasures(t *testing.T) {
	b := setup(t, shortened())
	registry := telemetry.NewRegistry()
	b.loop = alerting.New(alerting.Config{Rules: shortened()}, alerting.Deps{
		Store: b.store, View: b.view, Logger: telemetry.Discard(), Registry: registry,
	})
	b.tick()
	b.addDeadLetters(3)
	b.exec(`insert into lost_work (at, cause, outcome, execution, attempt, action_ref)
		values (now() - interval '6 seconds', 'scheduled_timeout', 'failed', 1, 1, 'a.b'), (now() - interval '6 seconds', 'scheduled_timeout', 'moved', 1, 1, 'a.b')`)
	for i := range 30 {
		testkit.Worker(t, b.store, "w"+strings.Repeat("x", i))
	}
	b.tick()
	b.tick()
	require.InDelta(t, 3, value(t, registry, "attune_dead_letter_queue_depth", ""), 0)
	require.InDelta(t, 0, value(t, registry, "attune_scheduled_overdue", ""), 0)
	require.InDelta(t, 1, value(t, registry, "attune_execution_timeouts_total", "scheduled_timeout"), 0,
		"once, and not what went on elsewhere")
	require.InDelta(t, 0, value(t, registry, "attune_execution_timeouts_total", "action_timeout"), 0)
	require.InDelta(t, 1, value(t, registry, "attune_alerts_firing", "dlq_waiting"), 0)
	require.InDelta(t, 0, value(t, registry, "attune_alerts_firing", "dlq_buildup"), 0)
	require.InDelta(t, 30, value(t, registry, "attune_measure", "active_workers"), 0)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		n := 0
		for _, m := range f.GetMetric() {
			if f.GetName() == "attune_measure" && m.GetLabel()[0].GetValue() == "heartbeat_age" {
				n++
			}
		}
		require.LessOrEqual(t, n, 20, "the number of series is bounded")
	}
}

// value is that of the series one of whose labels has the value.
func value(t *testing.T, registry *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			matches := label == ""
			for _, pair := range m.GetLabel() {
				matches = matches || pair.GetValue() == label
			}
			if f.GetName() != name || !matches {
				continue
			}
			if m.GetCounter() != nil {
				return m.GetCounter().GetValue()
			}
			return m.GetGauge().GetValue()
		}
	}
	require.Fail(t, "there is no such series", "%s %s", name, label)
	return 0
}
