package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

func (b *testBundle) listed(t *testing.T, filter DeadLetterFilter) []int64 {
	t.Helper()
	page, err := b.LedgerList(t.Context(), filter, 0)
	require.NoError(t, err)
	ids := make([]int64, 0, len(page.List))
	for _, e := range page.List {
		ids = append(ids, e.ID)
	}
	return ids
}

// Each filter finds exactly the one dead letter that differs in its property.
func TestEveryFilterSelectsItsRows(t *testing.T) {
	b := setup(t, nil)
	w := testkit.Worker(t, b.Store, "far-away")
	old := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) {
		r.Age = 3 * time.Hour
		r.Decision, r.By = "purged",
			"ann"
	})
	failed := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) {
		r.Decision, r.By = "failed",
			"dead_letter_handler"
	})
	rejected := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Reason, r.Decision = "rejected", "stale" })
	acts := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) {
		r.Action, r.Decision = "core.http_request",
			"stale"
	})
	away := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Worker, r.Decision = w.ID, "stale" })
	event := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) {
		r.Kind, r.Key, r.Decision = message.TypeEventCreated, "event.created", "stale"
	})
	about := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Execution, r.Decision = 4711, "stale" })
	open := b.AddDeadLetter(t)
	all := []int64{open, about, event, away, acts, rejected, failed, old}

	for name, c := range map[string]struct {
		filter DeadLetterFilter
		want   []int64
	}{
		"none":      {DeadLetterFilter{}, all},
		"open":      {DeadLetterFilter{Open: true}, []int64{open}},
		"decided":   {DeadLetterFilter{Decided: true}, all[1:]},
		"decision":  {DeadLetterFilter{Decisions: []string{"failed", "purged"}}, []int64{failed, old}},
		"waiting":   {DeadLetterFilter{Decisions: []string{DecisionOpen}}, []int64{open}},
		"both":      {DeadLetterFilter{Decisions: []string{DecisionOpen, "failed"}}, []int64{open, failed}},
		"reason":    {DeadLetterFilter{Reason: "rejected"}, []int64{rejected}},
		"action":    {DeadLetterFilter{Action: "core.*"}, []int64{acts}},
		"wildcards": {DeadLetterFilter{Action: "core%"}, []int64{}},
		"worker":    {DeadLetterFilter{Worker: "far-away"}, []int64{away}},
		"worker id": {DeadLetterFilter{Worker: fmt.Sprint(w.ID)}, []int64{away}},
		"nobody":    {DeadLetterFilter{Worker: "nobody"}, []int64{}},
		"type":      {DeadLetterFilter{Type: "EventCreated"}, []int64{event}},
		"execution": {DeadLetterFilter{Execution: 4711}, []int64{about}},
		"its open":  {DeadLetterFilter{Execution: 4711, Open: true}, []int64{}},
		"since":     {DeadLetterFilter{MaxAge: time.Hour}, all[:7]},
		"older":     {DeadLetterFilter{MinAge: time.Hour}, []int64{old}},
		"limit":     {DeadLetterFilter{Limit: 2}, all[:2]},
		"joined":    {DeadLetterFilter{Decided: true, Reason: "expired", MinAge: time.Hour}, []int64{old}},
	} {
		require.Equal(t, c.want, b.listed(t, c.filter), name)
	}
	for _, wrong := range []DeadLetterFilter{
		{Open: true, Decided: true},
		{Decisions: []string{"retired"}},
		{Limit: -1},
		{MaxAge: -1},
		{MinAge: -1},
		{Execution: -1},
	} {
		_, err := b.LedgerList(t.Context(), wrong, 0)
		require.ErrorIs(t, err, ErrFilter)
	}
	page, err := b.LedgerList(t.Context(), DeadLetterFilter{Worker: "far-away"}, 0)
	require.NoError(t, err)
	require.Equal(t, Count{Value: 1}, page.Open, "whatever the filter")
	require.Equal(t, "far-away", page.List[0].WorkerName)
	require.Equal(t, "dispatch", page.List[0].What)
}

// TestDeadLettersAreReadByTheirIDs ignores the other terms of the filter.
func TestDeadLettersAreReadByTheirIDs(t *testing.T) {
	b := setup(t, nil)
	first, _, third := b.AddDeadLetter(t), b.AddDeadLetter(t), b.AddDeadLetter(t)
	require.ElementsMatch(t, []int64{first, third},
		b.listed(t, DeadLetterFilter{IDs: []int64{first, third, 1 << 40}, Reason: "never", Limit: 1}))
}

// Dead letters that are stored or decided between two pages neither repeat nor hide others.
func TestAPageContinuesTheOneBefore(t *testing.T) {
	b := setup(t, nil)
	var want, got []int64
	for range 25 {
		want = append([]int64{b.AddDeadLetter(t)}, want...)
	}
	cursor := int64(0)
	for page := 0; ; page++ {
		p, err := b.LedgerList(t.Context(), DeadLetterFilter{Reason: "expired", Limit: 7}, cursor)
		require.NoError(t, err)
		for _, e := range p.List {
			got = append(got, e.ID)
		}
		if cursor = p.Next; cursor == 0 {
			require.Equal(t, 3, page)
			break
		}
		b.AddDeadLetter(t) // newer than all: on none of the pages that follow
		testkit.Exec(t, b.Store, `update dead_letter set decision = 'stale' where id = $1`, got[0])
	}
	require.Equal(t, want, got)
}

// A search that finds few rows returns where it stopped, and the next one continues there.
func TestASearchStopsAtItsBound(t *testing.T) {
	b := setup(t, nil)
	deep := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Reason = "rejected" })
	testkit.Exec(t, b.Store,
		`insert into dead_letter (reason, decision) select 'expired', 'stale' from generate_series(1, $1)`, scanBound+5)
	page, err := b.LedgerList(t.Context(), DeadLetterFilter{Reason: "rejected"}, 0)
	require.NoError(t, err)
	require.Empty(t, page.List)
	require.True(t, page.Bounded)
	page, err = b.LedgerList(t.Context(), DeadLetterFilter{Reason: "rejected"}, page.Next)
	require.NoError(t, err)
	require.False(t, page.Bounded)
	require.Equal(t, deep, page.List[0].ID)
	require.Equal(t, []int64{deep}, b.listed(t, DeadLetterFilter{Reason: "rejected", Open: true}),
		"waiting ones have an index of their own")
}

// TestADeadLetterShowsItsSubject: the body in a form to be read, the execution as
// it is now, and the effect of a requeue.
func TestADeadLetterShowsItsSubject(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.sleep")
	e := testkit.Execution(t, b.Store, action, func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusRunning })
	testkit.Exec(t, b.Store,
		`update execution set status = 'failed', result = '{"message": "Worker queue TTL expired"}' where id = $1`,
		e.ID)
	envelope := message.New(message.TypeExecutionRequested, message.Dispatch{ExecutionID: e.ID, WorkerID: 7},
		time.Now(), "test")
	body, err := envelope.Encode()
	require.NoError(t, err)
	id := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) {
		r.Execution, r.Body, r.Decision, r.By = e.ID, body, "failed", "dead_letter_handler"
		r.Evidence, r.Headers = `{"execution": {"status": "scheduled"}}`, `{"x": "y"}`
	})

	d, err := b.DeadLetter(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, id, d.ID)
	require.Equal(t, "json", d.Body.Format)
	require.JSONEq(t, string(body), string(d.Body.JSON))
	require.Equal(t, string(lifecycle.StatusFailed), d.ExecutionNow.Status)
	require.Equal(t, "Worker queue TTL expired", d.ExecutionNow.Reason)
	require.Equal(t, RequeueRepeats, d.Verdict.Requeue)
	require.Equal(t, AdviseRequeue, d.Verdict.Advice)
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	var view map[string]any
	require.NoError(t, json.Unmarshal(raw, &view))
	require.Contains(t, view, "at")
	require.Contains(t, view, "stored")
	require.Equal(t, map[string]any{"x": "y"}, view["headers"])

	for format, hostile := range map[string][]byte{
		"text": []byte("\x1b[2J no JSON"), "binary": {0xff, 0x00, 0x1b}, "empty": {},
	} {
		d, err = b.DeadLetter(t.Context(),
			b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Key, r.Body = "event.created", hostile }))
		require.NoError(t, err, format)
		require.Equal(t, format, d.Body.Format)
		require.Equal(t, AdviseExport, d.Verdict.Advice, format)
	}
	long := append(bytes.Repeat([]byte("é"), 300<<10), "é"[0]) // the cut divides a character
	id = b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Body = long[:600<<10] })
	d, err = b.DeadLetter(t.Context(), id)
	require.NoError(t, err)
	require.False(t, d.Body.Cut, "it is whole")
	require.Len(t, d.Body.Text, 600<<10)
	id = b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Body = long })
	testkit.Exec(t, b.Store, `update dead_letter set evidence = '{"body": {"cut": true}}' where id = $1`, id)
	d, err = b.DeadLetter(t.Context(), id)
	require.NoError(t, err)
	require.True(t, d.Body.Cut, "the ledger holds its beginning")
	require.Equal(t, "text", d.Body.Format)
	require.EqualValues(t, len(long), d.Body.Size)
	_, err = b.DeadLetter(t.Context(), 999_999)
	require.ErrorIs(t, err, ErrNotFound)
}

// TestStatisticsCountBothTables counts dead letters and lost executions of the window in every grouping.
func TestStatisticsCountBothTables(t *testing.T) {
	b := setup(t, fakeBroker{broker: &Broker{Queues: []BrokerQueue{{Name: DeadLetterQueue, Ready: 3}}}})
	w := testkit.Worker(t, b.Store, "w-1")
	b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Action, r.Age = "a.old", 30*time.Hour })
	b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Action, r.Worker, r.Decision = "a.one", w.ID, "failed" })
	b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Action, r.Worker, r.Age = "a.one", w.ID, 10*time.Minute })
	b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) {
		r.Action, r.Reason, r.Age = "a.two", "rejected",
			2*time.Hour
	})
	testkit.Exec(t, b.Store, `insert into lost_work (cause, outcome, execution, attempt, action_ref, worker, age_seconds, at) values
		('scheduled_timeout', 'failed', 1, 1, 'a.one', $1, 10, now()), ('scheduled_timeout', 'failed', 2, 1, 'a.one', $1, 20, now()),
		('scheduled_timeout', 'moved', 3, 1, 'a.two', 99, 60, now()), ('worker_gone', 'abandoned', 4, 1, 'a.two', $1, NULL, now()),
		('worker_gone', 'abandoned', 5, 1, 'a.two', $1, 7, now() - interval '30 hours')`, w.ID)

	s, err := b.LedgerStats(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, "hour", s.Unit)
	require.EqualValues(t, 3, s.Queue.Ready)
	require.Equal(t, Count{Value: 3}, s.DeadLetters)
	require.Equal(t, Count{Value: 4}, s.Lost)
	require.Equal(t, Count{Value: 3}, s.Open, "the old one waits too")
	require.WithinDuration(t, s.At.Add(-30*time.Hour), *s.Oldest, time.Minute)
	require.InDelta(t, 0.2, s.PerMinute, 0.001, "one in five minutes")
	require.InDelta(t, 2, s.Latency.Seconds(), 0.1)

	find := func(list []LedgerTally, name string) LedgerTally {
		i := slices.IndexFunc(list, func(l LedgerTally) bool { return l.Name == name })
		require.GreaterOrEqual(t, i, 0, "%s in %v", name, list)
		return list[i]
	}
	require.Equal(t, map[string]int64{"failed": 1, DecisionOpen: 1}, find(s.ByReason, "expired").Decisions)
	require.EqualValues(t, 1, find(s.ByReason, "rejected").Open)
	one := find(s.ByAction, "a.one")
	require.EqualValues(t, 2, one.DeadLetters)
	require.EqualValues(t, 2, one.Lost)
	require.InDelta(t, 15, one.MeanAge.Seconds(), 0.01)
	mine := find(s.ByWorker, fmt.Sprint(w.ID))
	require.Equal(t, "w-1", mine.WorkerName)
	require.EqualValues(t, 3, mine.Lost)
	timeouts := find(s.ByCause, "scheduled_timeout")
	require.Equal(t, map[string]int64{"failed": 2, "moved": 1}, timeouts.Outcomes)
	require.InDelta(t, 30, timeouts.MeanAge.Seconds(), 0.01)
	require.Zero(t, timeouts.DeadLetters)
	require.GreaterOrEqual(t, len(s.ByTime), 2)
	require.True(t,
		slices.IsSortedFunc(s.ByTime, func(a, b LedgerTally) int { return strings.Compare(b.Name, a.Name) }))

	s, err = b.LedgerStats(t.Context(), 7*24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, "day", s.Unit)
	require.Equal(t, Count{Value: 4}, s.DeadLetters)
	require.True(t, strings.HasSuffix(s.ByTime[0].Name, "T00:00:00Z"))
	_, err = b.LedgerStats(t.Context(), -1)
	require.ErrorIs(t, err, ErrFilter)
	_, err = s.Tallies("weather")
	require.Error(t, err)
}

// TestAnExportHoldsEverything: hostile bodies come back byte by byte, page after
// page, also beside bodies that do not fit into memory together.
func TestAnExportHoldsEverything(t *testing.T) {
	b := setup(t, nil)
	bodies := [][]byte{
		[]byte("plain"),
		{0xff, 0xfe, 0x00},
		[]byte("\x1b]0;title\x07\x00\u202e"),
		{},
		bytes.Repeat([]byte{0x80}, exportBytes/2+1),
		bytes.Repeat([]byte("x"), exportBytes/2+1),
	}
	for _, body := range bodies {
		b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Body = body })
	}
	testkit.Exec(t, b.Store, `insert into dead_letter (reason) select 'bulk' from generate_series(1, $1)`, exportPage+1)
	var got [][]byte
	ids := map[int64]bool{}
	n, err := b.ExportDeadLetters(t.Context(), DeadLetterFilter{}, 0, func(x *ExportedDeadLetter) error {
		line, err := json.Marshal(x)
		require.NoError(t, err)
		var back ExportedDeadLetter
		require.NoError(t, json.Unmarshal(line, &back))
		require.False(t, ids[back.ID], "once each")
		if ids[back.ID] = true; back.Reason == "bulk" {
			return nil
		}
		if back.Body != nil {
			require.Nil(t, back.BodyBase64)
			got = append(got, []byte(*back.Body))
		} else {
			got = append(got, back.BodyBase64)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, exportPage+1+len(bodies), n)
	require.Len(t, ids, n)
	slices.Reverse(bodies)
	require.Equal(t, bodies, got)

	n, err = b.ExportDeadLetters(t.Context(), DeadLetterFilter{Reason: "bulk"}, 3,
		func(*ExportedDeadLetter) error { return nil })
	require.NoError(t, err)
	require.Equal(t, 3, n)
	full := errors.New("the disk is full")
	_, err = b.ExportDeadLetters(t.Context(), DeadLetterFilter{}, 0, func(*ExportedDeadLetter) error { return full })
	require.ErrorIs(t, err, full)
}

// The list beside the counts begins with dead letters that wait for an operator, however old.
func TestWaitingDeadLettersComeFirst(t *testing.T) {
	b := setup(t, fakeBroker{broker: &Broker{Queues: []BrokerQueue{{Name: DeadLetterQueue, Consumers: 1}}}})
	waits := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) { r.Age = 26 * time.Hour })
	older := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) {
		r.Decision, r.By = "failed",
			"dead_letter_handler"
	})
	newer := b.AddDeadLetter(t, func(r *monitortest.DeadLetterRow) {
		r.Decision, r.By = "retried",
			"dead_letter_handler"
	})
	d, err := b.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Equal(t, Count{Value: 1}, d.Ledger.Open)
	require.WithinDuration(t, d.At.Add(-26*time.Hour), *d.Ledger.Oldest, time.Minute)
	var ids []int64
	for _, e := range d.Ledger.Recent {
		ids = append(ids, e.ID)
	}
	require.Equal(t, []int64{waits, newer, older}, ids)
}
