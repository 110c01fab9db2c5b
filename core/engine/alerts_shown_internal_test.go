package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/app"
)

// unrepaired is a broker that refuses to declare.
type unrepaired struct{ *broker.Broker }

func (unrepaired) DeclareExecutor(context.Context) error { return errors.New("no rights") }

// TestConditionsOfTheBrokerAreShown makes them on a real broker, one after another, and reads them from the first
// screen of the dashboard. Only an alarm of the broker is not made: it stops the publishers of every virtual host.
func TestConditionsOfTheBrokerAreShown(t *testing.T) {
	t.Parallel()
	cfg, ctx := config.Default(), testkit.Context(t)
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL = testkit.VHost(t), testkit.ManagementURL(t)
	wire := broker.New(broker.Config{URL: cfg.MessageQueue.URL, ConnectionName: "probe"}, testkit.Logger(t), nil)
	require.NoError(t, wire.Start(ctx))
	t.Cleanup(wire.Stop)
	require.NoError(t, wire.DeclareExecutor(ctx))
	st, vhost := testkit.Store(t), testkit.VHostName(t, cfg.MessageQueue.URL)
	probes := &prober{engine: &Engine{cfg: cfg, broker: wire, query: st}}
	t.Cleanup(probes.close)
	client, err := broker.NewManagement(testkit.ManagementURL(t), vhost, 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	for _, rule := range cfg.Alerts {
		rule.Enabled, rule.For = true, 0
	}
	view := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{
		Store: st, Broker: monitor.NewManagementReader(client, vhost),
	}), cfg.Alerts, probes)
	loop := alerting.New(alerting.Config{Rules: cfg.Alerts}, alerting.Deps{
		Store: st, View: view, Logger: testkit.Logger(t),
	})
	attention := func() string {
		testkit.Exec(t, st, `delete from engine_replica`)
		testkit.Exec(t, st, `insert into engine_replica (id, host, version, pid, state, started, last_seen, loops, details)
			values ('11111111-fa2f-4cc0-81d3-ff12045b73c8', 'judge', 'v', 8, 'connected', now() - interval '1 hour', now(),
				jsonb_build_object('alerts', now()),
				jsonb_build_object('clock', now(), 'loops', '{"alerts": {"patience_ns": 60000000000}}'::jsonb))`)
		probes.missing, probes.others = remembered{}, remembered{} // a minute later
		require.NoError(t, loop.Tick(t.Context()))
		shot, err := app.Take(t.Context(), view, app.Options{}, "", 250, 60)
		require.NoError(t, err)
		_, text, _ := strings.Cut(ansi.Strip(shot.Text()), "NEEDS ATTENTION")
		return text
	}
	shows := func(texts ...string) {
		t.Helper()
		var last string
		defer func() { // Eventually has failed
			if t.Failed() {
				t.Log(last)
			}
		}()
		testkit.Eventually(t, func() bool {
			last = attention()
			for _, text := range texts {
				if !strings.Contains(last, text) {
					return false
				}
			}
			return true
		}, 30*time.Second)
	}
	path := "/api/exchanges/" + vhost + "/" + message.ExchangeDeadLetter

	// No handler consumes dead letters, and no worker takes its work.
	w := testkit.Worker(t, st, "w1")
	testkit.Exec(t, st, `update worker set created = now() - interval '1 hour'`)
	require.NoError(t, wire.DeclareWorker(ctx, w.ID, time.Minute))
	require.NoError(t, wire.BindWorkerDeadLetters(ctx, w.ID))
	shows("w1 is deaf", "1 check has failed", "attune.dlx.queue has no consumer")

	channel := testkit.Forger(t, cfg.MessageQueue.URL)
	for range 101 {
		err := channel.PublishWithContext(ctx, "", message.QueueDeadLetter, false, false, amqp.Publishing{})
		require.NoError(t, err)
	}
	shows("101 dead letters")
	_, err = channel.Consume(message.QueueExecutionRequests, "executor.stranger", false, false, false, false, nil)
	require.NoError(t, err)
	shows("executor.stranger")

	testkit.Manage(t, "DELETE", path, nil, nil)
	shows("exchange " + message.ExchangeDeadLetter)
	testkit.Manage(t, "PUT", path, map[string]any{"type": "direct", "durable": true}, nil)
	probes.engine.routes = deadletter.NewRoutes(deadletter.RoutesConfig{Interval: 100 * time.Millisecond}, st,
		unrepaired{wire}, testkit.Logger(t), nil, nil)
	require.NoError(t, probes.engine.routes.Start(ctx))
	t.Cleanup(probes.engine.routes.Stop)
	shows(message.DeadLetterKeys()[0])
	testkit.Manage(t, "DELETE", "/api/queues/"+vhost+"/"+message.QueueEnforcements, nil, nil)
	shows("queue " + message.QueueEnforcements)
	wire.Stop()
	shows("dead_letter_depth is not measured")
}
