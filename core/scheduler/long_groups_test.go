package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// A value that groups executions may be as long as it likes.
func TestAGroupOfALongValue(t *testing.T) {
	b := setup(t)
	testkit.Worker(t, b.store, "w1")
	action := testkit.Action(t, b.store, "pk.a")
	testkit.Policy(t, b.store, action, 1, func(p *testkit.PolicyRow) { p.Parameters = []string{"key"} })
	testkit.Policy(t, b.store, action, 5, testkit.OfPack(action),
		func(p *testkit.PolicyRow) { p.Parameters = []string{"key"} })
	var long []byte
	for i := range 4000 {
		long = fmt.Appendf(long, "%x", i*i*7919%104729)
	}
	ask := func(value string) int64 {
		return b.requestWith(t, action, func(e *testkit.ExecutionRow) { e.Config = map[string]any{"key": value} })
	}
	same, again, other := ask(string(long)), ask(string(long)), ask(string(long)+"x")
	require.Equal(t, scheduler.Result{Granted: 2, Enqueued: 1}, b.dispatch(t, same, again, other))
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, b.store, again))
	b.quiet(t)
}
