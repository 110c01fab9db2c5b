package lifecycle_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/lifecycle"
)

// policy is the default of the configuration.
var policy = lifecycle.RetryPolicy{
	Enabled: true, BaseDelay: time.Second, Multiplier: 2, MaxDelay: 300 * time.Second, Jitter: 0.2, Unstarted: 3,
}

// middle is the chance with which a delay is not spread.
const middle = 0.5

// by is an execution that a part of the engine has ended before any worker started it.
func by(who, text string) lifecycle.Ended {
	return lifecycle.Ended{Status: lifecycle.StatusFailed, Error: text, EndedBy: who, MaxRetries: 1}
}

// ran is the end of an execution that a worker had started.
func ran(status lifecycle.Status, text string) lifecycle.Ended {
	return lifecycle.Ended{Status: status, Error: text, Started: true, MaxRetries: 1}
}

func TestTheReasonOfARetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ended lifecycle.Ended
		want  lifecycle.RetryReason
	}{
		"published text of an expired dispatch": {
			by("", "Worker queue TTL expired"),
			lifecycle.WorkerUnavailable,
		},
		"published text of an absent worker": {
			ran(lifecycle.StatusFailed, "the Worker Unavailable page"),
			lifecycle.WorkerUnavailable,
		},
		"published text of existing workers": {
			ran(lifecycle.StatusFailed, "Execution timed out after 300s"),
			lifecycle.QueueTimeout,
		},
		"queue timeout": {
			ran0(lifecycle.StatusTimeout, "Queue timeout it waited 1h0m0s"),
			lifecycle.QueueTimeout,
		},
		"the first of two words wins": {ran(lifecycle.StatusFailed, "connection timeout"), lifecycle.QueueTimeout},
		"stale":                       {ran(lifecycle.StatusFailed, "stale handle"), lifecycle.WorkerHeartbeatStale},
		"an action's own words are taken as published": {
			ran(lifecycle.StatusFailed, "dial tcp 10.0.0.1:443: CONNECTION refused"), lifecycle.TransientError,
		},
		"temporary": {
			ran(lifecycle.StatusFailed, "temporary failure in name resolution"),
			lifecycle.TransientError,
		},
		"no word":      {ran(lifecycle.StatusFailed, "action exited with code 1"), lifecycle.ActionFailure},
		"no text":      {ran(lifecycle.StatusFailed, ""), lifecycle.ActionFailure},
		"ran too long": {ran(lifecycle.StatusTimeout, "timed out after 3s"), lifecycle.ActionFailure},
		"worker became mute": {
			ran(lifecycle.StatusAbandoned, "whatever it says of a connection"),
			lifecycle.WorkerHeartbeatStale,
		},
		"its process ended": {
			ran(lifecycle.StatusAbandoned, "the worker's process ended"),
			lifecycle.WorkerHeartbeatStale,
		},
		"never picked up, with any text": {
			by(lifecycle.ByTimeoutMonitor, "Execution timeout: not picked up within 300 s"),
			lifecycle.WorkerUnavailable,
		},
		"dead-lettered": {
			by(lifecycle.ByDeadLetters, "Worker queue TTL expired"),
			lifecycle.WorkerUnavailable,
		},
		"queue missing": {by(lifecycle.ByDispatcher, "it has no queue"), lifecycle.WorkerUnavailable},
		"no workers":    {by(lifecycle.ByScheduler, "no workers available"), lifecycle.WorkerUnavailable},
		"an action's no workers": {
			ran(lifecycle.StatusFailed, "no workers available in the pool"),
			lifecycle.ActionFailure,
		},
		"refused for another reason": {by(lifecycle.ByScheduler, "the database said no"), lifecycle.ActionFailure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := policy.Decide(c.ended, middle)
			require.True(t, got.Retry, got.Why)
			require.Equal(t, c.want, got.Reason)
			require.Empty(t, got.Why)
		})
	}
}

func ran0(status lifecycle.Status, text string) lifecycle.Ended {
	return lifecycle.Ended{Status: status, Error: text, MaxRetries: 1}
}

func TestSomeEndsAreNeverRepeated(t *testing.T) {
	t.Parallel()
	off := policy
	off.Enabled = false
	for name, c := range map[string]struct {
		policy lifecycle.RetryPolicy
		ended  lifecycle.Ended
		want   string
	}{
		"completed": {policy, ran(lifecycle.StatusCompleted, ""), "it succeeded"},
		"cancelled": {policy, ran(lifecycle.StatusCancelled, "connection"), "it was cancelled"},
		"running":   {policy, ran(lifecycle.StatusRunning, ""), "it has not ended: it is running"},
		"disabled":  {off, by(lifecycle.ByTimeoutMonitor, ""), "repeating is switched off"},
		"a stop was asked for": {
			policy,
			lifecycle.Ended{Status: lifecycle.StatusFailed, Started: true, MaxRetries: 9, CancelAsked: true},
			"its cancellation was requested",
		},
		"no action": {
			policy, by(lifecycle.ByScheduler, "Action not found: the action no longer exists"),
			"does not exist",
		},
		"incompatible": {policy, by(lifecycle.ByScheduler,
			"no compatible worker: none of 2 live workers has the runtime shell"), "no worker can run it"},
		"policy": {policy, by(lifecycle.ByScheduler, "Policy violation"), "a policy refused it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.policy.Decide(c.ended, middle)
			require.False(t, got.Retry)
			require.Contains(t, got.Why, c.want)
			require.Zero(t, got.Delay)
		})
	}
	// The same words of an action are only a failure.
	for _, text := range []string{"action not found", "incompatible versions", "policy denied"} {
		require.True(t, policy.Decide(ran(lifecycle.StatusFailed, text), middle).Retry, text)
	}
}

// S19: attempts do not exceed the allowed number.
func TestTheBudgetIsOfTheActionUnlessNoWorkerStartedIt(t *testing.T) {
	t.Parallel()
	decide := func(e lifecycle.Ended, retries, allowed int) lifecycle.RetryVerdict {
		e.Retries, e.MaxRetries = retries, allowed
		return policy.Decide(e, middle)
	}
	failed := ran(lifecycle.StatusFailed, "connection lost")
	require.Equal(t, "its action allows no retry (max_retries)", decide(failed, 0, 0).Why)
	require.True(t, decide(failed, 1, 2).Retry)
	require.Equal(t, "no retry is left: it is attempt 3, and 2 retries are allowed", decide(failed, 2, 2).Why)
	require.Equal(t, "no retry is left: it is attempt 2, and 1 retry is allowed", decide(failed, 1, 1).Why)
	require.False(t, decide(failed, 0, -5).Retry)

	for _, who := range []string{lifecycle.ByTimeoutMonitor, lifecycle.ByDispatcher, lifecycle.ByDeadLetters} {
		lost := by(who, "")
		require.True(t, decide(lost, 2, 0).Retry, who)
		require.False(t, decide(lost, 3, 0).Retry, who)
		require.True(t, decide(lost, 4, 5).Retry, "the larger of both")
		lost.Started = true
		require.False(t, decide(lost, 0, 0).Retry, "a started execution may have had effects")
	}
	require.False(t, decide(by(lifecycle.ByScheduler, "no workers available"), 0, 0).Retry,
		"it was never dispatched")
	require.False(t, decide(by("", "Worker queue TTL expired"), 0, 0).Retry, "the text alone proves nothing")
	require.False(t, decide(ran(lifecycle.StatusAbandoned, ""), 0, 0).Retry)
}

// Actions of an existing installation run once despite their max_retries, unless the setting is true. The max_retries
// of an execution always has an effect.
func TestRetriesThatAnActionAllowsFollowTheSetting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		setting           lifecycle.ActionRetries
		byAction, adopted bool
		repeats           bool
	}{
		{"", true, false, true},
		{"", true, true, false},
		{lifecycle.RetriesByOrigin, true, false, true},
		{lifecycle.RetriesByOrigin, true, true, false},
		{lifecycle.RetriesByOrigin, false, true, true},
		{lifecycle.RetriesAlways, true, true, true},
		{lifecycle.RetriesAlways, true, false, true},
		{lifecycle.RetriesNever, true, false, false},
		{lifecycle.RetriesNever, true, true, false},
		{lifecycle.RetriesNever, false, false, true},
	} {
		p := policy
		p.ActionRetries = c.setting
		e := ran(lifecycle.StatusFailed, "connection lost")
		e.MaxRetries, e.ByAction, e.Adopted = 2, c.byAction, c.adopted
		verdict := p.Decide(e, middle)
		require.Equal(t, c.repeats, verdict.Retry, "%+v", c)
		if !c.repeats {
			require.Equal(t, "max_retries of its action has no effect here (executor.retry.honour_action_max_retries)",
				verdict.Why)
		}
		lost := by(lifecycle.ByDispatcher, "")
		lost.MaxRetries, lost.ByAction, lost.Adopted = 2, c.byAction, c.adopted
		require.True(t, p.Decide(lost, middle).Retry, "an unstarted execution is retried either way")
	}
}

func TestDelaysGrowAndAreSpread(t *testing.T) {
	t.Parallel()
	delay := func(retries int, chance float64) time.Duration {
		e := ran(lifecycle.StatusFailed, "")
		e.Retries, e.MaxRetries = retries, math.MaxInt
		return policy.Decide(e, chance).Delay
	}
	for retries, want := range []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		require.InDelta(t, want, delay(retries, middle).Seconds(), 1e-9)
	}
	require.Equal(t, 1600*time.Millisecond, delay(1, 0))
	require.InDelta(t, float64(2400*time.Millisecond), float64(delay(1, math.Nextafter(1, 0))),
		float64(time.Millisecond))
	require.Equal(t, 240*time.Second, delay(310, 0), "many attempts do not overflow")
}

// An overflow once scheduled retries in the past after 310 attempts, so the
// delay is checked over everything that fits its types (river#1402).
func TestDelaysStayWithinTheirBoundsForAllNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := lifecycle.RetryPolicy{
			Enabled:    true,
			BaseDelay:  time.Duration(rapid.Int64().Draw(t, "base")),
			Multiplier: rapid.Float64().Draw(t, "multiplier"),
			MaxDelay:   time.Duration(rapid.Int64().Draw(t, "max")),
			Jitter:     rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1)).Draw(t, "jitter"),
		}
		retries := rapid.IntRange(math.MinInt, math.MaxInt-1).Draw(t, "retries")
		chance := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "chance")
		got := c.Decide(lifecycle.Ended{
			Status: lifecycle.StatusFailed, Started: true, Retries: retries,
			MaxRetries: math.MaxInt,
		}, chance)
		if !got.Retry {
			t.Fatal(got.Why)
		}
		if got.Delay < 0 {
			t.Fatalf("a delay in the past: %s", got.Delay)
		}
		limit := 2 * float64(max(c.MaxDelay, 0)) // a jitter of 1 doubles at most
		if float64(got.Delay) > limit {
			t.Fatalf("the delay %s is longer than %v", got.Delay, limit)
		}
	})
}

// Within sensible settings a later attempt never waits less than an earlier one,
// chance being equal.
func TestDelaysNeverShrink(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := policy
		c.Multiplier = rapid.Float64Range(1, 100).Draw(t, "multiplier")
		chance := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "chance")
		retries := rapid.IntRange(0, math.MaxInt32).Draw(t, "retries")
		at := func(n int) time.Duration {
			return c.Decide(lifecycle.Ended{
				Status: lifecycle.StatusFailed, Started: true, Retries: n,
				MaxRetries: math.MaxInt,
			}, chance).Delay
		}
		first, later, low := at(0), at(retries), at(retries/2)
		if later < low || low < first {
			t.Fatalf("%s, %s, %s", first, low, later)
		}
		if later < 800*time.Millisecond || later > 360*time.Second {
			t.Fatalf("%s is out of bounds", later)
		}
	})
}

// Each retry and each refusal has a reason, for any end.
func TestVerdictsAreComplete(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", "Queue timeout", "no workers available", "queue missing", "connection",
		strings.Repeat("x", 100),
	}
	rapid.Check(t, func(t *rapid.T) {
		e := lifecycle.Ended{
			Status: rapid.SampledFrom(lifecycle.Statuses).Draw(t, "status"),
			Error:  rapid.OneOf(rapid.SampledFrom(texts), rapid.String()).Draw(t, "error"),
			EndedBy: rapid.SampledFrom([]string{
				"", lifecycle.ByScheduler, lifecycle.ByTimeoutMonitor,
				lifecycle.ByDispatcher, lifecycle.ByDeadLetters, "other",
			}).Draw(t, "by"),
			Started: rapid.Bool().Draw(t, "started"), CancelAsked: rapid.Bool().Draw(t, "cancel"),
			Retries: rapid.Int().Draw(t, "retries"), MaxRetries: rapid.Int().Draw(t, "max"),
		}
		got := policy.Decide(e, rapid.Float64Range(0, 0.999).Draw(t, "chance"))
		switch {
		case got.Retry != (got.Why == ""), got.Retry != (got.Reason != ""):
			t.Fatalf("half a verdict: %+v", got)
		case got.Retry &&
			(e.CancelAsked || !e.Status.Terminal() || e.Status.Succeeded() || e.Status == lifecycle.StatusCancelled):
			t.Fatalf("repeated: %+v", e)
		case got.Retry && e.Retries >= max(e.MaxRetries, policy.Unstarted):
			t.Fatalf("repeated beyond what is allowed (S19): %+v", e)
		case got.Retry && e.Started && e.Retries >= e.MaxRetries:
			t.Fatalf("an attempt that was started was repeated beyond its action's budget (S19): %+v", e)
		}
	})
}
