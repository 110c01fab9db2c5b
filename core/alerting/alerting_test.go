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
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// fakeProbe is a broker that says what a test wants.
type fakeProbe struct {
	mu                    sync.Mutex
	depth                 int64
	lost, missing, alarms []string
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

func (p *fakeProbe) Alarms(context.Context) ([]string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alarms, true, p.err
}

// edited is a monitor whose measures a test changes.
type edited struct {
	*monitor.Monitor

	edit func(*monitor.Measures)
}

func (e *edited) Measure(ctx context.Context) (*monitor.Measures, error) {
	m, err := e.Monitor.Measure(ctx)
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
}

// setup makes a loop over rules that need not hold for long.
func setup(t *testing.T, rules monitor.Rules) *bundle {
	t.Helper()
	b := &bundle{t: t, store: testkit.Store(t), probe: &fakeProbe{}, log: &bytes.Buffer{}}
	b.view = &edited{Monitor: monitor.New(monitor.Config{Alerts: rules}, monitor.Deps{Store: b.store, Probe: b.probe})}
	b.loop = b.another(rules)
	return b
}

// another makes a further replica's loop.
func (b *bundle) another(rules monitor.Rules) *alerting.Loop {
	return alerting.New(alerting.Config{Rules: rules}, alerting.Deps{
		Store: b.store, View: b.view, Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	})
}

// shortened are the built-in rules, those that wait with a wait of a moment.
func shortened() monitor.Rules {
	rules := config.Default().Alerts
	for _, rule := range rules {
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

// letters puts dead letters into the ledger that wait for a person.
func (b *bundle) letters(n int) {
	b.t.Helper()
	b.exec(`insert into dead_letter (fingerprint, reason) select 'f' || g, 'expired' from generate_series(1, $1::int) g`, n)
}

func (b *bundle) noLetters() { b.t.Helper(); b.exec(`delete from dead_letter`) }

// replica puts a replica of the engine into its table.
func (b *bundle) replica(age time.Duration, loops, details string) {
	b.t.Helper()
	b.exec(`insert into engine_replica (id, host, version, pid, state, started, last_seen, loops, details)
		values ('0194fdc2-fa2f-4cc0-81d3-ff12045b73c8', 'h', 'v', 7, 'connected', now() - interval '1 hour', now() - make_interval(secs => $1), $2, $3)`,
		age.Seconds(), loops, details)
}

const short = "0194fdc2" // how the replica is called

func (b *bundle) probed(ready int, health string) {
	b.t.Helper()
	w := testkit.Worker(b.t, b.store, "w1")
	b.exec(`insert into worker_probe (worker, verdict, health, ready) values ($1, 'fresh', $2, $3)`, w.ID, health, ready)
}

func (b *bundle) execution(status attune.Status, age time.Duration) {
	b.t.Helper()
	action := testkit.Action(b.t, b.store, "demo.sleep")
	testkit.Execution(b.t, b.store, action, func(r *testkit.ExecutionRow) { r.Status, r.Age = status, age })
}

// queue makes a queue in which executions wait.
func (b *bundle) queue(options ...func(*testkit.StateRow)) testkit.StateRow {
	b.t.Helper()
	return testkit.State(b.t, b.store, testkit.Action(b.t, b.store, "demo.sleep"), 2, options...)
}

type alertCase struct {
	target     string
	make, undo func(b *bundle)
}

// cases makes the condition of every built-in rule true and false again.
var cases = map[string]alertCase{
	"high_execution_timeout_rate": {
		make: func(b *bundle) {
			b.exec(`insert into lost_work (cause, outcome, execution, attempt, action_ref) select 'scheduled_timeout', 'failed', g, 1, 'a.b' from generate_series(1, 11) g`)
		},
		undo: func(b *bundle) { b.exec(`update lost_work set at = now() - interval '2 minutes'`) },
	},
	"no_active_workers": {
		make: func(b *bundle) {
			testkit.Worker(b.t, b.store, "kept", func(r *testkit.WorkerRow) { r.Cordoned = true })
		},
		undo: func(b *bundle) { b.exec(`update worker set cordoned = false`) },
	},
	"stale_executions": {
		make: func(b *bundle) { b.execution(attune.StatusScheduled, 6*time.Minute) },
		undo: func(b *bundle) { b.exec(`update execution set status = 'running'`) },
	},
	"exec_stuck": {
		make: func(b *bundle) { b.execution(attune.StatusScheduled, 11*time.Minute) },
		undo: func(b *bundle) { b.exec(`update execution set status = 'running'`) },
	},
	"dlq_buildup": {
		make: func(b *bundle) { b.letters(51); b.probe.set(func(p *fakeProbe) { p.depth = 50 }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.depth = 49 }) },
	},
	"dlq_depth_critical": {
		make: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.depth = 101 }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.depth = 100 }) },
	},
	"dlq_depth_warning": {
		make: func(b *bundle) { b.letters(11) },
		undo: func(b *bundle) { b.exec(`update dead_letter set decision = 'failed' where fingerprint = 'f1'`) },
	},
	"dlq_waiting": {
		make: func(b *bundle) { b.letters(1) },
		undo: (*bundle).noLetters,
	},
	"dlq_rate_warning": {
		make: func(b *bundle) { b.letters(26) },
		undo: func(b *bundle) {
			b.exec(`update dead_letter set created = now() - interval '6 minutes' where fingerprint in ('f1', 'f2')`)
		},
	},
	"dlq_rate_critical": {
		make: func(b *bundle) { b.letters(101) },
		undo: (*bundle).noLetters,
	},
	"dlq_growth": { // how it is measured over minutes is tested where it is
		make: func(b *bundle) {
			b.view.edit = func(m *monitor.Measures) { m.Samples["dead_letters_growth"] = []monitor.Sample{{Value: 1}} }
		},
		undo: func(b *bundle) {
			b.view.edit = func(m *monitor.Measures) { m.Samples["dead_letters_growth"] = []monitor.Sample{{Value: 0}} }
		},
	},
	"dlq_routes_lost": {
		make: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.lost = []string{"execution.dispatch.worker.7"} }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.lost = nil }) },
	},
	"topology": {
		make: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.missing = []string{"exchange attune.dlx"} }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.missing = nil }) },
	},
	"broker_alarm": {
		make: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.alarms = []string{"memory on rabbit@a"} }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.alarms = nil }) },
	},
	"unmeasured": {
		target: "dead_letter_depth",
		make:   func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.err = errors.New("cut off") }) },
		undo:   func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.err = nil }) },
	},
	"worker_queue_warning": {
		target: "w1",
		make:   func(b *bundle) { b.probed(50, "healthy") },
		undo:   func(b *bundle) { b.exec(`update worker_probe set ready = 49`) },
	},
	"worker_queue_critical": {
		target: "w1",
		make:   func(b *bundle) { b.probed(100, "healthy") },
		undo:   func(b *bundle) { b.exec(`update worker_probe set ready = 99`) },
	},
	"unhealthy_workers": {
		make: func(b *bundle) { b.probed(0, "unhealthy") },
		undo: func(b *bundle) { testkit.Worker(b.t, b.store, "w2") },
	},
	"worker_heartbeat": {
		target: "ill",
		make: func(b *bundle) {
			testkit.Worker(b.t, b.store, "ill", func(r *testkit.WorkerRow) { r.HeartbeatAge = 2 * time.Minute })
		},
		undo: func(b *bundle) { b.exec(`update worker set last_heartbeat = now()`) },
	},
	"worker_suspect": {
		target: "mute",
		make: func(b *bundle) {
			testkit.Worker(b.t, b.store, "mute")
			b.exec(`update worker set suspect_since = now(), suspect_reason = 'its queue is gone'`)
		},
		undo: func(b *bundle) { b.exec(`update worker set suspect_since = null`) },
	},
	"workers_missing": {
		make: func(b *bundle) {
			q := b.queue(func(r *testkit.StateRow) { r.Queued = 1 })
			b.exec(`insert into admission_blocked (state_id, ticket, reason) values ($1, 1, 'no compatible worker: 1 has not the runtime')`, q.ID)
		},
		undo: func(b *bundle) {
			b.exec(`update admission_blocked set reason = 'waiting for a worker: the only fitting worker is busy'`)
		},
	},
	"queue_head_wait": {
		target: "demo.sleep",
		make: func(b *bundle) {
			q := b.queue(func(r *testkit.StateRow) { r.Queued = 1 })
			e := testkit.Execution(b.t, b.store, testkit.ActionRow{ID: q.Action, Ref: "demo.sleep"})
			b.exec(`insert into execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at)
				values ($1, $2, 'queued', 1, now() - interval '11 minutes')`, q.ID, e.ID)
		},
		undo: func(b *bundle) { b.exec(`update execution_admission_entry set enqueued_at = now()`) },
	},
	"queue_length": {
		target: "demo.sleep",
		make:   func(b *bundle) { b.queue(func(r *testkit.StateRow) { r.Queued = 8001 }) },
		undo:   func(b *bundle) { b.exec(`update execution_admission_state set queued_count = 8000`) },
	},
	"queue_paused": {
		target: "demo.sleep",
		make:   func(b *bundle) { b.queue(func(r *testkit.StateRow) { r.Queued, r.Paused = 1, true }) },
		undo:   func(b *bundle) { b.exec(`update execution_admission_state set paused = false`) },
	},
	"retry_rate": {
		make: func(b *bundle) {
			action := testkit.Action(b.t, b.store, "demo.sleep")
			for i := range 20 {
				testkit.Execution(b.t, b.store, action, func(r *testkit.ExecutionRow) { r.RetryCount = int32(i / 15) })
			}
		},
		undo: func(b *bundle) { b.exec(`update execution set retry_count = 0`) },
	},
	"leaked_slot": {
		make: func(b *bundle) {
			q := b.queue(func(r *testkit.StateRow) { r.Active = 1 })
			testkit.Execution(b.t, b.store, testkit.ActionRow{ID: q.Action, Ref: "demo.sleep"}, func(r *testkit.ExecutionRow) {
				r.Status, r.AdmissionState = attune.StatusCompleted, &q.ID
			})
			b.exec(`update execution set finished_at = now() - interval '2 minutes'`)
		},
		undo: func(b *bundle) { b.exec(`update execution set admission_state_id = null`) },
	},
	"no_replica": {
		make: func(*bundle) {},
		undo: func(b *bundle) { b.replica(0, "{}", "{}") },
	},
	"replica_silent": {
		target: short,
		make:   func(b *bundle) { b.replica(31*time.Second, "{}", "{}") },
		undo:   func(b *bundle) { b.exec(`update engine_replica set last_seen = now()`) },
	},
	"replica_unwell": {
		target: short,
		make: func(b *bundle) {
			b.replica(0, "{}", `{"clock": "2026-01-01T00:00:10Z", "connections": [{"purpose": "publish", "up": true, "blocked": true, "reason": "memory", "since": "2026-01-01T00:00:00Z"}]}`)
		},
		undo: func(b *bundle) { b.exec(`update engine_replica set details = '{}'`) },
	},
	"loop_late": {
		target: short + "/recovery",
		make: func(b *bundle) {
			b.replica(0, `{"recovery": "2026-01-01T00:00:00Z"}`, `{"clock": "2026-01-01T00:02:00Z", "loops": {"recovery": {"patience_ns": 60000000000}}}`)
		},
		undo: func(b *bundle) { b.exec(`update engine_replica set loops = '{"recovery": "2026-01-01T00:01:59Z"}'`) },
	},
	"outbox_age": {
		make: func(b *bundle) {
			b.exec(`insert into outbox (created, message_ids, exchanges, routing_keys, message_types, bodies, traces)
				values (now() - interval '31 seconds', '{}', '{}', '{}', '{}', '{}', '{}')`)
		},
		undo: func(b *bundle) { b.exec(`delete from outbox`) },
	},
	"partition_missing": {
		target: "event",
		make: func(b *bundle) {
			b.exec(`do $$ begin execute format('drop table event_p%s', to_char((now() + interval '1 day') at time zone 'utc', 'YYYYMMDD')); end $$`)
		},
		undo: func(b *bundle) { b.exec(`select attune_partitions_ahead('event', 1, 7)`) },
	},
}

// TestEveryRuleFiresAndClears: of each built-in rule the condition is made true and
// false again, on a database.
func TestEveryRuleFiresAndClears(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, slices.Collect(maps.Keys(config.Default().Alerts)), slices.Collect(maps.Keys(cases)), "each rule has its case")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, shortened())
			c.make(b)
			b.tick()
			if config.Default().Alerts[name].For > 0 {
				require.Equal(t, "pending", b.state(name, c.target), "it has not held for long enough")
				require.NotContains(t, b.log.String(), "rule="+name+" ")
				b.tick()
			}
			require.Equal(t, "firing", b.state(name, c.target))
			require.Contains(t, b.log.String(), `msg="Alert fires" rule=`+name+" ")
			text := testkitText(t, b.store, `select summary || ' / ' || hint from alert where rule = $1 and cleared is null`, name)
			require.NotContains(t, text, "{", "every placeholder is filled")
			c.undo(b)
			b.tick()
			require.Equal(t, "cleared", b.state(name, c.target), text)
			require.Contains(t, b.log.String(), `msg="Alert cleared" rule=`+name+" ")
		})
	}
}

// TestQuietInstallationsRaiseNothing: with a worker and a replica nothing fires.
func TestQuietInstallationsRaiseNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, shortened())
	testkit.Worker(t, b.store, "w1")
	b.replica(0, "{}", "{}")
	b.tick()
	b.tick()
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from alert`))
}

// TestWhatIsUnknownNeitherFiresNorClears: and that it is unknown is said.
func TestWhatIsUnknownNeitherFiresNorClears(t *testing.T) {
	t.Parallel()
	b := setup(t, shortened())
	b.probe.set(func(p *fakeProbe) { p.depth = 50 })
	b.tick()
	require.Equal(t, "firing", b.state("dlq_depth_warning", ""))
	seen := testkitText(t, b.store, `select seen::text from alert where rule = 'dlq_depth_warning'`)

	b.probe.set(func(p *fakeProbe) { p.depth, p.err = 0, errors.New("cut off") })
	b.tick()
	b.tick()
	require.Equal(t, "firing", b.state("dlq_depth_warning", ""), "nobody knows that it has ended")
	require.Equal(t, seen, testkitText(t, b.store, `select seen::text from alert where rule = 'dlq_depth_warning'`), "it was not evaluated since")
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
	t.Parallel()
	rules := shortened()
	b := setup(t, rules)
	b.letters(11)
	b.log = nil // the loops would write to it at once
	quiet := func() *alerting.Loop {
		return alerting.New(alerting.Config{Rules: rules}, alerting.Deps{Store: b.store, View: b.view, Logger: telemetry.Discard()})
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
	t.Parallel()
	b := setup(t, monitor.Rules{"slow": {Enabled: true, Measure: "dead_letter_depth", Above: 1, For: time.Hour, Severity: "warning"}})
	b.letters(2)
	b.tick()
	b.tick()
	require.Equal(t, "pending", b.state("slow", ""))
	b.exec(`update alert set since = now() - interval '61 minutes'`)
	b.tick()
	require.Equal(t, "firing", b.state("slow", ""))
	b.noLetters()
	b.tick()
	b.letters(2)
	b.tick()
	require.Equal(t, "pending", b.state("slow", ""), "it begins anew")
	b.noLetters()
	b.tick()
	require.Equal(t, "cleared", b.state("slow", ""))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from alert`))
}

// TestRulesOfUsers: a rule that a user adds is evaluated for its target only; one
// that is switched off or taken away ends what it has raised.
func TestRulesOfUsers(t *testing.T) {
	t.Parallel()
	rules := monitor.Rules{"mail_wait": {
		Enabled: true, Measure: "queue_length", Above: 5, Severity: "critical", Target: "demo.mail", Summary: "mail: {target} has {value} of {limit}",
	}}
	b := setup(t, rules)
	for _, ref := range []string{"demo.mail", "demo.mailer"} {
		testkit.State(t, b.store, testkit.Action(t, b.store, ref), 2, func(r *testkit.StateRow) { r.Queued = 9 })
	}
	b.tick()
	require.Equal(t, "mail: demo.mail has 9 of 5", testkitText(t, b.store, `select summary from alert`))
	require.NoError(t, b.another(monitor.Rules{}).Tick(t.Context()))
	require.Equal(t, "cleared", b.state("mail_wait", "demo.mail"))
}

// TestAlertsAreReadWithTheirAge: what the table holds, and what is said while
// nobody evaluates.
func TestAlertsAreReadWithTheirAge(t *testing.T) {
	t.Parallel()
	b := setup(t, shortened())
	b.letters(11)
	b.replica(0, `{"alerts": "2026-01-01T00:00:00Z"}`, `{"clock": "2026-01-01T00:00:03Z", "loops": {"alerts": {"patience_ns": 60000000000}}}`)
	b.tick()
	b.tick()
	a, err := b.view.Alerts(t.Context())
	require.NoError(t, err)
	require.True(t, a.Evaluated)
	require.InDelta(t, 3, a.At.Sub(*a.EvaluatedAt).Seconds(), 2)
	require.Empty(t, a.Note)
	require.Equal(t, "no_active_workers", a.Open[0].Rule)
	require.Equal(t, 1, a.Firing(monitor.LevelCritical))
	behind := map[string]bool{}
	states := map[string]string{}
	for _, one := range a.Open {
		behind[one.Rule] = one.Behind
	}
	for _, rule := range a.Rules {
		states[rule.Name] = rule.State
	}
	require.Equal(t, map[string]bool{"no_active_workers": false, "dlq_depth_warning": false, "dlq_waiting": true}, behind)
	require.Equal(t, "firing", states["dlq_waiting"])
	require.Equal(t, "quiet", states["dlq_buildup"])

	o, err := b.view.Overview(t.Context())
	require.NoError(t, err)
	var texts []string
	for _, f := range monitor.Attention(o, nil, nil) {
		texts = append(texts, string(f.Level)+" "+f.Text)
	}
	require.Equal(t, []string{"critical 0 workers take work", "warning 11 dead letters wait"}, texts, "the dashboard shows the alerts")

	b.noLetters()
	b.tick()
	b.exec(`delete from engine_replica`)
	a, err = b.view.Alerts(t.Context())
	require.NoError(t, err)
	require.False(t, a.Evaluated)
	require.Contains(t, a.Note, "No replica of the engine evaluates")
	require.Len(t, a.Recent, 2)
	rules := []string{}
	for _, one := range a.Open {
		rules = append(rules, one.Rule)
	}
	require.Contains(t, rules, "no_replica", "judged here")
}

// TestMetricsShowWhatIsWatched.
func TestMetricsShowWhatIsWatched(t *testing.T) {
	t.Parallel()
	b := setup(t, shortened())
	registry := telemetry.NewRegistry()
	b.loop = alerting.New(alerting.Config{Rules: shortened()}, alerting.Deps{
		Store: b.store, View: b.view, Logger: telemetry.Discard(), Registry: registry,
	})
	b.tick()
	b.letters(3)
	b.exec(`insert into lost_work (at, cause, outcome, execution, attempt, action_ref)
		values (now() - interval '6 seconds', 'scheduled_timeout', 'failed', 1, 1, 'a.b'), (now() - interval '6 seconds', 'scheduled_timeout', 'moved', 1, 1, 'a.b')`)
	for i := range 30 {
		testkit.Worker(t, b.store, "w"+strings.Repeat("x", i))
	}
	b.tick()
	b.tick()
	require.InDelta(t, 3, value(t, registry, "attune_dead_letter_queue_depth", ""), 0)
	require.InDelta(t, 0, value(t, registry, "attune_scheduled_overdue", ""), 0)
	require.InDelta(t, 1, value(t, registry, "attune_execution_timeouts_total", "scheduled_timeout"), 0, "once, and not what went on elsewhere")
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
