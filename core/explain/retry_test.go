package explain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
)

func TestTheVerdictOnARetryNamesEachCondition(t *testing.T) {
	t.Parallel()
	id := func(n int64) *int64 { return &n }
	failed := monitor.Execution{ID: 42, Status: "failed", RetryCount: 1, MaxRetries: id(3)}
	only, again := []monitor.Attempt{{ID: 42, Status: "failed"}}, []monitor.Attempt{
		{ID: 42, Status: "failed"},
		{ID: 43, Status: "running"},
	}
	with := func(change func(*monitor.Execution)) *monitor.Execution {
		x := failed
		change(&x)
		return &x
	}
	for name, c := range map[string]struct {
		facts   RetryFacts
		refusal string
		want    RetryCheck
	}{
		"it failed": {
			RetryFacts{Execution: &failed, Attempts: only},
			"",
			RetryCheck{RetryMet, "it ended as failed"},
		},
		"alone": {
			RetryFacts{Execution: &failed, Attempts: only},
			"",
			RetryCheck{RetryMet, "it was not repeated"},
		},
		"no parent": {
			RetryFacts{Execution: &failed, Attempts: only},
			"",
			RetryCheck{RetryMet, "no parent waits for it"},
		},
		"tries": {
			RetryFacts{Execution: &failed, Attempts: only},
			"",
			RetryCheck{RetryMet, "retry 1 of 3, which binds the engine only"},
		},
		"no limit": {
			RetryFacts{Execution: with(func(x *monitor.Execution) { x.MaxRetries = nil })},
			"",
			RetryCheck{RetryMet, "retry 1, none by the engine"},
		},
		"no request": {
			RetryFacts{Execution: &failed},
			"",
			RetryCheck{RetryUnknown, "its attempts have not been read"},
		},
		"the newest": {
			RetryFacts{Execution: with(func(x *monitor.Execution) { x.ID = 43 }), Attempts: again},
			"",
			RetryCheck{RetryMet, "it is the newest of 2 attempts"},
		},
		"repeated": {
			RetryFacts{Execution: &failed, Attempts: again},
			"it has been repeated already: the newest attempt is execution 43, running",
			RetryCheck{RetryMet, "it ended as failed"},
		},
		"it runs": {RetryFacts{
			Execution: with(func(x *monitor.Execution) { x.Status = "running" }),
			Attempts:  only,
		}, "it has not ended: running", RetryCheck{RetryRefused, "it has not ended: running"}},
		"it completed": {RetryFacts{
			Execution: with(func(x *monitor.Execution) { x.Status = "completed" }),
			Attempts:  only,
		}, "", RetryCheck{RetryMinded, "it completed: what it did is done a second time"}},
		"a parent unread": {
			RetryFacts{Execution: with(func(x *monitor.Execution) { x.Parent = id(7) })},
			"",
			RetryCheck{RetryUnknown, "its parent, execution 7, has not been read"},
		},
		"a parent waits": {
			RetryFacts{
				Execution: with(func(x *monitor.Execution) { x.Parent = id(7) }),
				Parent:    &monitor.Execution{ID: 7, Status: "running"},
			},
			"",
			RetryCheck{RetryMet, "its parent, execution 7, is running"},
		},
		"a parent is over": {
			RetryFacts{
				Execution: with(func(x *monitor.Execution) { x.Parent = id(7) }),
				Parent:    &monitor.Execution{ID: 7, Status: "failed"},
			},
			"",
			RetryCheck{RetryMinded, "its parent, execution 7, has ended (failed): it does not wait for a retry"},
		},
		"a worker is stale": {RetryFacts{
			Execution: with(func(x *monitor.Execution) { x.WorkerID = id(7) }),
			Worker:    monitor.WorkerStale,
		}, "", RetryCheck{RetryMinded, "its worker is stale; one is chosen anew"}},
		"a worker is well": {RetryFacts{
			Execution: with(func(x *monitor.Execution) { x.WorkerID = id(7) }),
			Worker:    monitor.WorkerActive,
		}, "", RetryCheck{RetryMet, "its worker is active; one is chosen anew"}},
	} {
		checks := EvaluateRetry(c.facts)
		require.Contains(t, checks, c.want, name)
		require.Equal(t, c.refusal, Refusal(checks), name)
		require.Equal(t, RetryMet, checks[len(checks)-1].Standing, name)
	}
}
