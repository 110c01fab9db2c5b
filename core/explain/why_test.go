package explain

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

func (b *testBundle) ask(t *testing.T, id int64) *Why {
	t.Helper()
	w, err := b.Why(t.Context(), id)
	require.NoError(t, err)
	require.NotEmpty(t, w.Summary)
	require.Equal(t, w.Summary, w.Lines[0])
	return w
}

func TestWhyNamesPlaceLimitAndHolders(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	policy := testkit.Policy(t, b.Store, action, 2)
	ill := testkit.Worker(t, b.Store, "ill", func(r *testkit.WorkerRow) { r.HeartbeatAge = 5 * time.Minute })
	_, holders, waiters := b.AddQueue(t, action, 2, 2, 5, ill.ID)

	w := b.ask(t, waiters[2])
	require.NotNil(t, w.Waiting)
	place, about := w.Waiting.Position()
	require.Equal(t, int64(3), place)
	require.False(t, about)
	require.Equal(t, int64(5), w.Waiting.Of)
	require.Equal(t, monitor.LaneNormal, w.Waiting.Lane)
	require.Equal(t, monitor.LimitSource{Kind: monitor.LimitPolicy, Policy: policy.Ref, Threshold: new(int64(2))},
		w.Queue.LimitFrom)
	require.Equal(t, int64(2), *w.Queue.Limit)
	require.Len(t, w.Holders.List, 2)
	require.False(t, w.Holders.Incomplete)
	require.Equal(t, holders[0], w.Holders.List[0].ID, "the oldest comes first")
	require.Equal(t, monitor.WorkerStale, w.Holders.List[0].Health)
	require.InDelta(t, 300, w.Holders.List[0].HeartbeatAge.Seconds(), 30)
	require.Nil(t, w.Expected.At)
	require.Equal(t, "unknown: no worker is alive", w.Expected.Basis)
	require.Nil(t, w.Waiting.Expires, "no timeout is configured")
	text := strings.Join(w.Lines, "\n")
	require.Contains(t, w.Summary, "place 3 of 5, normal lane, for 2m")
	testkit.Exec(t, b.Store, `update execution set status = 'cancelled' where id = $1`, waiters[4])
	gone := b.ask(t, waiters[4])
	require.Nil(t, gone.Waiting)
	require.Contains(t, gone.Summary, "was cancelled at ")
	require.Contains(t, gone.Lines[1], "still has a place in the queue")
	require.Contains(t, text, "2 of 2 slots are taken (limit by policy "+policy.Ref+"), 5 wait.")
	require.Regexp(t, `on ill \(stale, heartbeat 5m(\d+s)? ago\)`, text)
	require.Contains(t, text, policy.Ref+" (action concurrency): at most 2 at once; 2 of 2 in this queue (full)")
	require.NotContains(t, text, "No replica")

	d, err := b.Execution(t.Context(), waiters[2])
	require.NoError(t, err)
	asked, _, _ := strings.Cut(w.Lines[0], ", for ") // the clock runs between the two
	shown, _, _ := strings.Cut(d.Why[0], ", for ")
	require.Equal(t, asked, shown, "the page of an execution says the same")
}

// TestWhyCountsLanes: the high lane goes first, whenever its executions joined it.
func TestWhyCountsLanes(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w")
	state, _, waiters := b.AddQueue(t, action, 1, 1, 3, worker.ID)
	low, high := b.Enqueue(t, action, state, -1), b.Enqueue(t, action, state, 1)
	testkit.Exec(t, b.Store,
		`update execution_admission_state set queued_count = 5, queued_high = 1, queued_low = 1 where id = $1`, state)
	for id, want := range map[int64]int64{high: 1, waiters[0]: 2, waiters[2]: 4, low: 5} {
		place, _ := b.ask(t, id).Waiting.Position()
		require.Equal(t, want, place)
	}
	require.Contains(t, b.ask(t, low).Summary, "place 5 of 5, low lane")
}

func TestWhyNamesTheBlockOfTheQueue(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w")
	pack := testkit.Policy(t, b.Store, action, 1, testkit.OfPack(action))
	other := testkit.Action(t, b.Store, "demo.other")
	busy := testkit.Execution(t, b.Store, other, monitortest.Status(lifecycle.StatusRunning),
		func(r *testkit.ExecutionRow) { r.Worker = &worker.ID })
	var scope int64
	require.NoError(t, b.Store.Pool().QueryRow(t.Context(), `
		insert into admission_scope (kind, scope_key, max_concurrent, active_count, policy, policy_ref)
		values ('pack', $1::text, 1, 1, $2, $3) returning id`, fmt.Sprint(action.PackID), pack.ID, pack.Ref).Scan(&scope))
	testkit.Exec(t, b.Store, `insert into execution_slot (execution, scope_id) values ($1, $2)`, busy.ID, scope)
	state, _, waiters := b.AddQueue(t, action, 1<<31-1, 0, 1, worker.ID)
	testkit.Exec(t, b.Store, `update execution_admission_state set unlimited = true where id = $1`, state)
	testkit.Exec(t, b.Store, `insert into admission_blocked (state_id, ticket, reason, scope_id, since)
		values ($1, 1, 'pack demo is full', $2, now() - interval '90 seconds')`, state, scope)

	w := b.ask(t, waiters[0])
	require.Nil(t, w.Queue.Limit)
	require.Equal(t, monitor.LimitNone, w.Queue.LimitFrom.Kind)
	require.Equal(t, "pack demo", w.Scope.Name)
	require.Len(t, w.ScopeHolders.List, 1)
	require.Equal(t, busy.ID, w.ScopeHolders.List[0].ID)
	require.Len(t, w.Policies, 1)
	require.Equal(t, "1 of 1 in pack demo", w.Policies[0].Text)
	require.True(t, w.Policies[0].Full)
	text := strings.Join(w.Lines, "\n")
	require.Regexp(t, `its head has been blocked for 1m[3-5]\ds: pack demo is full \(1 of 1 in pack demo, policy `+
		regexp.QuoteMeta(pack.Ref)+`\)`, text)
	require.Contains(t, text, "The slots of pack demo are held by (the oldest first):")
	require.Contains(t, text, "No replica of the engine is alive")

	testkit.Exec(t, b.Store, `update execution_admission_state set paused = true, paused_by = 'alice', paused_at = now() - interval '1 hour',
		pause_reason = 'maintenance', queue_timeout_seconds = 3600 where id = $1`, state)
	w = b.ask(t, waiters[0])
	require.Contains(t, strings.Join(w.Lines, "\n"), "The queue is paused by alice for 1h: maintenance.")
	require.Nil(t, w.Waiting.Expires, "while it is paused the clock stands")
	require.Equal(t, "unknown: the queue is paused", w.Expected.Basis)
	testkit.Exec(t, b.Store,
		`update execution_admission_state set paused = false, resumed_at = now() - interval '1 minute' where id = $1`, state)
	w = b.ask(t, waiters[0])
	require.InDelta(t, 59*60, w.Waiting.Expires.Sub(w.At).Seconds(), 30, "the timeout starts again when a pause ends")
}

func TestWhyCountsRatesAndQuotas(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w")
	rate := testkit.Policy(t, b.Store, action, 6,
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "rate", new(int32(60)) })
	quota := testkit.Policy(t, b.Store, action, 100, testkit.Global, func(p *testkit.PolicyRow) {
		p.Kind, p.WindowSeconds, p.Parameters = "quota", new(int32(86_400)), []string{"tenant"}
	})
	testkit.Exec(t, b.Store, `insert into admission_scope (kind, scope_key, max_concurrent, policy, policy_ref, window_seconds, burst, next_at)
		values ('rate', $1::text, 6, $2, $3, 60, 1, now() + interval '50 seconds')`, fmt.Sprint(rate.ID), rate.ID, rate.Ref)
	testkit.Exec(t, b.Store, `insert into admission_scope (kind, scope_key, max_concurrent, policy, policy_ref, window_seconds, period_start, used)
		values ('quota', $1::text, 100, $2, $3, 86400, to_timestamp(extract(epoch from now())::bigint / 86400 * 86400), 40),
			('quota', $4::text, 100, $2, $3, 86400, now() - interval '2 days', 100)`,
		fmt.Sprint(quota.ID)+` {"tenant":"acme"}`, quota.ID, quota.Ref, fmt.Sprint(quota.ID)+` {"tenant":"late"}`)
	_, _, waiters := b.AddQueue(t, action, 1, 0, 2, worker.ID)
	testkit.Exec(t, b.Store, `update execution set config = '{"tenant":"acme"}' where id = $1`, waiters[0])
	testkit.Exec(t, b.Store, `update execution set config = '{"tenant":"late"}' where id = $1`, waiters[1])

	lines := b.ask(t, waiters[0]).Policies
	require.Len(t, lines, 2)
	require.Equal(t, rate.Ref, lines[0].Ref)
	require.NotNil(t, lines[0].NextStart)
	require.Contains(t, lines[0].Text, "next start at ")
	require.Equal(t, "at most 6 starts every 1m", lines[0].Title())
	require.Equal(t, int64(40), *lines[1].Used)
	require.JSONEq(t, `{"tenant":"acme"}`, lines[1].Group)
	require.Contains(t, lines[1].Text, "40 of 100 starts used in this period of 1d")
	require.Equal(t, int64(0), *b.ask(t, waiters[1]).Policies[1].Used, "a period that has passed counts for nothing")

	scopes, err := b.Scopes(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, scopes.List, 3)
	require.Equal(t, "quota "+quota.Ref+` {"tenant":"acme"}`, scopes.List[0].Name)
}

// TestWhyOfOtherStatuses: each is one sentence.
func TestWhyOfOtherStatuses(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w-1")
	stale := testkit.Worker(t, b.Store, "w-2", func(r *testkit.WorkerRow) { r.HeartbeatAge = 48 * time.Hour })
	result := func(e, m string) any { return map[string]string{"error": e, "message": m} }
	cases := []struct {
		name   string
		change func(*testkit.ExecutionRow)
		want   string
	}{
		{
			"requested", monitortest.Aged(3 * time.Second),
			"and is in no queue yet.",
		},
		{"scheduling", func(r *testkit.ExecutionRow) {
			r.Status, r.Age = lifecycle.StatusScheduling, 3*time.Second
		}, "is being handed to a worker, for 3"},
		{"canceling", func(r *testkit.ExecutionRow) {
			r.Status, r.Worker, r.Age = lifecycle.StatusCanceling, &worker.ID, 3*time.Second
		}, "is being cancelled on worker w-1, for 3"},
		{"scheduled", func(r *testkit.ExecutionRow) {
			r.Status, r.Worker, r.Age = lifecycle.StatusScheduled, &stale.ID, 72*time.Hour
		}, "was handed to worker w-2 3d ago, which has not picked it up yet. The worker's last heartbeat was 2d ago"},
		{"running", func(r *testkit.ExecutionRow) {
			r.Status, r.Worker, r.Age = lifecycle.StatusRunning, &worker.ID, 72*time.Hour
		}, "runs on worker w-1, for 3d."},
		{"refused", func(r *testkit.ExecutionRow) {
			r.Status, r.Result = lifecycle.StatusCancelled, result("Queue full (max length: 10000)",
				"the queue of the action is at its maximum length")
		}, "was refused at "},
		{"gave up", func(r *testkit.ExecutionRow) {
			r.Status, r.Result = lifecycle.StatusTimeout, result("Queue timeout", "it waited for longer than 1h")
		}, "was given up at "},
		{"failed", func(r *testkit.ExecutionRow) {
			r.Status, r.Result = lifecycle.StatusFailed,
				result("exit", "exit code 3")
		}, ": exit code 3."},
		{"completed", monitortest.Status(lifecycle.StatusCompleted), "completed at "},
	}
	var unended []int64
	for _, c := range cases {
		w := b.ask(t, testkit.Execution(t, b.Store, action, c.change).ID)
		require.Contains(t, w.Summary, c.want, c.name)
		require.Nil(t, w.Waiting, c.name)
		d, err := b.Execution(t.Context(), w.ID)
		require.NoError(t, err)
		if lifecycle.Status(w.Status).Terminal() {
			require.Empty(t, d.Why, c.name)
			continue
		}
		unended = append(unended, w.ID)
		require.Contains(t, w.Lines, NoEngine, c.name)
		require.Contains(t, d.Why, NoEngine, c.name)
	}
	b.Replica(t)
	for _, id := range unended {
		require.NotContains(t, b.ask(t, id).Lines, NoEngine)
	}
	w := b.ask(t, testkit.Execution(t, b.Store, action).ID)
	require.Contains(t, w.Summary,
		"the engine has not processed its message; it finds lost messages about half a minute")
	require.Len(t, w.Lines, 1)
	testkit.Exec(t, b.Store, `update engine_replica set last_seen = now() - interval '13 seconds'`)
	w = b.ask(t, testkit.Execution(t, b.Store, action).ID)
	require.Regexp(t, `^The last sign of an engine replica was (1[3-9]|2\d)(\.\d)?s ago\.$`, w.Lines[1])
	_, err := b.Why(t.Context(), 999_999)
	require.ErrorIs(t, err, monitor.ErrNotFound)
}

// TestWhyNamesTheFateOfUnstartedExecutions: a worker that falls silent loses it,
// and one that takes too long, at the next check of the engine.
func TestWhyNamesTheFateOfUnstartedExecutions(t *testing.T) {
	b := setup(t)
	b.Reader = explaining(monitor.Config{OrphanInterval: time.Minute, ScheduledTimeout: 2 * time.Hour}, b.Deps())
	action := testkit.Action(t, b.Store, "demo.sleep")
	at := func(worker testkit.WorkerRow) string {
		return b.ask(t, testkit.Execution(t, b.Store, action, func(r *testkit.ExecutionRow) {
			r.Status, r.Worker, r.Age = lifecycle.StatusScheduled, &worker.ID, time.Hour
		}).ID).Summary
	}
	well := testkit.Worker(t, b.Store, "well")
	stale := testkit.Worker(t, b.Store, "stale", func(r *testkit.WorkerRow) { r.HeartbeatAge = 10 * time.Minute })
	const next = "the engine's next check (every 1m) gives the execution to another worker, or closes and repeats it."
	require.Regexp(t, `has not picked it up yet. If it has not begun at .*\(in (1h|59m\d+s)\), or if the worker sends no heartbeat for 1m30s, `+regexp.QuoteMeta(next), at(well))
	testkit.Exec(t, b.Store, `UPDATE action SET scheduled_timeout_seconds = 3660`)
	require.Regexp(t, `\(in (1m|5\d(\.\d)?s)\)`, at(well), "the timeout of its action")
	require.Contains(t, at(stale), "(limit 1m30s). Unless it comes back, "+next)
	b.Reader = explaining(monitor.Config{OrphanInterval: -1}, b.Deps())
	require.Contains(t, at(stale), "It stays there: executor.enable_timeout_monitor is off")
}

// The timeouts of a queue are foreseen before one of its executions has ended, by the time of the running ones.
func TestTimeoutsAreForeseenBeforeTheFirstEnd(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	state, _, _ := b.AddQueue(t, testkit.Action(t, b.Store, "demo.sleep"), 1, 1, 2, testkit.Worker(t, b.Store, "w").ID)
	testkit.Exec(t, b.Store, `update execution_admission_state set queue_timeout_seconds = 3600`)
	for began, count := range map[string]int64{"2 hours": 2, "1 hour": 1} {
		testkit.Exec(t, b.Store, `update execution set started_at = now() - $1::interval where status = 'running'`, began)
		d, err := b.QueueDetail(t.Context(), QueueRef{ID: state})
		require.NoError(t, err)
		require.True(t, d.TimingOut.Threatened())
		require.Equal(t, []int64{count, 2}, []int64{*d.TimingOut.Count, d.TimingOut.Of}, began)
		require.Contains(t, d.TimingOut.Basis, "none has ended yet")
		require.Nil(t, d.Empties.At, "the run time is not known")
	}
}

// TestWhyExpectsAStartFromRunTimes: an execution takes forty seconds, however
// seldom they came, so the second in the queue of one slot starts in eighty.
func TestWhyExpectsAStartFromRunTimes(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w")
	for i := range 20 {
		testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusCompleted),
			monitortest.Aged(time.Duration(20-i)*time.Minute))
	}
	// The trigger keeps the times of completed executions.
	testkit.Exec(t, b.Store, `alter table execution disable trigger user`)
	testkit.Exec(t, b.Store, `update execution set admitted_at = created + interval '10 seconds', started_at = created + interval '11 seconds',
		finished_at = created + interval '51 seconds'`)
	state, _, waiters := b.AddQueue(t, action, 1, 1, 2, worker.ID)
	w := b.ask(t, waiters[1])
	require.NotNil(t, w.Drain.PerMinute)
	require.InDelta(t, 1.5, *w.Drain.PerMinute, 0.001)
	require.NotNil(t, w.Expected.At)
	require.InDelta(t, 80, w.Expected.At.Sub(w.At).Seconds(), 0.1)
	require.Empty(t, w.Expected.Basis)

	testkit.Exec(t, b.Store, `update execution_admission_state set queue_timeout_seconds = 150`) // 120 have passed
	d, err := b.QueueDetail(t.Context(), QueueRef{ID: state})
	require.NoError(t, err)
	require.True(t, d.TimingOut.Threatened())
	require.Equal(t, []int64{2, 2}, []int64{*d.TimingOut.Count, d.TimingOut.Of}, "the first starts in forty seconds")
	require.InDelta(t, 30, d.TimingOut.First.Sub(d.At).Seconds(), 5)
	require.Contains(t, d.StateLine(), "need a slot. About 2 of 2 will time out before they start, the first at ")
	require.Equal(t, int64(21), d.Timing.Sample, "twenty that ended and one that holds")
	require.Equal(t, 10*time.Second, d.Timing.Wait.P50)
	require.Equal(t, 40*time.Second, d.Timing.Run.P99)
	require.Equal(t, int64(20), d.Timing.Run.Count)
	require.Equal(t, []int64{0, 0, 0, 2, 0, 0}, d.Ages.Classes)
	require.NotNil(t, d.Empties.At)
}

func TestLimitLineCountsLikePeople(t *testing.T) {
	t.Parallel()
	line := func(active, limit int64) string {
		return limitLine(&monitor.Queue{
			Active: active, Limit: &limit, Queued: 4,
			LimitFrom: monitor.LimitSource{Kind: monitor.LimitOverride},
		})
	}
	require.Equal(t, "10 run, more than the 3 that are allowed now (limit set by an operator): it drains. 4 wait.",
		line(10, 3))
	require.Equal(t, "2 run, more than the 1 that is allowed now (limit set by an operator): it drains. 4 wait.",
		line(2, 1))
	require.Equal(t, "1 of 1 slot is taken (limit set by an operator), 4 wait.", line(1, 1))
	since, rate := time.Now(), &monitor.Scope{Kind: "rate", Name: "rate core.pace", PolicyRef: "core.pace"}
	q := monitor.Queue{Blocked: "all 1 slots of policy core.pace are taken", BlockedSince: &since}
	text := blockLine(&q, rate, since.Add(666*time.Millisecond))
	require.Contains(t, text, "its head has been blocked for 666ms: the only slot of policy core.pace is taken")
	require.Equal(t, 1, strings.Count(text, "core.pace"))
}

func TestQueueDetailFindsTheQueueByActionAndGroup(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	testkit.Policy(t, b.Store, action, 3,
		func(p *testkit.PolicyRow) { p.Parameters = []string{"region.name", "tenant"} })
	key := `{"region.name":"a<b","tenant":"acme"}`
	plain := testkit.State(t, b.Store, action, 3)
	group := testkit.State(t, b.Store, action, 3, func(r *testkit.StateRow) { r.GroupKey = &key })
	e := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusCompleted),
		func(r *testkit.ExecutionRow) {
			r.Config = map[string]any{"tenant": "acme", "region": map[string]string{"name": "a<b"}}
		})
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusCompleted),
		func(r *testkit.ExecutionRow) { r.Config = map[string]any{"tenant": "zed"} })
	testkit.Exec(t, b.Store, `update execution set admitted_at = created`)

	d, err := b.QueueDetail(t.Context(),
		QueueRef{Action: "demo.sleep", Group: `{"tenant": "acme", "region.name": "a<b"}`})
	require.NoError(t, err)
	require.Equal(t, group.ID, d.ID)
	require.Equal(t, int64(1), d.Timing.Sample, "execution %d is the only one of this group", e.ID)
	require.Empty(t, d.Groups, "the plain queue is left over")
	d, err = b.QueueDetail(t.Context(), QueueRef{Action: "demo.sleep"})
	require.NoError(t, err)
	require.Equal(t, plain.ID, d.ID)
	require.Equal(t, int64(0), d.Timing.Sample)

	_, err = b.QueueDetail(t.Context(), QueueRef{Action: "demo.sleep", Group: `{"tenant":"nobody"}`})
	require.ErrorIs(t, err, admission.ErrGroup)
	require.ErrorContains(t, err,
		`{"tenant":"nobody"} is not a group of demo.sleep: its policy groups by region.name, tenant`)
	_, err = b.QueueDetail(t.Context(), QueueRef{Action: "demo.sleep", Group: `tenant`})
	require.ErrorIs(t, err, admission.ErrGroup)
	d, err = b.QueueDetail(t.Context(), QueueRef{Action: "demo.sleep", Group: `{"tenant":"new","region.name":"x"}`})
	require.NoError(t, err, "it is unused, but can be used")
	require.False(t, d.Exists)
	require.Equal(t, "no execution of this group has been requested yet", d.Sections()[0].Rows[1][1])

	testkit.Exec(t, b.Store, `update execution_admission_state set active_count = 2, queued_count = 5 where id = $1`,
		group.ID)
	d, err = b.QueueDetail(t.Context(), QueueRef{Action: "demo.sleep"})
	require.NoError(t, err)
	require.Equal(t, &monitor.ActionTotals{Groups: 1, Queued: 5, Active: 2}, d.Together)
	sections := d.Sections()
	require.Equal(t, []string{"queues", "1 group, one for each region.name, tenant"}, sections[0].Rows[1])
	require.Equal(t, "the busiest groups", sections[1].Title)
	require.Equal(t, []string{"5", "2", "3", "open"}, sections[1].Rows[1][2:])
	require.Contains(t, sections[2].Rows[0][0], "queue show demo.sleep --group '"+key+"'")
	_, err = b.QueueDetail(t.Context(), QueueRef{ID: 77_777})
	require.ErrorIs(t, err, monitor.ErrNotFound)
	_, err = b.QueueDetail(t.Context(), QueueRef{Action: "demo.sleeep"})
	unknown, ok := errors.AsType[*monitor.UnknownActionError](err)
	require.True(t, ok)
	require.EqualError(t, unknown, "there is no action demo.sleeep; the nearest is demo.sleep")

	testkit.Action(t, b.Store, "demo.never")
	d, err = b.QueueDetail(t.Context(), QueueRef{Action: "demo.never"})
	require.NoError(t, err)
	require.False(t, d.Exists)
}

// TestWhyWithoutOurColumns: a database that is not ours gives what its row says
// and never an error of SQL.
func TestWhyWithoutOurColumns(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	waits := testkit.Execution(t, b.Store, action)
	runs := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusRunning))
	testkit.Exec(t, b.Store,
		`insert into queue_stats (action_id, queue_length, active_count, max_concurrent) values ($1, 1, 1, 1)`,
		action.ID)
	testkit.Exec(t, b.Store, `drop table worker_load, admission_blocked, admission_scope, engine_replica cascade`)
	testkit.Exec(t, b.Store, `alter table execution drop column if exists finished_status cascade, drop column finished_at cascade,
		drop column attempt cascade, drop column admitted_at cascade, drop column priority cascade`)
	w := b.ask(t, waits.ID)
	require.Contains(t, w.Summary, "where it waits is not known")
	require.NotEmpty(t, w.Unknown)
	require.Contains(t, b.ask(t, runs.ID).Summary, "runs on")
	_, err := b.QueueDetail(t.Context(), QueueRef{Action: "demo.sleep"})
	require.ErrorIs(t, err, monitor.ErrUnmigrated)
	s, err := b.Scopes(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, s.List)
	q, err := b.Queues(t.Context(), monitor.QueueFilter{})
	require.NoError(t, err)
	require.Len(t, q.List, 1)
	stats, err := b.QueueStats(t.Context(), "demo.sleep")
	require.NoError(t, err)
	require.Equal(t, int64(1), stats.QueueLength)
	require.Equal(t, int64(1), *stats.MaxConcurrent)
	testkit.Exec(t, b.Store, `update queue_stats set max_concurrent = 2147483647`)
	stats, err = b.QueueStats(t.Context(), "demo.sleep")
	require.NoError(t, err)
	require.Nil(t, stats.MaxConcurrent, "nothing limits the queue")
}

// TestQueueViewsStayCheap is the promise that asking about queues costs the same
// however many wait: at fifty thousand waiters nothing walks a table.
func TestQueueViewsStayCheap(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	action, small := testkit.Action(t, b.Store, "demo.sleep"), testkit.Action(t, b.Store, "demo.small")
	worker := testkit.Worker(t, b.Store, "w")
	testkit.Policy(t, b.Store, action, 5)
	tiny, tinyHolders, tinyWaiters := b.AddQueue(t, small, 1, 1, 1, worker.ID)
	state := testkit.State(t, b.Store, action, 5, func(r *testkit.StateRow) { r.Active, r.Queued = 5, 50_000 })
	testkit.Exec(t, b.Store, `alter table execution disable trigger user`)
	testkit.Exec(t, b.Store, `insert into execution (action, action_ref, status, created, updated, admitted_at, started_at, finished_at, worker)
		select $1, 'demo.sleep', case when g > 3000 then 'requested'::execution_status_enum when g > 2995 then 'running' else 'completed' end,
			now() - make_interval(secs => (53000 - g) * 0.01), now(),
			case when g <= 3000 then now() - make_interval(secs => (3000 - g) * 0.5) end,
			case when g <= 3000 then now() - make_interval(secs => (3000 - g) * 0.5) end,
			case when g <= 2995 then now() - make_interval(secs => (3000 - g) * 0.5 - 1) end,
			case when g <= 3000 then $2::bigint end
		from generate_series(1, 53000) g`, action.ID, worker.ID)
	testkit.Exec(t, b.Store, `insert into execution_holder (execution, state_id, worker, attempt, granted_at)
		select id, $1, worker, attempt, admitted_at from execution where status = 'running' and action = $2`, state.ID, action.ID)
	testkit.Exec(t, b.Store, `insert into execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at)
		select $1, id, 'queued', row_number() over (order by id), created from execution where status = 'requested' and action = $2`, state.ID, action.ID)
	testkit.Exec(t, b.Store, `update execution_admission_state set next_queue_order = 50001 where id = $1`, state.ID)
	testkit.Exec(t, b.Store, `alter table execution enable trigger user`)
	testkit.Exec(t, b.Store, `analyze execution`) // the entries are not: their statistics are never what they should be

	var first, last int64
	require.NoError(t, b.Store.Pool().QueryRow(t.Context(),
		`select min(execution_id), max(execution_id) from execution_admission_entry where state_id = $1`,
		state.ID).Scan(&first, &last))
	ours := monitor.Shape{Ours: true}
	for name, id := range map[string]int64{
		"why the first": first, "why the last": last,
		"why in a small queue": tinyWaiters[0],
	} {
		monitortest.RequireIndexed(t, b.Store, name, func(ctx context.Context, tx *store.Tx) error {
			return b.why(ctx, tx, ours, id, &Why{Reading: monitor.Reading{At: time.Now()}})
		})
	}
	monitortest.RequireIndexed(t, b.Store, "queue detail", func(ctx context.Context, tx *store.Tx) error {
		d := &QueueDetail{Reading: monitor.Reading{At: time.Now()}}
		a, err := b.findQueue(ctx, tx, QueueRef{ID: state.ID}, d)
		if err != nil {
			return err
		}
		p, err := monitor.ReadPolicies(ctx, tx, a.ID, a.PackID, a.ParamSchema)
		if err != nil {
			return err
		}
		return b.queueDetail(ctx, tx, p, d)
	})

	w := b.ask(t, last)
	place, about := w.Waiting.Position()
	require.True(t, about)
	require.InDelta(t, 50_000, place, 50)
	require.Contains(t, w.Summary, "about place ")
	require.Len(t, w.Holders.List, 5)
	require.False(t, w.Holders.Incomplete)
	require.NotNil(t, w.Expected.At)
	small1 := b.ask(t, tinyWaiters[0])
	require.Equal(t, tinyHolders[0], small1.Holders.List[0].ID)
	d, err := b.QueueDetail(t.Context(), QueueRef{ID: state.ID})
	require.NoError(t, err)
	require.True(t, d.Ages.Estimated)
	require.LessOrEqual(t, d.Ages.Probes, int64(250))
	total := int64(0)
	for _, n := range d.Ages.Classes {
		total += n
	}
	require.Equal(t, int64(50_000), total)
	aged := testkit.Count(t, b.Store, `select count(*) from execution_admission_entry
		where state_id = $1 and enqueued_at between now() - interval '10 minutes' and now() - interval '1 minute'`, state.ID)
	require.Greater(t, aged, 40_000)
	require.InDelta(t, aged, d.Ages.Classes[3], 1000, "one a hundredth of a second: 1m to 10m ago")
	require.Equal(t, int64(1000), d.Timing.Sample)
	require.Equal(t, int64(1), mustDetail(t, b, tiny).Queued)
}

func mustDetail(t *testing.T, b *testBundle, id int64) *QueueDetail {
	t.Helper()
	d, err := b.QueueDetail(t.Context(), QueueRef{ID: id})
	require.NoError(t, err)
	return d
}

// TestWhyNamesTheRemainsOfAnAbandonedExecution: whether the action was killed with its worker.
func TestWhyNamesTheRemainsOfAnAbandonedExecution(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w1")
	abandoned := func(reason string) []string {
		x := testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusAbandoned),
			func(r *testkit.ExecutionRow) {
				r.Worker, r.Result = &worker.ID, map[string]any{"error": reason}
			})
		return b.ask(t, x.ID).Lines
	}
	require.Contains(t, abandoned("the worker's process ended while the execution was running"),
		"The action was killed with the worker, but a process that it started in a session of its own (setsid) may still run there.")
	require.Contains(t, abandoned("Execution abandoned because its worker became unavailable while running"),
		"The action may still run there: its worker has sent nothing since.")
}

// TestWhyOfAWorkflowShowsFalseConditions with their values, the newest last.
func TestWhyOfAWorkflowShowsFalseConditions(t *testing.T) {
	b := setup(t)
	w := b.AddWorkflow(t, "shop.order", monitortest.Deliver,
		&workflow.State{Status: lifecycle.StatusRunning, Tasks: map[string]*workflow.TaskState{}})
	testkit.Exec(t, b.Store,
		`update execution set workflow_def = d.id from workflow_definition d where execution.id = $1`, w.Execution)
	testkit.Exec(t, b.Store,
		`update action set workflow_def = d.id from workflow_definition d where action.ref = 'shop.order'`)
	testkit.Exec(t, b.Store, `insert into workflow_log (workflow_execution, version, lines) values
		($1, 1, '{"reserve completed", "transition 1 of reserve does not fire: {{ result().ok }} is false: result().ok is false"}'),
		($1, 2, '{"pay is not repeated: {{ failed() }} is false"}')`, w.ID)
	lines := strings.Join(b.ask(t, w.Execution).Lines, "\n")
	require.Contains(t, lines, "Conditions that were false:\n"+
		"  transition 1 of reserve does not fire: {{ result().ok }} is false: result().ok is false\n  pay is not repeated: {{ failed() }} is false")
}
