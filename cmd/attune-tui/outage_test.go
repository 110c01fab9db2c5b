package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// linked is a dashboard that reaches its servers over links.
type linked struct {
	*terminal
	database, broker *link
}

// behindLinks opens the view of workers over links that are cut at first.
func behindLinks(t *testing.T, address string) *linked {
	t.Helper()
	l := &linked{}
	var database, management string
	if testkit.Adopted() {
		replicaRuns(t, address)
	}
	l.database, database = through(t, address)
	l.broker, management = through(t, testkit.ManagementURL(t))
	l.terminal = openTerminalIn(t, []string{
		"HOME=/nonexistent", "ATTUNE__DATABASE__URL=" + database, "ATTUNE__MESSAGE_QUEUE__URL=" + testkit.VHost(t),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + management,
	}, "--view", "workers", "--refresh", "500ms")
	return l
}

// TestADashboardSurvivesOutages begins without servers. Old data stays on the screen, marked. Acting is refused with
// the reason while the database is down, and works again afterwards.
func TestADashboardSurvivesOutages(t *testing.T) {
	address := testkit.Database(t)
	st := testkit.OpenStore(t, address)
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	testkit.Worker(t, st, "worker-b", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	x := behindLinks(t, address)
	x.shows("PG ✗ down")
	x.shows("MQ ✗ down")
	x.press("?") // no key waits for a server
	x.shows("keys that work here")
	x.press("Escape")

	x.database.mend()
	x.shows("worker-a")
	x.shows("PG ●")
	x.shows("MQ ✗ down") // the sources are shown separately
	x.broker.mend()
	x.shows("MQ ●")

	x.broker.cut()
	x.shows("MQ ✗ down")
	x.plans(act.CordonWorker, "Cordon worker worker-a") // which needs the database alone
	x.runs("Cordon worker worker-a")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from worker where cordoned`))

	x.shows(" cordoned ")
	x.database.cut()
	x.shows("PG ✗ down")
	x.shows("worker-b") // as it was read last
	x.press("A", "u")
	x.shows("the database ")
	x.press("Escape")
	x.database.mend()
	x.broker.mend()
	x.shows("PG ●")
	x.shows("MQ ●")
	x.plans(act.UncordonWorker, "Uncordon worker worker-a")
	x.runs("Uncordon worker worker-a")
	require.Zero(t, testkit.Count(t, st, `select count(*) from worker where cordoned`))
}

// Keys work while polls hang on open connections without an answer.
func TestHangingServersDelayNoKey(t *testing.T) {
	address := testkit.Database(t)
	testkit.Worker(t, testkit.OpenStore(t, address), "worker-a")
	x := behindLinks(t, address)
	x.database.mend()
	x.broker.mend()
	x.shows("worker-a")
	x.shows("MQ ●")
	x.database.clog()
	x.broker.clog()
	steps := [][2]string{
		{"2", "[2 Que]"}, {"4", "[4 Work]"}, {"9", "[9 Mq]"}, {"p", "FROZEN"}, {"p", "poll 500ms"},
	}
	fastest := slices.Repeat([]time.Duration{time.Hour}, len(steps))
	for range 3 { // a pause of the machine is not in each round
		for i, step := range steps {
			begun := time.Now()
			x.press(step[0])
			x.shows(step[1])
			fastest[i] = min(fastest[i], time.Since(begun))
		}
	}
	for i, step := range steps {
		require.Less(t, fastest[i], pollTimeout, "%s waits for a server", step[1])
	}
}

// pollTimeout is less than the timeout of a poll that has timed out before.
const pollTimeout = 4 * time.Second

// TestRealServersAreKilledAndStartedAgain kills the processes of private servers.
func TestRealServersAreKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "kill servers of the test's own; another test cuts the links to servers")
	stack := testkit.NewStack(t)
	_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: stack.DatabaseURL(), Schema: testkit.Schema})
	require.NoError(t, err)
	st := testkit.OpenStore(t, stack.DatabaseURL())
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	testkit.Worker(t, st, "worker-b", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	x := openTerminalIn(t, []string{
		"HOME=/nonexistent", "ATTUNE__DATABASE__URL=" + stack.DatabaseURL(),
		"ATTUNE__MESSAGE_QUEUE__URL=" + stack.AMQPURL(),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + stack.ManagementURL(),
	}, "--view", "workers")
	x.shows("worker-a")
	x.shows("MQ ●")
	for _, server := range []struct {
		name        string
		kill, start func(context.Context) error
	}{
		{"PG", stack.KillPostgres, stack.StartPostgres},
		{"MQ", stack.KillBroker, stack.StartBroker},
	} {
		require.NoError(t, server.kill(t.Context()))
		x.shows(server.name + " ✗ down")
		x.shows("worker-a")
		require.NoError(t, server.start(t.Context()))
		x.shows(server.name + " ●")
	}
	x.plans(act.CordonWorker, "Cordon worker worker-a")
	x.runs("Cordon worker worker-a")
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from worker where cordoned`))
}
