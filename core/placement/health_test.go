package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/placement"
)

// The documented thresholds, one below each and at each.
func TestHealthTurnsAtTheDocumentedThresholds(t *testing.T) {
	t.Parallel()
	report := func(inARow, total, failed, queue, actions int) placement.Signs {
		return placement.Signs{Numbers: true, Report: placement.Report{
			InARow: inARow, Total: total, Failed: failed, QueueDepth: queue, Actions: actions,
		}}
	}
	named := func(s placement.Signs) placement.Signs {
		s.Report.Action = "ops.deploy"
		return s
	}
	waits := func(s placement.Signs, unchanged time.Duration) placement.Signs {
		s.Unchanged = unchanged
		return s
	}
	for name, c := range map[string]struct {
		signs  placement.Signs
		health placement.Health
		reason string
	}{
		"nothing known":   {placement.Signs{Ready: -1}, placement.HealthUnknown, ""},
		"an empty queue":  {placement.Signs{}, placement.Healthy, ""},
		"an empty report": {report(0, 0, 0, 0, 0), placement.Healthy, ""},
		"2 in a row":      {report(2, 2, 2, 0, 0), placement.Healthy, ""},
		"3 in a row":      {report(3, 3, 3, 0, 0), placement.Degraded, "3 failures in a row"},
		"9 in a row":      {report(9, 9, 9, 0, 0), placement.Degraded, "9 failures in a row"},
		"10 in a row":     {report(10, 10, 10, 0, 0), placement.Unhealthy, "10 failures in a row"},
		"10 in a row of one action": {
			report(10, 10, 10, 0, 1), placement.Degraded,
			"10 failures in a row, all of one action",
		},
		"10 in a row of a named one": {
			named(report(10, 10, 10, 0, 1)), placement.Degraded,
			"10 failures in a row, all of ops.deploy",
		},
		"3 in a row of a named one": {
			named(report(3, 3, 3, 0, 1)), placement.Degraded,
			"3 failures in a row, all of ops.deploy",
		},
		"a share of a named one": {
			named(report(0, 100, 70, 0, 1)), placement.Degraded,
			"70 of 100 executions failed, all of ops.deploy",
		},
		"10 in a row of two": {report(10, 10, 10, 0, 2), placement.Unhealthy, "10 failures in a row"},
		"just before the trial": {
			waits(report(12, 12, 12, 0, 2), placement.TrialAfter-1), placement.Unhealthy,
			"12 failures in a row",
		},
		"on trial": {
			waits(report(12, 12, 12, 0, 2), placement.TrialAfter), placement.Degraded,
			"12 failures in a row, and none since: on trial",
		},
		"49 wait":  {report(0, 0, 0, 49, 0), placement.Healthy, ""},
		"50 wait":  {report(0, 0, 0, 50, 0), placement.Degraded, "50 wait in its queue"},
		"99 wait":  {placement.Signs{Ready: 99}, placement.Degraded, "99 wait in its queue"},
		"100 wait": {placement.Signs{Ready: 100}, placement.Unhealthy, "100 wait in its queue"},
		"a queue is never on trial": {
			placement.Signs{Ready: 100, Unchanged: time.Hour},
			placement.Unhealthy,
			"100 wait in its queue",
		},
		"too few for a share":   {report(0, 9, 8, 0, 0), placement.Healthy, ""},
		"29 of 100 failed":      {report(0, 100, 29, 0, 0), placement.Healthy, ""},
		"30 of 100 failed":      {report(0, 100, 30, 0, 0), placement.Degraded, "30 of 100 executions failed"},
		"69 of 100 failed":      {report(0, 100, 69, 0, 0), placement.Degraded, "69 of 100 executions failed"},
		"70 of 100 failed":      {report(0, 100, 70, 0, 0), placement.Unhealthy, "70 of 100 executions failed"},
		"7 of 10 failed":        {report(0, 10, 7, 0, 0), placement.Unhealthy, "7 of 10 executions failed"},
		"the worst sign counts": {report(3, 100, 70, 50, 0), placement.Unhealthy, "70 of 100 executions failed"},
		"its status without numbers": {
			placement.Signs{Ready: -1, Report: placement.Report{Status: "unhealthy"}},
			placement.Unhealthy, "it says so itself",
		},
		"numbers precede its status": {
			placement.Signs{Numbers: true, Report: placement.Report{Status: "unhealthy"}},
			placement.Healthy, "",
		},
		"an unknown status": {
			placement.Signs{Ready: -1, Report: placement.Report{Status: "splendid"}},
			placement.HealthUnknown, "",
		},
		"other signs against it": {
			placement.Signs{Poor: "its endpoint says 500"},
			placement.Degraded,
			"its endpoint says 500",
		},
		"the worse sign wins": {
			placement.Signs{Ready: 100, Poor: "its endpoint says 500"},
			placement.Unhealthy,
			"100 wait in its queue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			health, reason := placement.DocumentedLimits().Evaluate(c.signs)
			require.Equal(t, c.health, health)
			require.Equal(t, c.reason, reason)
		})
	}
}

func TestReportsAreReadFieldByField(t *testing.T) {
	t.Parallel()
	r, numbers := placement.ParseReport([]byte(`{"status": "degraded", "last_check": "2026-01-01T00:00:00Z", "consecutive_failures": 4,
		"total_executions": 20, "failed_executions": "many", "average_execution_time_ms": 12.5, "queue_depth": 7, "failed_actions": 2}`))
	require.True(t, numbers)
	require.Equal(t, placement.Report{
		Status: placement.Degraded, LastCheck: "2026-01-01T00:00:00Z", InARow: 4, Total: 20, AverageMS: 12.5,
		QueueDepth: 7, Actions: 2,
	}, r)
	r, numbers = placement.ParseReport([]byte(`{"status": "healthy", "queue_depth": -3}`))
	require.False(t, numbers)
	require.Equal(t, placement.Report{Status: placement.Healthy}, r)
	for _, odd := range []string{"", "null", "[]", "7", `{"status": 7}`} {
		r, numbers = placement.ParseReport([]byte(odd))
		require.False(t, numbers, odd)
		require.Zero(t, r, odd)
	}
}

func ails(health placement.Health, why string) func(*placement.Worker) {
	return func(w *placement.Worker) {
		w.Health, w.HealthReason = health, why
		if health == placement.Unhealthy {
			w.Standing, w.Note = placement.Unwell, why
		}
	}
}

// Unhealthy workers are never chosen; degraded ones come after all healthy ones
// that have room, whatever the load and whatever is preferred.
func TestHealthDecidesWhoIsChosen(t *testing.T) {
	t.Parallel()
	sick, poor := ails(placement.Unhealthy, "12 failures in a row"), ails(placement.Degraded, "3 failures in a row")
	fleet := placement.NewFleet([]placement.Worker{sized(1, 9, 0, sick), sized(2, 9, 0, poor), sized(3, 1, 2)}, 0)
	require.Equal(t, int64(3), fleet.Choose(placement.Need{}).Worker, "the healthy one, as long as it has room")
	for range 11 {
		require.Equal(t, int64(2), fleet.Choose(placement.Need{}).Worker)
	}
	verdict := fleet.Choose(placement.Need{})
	require.Equal(t, placement.Busy, verdict.Outcome)
	require.Equal(t,
		"waiting for a worker: all 2 fitting workers are busy; worker-1 is unhealthy: 12 failures in a row",
		verdict.Reason)

	prefers := placement.NewNeed(
		affinity(`{"preferred": [{"preference": {"match_labels": {"zone": "a"}}}]}`))
	require.Equal(t, int64(2), choose(prefers, sized(1, 9, 0, poor, inZone("a")), sized(2, 9, 8)).Worker)

	require.Equal(t, placement.Verdict{
		Outcome: placement.Busy,
		Reason:  "waiting for a worker: the fitting workers receive no work now: worker-1 is unhealthy: 12 failures in a row",
	}, choose(placement.Need{}, sized(1, 9, 0, sick)), "it is there, and waited for")
}

func TestTheHealthOfRows(t *testing.T) {
	t.Parallel()
	row := placement.Row{ID: 1, Status: "active", Health: "unhealthy", HealthReason: "100 wait in its queue"}
	w := row.Worker(time.Minute)
	require.Equal(t, placement.Unwell, w.Standing)
	require.False(t, w.Standing.Absent())
	explained := placement.NewFleet([]placement.Worker{w}, 0).Explain(placement.Need{})
	require.Equal(t, placement.AnswerWaited, explained[0].Answer)
	require.Equal(t, "unhealthy: 100 wait in its queue", explained[0].Reason)
	row.Health, row.Suspect, row.SuspectReason = "unhealthy", true, "no queue"
	require.Equal(t, placement.Suspect, row.Worker(time.Minute).Standing, "the suspicion goes before")
	row.Health, row.Suspect = "degraded", false
	w = row.Worker(time.Minute)
	require.Equal(t, placement.Live, w.Standing)
	require.Equal(t, "has room, 0 of 10; degraded: 100 wait in its queue",
		placement.NewFleet([]placement.Worker{w}, 0).Explain(placement.Need{})[0].Reason)
	for _, none := range []string{"", "unknown", "healthy", "odd"} {
		row.Health = none
		require.Equal(t, placement.Live, row.Worker(time.Minute).Standing, none)
	}
}
