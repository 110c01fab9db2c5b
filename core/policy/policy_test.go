package policy_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGroupKey(t *testing.T) {
	t.Parallel()
	params := policy.WithDefaults(
		[]byte(`{"environment":"prod","target":{"region":"us-east-1","id":10000000000000001},"html":"<a&b>",
			"numbers":[1,1.0,1e0,-2.00,0.50,1e300,12345678901234567890123]}`), nil)
	for _, tc := range []struct {
		name  string
		paths []string
		want  string
	}{
		{
			"sorted and compact, as documented",
			[]string{"target.region", "environment"},
			`{"environment":"prod","target.region":"us-east-1"}`,
		},
		{
			"missing is null",
			[]string{"nope", "target.nope", "environment.deeper"},
			`{"environment.deeper":null,"nope":null,"target.nope":null}`,
		},
		{"large integers stay exact", []string{"target.id"}, `{"target.id":10000000000000001}`},
		{"objects are values too", []string{"target"}, `{"target":{"id":10000000000000001,"region":"us-east-1"}}`},
		{
			"numbers are values, not texts",
			[]string{"numbers"},
			`{"numbers":[1,1,1,-2,0.5,1e+300,12345678901234567890123]}`,
		},
		{"no HTML escapes", []string{"html"}, `{"html":"<a&b>"}`},
		{"a path named twice counts once", []string{"environment", "environment"}, `{"environment":"prod"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			key, grouped := policy.GroupKey(tc.paths, params)
			require.True(t, grouped)
			require.Equal(t, tc.want, key)
		})
	}
	_, grouped := policy.GroupKey(nil, params)
	require.False(t, grouped, "a policy without parameters has one queue")

	long := map[string]any{"a": strings.Repeat("x", 3000), "b": "short"}
	key, _ := policy.GroupKey([]string{"b", "a"}, long)
	require.Regexp(t, `^{"a":"sha256:[0-9a-f]{64}","b":"short"}$`, key, "an index holds no more")
	long["a"] = strings.Repeat("x", 3001)
	other, _ := policy.GroupKey([]string{"b", "a"}, long)
	require.NotEqual(t, key, other)
}

func TestWithDefaultsFillsMissingAndNullOnly(t *testing.T) {
	t.Parallel()
	got := policy.WithDefaults(
		[]byte(`{"a":1,"b":null}`),
		[]byte(`{"a":{"default":9},"b":{"default":"x"},"c":{"default":false},"d":{"type":"string"},"e":"odd"}`))
	require.Len(t, got, 3)
	require.Equal(t, "x", got["b"])
	require.Equal(t, false, got["c"])
	require.Equal(t, json.Number("1"), got["a"])
	require.Empty(t, policy.WithDefaults([]byte(`[1]`), []byte(`broken`)), "other values count as an empty object")
}

// upstream 29 and ruling 4: scopes widen the counter and stack; of one scope
// the newest concurrency policy counts, rates and quotas all do.
func TestComposeStacksScopes(t *testing.T) {
	t.Parallel()
	require.Equal(t, policy.Limits{Queue: policy.None}, policy.Compose(7, nil))
	lines := policy.Compose(7, []policy.Policy{
		{ID: 1, Scope: policy.ScopePack, Threshold: 5, Parameters: []string{"region"}},
		{ID: 2, Kind: policy.KindRate, Threshold: 5, Window: time.Second, Parameters: []string{"tenant", "region"}},
	})
	require.Equal(t, []string{"region", "tenant"}, lines.Queue.Parameters,
		"without a limit of its own, a line for each group of the shared ones")
	require.True(t, lines.Queue.Unlimited)
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	limits := policy.Compose(7, []policy.Policy{
		{ID: 1, Ref: "p.old", Threshold: 9, Method: policy.MethodEnqueue, Created: at(1), MaxQueued: 3},
		{ID: 6, Ref: "p.rate", Scope: policy.ScopeGlobal, Kind: policy.KindRate, Threshold: 60, Window: time.Minute},
		{ID: 2, Ref: "p.new", Threshold: 3, Method: policy.MethodCancel, Parameters: []string{"a"}, Created: at(2)},
		{ID: 3, Ref: "p.pack", Scope: policy.ScopePack, Threshold: 5, Method: policy.MethodEnqueue, MaxQueued: 50},
		{
			ID: 4, Ref: "p.all", Scope: policy.ScopeGlobal, Threshold: 8, Parameters: []string{"zone"},
			QueueTimeout: time.Hour,
		},
		{ID: 5, Ref: "p.quota", Kind: policy.KindQuota, Threshold: 100, Window: time.Hour},
	})
	require.Equal(t, policy.Limit{Max: 3, Method: policy.MethodCancel, Parameters: []string{"a"}, PolicyRef: "p.new"},
		limits.Queue)
	require.Equal(t, 50, limits.MaxQueued, "the replaced policy has no effect")
	require.Equal(t, time.Hour, limits.QueueTimeout)
	var kinds []policy.SharedKind
	var keys []string
	for _, w := range limits.Shared {
		kinds = append(kinds, w.Kind)
		keys = append(keys, w.Key(map[string]any{"zone": "eu"}))
	}
	require.Equal(t, []policy.SharedKind{policy.SharedPack, policy.SharedGlobal, policy.SharedRate, policy.SharedQuota},
		kinds)
	require.Equal(t, []string{"7", ` {"zone":"eu"}`, "6", "5"}, keys)
	require.Equal(t, 1, limits.Shared[2].Burst)
}

// S22: every window has at most threshold + burst − 1 starts, at any times of the requests.
func TestRateNeverExceedsItsAllowanceInAnyWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := policy.Rate{
			Max:    rapid.IntRange(1, 50).Draw(t, "max"),
			Window: time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second,
			Burst:  rapid.IntRange(1, 20).Draw(t, "burst"),
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var due time.Time
		var starts []time.Time
		for range rapid.IntRange(1, 300).Draw(t, "asks") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(rate.Window/2)).Draw(t,
				"pause")) / time.Duration(rapid.IntRange(1, 100).Draw(t, "share")))
			if ready := rate.Ready(due); ready.After(now) {
				continue
			}
			due = rate.Start(now, due)
			starts = append(starts, now)
		}
		for first := range starts {
			n := 0
			for _, at := range starts[first:] {
				if at.Sub(starts[first]) < rate.Window {
					n++
				}
			}
			require.LessOrEqual(t, n, rate.Max+rate.Burst-1)
		}
	})
	steady := policy.Rate{Max: 60, Window: time.Minute, Burst: 1}
	now := time.Unix(1000, 0)
	due := steady.Start(now, time.Time{})
	require.Equal(t, now.Add(time.Second), steady.Ready(due), "one a second, and not one sooner")
}

func TestQuotaCountsByPeriodsOfTheCalendar(t *testing.T) {
	t.Parallel()
	quota := policy.Quota{Max: 3, Window: time.Hour}
	now := time.Date(2026, 3, 1, 10, 59, 59, 0, time.UTC)
	period := quota.Period(now)
	require.Equal(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), period)
	require.Equal(t, time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC), quota.Reset(now))
	require.Equal(t, 1, quota.Left(now, period, 2))
	require.Equal(t, 0, quota.Left(now, period, 3))
	require.Equal(t, 3, quota.Left(now.Add(2*time.Second), period, 3), "a new period")
	require.Equal(t, 0, quota.Left(now.Add(-time.Hour), period, 3), "a clock that went back a little gives nothing")
	require.Equal(t, 3, quota.Left(now.Add(-48*time.Hour), period, 3),
		"an earlier wrong value stops nothing until then")
	monthly := policy.Quota{Max: 3, Window: 30 * 24 * time.Hour}
	require.Equal(t, 1, monthly.Left(now, period, 2), "the count of the shorter period is kept in the longer one")
}

// A due time beyond this rate, of a slower rate or of a clock that went back, is shortened. Any burst is possible.
func TestARateBoundsItsDueTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	rate := policy.Rate{Max: 10, Window: time.Second, Burst: 3}
	require.Equal(t, now.Add(300*time.Millisecond), rate.Due(now, now.Add(24*time.Hour)))
	require.Equal(t, now.Add(100*time.Millisecond), rate.Ready(rate.Due(now, now.Add(24*time.Hour))))
	due := now
	for range 3 {
		require.False(t, rate.Ready(due).After(now))
		due = rate.Start(now, due)
		require.Equal(t, due, rate.Due(now, due))
	}
	require.True(t, rate.Ready(due).After(now))
	large := policy.Rate{Max: 1, Window: 365 * 24 * time.Hour, Burst: math.MaxInt32}
	require.False(t, large.Ready(large.Start(now, now)).After(now))
	require.Equal(t, now, large.Due(now, now))
}

// The adaptive limit stays between its minimum and the threshold, is lowered at most once in a cool-down, and recovers.
func TestAdaptiveStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		threshold := rapid.IntRange(1, 50).Draw(t, "threshold")
		a := policy.Adaptive{Min: rapid.IntRange(1, threshold).Draw(t, "min")}
		var s policy.Adapted
		now := time.Unix(1_000_000, 0)
		for range rapid.IntRange(1, 200).Draw(t, "ends") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			before := s
			s = a.After(s, threshold, rapid.Bool().Draw(t, "bad"), now)
			require.GreaterOrEqual(t, s.Whole(), a.Min)
			require.LessOrEqual(t, s.Whole(), threshold)
			if s.Lowered != before.Lowered {
				require.GreaterOrEqual(t, s.Lowered.Sub(before.Lowered), policy.AdaptiveCooldown)
			}
		}
	})
	a := policy.Adaptive{Min: 2}
	now := time.Unix(1_000_000, 0)
	s := a.After(policy.Adapted{}, 8, true, now)
	require.Equal(t, 4, s.Whole())
	require.Equal(t, 4, a.After(s, 8, true, now.Add(time.Second)).Whole(), "the decrease is given time")
	for range 60 {
		s = a.After(s, 8, false, now)
	}
	require.Equal(t, 8, s.Whole())
}
