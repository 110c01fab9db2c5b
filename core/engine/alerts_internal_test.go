package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
)

// Depths are exact, missing queues, exchanges and lost routes are named, and a disconnected broker is an error.
func TestTheProbeNamesMissingQueuesAndRoutes(t *testing.T) {
	cfg := config.Default()
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL = testkit.VHost(t), testkit.ManagementURL(t)
	wire := broker.New(broker.Config{URL: cfg.MessageQueue.URL, ConnectionName: "probe"}, testkit.Logger(t), nil)
	e := &Engine{cfg: cfg, broker: wire, query: testkit.Store(t)}
	e.routes = deadletter.NewRoutes(
		deadletter.RoutesConfig{Interval: 50 * time.Millisecond, ProbeEvery: time.Millisecond}, e.query,
		unrepaired{wire}, testkit.Logger(t), nil, nil)
	ask := func() *prober { // a new one has nothing in mind
		p := &prober{engine: e}
		t.Cleanup(p.close)
		return p
	}
	_, err := ask().QueueDepth(t.Context(), monitor.DeadLetterQueue)
	require.EqualError(t, err, broker.Trouble(broker.ErrNotConnected).String())
	_, err = ask().LostRoutes(t.Context())
	require.EqualError(t, err, broker.Trouble(broker.ErrNotConnected).String())
	_, err = ask().Missing(t.Context())
	require.EqualError(t, err, broker.Trouble(broker.ErrNotConnected).String())

	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	testkit.Eventually(t, func() bool { return wire.State() == broker.StateConnected }, connectTimeout)
	missing, err := ask().Missing(t.Context())
	require.NoError(t, err)
	require.Contains(t, missing, "exchange "+message.ExchangeDeadLetter)
	require.Contains(t, missing, "queue "+message.QueueDeadLetter)
	depth, err := ask().QueueDepth(t.Context(), monitor.DeadLetterQueue)
	require.NoError(t, err)
	require.Zero(t, depth, "there is no such queue")

	require.NoError(t, wire.DeclareExecutor(testkit.Context(t)))
	missing, err = ask().Missing(t.Context())
	require.NoError(t, err)
	require.Empty(t, missing)
	require.NoError(t, e.routes.Start(testkit.Context(t)))
	t.Cleanup(e.routes.Stop)
	loses := func(n int) {
		t.Helper()
		testkit.Eventually(t, func() bool {
			lost, err := ask().LostRoutes(t.Context())
			return err == nil && e.routes.Report() != nil && len(lost) == n
		}, 30*time.Second)
	}
	loses(0)

	vhost := testkit.VHostName(t, cfg.MessageQueue.URL)
	path := "/api/exchanges/" + vhost + "/" + message.ExchangeDeadLetter
	testkit.Manage(t, "DELETE", path, nil, nil)
	testkit.Manage(t, "PUT", path, map[string]any{"type": "direct", "durable": true}, nil)
	loses(len(message.DeadLetterKeys())) // an exchange without bindings keeps nothing
	require.NoError(t, wire.DeclareExecutor(testkit.Context(t)))
	loses(0)

	p := ask()
	alarms, asked, err := p.Alarms(t.Context())
	require.NoError(t, err)
	require.True(t, asked)
	require.Empty(t, alarms)
	off := *cfg
	off.MessageQueue.ManagementURL = "http://127.0.0.1:1"
	silent := &prober{engine: &Engine{cfg: &off, broker: wire}}
	_, asked, err = silent.Alarms(t.Context())
	require.NoError(t, err)
	require.False(t, asked, "one that has never answered is not missed")

	lost, err := silent.LostRoutes(t.Context()) // without the handler of dead letters
	require.NoError(t, err)
	require.Empty(t, lost, "none are wanted")
}

const connectTimeout = 10 * time.Second

// A reader of the broker does not wait for a query of the alerts.
func TestReadersDoNotWaitForTheAlerts(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.MessageQueue.ManagementURL = testkit.ManagementURL(t)
	p := &prober{engine: &Engine{cfg: cfg}}
	t.Cleanup(p.close)
	p.mu.Lock() // as a query does
	defer p.mu.Unlock()
	read := make(chan error, 1)
	go func() { _, err := p.reader(); read <- err }()
	select {
	case err := <-read:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Error("it waits")
	}
}
