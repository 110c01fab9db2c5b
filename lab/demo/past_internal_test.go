package demo

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
)

// pastDeadLetters counts the dead letters of the made-up hour: nine retried ones, and three groups
// that waited for a person.
const pastDeadLetters = 9 + 7*3 + 6*4 + 5*6

// fresh is a demo with its actions and its shop on a fresh database.
func fresh(t *testing.T) (*Demo, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	d := &Demo{cfg: Config{Out: out, Workers: 4}, store: testkit.Store(t)}
	testkit.Exec(t, d.store, sql.Demo)
	require.NoError(t, d.applyPacks(t.Context(), "packs", catalog.Request{Actor: "demo"}))
	return d, out
}

// The made-up hour fills every chart of the dashboard. It breaks no invariant, raises no alert, leaves
// nothing to decide, and counts in no total of the run.
func TestThePastFillsEveryChart(t *testing.T) {
	d, out := fresh(t)
	ctx := t.Context()
	require.NoError(t, d.writePast(ctx))
	require.Regexp(t, `^filling the charts with a made-up last hour `, out.String())
	m := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: d.store}), nil, nil)

	past, err := m.Past(ctx)
	require.NoError(t, err)
	var failed, deepest float64
	idle, waited := 0, 0
	for _, minute := range past.Minutes {
		if minute.Done < 50 {
			idle++
		}
		failed += minute.Failed
		deepest = max(deepest, minute.Waiting)
		if minute.Waiting > 0 {
			waited++
		}
	}
	require.LessOrEqual(t, idle, 4, "only the deployment is idle")
	require.Greater(t, failed, 50.0)
	require.Greater(t, waited, 20, "the chart of waiting dead letters has bars")
	require.Greater(t, deepest, 15.0)
	require.Zero(t, past.Minutes[59].Waiting)
	live := float64(RateDefault * 60)
	require.Greater(t, past.Minutes[57].Done, live/2, "the live run continues from here")
	require.Less(t, past.Minutes[57].Done, live*1.5)

	queues, err := m.QueuesPast(ctx, 0)
	require.NoError(t, err)
	deep := 0.0
	for i := range queues.List {
		for _, minute := range queues.List[i].Minutes {
			deep = max(deep, minute.Depth)
		}
	}
	require.Equal(t, 7, len(queues.List)) //nolint:testifylint // a failure would print 420 minutes
	require.Greater(t, deep, 20.0, "a queue is built up during the burst")

	workers, err := m.WorkersPast(ctx)
	require.NoError(t, err)
	require.Len(t, workers.List, 6, "four that are there and two that have left")
	for _, w := range workers.List {
		ended := 0.0
		for _, minute := range w.Minutes {
			ended += minute.Ended
		}
		require.Greater(t, ended, 100.0)
	}

	board, err := m.WorkflowBoard(ctx, monitor.WorkflowFilter{}, 0)
	require.NoError(t, err)
	require.Zero(t, board.Open)
	require.Greater(t, len(board.List), 40)
	detail, err := m.Workflow(ctx, board.List[0].Execution)
	require.NoError(t, err)
	require.EqualValues(t, 7, detail.Tasks.Total)
	inquiries, err := m.Inquiries(ctx, monitor.InquiryFilter{}, "")
	require.NoError(t, err)
	require.NotEmpty(t, inquiries.List)
	require.Zero(t, inquiries.Open.Value)
	ledger, err := m.LedgerList(ctx, monitor.DeadLetterFilter{}, 0)
	require.NoError(t, err)
	require.Len(t, ledger.List, pastDeadLetters)
	require.Zero(t, ledger.Open.Value, "no dead letter of the past is open")
	for i := range ledger.List {
		require.Equal(t, historyMark, ledger.List[i].Detail)
	}

	alerts, err := m.Alerts(ctx)
	require.NoError(t, err)
	require.Len(t, alerts.Recent, 2)
	for i := range alerts.Open {
		require.Contains(t, []string{"no_replica", "no_active_workers"}, alerts.Open[i].Rule, "of programs that are not started yet")
	}
	overview, err := m.Overview(ctx)
	require.NoError(t, err)
	for _, finding := range alerting.Attention(overview, nil) {
		require.NotRegexp(t, "workflow|question|letter|fail", finding.Text)
	}
	violations, err := doctor.Invariants(ctx, d.store.Pool())
	require.NoError(t, err)
	require.Empty(t, violations)

	c, err := d.count(ctx)
	require.NoError(t, err)
	require.Equal(t, counts{Outbox: c.Outbox}, c) // what the shop has announced
	orders, err := d.countShop(ctx)
	require.NoError(t, err)
	require.Equal(t, shop{}, orders)
	ends, err := d.ends(ctx)
	require.NoError(t, err)
	require.Empty(t, ends)
	unmarked := testkit.Count(t, d.store, `select count(*) from execution
		where config->>'history' is distinct from $1 or result->>'history' is distinct from $1`, historyMark)
	require.Zero(t, unmarked)
}

// The demo fills only the unrecorded part of the last hour.
func TestThePastIsWrittenWhereItIsMissing(t *testing.T) {
	d, out := fresh(t)
	old := testkit.Execution(t, d.store, testkit.Action(t, d.store, "demo.old"))
	testkit.Exec(t, d.store, "update execution set status = 'completed' where id = $1", old.ID)
	testkit.Exec(t, d.store,
		"update execution set created = now() - interval '30 minutes', finished_at = now() - interval '30 minutes'")
	require.NoError(t, d.writePast(t.Context()))
	require.Regexp(t, `^filling the charts with a made-up last hour `, out.String())
	require.Zero(t, testkit.Count(t, d.store, `select count(*) from execution e join execution o on o.id = $1
		where e.id <> o.id and e.created < o.created`, old.ID))
	require.Zero(t, testkit.Count(t, d.store, "select count(*) from execution where id < $1", old.ID))
	n := testkit.Count(t, d.store, "select count(*) from execution")

	out.Reset()
	require.NoError(t, d.writePast(t.Context()))
	require.Empty(t, out.String())
	require.Equal(t, n, testkit.Count(t, d.store, "select count(*) from execution"))
	require.EqualValues(t, testkit.Count(t, d.store, "select max(id) from execution"), d.before)
}
