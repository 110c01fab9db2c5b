package deadletter_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// log is a log that may be read while it is written.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

// wire is a broker whose repairs can be turned off.
type wire struct {
	*broker.Broker
	mu     sync.Mutex
	broken bool
	deaths error
}

func (w *wire) set(broken bool, deaths error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken, w.deaths = broken, deaths
}

func (w *wire) DeclareExecutor(ctx context.Context) error {
	w.mu.Lock()
	broken := w.broken
	w.mu.Unlock()
	if broken {
		return errors.New("no rights")
	}
	return w.Broker.DeclareExecutor(ctx)
}

func (w *wire) ProbeDeath(ctx context.Context) error {
	w.mu.Lock()
	err := w.deaths
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return w.Broker.ProbeDeath(ctx)
}

// Upstream 1: every route in use is probed again and again. A lost one is declared again; one that
// stays lost is logged once, with advice, and so is its return.
func TestRoutesAreProvedAndMadeAgain(t *testing.T) {
	d := newService(t)
	// only bindings carry them
	testkit.Manage(t, http.MethodDelete, "/api/policies/"+testkit.VHostName(t, d.amqp)+"/"+broker.PolicyUnrouted, nil,
		nil)
	active := testkit.Worker(t, d.store, "active")
	testkit.Worker(t, d.store, "gone",
		func(w *testkit.WorkerRow) { w.Status, w.HeartbeatAge = "inactive", 48*time.Hour })
	testkit.Exec(t, d.store,
		`INSERT INTO dead_letter (fingerprint, decision) VALUES ('a', NULL), ('b', NULL), ('c', 'stale')`)
	for _, key := range message.DeadLetterKeys() {
		require.True(t, d.wire.ProbeDeadLetters(testkit.Context(t), []string{key})[0].Routed)
	}
	logged, reg := &log{}, prometheus.NewRegistry()
	metrics := deadletter.NewMetrics(reg)
	w := &wire{Broker: d.wire}
	w.set(true, nil)
	routes := deadletter.NewRoutes(deadletter.RoutesConfig{
		Interval:   50 * time.Millisecond,
		ProbeEvery: 50 * time.Millisecond, DeathEvery: 100 * time.Millisecond,
	},
		d.store, w, slog.New(slog.NewTextHandler(logged, nil)), metrics, nil)
	require.NoError(t, routes.Start(testkit.Context(t)))
	t.Cleanup(routes.Stop)
	state := func(name string) float64 {
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if family.GetName() == "attune_dead_letter_routes" && m.GetLabel()[0].GetValue() == name {
					return m.GetGauge().GetValue()
				}
			}
		}
		return -1
	}
	static := float64(len(message.DeadLetterKeys()))

	// The routes of the active worker are not there, and cannot be made.
	testkit.Eventually(t, func() bool { return state("lost") == 2 && state("routed") == static+1 }, 10*time.Second)
	require.NoError(t, testutil.GatherAndCompare(reg, bytes.NewBufferString(`
		# HELP attune_dead_letter_waiting Dead letters that wait for a person, counted up to 10,000.
		# TYPE attune_dead_letter_waiting gauge
		attune_dead_letter_waiting 2
	`), "attune_dead_letter_waiting"))
	last := routes.LastTick()
	testkit.Eventually(t, func() bool { return routes.LastTick().After(last.Add(300 * time.Millisecond)) },
		10*time.Second)
	require.Equal(t, 1, logged.count("Dead letters are lost on their way"), "logged once")
	key := message.DispatchKey(active.ID)
	require.Equal(t, 1, logged.count(key+" ")+logged.count(key+"]"))

	w.set(false, nil)
	testkit.Eventually(t, func() bool { return state("lost") == 0 && state("routed") == static+3 }, 10*time.Second)
	testkit.Eventually(t, func() bool { return logged.count("lead to a queue again") == 1 }, 10*time.Second)
	testkit.Eventually(t, func() bool { return logged.count("have been made again") > 0 }, 10*time.Second)

	w.set(false, broker.ErrDeathLost)
	testkit.Eventually(t, func() bool { return state("lost") == 1 && logged.count("expiry and rejection") > 0 },
		10*time.Second)
	w.set(false, errors.New("no rights"))
	testkit.Eventually(t, func() bool { return state("lost") == 0 && state("unknown") == 1 }, 10*time.Second)
}

// watched is a broker whose connection seems to come and go.
type watched struct {
	wire
	changes chan broker.StateChange
	probes  chan int
}

func (w *watched) Watch() <-chan broker.StateChange { return w.changes }

func (w *watched) ProbeDeadLetters(ctx context.Context, keys []string) []broker.RouteProbe {
	w.probes <- len(keys)
	return w.wire.ProbeDeadLetters(ctx, keys)
}

// Routes are probed at the start and whenever the connection has come up, without
// waiting for their time: a broker may have lost them with it.
func TestRoutesAreProbedAfterEveryReconnect(t *testing.T) {
	d := newService(t)
	w := &watched{wire: wire{Broker: d.wire}, changes: make(chan broker.StateChange, 1), probes: make(chan int, 10)}
	routes := deadletter.NewRoutes(deadletter.RoutesConfig{Interval: time.Hour, ProbeEvery: time.Hour}, d.store, w,
		testkit.Logger(t), nil, nil)
	require.NoError(t, routes.Start(testkit.Context(t)))
	t.Cleanup(routes.Stop)
	require.Equal(t, len(message.DeadLetterKeys()), <-w.probes)
	w.changes <- broker.StateChange{To: broker.StateDisconnected}
	w.changes <- broker.StateChange{To: broker.StateConnected}
	require.Equal(t, len(message.DeadLetterKeys()), <-w.probes)
}
