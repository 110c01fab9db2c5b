package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// TestWhyAgreesWithAdmission: limits of the action, its pack, a rate and groups
// at once, as the batches of the engine leave them.
func TestWhyAgreesWithAdmission(t *testing.T) {
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	b := &testBundle{
		Reader:  explaining(monitor.Config{QueueTimeout: time.Hour}, monitor.Deps{Store: st}),
		Fixture: &monitortest.Fixture{Store: st},
	}
	run := b.Batches(t)
	b.Replica(t)
	testkit.Worker(t, st, "w-1")
	action := testkit.Action(t, st, "demo.sleep")
	own := testkit.Policy(t, st, action, 1, func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} })
	pack := testkit.Policy(t, st, action, 3, testkit.OfPack(action))
	quota := testkit.Policy(t, st, action, 9, testkit.Global, func(p *testkit.PolicyRow) {
		p.Kind, p.WindowSeconds, p.Parameters = "quota", new(int32(86_400*365)), []string{"tenant"}
	})
	request := func(tenant string, priority int16) int64 {
		return testkit.Execution(t, st, action, func(r *testkit.ExecutionRow) {
			r.Config, r.Priority = map[string]any{"tenant": tenant}, &priority
		}).ID
	}
	first, second, low, high := request("acme", 0), request("acme", 0), request("acme", -1), request("acme", 1)
	run(scheduler.FillStep{}, scheduler.NewRequestStep([]int64{first, second, low, high}))

	for id, want := range map[int64]int64{high: 1, second: 2, low: 3} {
		w := b.ask(t, id)
		place, about := w.Waiting.Position()
		require.Equal(t, want, place)
		require.False(t, about)
		require.Equal(t, int64(3), w.Waiting.Of)
		require.NotNil(t, w.Waiting.Expires)
	}
	w := b.ask(t, second)
	require.Equal(t, `demo.sleep {"tenant":"acme"}`, w.Waiting.Queue)
	require.Equal(t, first, w.Holders.List[0].ID)
	require.False(t, w.Holders.Incomplete)
	require.Equal(t, monitor.LimitSource{Kind: monitor.LimitPolicy, Policy: own.Ref, Threshold: new(int64(1))},
		w.Queue.LimitFrom)
	require.Len(t, w.Policies, 3)
	require.Equal(t, "1 of 1 in this queue", w.Policies[0].Text)
	require.Equal(t, pack.Ref, w.Policies[1].Ref)
	require.Equal(t, "1 of 3 in pack demo", w.Policies[1].Text)
	require.Equal(t, quota.Ref, w.Policies[2].Ref)
	require.Equal(t, int64(1), *w.Policies[2].Used)

	// Two more tenants fill the pack, which then blocks the others.
	others := []int64{request("b", 0), request("c", 0), request("d", 0)}
	run(scheduler.FillStep{}, scheduler.NewRequestStep(others))
	w = b.ask(t, others[2])
	require.NotNil(t, w.Scope)
	require.Equal(t, "pack demo", w.Scope.Name)
	require.True(t, w.Scope.Full())
	require.Len(t, w.ScopeHolders.List, 3)
	require.Contains(t, strings.Join(w.Lines, "\n"), "its head has been blocked for")
	require.Equal(t, "b", strings.Trim(strings.Split(b.ask(t, others[0]).Queue.Group, ":")[1], `"}`),
		"a holder knows its queue")

	// One ends: the head of the high lane takes its place.
	testkit.Exec(t, st, `update execution set status = 'running', started_at = now() where id = $1`, first)
	testkit.Exec(t, st, `update execution set status = 'completed' where id = $1`, first)
	require.Contains(t, strings.Join(b.ask(t, first).Lines, "\n"), "Its slot is not released yet")
	run(scheduler.NewReleaseStep([]int64{first}), scheduler.FillStep{})
	require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, st, high))
	require.Contains(t, b.ask(t, high).Summary, "was handed to worker w-1")
	d, err := b.QueueDetail(t.Context(), QueueRef{Action: "demo.sleep", Group: `{"tenant": "acme"}`})
	require.NoError(t, err)
	require.Equal(t, int64(2), d.Timing.Sample)
	require.Equal(t, int64(1), d.Timing.Run.Count)
	require.InDelta(t, 9.0/365/24/60, *d.Drain.PerMinute, 1e-6, "the quota is the slowest of all limits")
	require.Equal(t, "at best", d.Drain.Basis)
	require.Equal(t, high, d.Holders.List[0].ID)
	require.Equal(t, int64(2), d.Queued)
	require.Equal(t, int64(1), d.QueuedLow)
	require.Len(t, d.Policies, 3)
	require.NotNil(t, d.Policies[2].Used, "the group of the queue is that of the quota")
}
