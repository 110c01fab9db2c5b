package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/testkit"
)

// calm is a forecast of a queue with a limit, whose executions take a minute.
func calm(limit *int64, active int64, lines ...PolicyLine) *forecast {
	return &forecast{
		at: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), q: &Queue{Limit: limit, Active: active, Queued: 50}, lines: lines,
		runs: &Percentiles{Count: 20, P50: time.Minute}, engines: 1, crew: placement.Verdict{Outcome: placement.Placed},
	}
}

func TestForecastIsTheLatestOfAllLimits(t *testing.T) {
	t.Parallel()
	at := calm(nil, 0).at
	next, resets := at.Add(4*time.Second), at.Add(20*time.Minute)
	own := "action"
	rate := PolicyLine{Scope: own, counter: &Scope{Kind: "rate", Name: "rate r", Limit: 6, Window: time.Minute, Burst: 1, due: next, NextStart: &next}}
	burst := PolicyLine{Scope: own, counter: &Scope{Kind: "rate", Name: "rate b", Limit: 6, Window: time.Minute, Burst: 3}}
	quota := PolicyLine{Scope: own, counter: &Scope{Kind: "quota", Name: "quota q", Limit: 10, Window: time.Hour, Used: new(int64(7)), Resets: &resets}}
	pack := PolicyLine{Scope: "pack", counter: &Scope{Kind: "pack", Name: "pack demo", Limit: 4, Active: 4}}
	for name, c := range map[string]struct {
		f     *forecast
		place int64
		wait  time.Duration
		pace  float64
		basis string
	}{
		"room":                   {calm(new(int64(5)), 2), 3, 0, 5, "there is room"},
		"slots":                  {calm(new(int64(2)), 2), 4, 2 * time.Minute, 2, "place 4 at 2 a minute; 2 slots in this queue, each taken for 1m"},
		"more run than may":      {calm(new(int64(1)), 3), 1, 3 * time.Minute, 1, "1 slot in this queue"},
		"rate":                   {calm(nil, 0, rate), 1, 4 * time.Second, 6, "a start every 10s"},
		"rate, further":          {calm(nil, 0, rate), 4, 34 * time.Second, 6, "place 4 at 6 a minute"},
		"burst":                  {calm(nil, 0, burst), 3, 0, 6, "there is room"},
		"behind the burst":       {calm(nil, 0, burst), 5, 20 * time.Second, 6, "rate b"},
		"quota left":             {calm(nil, 0, quota), 3, 0, 1.0 / 6, "there is room"},
		"quota, next period":     {calm(nil, 0, quota), 4, 20 * time.Minute, 1.0 / 6, "place 4, 3 left in this period"},
		"quota, second period":   {calm(nil, 0, quota), 14, 80 * time.Minute, 1.0 / 6, "10 starts per period of 1h"},
		"pack":                   {calm(nil, 0, pack), 8, 2 * time.Minute, 4, "at best, since other queues share it"},
		"the slowest of several": {calm(new(int64(2)), 2, rate, quota, pack), 4, 20 * time.Minute, 1.0 / 6, "quota q"},
	} {
		e := c.f.start(c.place, false)
		require.NotNil(t, e.At, name)
		require.InDelta(t, c.wait.Seconds(), e.At.Sub(at).Seconds(), 0.01, name)
		require.Contains(t, e.Basis, c.basis, name)
		d := c.f.drain()
		require.NotNil(t, d.PerMinute, name)
		require.InDelta(t, c.pace, *d.PerMinute, 0.001, name)
	}
}

func TestForecastSaysWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	unknown := func(want string, change func(f *forecast)) {
		t.Helper()
		f := calm(new(int64(2)), 2)
		change(f)
		e := f.start(1, false)
		require.Nil(t, e.At, want)
		require.Contains(t, e.Basis, "unknown: ")
		require.Contains(t, e.Basis, want)
		require.Nil(t, f.drain().PerMinute, want)
		require.Contains(t, f.drain().Basis, want)
	}
	unknown("the queue is paused", func(f *forecast) { f.q.Paused = true })
	unknown("no worker is alive", func(f *forecast) { f.crew.Outcome = placement.NoWorkers })
	unknown("none of 2 has python", func(f *forecast) {
		f.crew = placement.Verdict{Outcome: placement.Incompatible, Reason: "none of 2 has python"}
	})
	unknown("no replica of the engine is alive", func(f *forecast) { f.engines = 0 })
	unknown("nobody knows how long one takes", func(f *forecast) { f.runs = nil })
	unknown("too few", func(f *forecast) { f.q.Limit, f.q.Blocked, f.measured = nil, "busy", Drain{Basis: "too few"} })
	f := calm(nil, 0)
	require.Equal(t, "no limit is in force", f.drain().Basis)
	f.q.Limit, f.runs = new(int64(0)), nil
	next := f.at.Add(time.Minute)
	f.lines = []PolicyLine{{Scope: "action", counter: &Scope{Kind: "rate", Limit: 1, Window: time.Hour, Burst: 1, due: next}}}
	require.Contains(t, f.start(1, false).Basis, "; not before 10:01:00Z")
}

// TestForecastMeasuresOnlyWhileSomebodyWaited: idle and paused time are not the
// pace of the workers.
func TestForecastMeasuresOnlyWhileSomebodyWaited(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	ago := func(s int) *time.Time { at := now.Add(-time.Duration(s) * time.Second); return &at }
	var list []admitted
	for _, s := range []int{500, 300, 50, 40, 30, 20} { // twelve seconds of work each
		list = append(list, admitted{at: *ago(s + 10), startedAt: ago(s + 10), finishedAt: ago(s)})
	}
	d := busyPace(list, &Queue{Oldest: ago(600), ResumedAt: ago(60)}, time.Time{}, now)
	require.NotNil(t, d.PerMinute)
	require.Equal(t, int64(4), d.Ended)
	require.InDelta(t, 4, *d.PerMinute, 0.01, "four in the minute since it was resumed")
	d = busyPace(list, &Queue{Oldest: ago(600)}, *ago(35), now)
	require.Nil(t, d.PerMinute, "only two since the rules changed")
}

func TestPaceHasFewDigits(t *testing.T) {
	t.Parallel()
	for want, perMinute := range map[string]float64{
		"1 a minute": 1, "1.5 a minute": 1.5, "120 a minute": 120, "162 a second": 9_690, "30 an hour": 0.5, "12 a day": 12.0 / 1440,
	} {
		require.Equal(t, want, pace(perMinute))
	}
}

func TestForecastKnowsNoWorker(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.replica(t)
	action := testkit.Action(t, b.store, "demo.sleep")
	old := testkit.Worker(t, b.store, "old", func(r *testkit.WorkerRow) { r.HeartbeatAge = time.Hour })
	testkit.Execution(t, b.store, action, status(attune.StatusCompleted), aged(time.Minute))
	_, _, waiters := b.line(t, action, 1, 0, 1, old.ID)
	require.Equal(t, "unknown: no worker is alive", b.ask(t, waiters[0]).Expected.Basis)
	testkit.Worker(t, b.store, "young")
	require.NotNil(t, b.ask(t, waiters[0]).Expected.At)
}

// TestLeftOverQueuesAndLimitsAreNotShown: what no policy makes any more and
// holds nothing is only shown when everything is asked for.
func TestLeftOverQueuesAndLimitsAreNotShown(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	action, other := testkit.Action(t, b.store, "demo.sleep"), testkit.Action(t, b.store, "demo.plain")
	testkit.Policy(t, b.store, action, 3, func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant", "region"} })
	mine := testkit.Policy(t, b.store, action, 3, func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "rate", new(int32(60)) })
	group := func(key string, active int32) func(*testkit.StateRow) {
		return func(r *testkit.StateRow) { r.GroupKey, r.Active = &key, active }
	}
	testkit.State(t, b.store, action, 3) // the plain one
	fits := testkit.State(t, b.store, action, 3, group(`{"region":"eu","tenant":"a"}`, 0))
	busy := testkit.State(t, b.store, action, 3, group(`{"zone":"x"}`, 1))
	testkit.State(t, b.store, action, 3, group(`{"zone":"y"}`, 0))
	plain := testkit.State(t, b.store, other, 90)
	testkit.Exec(t, b.store, `insert into admission_scope (kind, scope_key, max_concurrent, active_count, policy, policy_ref)
		values ('global', '', 5, 0, NULL, 'gone'), ('global', ' {"a":1}', 5, 1, NULL, 'gone'), ('rate', $1::bigint::text, 3, 0, $1, 'mine')`, mine.ID)

	q, err := b.Queues(t.Context(), QueueFilter{})
	require.NoError(t, err)
	var ids []int64
	for _, one := range q.List {
		ids = append(ids, one.ID)
	}
	require.ElementsMatch(t, []int64{fits.ID, busy.ID, plain.ID}, ids)
	require.Equal(t, int64(3), q.Totals.Queues)
	require.Equal(t, int64(3), q.Totals.Slots, "only of what is busy")
	q, err = b.Queues(t.Context(), QueueFilter{All: true})
	require.NoError(t, err)
	require.Len(t, q.List, 5)

	for text, want := range map[string]int{"": 2, "demo.sleep": 2, "demo.plain": 1, "nothing": 0} {
		s, err := b.Scopes(t.Context(), text)
		require.NoError(t, err)
		require.Len(t, s.List, want, text)
	}
}
