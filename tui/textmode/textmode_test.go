package textmode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 21, 2, 19, 4, 0, time.UTC)

// fakeSource has the answers of a test.
type fakeSource struct {
	a answers
	// later replaces a after some reads.
	later *answers
	reads int
}

func (f *fakeSource) Overview(context.Context) (*alerting.Overview, error) {
	return f.a.overview.value, f.a.overview.err
}

func (f *fakeSource) Broker(context.Context) (*monitor.Broker, error) {
	return f.a.broker.value, f.a.broker.err
}

func (f *fakeSource) Queues(context.Context, monitor.QueueFilter) (*monitor.Queues, error) {
	return f.a.queues.value, f.a.queues.err
}

func (f *fakeSource) Workers(context.Context) (*monitor.Workers, error) {
	return f.a.workers.value, f.a.workers.err
}

func (f *fakeSource) DeadLetters(context.Context) (*monitor.DeadLetters, error) {
	f.reads++
	if f.reads > 5 && f.later != nil {
		return f.later.deadLetters.value, f.later.deadLetters.err
	}
	return f.a.deadLetters.value, f.a.deadLetters.err
}

func (f *fakeSource) Alerts(context.Context) (*alerting.Alerts, error) {
	return f.a.alerts.value, f.a.alerts.err
}

func (f *fakeSource) Inquiries(context.Context, monitor.InquiryFilter, string) (*monitor.InquiryPage, error) {
	return f.a.inquiries.value, f.a.inquiries.err
}

// well is an installation without problems: two workers and a queue.
func well() *answers {
	beat, limit := start, int64(2)
	reading := monitor.Reading{At: start}
	return &answers{
		overview: answer[*alerting.Overview]{value: &alerting.Overview{Reading: reading}},
		broker:   answer[*monitor.Broker]{value: &monitor.Broker{}},
		queues: answer[*monitor.Queues]{value: &monitor.Queues{Reading: reading, List: []monitor.Queue{
			{ActionRef: "etl.load", Limit: &limit, Active: 1}, {ActionRef: "core.echo", Active: 3, Queued: 1},
		}}},
		workers: answer[*monitor.Workers]{value: &monitor.Workers{
			Reading: reading, StaleAfter: time.Minute, Totals: monitor.WorkerTotals{Total: 2, Active: 2},
			List: []monitor.Worker{
				{Name: "a", Status: "active", Heartbeat: &beat},
				{Name: "b", Status: "active", Heartbeat: &beat},
			},
		}},
		deadLetters: answer[*monitor.DeadLetters]{value: &monitor.DeadLetters{
			Queue:  &monitor.BrokerQueue{},
			Ledger: &monitor.Ledger{},
		}},
		alerts:    answer[*alerting.Alerts]{value: &alerting.Alerts{Reading: reading}},
		inquiries: answer[*monitor.InquiryPage]{value: &monitor.InquiryPage{Reading: reading}},
	}
}

// reported updates a watch with several readings and returns the lines of the last one.
func reported(reads ...*answers) []string {
	w := newWatch(func() time.Time { return start })
	for _, a := range reads {
		w.drain()
		w.update(a)
	}
	var lines []string
	for _, line := range w.drain() {
		text, _ := strings.CutPrefix(line.String(), "2026-11-21T02:19:04Z ")
		lines = append(lines, text)
	}
	return lines
}

func TestTheFirstLinesDescribeTheState(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"alert: none is raised", "worker: 2 registered, 2 take work",
		"dead-letters: 0 on the broker, 0 wait for a person", "inquiry: none waits",
	}, reported(well()))
}

func TestUnchangedStatesAreNotReported(t *testing.T) {
	t.Parallel()
	busy := well()
	taken := int64(4)
	busy.workers.value.List[0].Assigned, busy.workers.value.List[0].Capacity = &taken, &taken
	busy.queues.value.List[1].Queued = 700
	require.Empty(t, reported(well(), well(), busy))
}

func TestEveryChangeIsALine(t *testing.T) {
	t.Parallel()
	bad := well()
	old := start.Add(-time.Hour)
	bad.alerts.value.Open = []alerting.Alert{
		{
			Rule: "worker.heartbeat", Target: "b", Severity: alerting.LevelWarning, State: alerting.AlertFiring,
			Summary: "no heartbeat for 1h",
		},
		{Rule: "not.yet", State: alerting.AlertPending},
		{Rule: "less.bad", State: alerting.AlertFiring, Behind: true},
	}
	bad.workers.value.List[1].Heartbeat = &old
	bad.queues.value.List[0].Active, bad.queues.value.List[0].Queued = 2, 5
	bad.deadLetters.value.Queue.Ready, bad.deadLetters.value.Ledger.Open = 3, monitor.Count{Value: 2, AtLeast: true}
	bad.inquiries.value.List = []monitor.Inquiry{{
		ID: 7, Status: monitor.InquiryPending, Prompt: "Ship it?\x1b[2J",
		Assignee: "bob",
	}}
	require.Equal(t, []string{
		"alert worker.heartbeat b: raised, warning: no heartbeat for 1h",
		"worker b: stale: its heartbeat is overdue",
		"queue etl.load: at its limit and others wait, 2 slots, 2 running, 5 waiting",
		"dead-letters: 3 on the broker, 2 or more wait for a person",
		`inquiry 7: waits for bob: Ship it?\x1b[2J`,
	}, reported(well(), bad))
	require.Equal(t, []string{
		"alert worker.heartbeat b: cleared", "worker b: active", "queue etl.load: free, 2 slots, 1 running, 0 waiting",
		"dead-letters: 0 on the broker, 0 wait for a person", "inquiry 7: no longer open",
	}, reported(well(), bad, well()))
}

func TestAQueueAtItsLimitIsOneLine(t *testing.T) {
	t.Parallel()
	full, between, paused, over := well(), well(), well(), well()
	full.queues.value.List[0].Active, full.queues.value.List[0].Queued = 2, 5
	between.queues.value.List[0].Active, between.queues.value.List[0].Queued = 1, 4
	require.Empty(t, reported(well(), full, between))
	require.Empty(t, reported(well(), full, between, full))
	paused.queues.value.List[0].Paused, paused.queues.value.List[0].PauseReason = true, "disk"
	require.Equal(t, []string{"queue etl.load: paused, 2 slots, 1 running, 0 waiting: disk"}, reported(full, paused))
	over.queues.value.List[0].Active = 3
	require.Equal(t, []string{"queue etl.load: over its limit, 2 slots, 3 running, 0 waiting"}, reported(well(), over))
	single := well()
	one := int64(1)
	single.queues.value.List[0].Limit, single.queues.value.List[0].Queued = &one, 1
	require.Equal(t, []string{"queue etl.load: at its limit and others wait, 1 slot, 1 running, 1 waiting"},
		reported(well(), single))
}

func TestAddedAndRemovedThingsAreReportedOnlyIfKnown(t *testing.T) {
	t.Parallel()
	fewer, cut := well(), well()
	fewer.workers.value.List = fewer.workers.value.List[:1]
	cut.workers.value.List, cut.workers.value.More = cut.workers.value.List[:1], true
	require.Equal(t, []string{"worker b: removed"}, reported(well(), fewer))
	require.Equal(t, []string{"worker b: active"}, reported(well(), fewer, well()))
	require.Empty(t, reported(well(), cut), "it may only be out of sight")
	require.Empty(t, reported(well(), cut, well()))
}

func TestAnOutageIsNeitherZeroNorARemoval(t *testing.T) {
	t.Parallel()
	down, half := &answers{}, well()
	for _, err := range []*error{
		&down.overview.err, &down.broker.err, &down.queues.err, &down.workers.err,
		&down.deadLetters.err, &down.alerts.err, &down.inquiries.err,
	} {
		*err = errors.New("connection refused")
	}
	require.Equal(t, []string{
		"broker: connection refused",
		"database: connection refused",
	}, reported(well(), down))
	require.Empty(t, reported(well(), down, down), "it is told once")
	require.Equal(t, []string{"broker: answers again after 0.0s", "database: answers again after 0.0s"},
		reported(well(), down, well()))
	half.queues.err = errors.New("statement timeout")
	half.deadLetters.value.Queue = nil
	require.Equal(t, []string{
		"queues: statement timeout",
		"dead-letters: depth unknown, 0 wait for a person",
	}, reported(well(), half))
}

// TestRun reads at an interval, and backs off while the database is down.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &fakeSource{a: *well(), later: well()}
		source.later.deadLetters.value.Queue.Ready = 9
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var out bytes.Buffer
		require.NoError(t,
			Run(ctx, source, Config{Context: "prod-eu", Every: 2 * time.Second, Timeout: time.Second}, &out))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Contains(t, lines[0], "dashboard prod-eu: watched every 2s")
		require.Len(t, lines, 6)
		require.Contains(t, lines[5], "dead-letters: 9 on the broker")
	})
}

func TestLinesForProgramsAreObjects(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, write(&out, []Line{{At: start, Kind: "queue", Name: "a\x1b[2Jb", Text: "free\nx"}}, true))
	var line Line
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, Line{At: start, Kind: "queue", Name: `a\x1b[2Jb`, Text: "free x"}, line)
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.ErrorContains(t, Run(t.Context(), &fakeSource{a: *well()}, Config{Every: time.Second, Timeout: time.Second},
		full{}), "write the changes: no space")
}

// full is a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }
