package workflow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/workflow"
)

// Whatever is written, and however often something was repeated: a delay is never
// below zero, never beyond its limit, and none is shorter than the one before.
func TestDelaysStayWithinTheirBoundsForAllNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := &workflow.Retry{
			Delay:    time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(rt, "delay")),
			MaxDelay: time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(rt, "limit")),
			Backoff: rapid.SampledFrom([]workflow.Backoff{
				workflow.BackoffConstant, workflow.BackoffLinear, workflow.BackoffExponential,
			}).Draw(rt, "backoff"),
		}
		most := r.MaxDelay
		if most == 0 {
			most = 30 * 24 * time.Hour
		}
		n := rapid.IntRange(math.MinInt, math.MaxInt-1).Draw(rt, "n")
		wait, next := r.Wait(n), r.Wait(n+1)
		require.GreaterOrEqual(rt, wait, min(r.Delay, most))
		require.LessOrEqual(rt, wait, most)
		require.GreaterOrEqual(rt, next, wait)
	})
	r := &workflow.Retry{Delay: math.MaxInt64/2 + 1, MaxDelay: math.MaxInt64, Backoff: workflow.BackoffExponential}
	require.Equal(t, time.Duration(math.MaxInt64), r.Wait(2))
}
