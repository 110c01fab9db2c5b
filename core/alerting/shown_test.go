package alerting_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/app"
)

// calmBroker is a broker of which nothing is to be said.
type calmBroker struct{}

func (calmBroker) ReadBroker(context.Context) (*monitor.Broker, error) {
	return &monitor.Broker{Queues: []monitor.BrokerQueue{{Name: monitor.DeadLetterQueue, Consumers: 1}}}, nil
}

func (calmBroker) ReadWiring(context.Context) (*broker.Wiring, error) {
	return nil, errors.New("not asked")
}

func (calmBroker) ReadDepth(context.Context, string) ([]monitor.PastDepth, error) { return nil, nil }

// screen is the first frame of the dashboard.
func (b *bundle) screen() string {
	b.t.Helper()
	reader := alerting.NewReader(monitor.New(monitor.Config{MaxQueued: 10_000},
		monitor.Deps{Store: b.store, Broker: calmBroker{}}), shortened(), nil)
	shot, err := app.Take(b.t.Context(), reader, app.Options{}, "", 200, 60)
	require.NoError(b.t, err)
	return shot.Text()
}

// evaluates puts a replica into its table that has evaluated the alerts a moment ago.
func (b *bundle) evaluates() {
	b.t.Helper()
	b.exec(`insert into engine_replica (id, host, version, pid, state, started, last_seen, loops, details)
		values ('11111111-fa2f-4cc0-81d3-ff12045b73c8', 'judge', 'v', 8, 'connected', now() - interval '1 hour', now(),
			jsonb_build_object('alerts', to_jsonb(now())), jsonb_build_object('clock', to_jsonb(now()), 'loops', '{"alerts": {"patience_ns": 60000000000}}'::jsonb))
		on conflict (id) do update set last_seen = now(), loops = excluded.loops, details = excluded.details`)
}

var header = regexp.MustCompile(`■ (\d+) crit ▲ (\d+) warn`)

func (b *bundle) requireCalm(rule string) {
	b.t.Helper()
	if rule != "no_replica" {
		b.evaluates()
	}
	screen := b.screen()
	fmt.Println(rule, "CALM\n"+screen)
}

// requireShown: the header counts the alert, and NEEDS ATTENTION names it.
func (b *bundle) requireShown(rule, target string) {
	b.t.Helper()
	if rule != "no_replica" {
		b.evaluates()
	}
	screen := b.screen()
	fmt.Println(rule, "SHOWN\n"+screen)
	level := map[alerting.Level]int{alerting.LevelCritical: 1, alerting.LevelWarning: 2}[alerting.Level(config.Default().Alerts[rule].Severity)]
	found := header.FindStringSubmatch(screen)
	require.NotNil(b.t, found, screen)
	if level > 0 {
		require.NotEqual(b.t, "0", found[level], screen)
	}
	summary := testkitText(b.t, b.store, `select summary from alert where rule = $1 and target = $2 and cleared is null`, rule, target)
	_, attention, ok := strings.Cut(screen, "NEEDS ATTENTION")
	require.True(b.t, ok, screen)
	require.Contains(b.t, attention, summary[:min(len(summary), 30)])
}
