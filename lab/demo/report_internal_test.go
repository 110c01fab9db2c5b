package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// An unexpected end, a requested id without a row, a fault that did not happen and too few completed
// executions each fail the run, and the summary names them.
func TestTheDemoFailsAfterABrokenPromise(t *testing.T) {
	t.Parallel()
	out := &bytes.Buffer{}
	d := &Demo{
		cfg: Config{Out: out, Duration: time.Minute}, store: testkit.Store(t), begun: time.Now(),
		trafficEnd: time.Now(),
	}
	action := testkit.Action(t, d.store, "demo.any")
	ended := func(ref string, status lifecycle.Status, result string) int64 {
		e := testkit.Execution(t, d.store, testkit.ActionRow{ID: action.ID, Ref: ref}, func(r *testkit.ExecutionRow) {
			r.Status, r.Result = status, json.RawMessage(result)
		})
		return e.ID
	}
	var left queues
	summary := func() error {
		out.Reset()
		c, err := d.count(t.Context())
		require.NoError(t, err)
		return d.summary(t.Context(), c, nil, left)
	}
	d.requested = []int64{
		ended("core.echo", lifecycle.StatusCompleted, `{}`),
		ended("core.fail", lifecycle.StatusFailed, `{"error": "failing on purpose"}`),
		ended("shop.charge", lifecycle.StatusFailed, `{"error": "the bank is away\n"}`),
	}
	require.NoError(t, summary(), out.String())
	require.Regexp(t,
		`by the demo +3\n +by rules, workflows, retries +0\n +completed +1\n +failed attempts +0 .*\n +not completed +2\n`, out.String())
	require.Regexp(t, `on purpose +1\n +refused by the bank +1\n`, out.String())
	require.NotContains(t, out.String(), "incident", "a demo of a given length begins one itself")

	left.left = []string{"worker.7.packs: 1 ready, 0 unacknowledged"}
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "queue not empty       worker.7.packs: 1 ready")
	left.left = nil

	d.cfg.AtLeast = 2
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "not as promised       1 executions completed; at least 2 have to")
	d.cfg.AtLeast = 0

	d.requested = append(d.requested, 4711)
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "1 requested executions have no row, such as [4711]")
	d.requested = d.requested[:3]

	d.recordMissed("kill -9 executor-1", context.DeadlineExceeded)
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "this fault did not happen: kill -9 executor-1: ")
	d.undone = nil

	stray := ended("core.echo", lifecycle.StatusFailed, `{"error": "no workers available"}`)
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "1 executions ended unexpectedly, such as ["+strconv.FormatInt(stray, 10)+
		"]: core.echo failed: no workers available")
	testkit.Exec(t, d.store,
		`insert into lost_work (cause, outcome, execution, attempt, action_ref) values ('worker_gone', 'failed', $1, 1, 'core.echo')`, stray)
	require.ErrorIs(t, summary(), ErrLost)
	require.Contains(t, out.String(), "were lost with a killed worker, and none was killed")
	d.workerKilled = true
	require.NoError(t, summary(), out.String())
}

// The summary reports an incident that has not begun, waiting dead letters of earlier runs, open tasks, and
// a decided incident.
func TestTheSummarySaysWhetherTheIncidentIsOver(t *testing.T) {
	ctx := t.Context()
	st := testkit.Store(t)
	d := &Demo{cfg: Config{Faults: true}, store: st, mirror: &mirror{seen: map[int64]bool{}}}
	said := func() string {
		t.Helper()
		lines, problems, err := d.incidentReport(ctx)
		require.NoError(t, err)
		require.Empty(t, problems)
		next, err := d.next(ctx)
		require.NoError(t, err)
		return strings.Join(append(lines, next...), "\n")
	}
	testkit.Exec(t, st,
		`insert into dead_letter (fingerprint, queue, decision) values ('a', 'old', null), ('b', 'old', null), ('c', 'old', 'requeued')`)
	require.NoError(t, d.readEarlier(ctx))
	require.Contains(t, said(), "  incident              had not begun when you quit\n"+
		"  earlier runs                 2 dead letters waited at the start: 0 were decided in this run, 2 wait\nNEXT\n")

	testkit.Exec(t, st, "update dead_letter set decision = 'discarded' where fingerprint = 'a'")
	action := testkit.Action(t, st, "ops.print")
	printed := testkit.Execution(t, st, action, func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusCompleted })
	i := d.newIncident()
	i.span, i.broken, i.prints = span{d.earlier.newest, openEnd, 0, openEnd}, []string{"sick-1"}, []int64{printed.ID}
	testkit.Exec(t, st,
		`insert into dead_letter (fingerprint, queue, message_id) values ('d', 'mirror.events', 'd'), ('e', 'x', 'sick-1'), ('f', 'x', 'alone')`)
	require.Contains(t, said(),
		"incident                     2 dead letters in 2 groups; the engine decided 1 others alone\n")
	require.Contains(t, said(), "undone                1 dead letters wait: unreadable messages")
	require.Contains(t, said(), "2 dead letters waited at the start: 1 were decided in this run, 1 wait")
	require.Contains(t, said(), "\nNEXT\n")
	require.NotContains(t, said(), "all is decided")

	testkit.Exec(t, st, "update dead_letter set decision = 'requeued' where fingerprint in ('d', 'e')")
	require.Contains(t, said(),
		"    all is decided        no dead letter waits, every execution completed, and the mirror has every event\n")
	require.NotContains(t, said(), "undone")
	require.NotContains(t, said(), "NEXT")

	i.lastDeadLetter = 7 // the next one
	next := d.newIncident()
	next.span, next.cut = span{i.lastDeadLetter, openEnd, 0, openEnd}, true
	testkit.Exec(t, st,
		`insert into dead_letter (id, fingerprint, queue, message_id) overriding system value values (8, 'g', 'mirror.events', 'g')`)
	require.Contains(t, said(),
		"incident 1                   2 dead letters in 2 groups; the engine decided 1 others alone\n")
	require.Contains(t, said(), "    all is decided        no dead letter waits")
	require.Contains(t, said(),
		"incident 2                   1 dead letters in 1 groups; the engine decided 0 others alone\n")
	require.NotContains(t, said(), "NEXT")
	d.incidents = d.incidents[:1]
	i.cut = true
	require.Contains(t, said(), "    not complete          you quit while it began\n")
	require.Contains(t, said(), "\nNEXT\n")
}

// An execution with a completed retry is no failure: neither its first attempt, nor a later retry that
// fails.
func TestACompletedRetryIsNoFailure(t *testing.T) {
	ctx := t.Context()
	out := &bytes.Buffer{}
	d := &Demo{cfg: Config{Out: out, Faults: true}, store: testkit.Store(t), mirror: &mirror{seen: map[int64]bool{}}}
	d.begun, d.trafficEnd = time.Now(), time.Now()
	action := testkit.Action(t, d.store, "ops.invoice")
	attempt := func(first int64, n int, status lifecycle.Status) int64 {
		e := testkit.Execution(t, d.store, action, func(r *testkit.ExecutionRow) {
			r.Status, r.Result = status, json.RawMessage(`{}`)
			if status == lifecycle.StatusFailed {
				r.Result = json.RawMessage(`{"error": "templates/japan.tex is not part of release 1.5.0"}`)
			}
		})
		if first != 0 {
			testkit.Exec(t, d.store, "update execution set original_execution = $2, retry_count = $3 where id = $1",
				e.ID, first, n)
		}
		return e.ID
	}
	good, open := attempt(0, 0, lifecycle.StatusCompleted), attempt(0, 0, lifecycle.StatusFailed)
	again, done := attempt(0, 0, lifecycle.StatusFailed), attempt(0, 0, lifecycle.StatusFailed)
	attempt(good, 1, lifecycle.StatusFailed) // an operator retried a completed execution
	attempt(done, 1, lifecycle.StatusCompleted)
	attempt(again, 1, lifecycle.StatusFailed) // during the bad release
	attempt(again, 2, lifecycle.StatusCompleted)
	attempt(again, 3, lifecycle.StatusFailed) // during the next incident
	i := d.newIncident()
	i.invoices, i.span = []int64{good, open, again, done}, span{0, openEnd, 0, openEnd}

	left, err := i.undone(ctx)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Contains(t, left[0],
		"1 executions of ops.invoice did not complete, such as ["+strconv.FormatInt(open, 10)+"]")
	c, err := d.count(ctx)
	require.NoError(t, err)
	require.NoError(t, d.summary(ctx, c, nil, queues{}), out.String())
	require.Regexp(t, `\n +failed by the release +2 of 4 invoices, repeated and completed\n`, out.String())
	require.Regexp(t,
		`\n +completed +3\n +failed attempts +5 \(another attempt of each completed\)\n +not completed +1\n`,
		out.String())
	require.Regexp(t, `\n +failed by a bad release +1\n`, out.String())
}

// The end of the run names the actions under way, and its timeout.
func TestTheEndNamesTheActionsUnderWay(t *testing.T) {
	d := &Demo{store: testkit.Store(t)}
	action := testkit.Action(t, d.store, "shop.fulfil")
	for _, status := range []lifecycle.Status{lifecycle.StatusRunning, lifecycle.StatusScheduled,
		lifecycle.StatusCompleted} {
		testkit.Execution(t, d.store, action, func(r *testkit.ExecutionRow) { r.Status = status })
	}
	require.Equal(t, "2 under way: 2 of shop.fulfil; the demo gives up after 1m30s without an end",
		d.underWayText(t.Context(), 2))
}

// The summary explains a run that is longer than its traffic.
func TestTheLengthOfARunIsExplained(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := &Demo{
		cfg: Config{Duration: 20 * time.Second}, begun: now.Add(-31 * time.Second),
		trafficEnd: now.Add(-4 * time.Second),
	}
	require.Equal(t, ", the last 7s until every fault had happened; the last execution ended 4s later", d.lengthText())
	d.cfg.Duration = 0
	require.Equal(t, "; the last execution ended 4s later", d.lengthText())
}
