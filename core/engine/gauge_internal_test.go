package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// started runs the gauge until its first tick is over.
func startedGauge(t *testing.T, deps gaugeDeps) *gauge {
	t.Helper()
	deps.Logger = telemetry.Discard()
	g := newGauge(deps)
	require.NoError(t, g.Start(t.Context()))
	t.Cleanup(g.Stop)
	testkit.Eventually(t, func() bool { return !g.LastTick().IsZero() }, testkit.TestTimeout)
	return g
}

func TestAScrapeShowsTheDatabase(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "demo.sleep")
	testkit.Policy(t, st, action, 5)
	state := testkit.State(t, st, action, 5, func(r *testkit.StateRow) { r.Active, r.Queued, r.Paused = 5, 3, true })
	testkit.Exec(t, st, `update execution_admission_state set total_enqueued = 40, total_completed = 30`)
	for i := range 3 {
		e := testkit.Execution(t, st, action)
		testkit.Exec(t, st, `insert into execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at)
			values ($1, $2, 'queued', $3, now() - make_interval(secs => 500 - 249 * $4::int))`, state.ID, e.ID, i+1, i)
	}
	testkit.Exec(t, st, `insert into admission_blocked (state_id, ticket) values ($1, 1)`, state.ID)
	testkit.State(t, st, testkit.Action(t, st, "demo.free"), 1<<31-1, func(r *testkit.StateRow) { r.Unlimited = true })

	g := startedGauge(t, gaugeDeps{Reader: monitor.New(monitor.Config{}, monitor.Deps{Store: st})})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(g)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP attune_queue_active Executions that hold a slot of the queues of an action.
# TYPE attune_queue_active gauge
attune_queue_active{action="demo.free"} 0
attune_queue_active{action="demo.sleep"} 5
# HELP attune_queue_blocked Queues of the action with a free slot whose head waits for a shared limit or a worker.
# TYPE attune_queue_blocked gauge
attune_queue_blocked{action="demo.free"} 0
attune_queue_blocked{action="demo.sleep"} 1
# HELP attune_queue_enqueued_total Executions that ever entered the queues of an action, whether or not they had to wait.
# TYPE attune_queue_enqueued_total counter
attune_queue_enqueued_total{action="demo.free"} 0
attune_queue_enqueued_total{action="demo.sleep"} 40
# HELP attune_queue_length Executions that wait in the queues of an action.
# TYPE attune_queue_length gauge
attune_queue_length{action="demo.free"} 0
attune_queue_length{action="demo.sleep"} 3
# HELP attune_queue_limit Limit in force for each queue of an action: one queue, or one for each group if the policy has parameters; absent without a limit.
# TYPE attune_queue_limit gauge
attune_queue_limit{action="demo.sleep"} 5
# HELP attune_queue_paused 1 while a queue of the action is paused.
# TYPE attune_queue_paused gauge
attune_queue_paused{action="demo.free"} 0
attune_queue_paused{action="demo.sleep"} 1
# HELP attune_queue_waiting_age Executions in the longest queues that have waited for at most le seconds.
# TYPE attune_queue_waiting_age gauge
attune_queue_waiting_age{action="demo.sleep",le="1"} 0
attune_queue_waiting_age{action="demo.sleep",le="10"} 1
attune_queue_waiting_age{action="demo.sleep",le="60"} 1
attune_queue_waiting_age{action="demo.sleep",le="600"} 3
attune_queue_waiting_age{action="demo.sleep",le="3600"} 3
attune_queue_waiting_age{action="demo.sleep",le="+Inf"} 3
`), "attune_queue_active", "attune_queue_blocked", "attune_queue_enqueued_total", "attune_queue_length", "attune_queue_limit",
		"attune_queue_paused", "attune_queue_waiting_age"))
	require.Equal(t, 2, testutil.CollectAndCount(g, "attune_queue_oldest_waiting_seconds"))
}

// The limit is that of each queue, neither the sum over groups nor the limit of a deleted policy.
func TestTheLimitIsThatOfEachQueue(t *testing.T) {
	st := testkit.Store(t)
	group := func(key string) func(*testkit.StateRow) { return func(r *testkit.StateRow) { r.GroupKey = &key } }
	grouped, gone := testkit.Action(t, st, "demo.grouped"), testkit.Action(t, st, "demo.gone")
	testkit.Policy(t, st, grouped, 3, func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} })
	for _, action := range []testkit.ActionRow{grouped, gone} {
		testkit.State(t, st, action, 40, group(`{"tenant":"a"}`))
		testkit.State(t, st, action, 40, group(`{"tenant":"b"}`))
	}
	word := testkit.State(t, st, testkit.Action(t, st, "demo.word"), 1<<31-1)
	testkit.Exec(t, st, `update execution_admission_state set limit_override = 7 where id = $1`, word.ID)
	pack := testkit.Policy(t, st, grouped, 9, testkit.OfPack(grouped))
	testkit.Exec(t, st, `insert into admission_scope (kind, scope_key, max_concurrent, active_count, policy, policy_ref)
		values ('pack', $1::bigint::text, 9, 4, $2, $3), ('global', '', 5, 1, NULL, 'gone')`, grouped.PackID, pack.ID, pack.Ref)

	g := startedGauge(t, gaugeDeps{Reader: monitor.New(monitor.Config{}, monitor.Deps{Store: st})})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(g)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP attune_limit_active Executions that hold a slot of a shared limit of a pack or of everything.
# TYPE attune_limit_active gauge
attune_limit_active{kind="pack",policy="`+pack.Ref+`",scope="pack demo"} 4
# HELP attune_limit_max Slots of a shared limit of a pack or of everything, as in force.
# TYPE attune_limit_max gauge
attune_limit_max{kind="pack",policy="`+pack.Ref+`",scope="pack demo"} 9
# HELP attune_queue_limit Limit in force for each queue of an action: one queue, or one for each group if the policy has parameters; absent without a limit.
# TYPE attune_queue_limit gauge
attune_queue_limit{action="demo.grouped"} 3
attune_queue_limit{action="demo.word"} 7
`), "attune_limit_active", "attune_limit_max", "attune_queue_limit"))
}

// source answers with many actions, or with an error.
type source struct {
	mu  sync.Mutex
	err error
}

func (s *source) Busiest(context.Context) (*monitor.Busiest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &monitor.Busiest{List: []monitor.ActionLoad{{ActionRef: "demo.a"}}}, s.err
}

func TestUnknownIsNotZero(t *testing.T) {
	t.Parallel()
	require.Zero(t, testutil.CollectAndCount(startedGauge(t, gaugeDeps{Reader: &source{err: errors.New("away")}})),
		"nothing was ever read")

	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	src := &source{}
	g := startedGauge(t, gaugeDeps{Reader: src, Now: clock})
	require.Positive(t, testutil.CollectAndCount(g))
	src.mu.Lock()
	src.err = errors.New("away")
	src.mu.Unlock()
	mu.Lock()
	now = now.Add(2 * time.Minute)
	mu.Unlock()
	require.Zero(t, testutil.CollectAndCount(g), "values of two minutes ago are outdated")
}

func TestOnlyTheBusiestActionsAreShown(t *testing.T) {
	st := testkit.Store(t)
	pack := testkit.Pack(t, st, "demo")
	testkit.Exec(t, st, `insert into action (ref, pack, pack_ref, label, entrypoint)
		select 'demo.a' || g, $1, 'demo', 'x', 'x' from generate_series(1, 300) g`, pack.ID)
	testkit.Exec(t, st, `insert into execution_admission_state (action_id, max_concurrent, active_count) select id, 300, id % 300 from action`)
	g := startedGauge(t, gaugeDeps{Reader: monitor.New(monitor.Config{}, monitor.Deps{Store: st})})
	require.Equal(t, monitor.BusiestActions, testutil.CollectAndCount(g, "attune_queue_length"), "of 300")
}
