package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
)

// Each kind of problem has its exit code.
func TestProblemsHaveExitCodes(t *testing.T) {
	t.Parallel()
	o := &operator{client: &client{app: &app{running: true}, cfg: &config.Config{}}}
	for want, errs := range map[int][]error{
		exitRefused: {
			&act.Problem{Kind: act.Refused}, &act.Problem{Kind: act.Conflict}, &act.Problem{Kind: act.Unfit},
			&act.Problem{Kind: act.Forbidden}, &act.Problem{Kind: act.Denied}, &act.Problem{Anyway: true},
		},
		exitUsage:       {&act.Problem{Kind: act.Invalid}},
		exitUnreachable: {&act.Problem{Kind: act.Unreachable}},
		exitFailed: {
			&act.Problem{Kind: act.Missing}, &act.Problem{Kind: act.Unknown}, &act.Problem{Kind: act.Incomplete},
			context.Canceled, errors.New("it broke"),
		},
	} {
		for _, err := range errs {
			require.Equal(t, want, o.exitCode(o.problem(err)), "%#v", err)
		}
	}
	require.EqualError(t, o.problem(&act.Problem{Text: "of no use", Anyway: true}), "of no use: --yes does it anyway")
	require.EqualError(t, o.problem(context.Canceled), "interrupted: run the same command again")
}

func TestTheWorstOfSeveralProblemsIsTheExitCode(t *testing.T) {
	t.Parallel()
	refused, failed, away := refusedErrorf("no"), failedErrorf("broken"), &exitError{
		exitUnreachable,
		errors.New("away"),
	}
	for name, c := range map[string]struct {
		problems []error
		code     int
	}{
		"Refused":           {[]error{refused, refused}, exitRefused},
		"FailedAfter":       {[]error{refused, failed}, exitFailed},
		"FailedBefore":      {[]error{failed, refused}, exitFailed},
		"UnreachableAtLast": {[]error{refused, failed, away}, exitUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			a := &app{running: true, stderr: &stderr}
			err := a.verdict(7, 2, "execution", "repeated", c.problems)
			require.Equal(t, c.code, a.exitCode(err))
			require.EqualError(t, err, fmt.Sprintf("%d of 7 executions not repeated", len(c.problems)+2))
			require.Equal(t, len(c.problems), bytes.Count(stderr.Bytes(), []byte("error: ")))
		})
	}
	a := &app{running: true}
	require.NoError(t, a.verdict(1, 0, "execution", "repeated", nil))
	require.Equal(t, refused, a.verdict(1, 0, "execution", "repeated", []error{refused}), "a single one, once")
}

func TestARunReportsItsProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		a := &app{stderr: &stderr}
		report := a.progress("execution", time.Now().Add(-time.Minute))
		report(3, 9)
		report(4, 9)
		require.Equal(t, "3 of 9 executions (1m0s)\n", stderr.String(), "one note in two seconds")
		stderr.Reset()
		time.Sleep(progressEvery)
		report(5, 9)
		require.Equal(t, "5 of 9 executions (1m2s)\n", stderr.String())
		stderr.Reset()
		report = a.progress("execution", time.Now().Add(-time.Minute))
		report(9, 9)
		require.Empty(t, stderr.String(), "the receipt reports the end")
		report(1, 0)
		require.Equal(t, "1 execution (1m0s)\n", stderr.String(), "the total is unknown")
	})
}

func TestTheHistoryOfAnExecution(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	one, two := int64(1), int64(2)
	due := now.Add(90 * time.Second)
	first := monitor.Attempt{ID: 1, Number: 1, Status: "failed", RepeatedBy: &two, Created: now.Add(-time.Minute)}
	second := monitor.Attempt{
		ID: 2, Number: 2, Status: "requested", Repeats: &one, Reason: "manual_retry", RequestedBy: "ann", Due: &due,
		Created: now,
	}
	for name, c := range map[string]struct {
		history history
		want    [][2]string
	}{
		"Alone": {history{self: monitor.Attempt{ID: 1, Number: 1}}, nil},
		"First": {history{self: first}, [][2]string{{"repeated by", "2"}}},
		"Expected": {
			history{expected: true},
			[][2]string{{"repeated by", "none yet: an engine will repeat it"}},
		},
		"NotRepeated": {
			history{NotRepeated: "it was cancelled"},
			[][2]string{{"repeated by", "none: it was cancelled"}},
		},
		"Second": {history{self: second}, [][2]string{
			{"attempt", "2"}, {"repeats", "1 (manual_retry) by ann"}, {"due", "2026-11-21T12:01:30Z, in 1m30s"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.history.lines(now))
		})
	}
	require.Equal(t, "now", dueText(now, now))

	var out page
	history{Attempts: []monitor.Attempt{first}}.table(&out, now)
	require.Empty(t, out.String(), "one attempt is no table")
	history{Attempts: []monitor.Attempt{first, second}}.table(&out, now)
	require.Contains(t, out.String(), "  1\t1\tfailed\t-\t-\t1m0s ago\t-\t-\n")
	require.Contains(t, out.String(), "  2\t2\tdue in 1m30s\tmanual_retry\t")
}

func TestTheRetryPolicyIsThatOfTheConfiguration(t *testing.T) {
	t.Parallel()
	policy := config.Default().Executor.Retry.Policy()
	require.Equal(t, lifecycle.RetryPolicy{
		Enabled: true, BaseDelay: time.Second, Multiplier: 2, MaxDelay: 5 * time.Minute, Jitter: 0.2, Unstarted: 3,
		ActionRetries: lifecycle.RetriesByOrigin,
	}, policy)
	for _, status := range lifecycle.Statuses {
		verdict := policy.Decide(lifecycle.Ended{Status: status, MaxRetries: 1}, 0)
		require.Equal(t, verdict.Retry, unsuccessful(status), "%s: the wait goes by the policy", status)
	}
}
