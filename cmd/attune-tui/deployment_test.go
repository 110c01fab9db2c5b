package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// wait bounds something that takes less than a second on an idle machine.
const wait = 60 * time.Second

// deployment is an engine and a worker whose executions run until the test ends them or a cancel stops them. The
// engine has the login of its role, the dashboard that of an operator.
type deployment struct {
	t                          *testing.T
	database, amqp, management string // with the owner's login
	operator                   testkit.Login
	store                      *store.Store
	relay                      *outbox.Relay
	worker                     *testkit.FakeWorker
	ends                       chan struct{} // lets one run end
	asked                      atomic.Int64  // how many runs were asked to stop
}

func install(t *testing.T) *deployment {
	t.Helper()
	database := testkit.Database(t)
	i := &deployment{
		t: t, database: database, amqp: testkit.VHost(t), management: testkit.ManagementURL(t),
		store: testkit.OpenStore(t, database),
		ends:  make(chan struct{}, 100),
	}
	i.operator = testkit.NewLogin(t, roles.Operator, database, i.amqp)
	own := testkit.NewLogin(t, roles.Engine, database, i.amqp)
	cfg := config.Default()
	cfg.Database.URL, cfg.Database.Schema, cfg.Database.MaxConnections = own.DatabaseURL, testkit.Schema,
		testkit.EngineConnections
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL = own.AMQPURL, own.ManagementURL
	cfg.Executor.HTTP.Listen = ""
	e, err := engine.New(testkit.Context(t), cfg, engine.Deps{Logger: testkit.Logger(t), Version: "test"})
	require.NoError(t, err)
	require.NoError(t, e.Start(testkit.Context(t)))
	t.Cleanup(func() { require.NoError(t, e.Stop(context.Background())) })
	wire := broker.New(broker.Config{URL: i.amqp, ManagementURL: i.management, ConnectionName: "test"},
		testkit.Logger(t), nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	// It sends only the requests of the test: two relays that sweep the same outbox send some messages twice.
	i.relay = outbox.New(outbox.Config{SweepInterval: time.Hour, SweepAge: time.Hour}, i.store, wire.Publisher(),
		testkit.Logger(t), nil)
	require.NoError(t, i.relay.Start(testkit.Context(t)))
	t.Cleanup(i.relay.Stop)
	i.worker = testkit.StartFakeWorker(t, testkit.FakeWorkerConfig{
		AMQPURL: i.amqp, DatabaseURL: database, Name: "worker-a", Behave: i.hold,
	})
	return i
}

// hold runs until the test ends it or a cancel asks it to stop.
func (i *deployment) hold(ctx context.Context, _ testkit.Job) testkit.Answer {
	select {
	case <-ctx.Done():
		i.asked.Add(1)
	case <-i.ends:
	}
	return testkit.Answer{}
}

// request asks for n executions of an action.
func (i *deployment) request(ref string, n int) []int64 {
	i.t.Helper()
	requests := make([]submit.Request, n)
	for at := range requests {
		requests[at] = submit.Request{ActionRef: ref, Params: json.RawMessage("{}")}
	}
	list, err := submit.New(i.store, i.relay).RequestMany(testkit.Context(i.t), requests)
	require.NoError(i.t, err)
	ids := make([]int64, n)
	for at, r := range list {
		ids[at] = r.ID
	}
	return ids
}

// flow makes a workflow of two tasks, one after the other.
func (i *deployment) flow(ref string) {
	i.t.Helper()
	parsed, mistakes, _ := workflow.Parse(ref,
		[]byte(`{version: "1", tasks: [{name: pay, action: shop.pay, next: [{do: [ship]}]}, {name: ship, action: shop.ship}]}`))
	require.Empty(i.t, mistakes)
	definition, err := parsed.JSON()
	require.NoError(i.t, err)
	testkit.Action(i.t, i.store, "shop.pay")
	testkit.Action(i.t, i.store, "shop.ship")
	action := testkit.Action(i.t, i.store, ref)
	testkit.Exec(i.t, i.store, `with d as (
			insert into workflow_definition (ref, pack, pack_ref, label, version, definition) values ($2::text, $3, 'shop', $2::text, '1.0.0', $4) returning id)
		update action set workflow_def = d.id from d where action.id = $1`, action.ID, ref, action.PackID, definition)
}

// becomes waits until a query returns a number.
func (i *deployment) becomes(want int, sql string, args ...any) {
	i.t.Helper()
	testkit.Eventually(i.t, func() bool { return testkit.Count(i.t, i.store, sql, args...) == want }, wait, sql)
}

// began waits until the worker has begun n executions in all.
func (i *deployment) began(n int) {
	i.t.Helper()
	testkit.Eventually(i.t, func() bool { return len(i.worker.Runs()) == n }, wait, "%d runs begin", n)
}

// running waits until n runs are reported as running: an earlier cancel asks no worker.
func (i *deployment) running(n int) {
	i.t.Helper()
	i.becomes(n, `select count(*) from execution where status = 'running' and worker is not null`)
}

// audited requires that an action was recorded once, and by this program.
func (i *deployment) audited(action string) {
	i.t.Helper()
	require.Equal(i.t, 1, testkit.Count(i.t, i.store,
		`select count(*) from operator_audit where action = $1 and source = 'attune-tui' and outcome = 'done'`, action),
		action)
}

// open shows the installation in a terminal.
func (i *deployment) open(args ...string) *terminal {
	i.t.Helper()
	return openDefault(i.t, []string{
		"HOME=/nonexistent", "XDG_STATE_HOME=" + i.t.TempDir(), "ATTUNE__DATABASE__URL=" + i.operator.DatabaseURL,
		"ATTUNE__MESSAGE_QUEUE__URL=" + i.operator.AMQPURL,
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + i.operator.ManagementURL,
	}, append(args, "--refresh", "500ms")...)
}

// showsOne waits until one of two texts is on the screen, and returns the screen.
func (x *terminal) showsOne(one, other string) (screen string) {
	x.t.Helper()
	testkit.Eventually(x.t, func() bool {
		screen = x.call("capture-pane", "-p")
		return strings.Contains(screen, one) || strings.Contains(screen, other)
	}, wait, "%q or %q is shown", one, other)
	return screen
}

// either waits until one of two texts is on the screen, and reports whether it is the first.
func (x *terminal) either(one, other string) bool {
	x.t.Helper()
	return strings.Contains(x.showsOne(one, other), one)
}

// command types a command line.
func (x *terminal) command(line string) {
	x.t.Helper()
	x.press(":")
	x.shows(":")
	x.call("send-keys", "-l", line)
	x.press("Enter")
}
