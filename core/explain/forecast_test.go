package explain

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// calm is a forecast of a queue with a limit, whose executions take a minute.
func calm(limit *int64, active int64, lines ...monitor.PolicyLine) *forecast {
	return &forecast{
		at: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), q: &monitor.Queue{Limit: limit, Active: active, Queued: 50},
		lines: lines,
		runs:  &monitor.Percentiles{Count: 20, P50: time.Minute}, engines: 1,
		placed: placement.Verdict{Outcome: placement.Placed},
	}
}

func TestForecastIsTheLatestOfAllLimits(t *testing.T) {
	t.Parallel()
	at := calm(nil, 0).at
	next, resets := at.Add(4*time.Second), at.Add(20*time.Minute)
	own := "action"
	rate := monitor.PolicyLine{Scope: own, Counter: &monitor.Scope{
		Kind: "rate", Name: "rate r", Limit: 6,
		Window: time.Minute, Burst: 1, Due: next, NextStart: &next,
	}}
	burst := monitor.PolicyLine{
		Scope:   own,
		Counter: &monitor.Scope{Kind: "rate", Name: "rate b", Limit: 6, Window: time.Minute, Burst: 3},
	}
	quota := monitor.PolicyLine{Scope: own, Counter: &monitor.Scope{
		Kind: "quota", Name: "quota q", Limit: 10,
		Window: time.Hour, Used: new(int64(7)), Resets: &resets,
	}}
	pack := monitor.PolicyLine{
		Scope:   "pack",
		Counter: &monitor.Scope{Kind: "pack", Name: "pack demo", Limit: 4, Active: 4},
	}
	for name, c := range map[string]struct {
		f     *forecast
		place int64
		wait  time.Duration
		pace  float64
		basis string
	}{
		"room":                   {calm(new(int64(5)), 2), 3, 0, 5, ""},
		"slots":                  {calm(new(int64(2)), 2), 4, 2 * time.Minute, 2, ""},
		"more run than may":      {calm(new(int64(1)), 3), 1, 3 * time.Minute, 1, ""},
		"rate":                   {calm(nil, 0, rate), 1, 4 * time.Second, 6, ""},
		"rate, further":          {calm(nil, 0, rate), 4, 34 * time.Second, 6, ""},
		"burst":                  {calm(nil, 0, burst), 3, 0, 6, ""},
		"behind the burst":       {calm(nil, 0, burst), 5, 20 * time.Second, 6, ""},
		"quota left":             {calm(nil, 0, quota), 3, 0, 1.0 / 6, ""},
		"quota, next period":     {calm(nil, 0, quota), 4, 20 * time.Minute, 1.0 / 6, ""},
		"quota, second period":   {calm(nil, 0, quota), 14, 80 * time.Minute, 1.0 / 6, ""},
		"pack":                   {calm(nil, 0, pack), 8, 2 * time.Minute, 4, "at best"},
		"the slowest of several": {calm(new(int64(2)), 2, rate, quota, pack), 4, 20 * time.Minute, 1.0 / 6, ""},
	} {
		e := c.f.start(c.place)
		require.NotNil(t, e.At, name)
		require.InDelta(t, c.wait.Seconds(), e.At.Sub(at).Seconds(), 0.01, name)
		require.Equal(t, c.basis, e.Basis, name)
		d := c.f.drain()
		require.NotNil(t, d.PerMinute, name)
		require.InDelta(t, c.pace, *d.PerMinute, 0.001, name)
	}
}

func TestAForecastNamesUnknownInputs(t *testing.T) {
	t.Parallel()
	unknown := func(want string, change func(f *forecast)) {
		t.Helper()
		f := calm(new(int64(2)), 2)
		change(f)
		e := f.start(1)
		require.Nil(t, e.At, want)
		require.Contains(t, e.Basis, "unknown: ")
		require.Contains(t, e.Basis, want)
		require.Nil(t, f.drain().PerMinute, want)
		require.Contains(t, f.drain().Basis, want)
	}
	unknown("the queue is paused", func(f *forecast) { f.q.Paused = true })
	unknown("no worker is alive", func(f *forecast) { f.placed.Outcome = placement.NoWorkers })
	unknown("none of 2 has python", func(f *forecast) {
		f.placed = placement.Verdict{Outcome: placement.Incompatible, Reason: "none of 2 has python"}
	})
	unknown("no replica of the engine is alive", func(f *forecast) { f.engines = 0 })
	unknown("its run time is not known", func(f *forecast) { f.runs = nil })
	unknown("too few", func(f *forecast) { f.q.Limit, f.q.Blocked, f.measured = nil, "busy", Drain{Basis: "too few"} })
	f := calm(nil, 0)
	require.Equal(t, "no limit is in force", f.drain().Basis)
	f.q.Limit, f.runs = new(int64(0)), nil
	next := f.at.Add(time.Minute)
	f.lines = []monitor.PolicyLine{{
		Scope:   "action",
		Counter: &monitor.Scope{Kind: "rate", Limit: 1, Window: time.Hour, Burst: 1, Due: next},
	}}
	require.Contains(t, f.start(1).Basis, "; not before 10:01:00Z")
}

// Idle and paused times do not count for the pace of a queue.
func TestAForecastMeasuresOnlyBusyTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	ago := func(s int) *time.Time { at := now.Add(-time.Duration(s) * time.Second); return &at }
	var list []monitor.Admitted
	for _, s := range []int{500, 300, 50, 40, 30, 20} { // twelve seconds of work each
		list = append(list, monitor.Admitted{At: *ago(s + 10), StartedAt: ago(s + 10), FinishedAt: ago(s)})
	}
	d := busyPace(list, &monitor.Queue{Oldest: ago(600), ResumedAt: ago(60)}, time.Time{}, now)
	require.NotNil(t, d.PerMinute)
	require.Equal(t, int64(4), d.Ended)
	require.InDelta(t, 4, *d.PerMinute, 0.01, "four in the minute since it was resumed")
	d = busyPace(list, &monitor.Queue{Oldest: ago(600)}, *ago(35), now)
	require.Nil(t, d.PerMinute, "only two since the rules changed")
}

func TestPaceHasFewDigits(t *testing.T) {
	t.Parallel()
	for want, perMinute := range map[string]float64{
		"1 a minute": 1, "1.5 a minute": 1.5, "120 a minute": 120, "162 a second": 9_690, "30 an hour": 0.5,
		"12 a day": 12.0 / 1440,
	} {
		require.Equal(t, want, pace(perMinute))
	}
}

func TestForecastKnowsNoWorker(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	old := testkit.Worker(t, b.Store, "old", func(r *testkit.WorkerRow) { r.HeartbeatAge = time.Hour })
	testkit.Execution(t, b.Store, action, monitortest.Status(lifecycle.StatusCompleted), monitortest.Aged(time.Minute))
	_, _, waiters := b.AddQueue(t, action, 1, 0, 1, old.ID)
	require.Equal(t, "unknown: no worker is alive", b.ask(t, waiters[0]).Expected.Basis)
	testkit.Worker(t, b.Store, "young")
	require.NotNil(t, b.ask(t, waiters[0]).Expected.At)
}

// TestAForecastCountsWhatTimesOut: of a queue whose executions take a minute each, two at once.
func TestAForecastCountsWhatTimesOut(t *testing.T) {
	t.Parallel()
	of := func(waits ...monitor.Waited) (*forecast, []monitor.Waited) {
		f := calm(new(int64(2)), 2)
		f.q.QueueTimeout = time.Hour
		total := 0.0
		for _, w := range waits {
			total += w.Weight
		}
		f.q.Queued = int64(total)
		return f, waits
	}
	for name, c := range map[string]struct {
		waits []monitor.Waited
		lost  int64
		first time.Duration // from now
	}{
		"one batch":       {[]monitor.Waited{{Weight: 16_751}}, 16_600, time.Hour},
		"all in time":     {[]monitor.Waited{{Weight: 110}}, 0, 0},
		"hardly too late": {[]monitor.Waited{{Weight: 130}}, 0, 0},
		"the old ones only": {
			[]monitor.Waited{{Weight: 20, Since: 0}, {Weight: 100, Since: 50 * time.Minute}}, 78,
			10 * time.Minute,
		},
		"each in its place": {[]monitor.Waited{{Weight: 100}, {Weight: 100}}, 68, time.Hour},
		"high first": {
			[]monitor.Waited{{Weight: 132, Lane: 1}, {Weight: 5, Since: time.Minute}, {Weight: 9, Lane: -1}}, 14,
			59 * time.Minute,
		},
		"in parts": {slices.Repeat([]monitor.Waited{{Weight: 1.25}}, 240), 168, time.Hour},
		"over due": {[]monitor.Waited{{Weight: 7, Since: 2 * time.Hour}}, 7, -time.Hour},
	} {
		f, waits := of(c.waits...)
		got := f.timingOut(waits)
		require.Equal(t, f.q.Queued, got.Of, name)
		require.NotNil(t, got.Count, name)
		require.Equal(t, c.lost, *got.Count, name)
		require.Equal(t, c.lost > 0, got.Threatened(), name)
		if c.lost > 0 {
			require.Equal(t, f.at.Add(c.first), *got.First, name)
		}
	}
	f, waits := of(monitor.Waited{Weight: 16_751, Since: 34 * time.Minute})
	require.Equal(t, "about 16700 of 16751 before they start, the first at 10:26:00Z (in 26m)", f.timingOut(waits).String(f.at))
	f.q.ResumedAt = &f.at
	require.Equal(t, f.at.Add(time.Hour), *f.timingOut(waits).First, "a pause starts the time anew")
	f.runs = nil
	require.Equal(t, "unknown: no execution of the action has ended lately, so its run time is not known; "+
		"the first may at 11:00:00Z (in 1h)", f.timingOut(waits).String(f.at))
	require.False(t, f.timingOut(waits).Threatened())
	f.running = 100 * time.Millisecond
	require.Nil(t, f.timingOut(waits).Count, "all may start in time")
	f.running = 30 * time.Second
	require.Equal(t, "about 16500 of 16751 before they start, the first at 11:00:00Z (in 1h), "+
		"or more: none has ended yet, and the running ones have taken 30s so far", f.timingOut(waits).String(f.at))
	require.Nil(t, f.timingOut(nil))
	require.False(t, (*TimingOut)(nil).Threatened())
}

// The list of queues, the page of a queue and the last waiting execution have one forecast.
func TestOneForecastOfAQueue(t *testing.T) {
	b := setup(t)
	b.Replica(t)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker := testkit.Worker(t, b.Store, "w-1")
	rate := testkit.Policy(t, b.Store, action, 6,
		func(p *testkit.PolicyRow) { p.Kind, p.WindowSeconds = "rate", new(int32(60)) })
	state, _, waiters := b.AddQueue(t, action, 1, 0, 20, worker.ID)
	testkit.Exec(t, b.Store, `update execution_admission_state set unlimited = true where id = $1`, state)
	list, err := b.Queues(t.Context(), monitor.QueueFilter{})
	require.NoError(t, err)
	require.NotNil(t, list.List[0].Empties)
	page, err := b.QueueDetail(t.Context(), QueueRef{ID: state})
	require.NoError(t, err)
	last := b.ask(t, waiters[19])
	shown, err := b.Execution(t.Context(), waiters[19])
	require.NoError(t, err)
	at := []*time.Time{list.List[0].Empties.At, page.Empties.At, last.Expected.At, shown.Expected.At}
	for i, reading := range []time.Time{list.At, page.At, last.At, shown.At} {
		require.NotNil(t, at[i])
		require.InDelta(t, 190, at[i].Sub(reading).Seconds(), 5, "six a minute")
	}

	// The rate of each group is not known for a queue with all groups, but for each execution.
	testkit.Exec(t, b.Store, `update policy set parameters = '{tenant}', updated = now() where id = $1`, rate.ID)
	page, err = b.QueueDetail(t.Context(), QueueRef{ID: state})
	require.NoError(t, err)
	require.Equal(t, "unknown: policy "+rate.Ref+" counts each tenant by itself", page.Empties.Basis)
	require.NotNil(t, b.ask(t, waiters[19]).Expected.At)
}
