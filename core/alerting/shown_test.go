package alerting_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/app"
)

// calmBroker is a broker of which nothing is to be said.
type calmBroker struct{}

func (calmBroker) ReadBroker(context.Context) (*monitor.Broker, error) {
	return &monitor.Broker{Queues: []monitor.BrokerQueue{{Name: monitor.DeadLetterQueue, Consumers: 1}}}, nil
}

func (calmBroker) ReadWiring(context.Context) (*broker.Wiring, error) {
	one := 1
	return &broker.Wiring{
		Exchanges: map[string]broker.ExchangeInfo{
			message.ExchangeDeadLetter: {Name: message.ExchangeDeadLetter, Kind: "direct"},
		},
		Queues: []broker.QueueInfo{{
			Name: message.QueueDeadLetter, Type: "classic", Durable: true, Consumers: &one, Ready: &one,
		}},
	}, nil
}

func (calmBroker) ReadDepth(context.Context, string) ([]monitor.PastDepth, error) { return nil, nil }

// requireShown: the first screen of the dashboard names the alert below NEEDS ATTENTION, and its header counts it.
func (b *bundle) requireShown(rule, target string) {
	b.t.Helper()
	if rule != "no_replica" { // else a replica has evaluated the alerts a moment ago
		b.evaluates()
	}
	summary := testkitText(b.t, b.store,
		`select summary from alert where rule = $1 and target = $2 and cleared is null`, rule, target)
	b.requireAttention(alerting.Level(config.Default().Alerts[rule].Severity), summary[:min(len(summary), 40)])
}

// evaluates makes a replica that has evaluated the alerts a moment ago.
func (b *bundle) evaluates() {
	b.t.Helper()
	b.exec(`insert into engine_replica (id, host, version, pid, state, started, last_seen, loops, details)
		values ('11111111-fa2f-4cc0-81d3-ff12045b73c8', 'judge', 'v', 8, 'connected', now() - interval '1 hour', now(),
			jsonb_build_object('alerts', now()),
			jsonb_build_object('clock', now(), 'loops', '{"alerts": {"patience_ns": 60000000000}}'::jsonb,
				'routes', jsonb_build_object('at', now(), 'routed', 10)))`)
}

// requireAttention: the first screen of the dashboard has a text below NEEDS ATTENTION, and its header counts the
// level.
func (b *bundle) requireAttention(level alerting.Level, text string) {
	b.t.Helper()
	screen, counts := b.overview()
	if at, counted := map[alerting.Level]int{alerting.LevelCritical: 0, alerting.LevelWarning: 1}[level]; counted {
		require.Positive(b.t, counts[at], screen)
	}
	_, attention, ok := strings.Cut(screen, "NEEDS ATTENTION")
	require.True(b.t, ok, screen)
	require.Contains(b.t, attention, text)
	require.NotContains(b.t, attention, "Nothing needs attention")
}

// overview is the first screen of the dashboard, and the numbers of critical and of warning findings in its header.
func (b *bundle) overview() (screen string, counts [2]int) {
	b.t.Helper()
	var reader app.Reader = alerting.NewReader(monitor.New(monitor.Config{MaxQueued: 10_000},
		monitor.Deps{Store: b.store, Broker: calmBroker{}}), shortened(), nil)
	if b.unread {
		reader = unreadChecks{reader}
	}
	shot, err := app.Take(b.t.Context(), reader, app.Options{}, "", 250, 60)
	require.NoError(b.t, err)
	screen = ansi.Strip(shot.Text())
	found := regexp.MustCompile(`■ (\d+) crit ▲ (\d+) warn`).FindStringSubmatch(screen)
	require.NotNil(b.t, found, screen)
	for i := range counts {
		counts[i], err = strconv.Atoi(found[i+1])
		require.NoError(b.t, err)
	}
	return screen, counts
}

// unreadChecks is a reader whose checks run into a timeout.
type unreadChecks struct{ app.Reader }

func (unreadChecks) Checks(context.Context) (*monitor.Checks, error) {
	return nil, errors.New("canceling statement due to statement timeout")
}

// TestEveryAlertIsShownAmongAMillionExecutions within 30 s, of which a replica may let twelve pass before it evaluates
// the rules, and a dashboard four before it reads.
func TestEveryAlertIsShownAmongAMillionExecutions(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "fill a table with 1,000,000 executions")
	b := setupOn(t, testkit.OwnStore(t), shortened())
	b.exec(`alter table execution disable trigger user`)
	b.exec(`insert into execution (action_ref, status, created, updated, finished_at)
		select 'old.action', (array['completed', 'failed']::execution_status_enum[])[1 + g % 2], now() - interval '2 days',
			now() - interval '1 day', now() - make_interval(secs => 90000 + g % 100000) from generate_series(1, 900000) g`)
	b.exec(`insert into execution (action_ref, status, created, updated)
		select 'old.action', 'requested', now() - interval '1 hour', now() - interval '1 hour' from generate_series(1, 100000) g`)
	b.exec(`alter table execution enable trigger user`)
	b.exec(`vacuum analyze execution`)
	last := testkit.Count(t, b.store, `select max(id) from execution`)
	clean := func() {
		for _, table := range []string{
			"alert", "engine_replica", "dead_letter", "lost_work", "activity_minute", "enforcement", "event_matched",
			"work_queue_item", "work_queue", "admission_blocked", "execution_admission_entry", "execution_holder",
			"worker_probe", "outbox", "inquiry", "workflow_execution", "workflow_definition",
		} {
			b.exec(`delete from ` + table)
		}
		b.exec(`delete from execution where id > $1`, last)
		b.exec(`delete from execution_admission_state`)
		b.exec(`delete from action`)
		b.exec(`delete from worker`)
		b.view.edit, *b.probe, b.unread = nil, fakeProbe{}, false
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		cases[name].make(b)
		begin := time.Now()
		b.tick()
		b.tick()
		require.Equal(t, "firing", b.state(name, cases[name].target), name)
		b.requireShown(name, cases[name].target)
		require.Less(t, time.Since(begin), 14*time.Second, name)
		cases[name].undo(b)
		clean()
	}
	for _, name := range slices.Sorted(maps.Keys(findingCases)) {
		b.evaluates()
		findingCases[name].make(b)
		begin := time.Now()
		b.requireAttention(findingCases[name].level, findingCases[name].text)
		require.Less(t, time.Since(begin), 14*time.Second, name)
		clean()
	}
}
