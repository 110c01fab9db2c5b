package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var frozen = time.Date(2026, 11, 21, 2, 19, 4, 0, time.UTC)

func ago(d time.Duration) *time.Time { at := frozen.Add(-d); return &at }

func ptr(n int64) *int64 { return new(n) }

// fakeSource answers with fixed data, or with an error, or not at all.
type fakeSource struct {
	mu        sync.Mutex
	overview  *alerting.Overview
	broker    *monitor.Broker
	queues    *monitor.Queues
	queue     *explain.QueueDetail
	list      []monitor.Execution
	detail    *monitor.ExecutionDetail
	workers   *monitor.Workers
	dead      *monitor.DeadLetters
	audit     *monitor.Audit
	alerts    *alerting.Alerts
	flows     fakeFlows
	checks    *monitor.Checks
	past      *monitor.Past
	fail      map[screen.Feed]error
	stuck     map[screen.Feed]bool
	takes     map[screen.Feed]time.Duration
	calls     map[screen.Feed]int
	cursors   []int64
	bounded   bool
	search    func(filter monitor.ExecutionFilter, cursor int64) *monitor.Executions
	whole     *monitor.ExecutionDetail
	filters   []monitor.ExecutionFilter
	counted   []monitor.ExecutionFilter
	cancelled int
	probes    int
	family    *monitor.Family
	// ledger is all dead letters, the newest first; asked is how it was asked.
	ledger []monitor.LedgerEntry
	asked  []monitor.DeadLetterFilter
	// routes are the queues that keys lead to.
	routes map[string][]string
	fakePlaces
}

// answer counts a call and behaves as the test asked.
func (f *fakeSource) answer(ctx context.Context, feed screen.Feed) error {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = map[screen.Feed]int{}
	}
	f.calls[feed]++
	stuck, takes, err := f.stuck[feed], f.takes[feed], f.fail[feed]
	f.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if stuck {
		<-ctx.Done()
		f.mu.Lock()
		f.cancelled++
		f.mu.Unlock()
		return ctx.Err()
	}
	return err
}

func (f *fakeSource) count(feed screen.Feed) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[feed]
}

func (f *fakeSource) Overview(ctx context.Context) (*alerting.Overview, error) {
	return f.overview, f.answer(ctx, screen.FeedOverview)
}

func (f *fakeSource) Broker(ctx context.Context) (*monitor.Broker, error) {
	return f.broker, f.answer(ctx, screen.FeedBroker)
}

func (f *fakeSource) Queues(ctx context.Context, _ monitor.QueueFilter) (*monitor.Queues, error) {
	return f.queues, f.answer(ctx, screen.FeedQueues)
}

func (f *fakeSource) QueueDetail(ctx context.Context, ref explain.QueueRef) (*explain.QueueDetail, error) {
	err := f.answer(ctx, screen.FeedQueue)
	if f.queue == nil {
		return nil, errors.Join(err, monitor.ErrNotFound)
	}
	d := *f.queue
	for i := range f.queues.List { // the trends must not get the numbers of another
		if q := &f.queues.List[i]; q.ID == ref.ID && q.ID != d.ID {
			d.Queued, d.Completed, d.Oldest = q.Queued, q.Completed, q.Oldest
			d.ActionRef, d.Group = q.ActionRef, q.Group
		}
	}
	d.ID = ref.ID
	return &d, err
}

func (f *fakeSource) Executions(ctx context.Context, filter monitor.ExecutionFilter,
	cursor int64,
) (*monitor.Executions, error) {
	err := f.answer(ctx, screen.FeedExecutions)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cursors, f.filters = append(f.cursors, cursor), append(f.filters, filter)
	if f.search != nil {
		return f.search(filter, cursor), err
	}
	page := &monitor.Executions{Reading: monitor.Reading{At: f.overview.At}, From: cursor, Filter: filter}
	list := slices.Clone(f.list)
	if filter.Oldest {
		slices.Reverse(list)
	}
	for _, r := range list {
		if len(filter.IDs) > 0 && !slices.Contains(filter.IDs, r.ID) {
			continue
		}
		if cursor != 0 && (r.ID >= cursor) != filter.Oldest || filter.Oldest && r.ID == cursor {
			continue
		}
		if len(page.List) == cmp.Or(filter.Limit, monitor.DefaultPage) {
			page.Next = page.List[len(page.List)-1].ID
			break
		}
		page.List = append(page.List, r)
	}
	page.Bounded = f.bounded && page.Next == 0
	return page, err
}

func (f *fakeSource) Matching(ctx context.Context, filter monitor.ExecutionFilter) (*monitor.Matching, error) {
	err := f.answer(ctx, screen.FeedMatches)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counted = append(f.counted, filter)
	n := &monitor.Matching{
		Reading: monitor.Reading{At: f.overview.At},
		Count:   monitor.Count{Value: int64(min(len(f.list), monitor.MatchBound))},
	}
	n.Count.AtLeast = len(f.list) > monitor.MatchBound
	return n, err
}

func (f *fakeSource) WholeExecution(ctx context.Context, id int64) (*monitor.ExecutionDetail, error) {
	if f.whole != nil {
		return f.whole, nil
	}
	return f.Execution(ctx, id)
}

func (f *fakeSource) Execution(ctx context.Context, id int64) (*monitor.ExecutionDetail, error) {
	err := f.answer(ctx, screen.FeedExecution)
	if f.detail == nil {
		return nil, errors.Join(err, monitor.ErrNotFound)
	}
	d := *f.detail
	d.ID = id
	return &d, err
}

func (f *fakeSource) Workers(ctx context.Context) (*monitor.Workers, error) {
	return f.workers, f.answer(ctx, screen.FeedWorkers)
}

func (f *fakeSource) DeadLetters(ctx context.Context) (*monitor.DeadLetters, error) {
	return f.dead, f.answer(ctx, screen.FeedDeadLetters)
}

func (f *fakeSource) Alerts(ctx context.Context) (*alerting.Alerts, error) {
	return f.alerts, f.answer(ctx, screen.FeedAlerts)
}

func (f *fakeSource) Past(ctx context.Context) (*monitor.Past, error) {
	if f.past == nil {
		return &monitor.Past{}, f.answer(ctx, screen.FeedPast)
	}
	return f.past, f.answer(ctx, screen.FeedPast)
}

func (f *fakeSource) Answers(_ context.Context, source string) error {
	feed := screen.FeedOverview
	if source == monitor.SourceBroker {
		feed = screen.FeedBroker
	}
	f.mu.Lock()
	f.probes++
	err := f.fail[feed]
	f.mu.Unlock()
	return err
}

func (f *fakeSource) Checks(ctx context.Context) (*monitor.Checks, error) {
	return f.checks, f.answer(ctx, screen.FeedChecks)
}

func (f *fakeSource) WholeAudit(ctx context.Context, below int64) (*monitor.Audit, error) {
	return f.Audit(ctx, below)
}

func (f *fakeSource) Audit(ctx context.Context, below int64) (*monitor.Audit, error) {
	err := f.answer(ctx, screen.FeedAudit)
	if f.audit == nil || len(f.audit.List) <= monitor.AuditBound {
		return f.audit, err
	}
	a := *f.audit
	a.From, a.List = below, nil
	for _, e := range f.audit.List {
		if below != 0 && e.ID >= below {
			continue
		}
		if len(a.List) == monitor.AuditBound {
			a.Next = a.List[len(a.List)-1].ID
			break
		}
		a.List = append(a.List, e)
	}
	return &a, err
}

// manualTimers collects delayed messages instead of waiting.
type manualTimers struct {
	pending []pendingTimer
}

type pendingTimer struct {
	after time.Duration
	msg   tea.Msg
}

func (t *manualTimers) after(d time.Duration, msg tea.Msg) tea.Cmd {
	t.pending = append(t.pending, pendingTimer{d, msg})
	return nil
}

// due takes the pending timers of a feed.
func (t *manualTimers) due(feed screen.Feed) []pendingTimer {
	var found []pendingTimer
	for _, p := range t.pending {
		if d, ok := p.msg.(dueMsg); ok && d.feed == feed {
			found = append(found, p)
		}
	}
	return found
}

// bundle is a model whose dependencies the test controls.
type bundle struct {
	*Model
	t      *testing.T
	source *fakeSource
	timers *manualTimers
	now    time.Time
}

func setup(t *testing.T, source *fakeSource, change ...func(*Options)) *bundle {
	t.Helper()
	b := &bundle{t: t, source: source, timers: &manualTimers{}, now: frozen}
	opts := Options{
		Context: "prod-eu", Theme: theme.Options{Plain: true},
		Clock: func() time.Time { return b.now }, After: b.timers.after, Random: func() float64 { return 0.5 },
	}
	for _, c := range change {
		c(&opts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var err error
	b.Model, err = New(ctx, source, opts)
	require.NoError(t, err)
	return b
}

// run executes commands and feeds their messages back until none are left.
func (b *bundle) run(cmd tea.Cmd) {
	b.t.Helper()
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			b.run(c)
		}
	case tea.QuitMsg:
	default:
		b.send(msg)
	}
}

func (b *bundle) send(msg tea.Msg) {
	b.t.Helper()
	_, cmd := b.Update(msg)
	b.run(cmd)
}

// press types keys, each as the terminal would send it, with a pause after each.
func (b *bundle) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.send(keyMsg(k))
		b.pause()
	}
}

// pause is the pause after which the letter of a button is an answer.
func (b *bundle) pause() {
	b.t.Helper()
	if q, ok := b.top().(*question); ok && len(q.held.Runes) > 0 {
		b.send(deadLetterMsg{q.press})
	}
}

// stage is the dialog that is open, by the name of its keys; empty where none is.
func (b *bundle) stage() keymap.Scope {
	b.t.Helper()
	if !b.modal() {
		return ""
	}
	if scope := b.top().scope(); scope != keymap.InTyping {
		return scope
	}
	return keymap.InConfirm
}

// onTop is the overlay that takes the keys.
func onTop[T overlay](b *bundle) T {
	b.t.Helper()
	o, ok := b.top().(T)
	require.True(b.t, ok, "%T is on top", b.top())
	return o
}

// help is the help; nil where it is not open.
func (b *bundle) help() *help {
	for _, o := range b.overlays {
		if o, ok := o.(*help); ok {
			return o
		}
	}
	return nil
}

// line is the text that is being typed on the message line.
func (b *bundle) line() *widget.Input {
	b.t.Helper()
	return onTop[*filterLine](b).input
}

// wrong is the mistake in the typed command.
func (b *bundle) wrong() string {
	if o, ok := b.top().(*paletteLine); ok && o.err != nil {
		return o.err.Error()
	}
	return ""
}

// command gives a command, as enter does.
func (b *bundle) command(line string) tea.Cmd {
	if _, open := b.top().(*paletteLine); !open {
		b.openPalette("")
	}
	return onTop[*paletteLine](b).run(b.Model, line)
}

// filter puts a filter in place.
func (b *bundle) filter(text string) {
	b.t.Helper()
	cmd, err := b.applyFilter(text)
	require.NoError(b.t, err)
	b.run(cmd)
}

// operation is the operation that the open dialog is about.
func (b *bundle) operation() *act.Operation {
	b.t.Helper()
	switch o := b.top().(type) {
	case *planning:
		return o.op
	case *question:
		return o.op
	}
	require.Fail(b.t, "no operation is planned")
	return nil
}

// quickly types a text with no pause between its letters, and pauses after it.
func (b *bundle) quickly(text string) {
	b.t.Helper()
	for _, r := range text {
		b.send(keyMsg(string(r)))
	}
	b.pause()
}

func keyMsg(k string) tea.KeyMsg {
	for kind, name := range map[tea.KeyType]string{
		tea.KeyEnter: "enter", tea.KeyEsc: "esc", tea.KeyDown: "down", tea.KeyUp: "up", tea.KeyTab: "tab",
		tea.KeyCtrlD: "ctrl+d", tea.KeyCtrlU: "ctrl+u", tea.KeyCtrlC: "ctrl+c", tea.KeyEnd: "end",
		tea.KeyBackspace: "backspace", tea.KeyShiftTab: "shift+tab",
		tea.KeyPgDown: "pgdown", tea.KeyLeft: "left", tea.KeyRight: "right",
	} {
		if name == k {
			return tea.KeyMsg{Type: kind}
		}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)}
}

// started is a model of a size that has polled once, in a parallel test.
func started(t *testing.T, source *fakeSource, w, h int, change ...func(*Options)) *bundle {
	t.Helper()
	testkit.Parallel(t)
	return polled(t, source, w, h, change...)
}

// polled is started in a test that measures, or is none.
func polled(t *testing.T, source *fakeSource, w, h int, change ...func(*Options)) *bundle {
	t.Helper()
	b := setup(t, source, change...)
	b.send(sized(w, h))
	b.run(b.Init())
	return b
}

func sized(w, h int) tea.WindowSizeMsg { return tea.WindowSizeMsg{Width: w, Height: h} }

func (b *bundle) frame() []string { return strings.Split(b.View(), "\n") }

// sample is the installation of the design: busy, with things gone wrong.
func sample() *fakeSource {
	reading := monitor.Reading{At: frozen, Sources: []monitor.Source{
		{Name: monitor.SourceDatabase, Latency: 9 * time.Millisecond},
		{Name: monitor.SourceBroker, Latency: 31 * time.Millisecond},
	}}
	queues, workers := sampleQueues(), sampleWorkers()
	totals := monitor.QueueTotals{Queues: 14, Busy: 6, Queued: 1204, Active: 39, Slots: 48, Completed: 88_201}
	workerTotals := monitor.WorkerTotals{
		Total: 5, Active: 2, Busy: 1, Stale: 1, Cordoned: 1, Assigned: 15,
		Capacity: 24,
	}
	deadQueue := monitor.BrokerQueue{Name: monitor.DeadLetterQueue, Ready: 37, Consumers: 1, State: "running"}
	return &fakeSource{
		overview: &alerting.Overview{
			Reading: reading, StaleAfter: 90 * time.Second,
			Live: monitor.Live{
				Requested: monitor.Count{Value: 1204, AtLeast: true}, Scheduled: monitor.Count{Value: 11},
				Running: monitor.Count{Value: 39}, Stuck: monitor.Count{Value: 4}, StuckAfter: 10 * time.Minute,
			},
			Recent: monitor.Recent{
				Window: 15 * time.Minute, Completed: monitor.Count{Value: 5981}, Failed: monitor.Count{Value: 131},
				Timeout: monitor.Count{Value: 12}, Cancelled: monitor.Count{Value: 3},
				FailedLastMinute: &monitor.Count{Value: 9},
				Reasons: []monitor.FailReason{
					{Reason: "exit code #", Count: 71},
					{Reason: "Worker queue TTL expired", Count: 34},
					{Reason: "no route to host", Count: 14},
					{Reason: "timeout", Count: 12},
				},
			},
			Queues: totals, Top: queues[:5], Workers: workerTotals, WorkerList: workers,
			Replicas: sampleReplicas(reading), Alerts: storedAlerts(reading),
		},
		broker: sampleBroker(reading, deadQueue),
		queues: &monitor.Queues{Reading: reading, Totals: totals, List: queues},
		queue:  sampleQueueDetail(reading, queues[2]),
		list:   sampleExecutions(),
		detail: sampleDetail(reading), family: sampleFamily(reading),
		workers: &monitor.Workers{
			Reading: reading, HeartbeatEvery: 30 * time.Second, StaleAfter: 90 * time.Second,
			Totals: workerTotals, List: workers,
		},
		audit:      sampleAudit(reading),
		fakePlaces: samplePlaces(reading),
		alerts:     sampleAlerts(reading),
		routes:     map[string][]string{"execution.requested": {"attune.execution.requests.queue"}},
		flows:      sampleFlows(reading),
		checks:     sampleChecks(reading),
		dead: &monitor.DeadLetters{Reading: reading, Queue: &deadQueue, Ledger: &monitor.Ledger{
			Open: monitor.Count{Value: 2}, Oldest: ago(26 * time.Hour), LastDay: monitor.Count{Value: 112},
			PerMinute: 0.4,
			ByReason: []monitor.LedgerGroup{
				{Reason: "expired", Decision: "failed", Count: 101, Newest: frozen},
				{Reason: "expired", Decision: "retried", Count: 8, Newest: frozen},
				{Reason: "rejected", Decision: monitor.DecisionOpen, Count: 2, Newest: frozen},
			},
			Recent: sampleDeadLetters(),
		}},
	}
}

// storedAlerts are the alerts of an overview, as a replica stored them.
func storedAlerts(reading monitor.Reading) *alerting.Alerts {
	a := &alerting.Alerts{Reading: reading, Evaluated: true, EvaluatedAt: new(frozen.Add(-3 * time.Second))}
	for _, one := range []alerting.Alert{
		{
			Rule: "dlq_depth_warning", Severity: alerting.LevelWarning, Summary: "37 dead letters wait",
			Hint: "1 consumer on attune.dlx.queue", Since: frozen.Add(-15 * time.Minute), View: "dlq",
		},
		{
			Rule: "queue_head_wait", Target: "core.http_request", Severity: alerting.LevelWarning,
			Summary: "core.http_request head waits 14m2s", Hint: "612 deep, 4 of 4 slots used",
			Since: frozen.Add(-14*time.Minute - 2*time.Second), View: "queues", Filter: "core.http_request",
		},
		{
			Rule: "worker_heartbeat", Target: "worker-node-02", Severity: alerting.LevelWarning,
			Summary: "worker-node-02 heartbeat stale for 4m11s", Hint: "limit 1m30s, owns 6 executions",
			Since: frozen.Add(-4*time.Minute - 11*time.Second), View: "workers", Filter: "worker-node-02",
		},
		{
			Rule: "exec_stuck", Severity: alerting.LevelInfo, Summary: "an execution has been scheduled for 10m",
			Hint: "no worker has acknowledged 4 executions", Since: frozen.Add(-10 * time.Minute), View: "executions",
			Filter: "status:scheduled",
		},
		{
			Rule: "queue_length", Target: `etl.load {"tenant":"acme"}`, Severity: alerting.LevelInfo,
			Summary: `etl.load {"tenant":"acme"} 301 deep`, Hint: "1 of 1 slots used",
			Since: frozen.Add(-9 * time.Minute), View: "queues", Filter: "etl.load",
		},
		{
			Rule: "queue_length", Target: `etl.load {"tenant":"zeta"}`, Severity: alerting.LevelInfo,
			Summary: `etl.load {"tenant":"zeta"} 120 deep`, Hint: "no worker has room",
			Since: frozen.Add(-3 * time.Minute), View: "queues", Filter: "etl.load",
		},
	} {
		one.State, one.Fired, one.Seen = alerting.AlertFiring, &one.Since, *a.EvaluatedAt
		a.Open = append(a.Open, one)
	}
	return a
}

// sampleAlerts are open and cleared alerts.
func sampleAlerts(reading monitor.Reading) *alerting.Alerts {
	ago := func(d time.Duration) time.Time { return frozen.Add(-d) }
	at := func(d time.Duration) *time.Time { return new(ago(d)) }
	rules := alerting.DescribeRules(config.Default().Alerts)
	return &alerting.Alerts{
		Reading: reading, Evaluated: true, EvaluatedAt: at(3 * time.Second), Rules: rules,
		Open: []alerting.Alert{
			{
				ID: 3, Rule: "dlq_growth", Severity: alerting.LevelCritical, State: alerting.AlertFiring,
				Summary: "dead letters growing: +3 in 5m",
				Hint:    "30 in attune.dlx.queue, 7 in the ledger for a person", Value: 3, Since: ago(11 * time.Minute),
				Fired: at(6 * time.Minute),
				Seen:  ago(3 * time.Second), View: "dlq", Times: 1, Measure: "dead_letters_growth", Shown: "3",
			},
			{
				ID: 2, Rule: "queue_head_wait", Target: "core.http_request", Severity: alerting.LevelWarning,
				State:   alerting.AlertFiring,
				Summary: "core.http_request head waits 14m2s", Hint: "612 deep, 4 of 4 slots used", Value: 842,
				Since: ago(4 * time.Minute),
				Fired: at(4 * time.Minute), Seen: ago(3 * time.Second), View: "queues", Filter: "core.http_request",
				Times: 2, Measure: "head_wait", Of: "queue", Shown: "14m2s",
			},
			{
				ID: 4, Rule: "retry_rate", Severity: alerting.LevelWarning, State: alerting.AlertPending,
				Summary: "22 % of executions are retries",
				Hint:    "1100 of 5000 requested in 15m", Value: 0.22, Since: ago(20 * time.Second),
				Seen: ago(3 * time.Second), View: "executions",
				Measure: "retry_rate", Shown: "22 %",
			},
		},
		Recent: []alerting.Alert{
			{
				ID: 1, Rule: "worker_heartbeat", Target: "worker-node-02", Severity: alerting.LevelWarning,
				State:   alerting.AlertCleared,
				Summary: "worker-node-02 heartbeat stale for 2m5s", Hint: "limit 1m30s, owns 6 executions", Value: 125,
				Since: ago(2 * time.Hour),
				Fired: at(2 * time.Hour), Cleared: at(118 * time.Minute), Seen: ago(118 * time.Minute), View: "workers",
				Filter: "worker-node-02",
				Times:  2, Measure: "heartbeat_age", Of: "worker", Shown: "2m5s",
			},
			{
				ID: 5, Rule: "worker_heartbeat", Target: "worker-node-02", Severity: alerting.LevelWarning,
				State:   alerting.AlertCleared,
				Summary: "worker-node-02 heartbeat stale for 1m40s", Value: 100, Since: ago(138 * time.Minute),
				Fired:   at(138 * time.Minute),
				Cleared: at(137 * time.Minute), Seen: ago(137 * time.Minute), View: "workers", Times: 2,
				Measure: "heartbeat_age", Of: "worker", Shown: "1m40s",
			},
		},
	}
}

// sampleAudit has the latest actions of operators.
func sampleAudit(reading monitor.Reading) *monitor.Audit {
	return &monitor.Audit{Reading: reading, Recorded: true, Current: true, Replicas: 2, List: []monitor.AuditEntry{
		{
			ID: 311, At: *ago(3 * time.Minute), Actor: "bob@ops-1", Source: "attune-executor", Action: "queue.pause",
			TargetType: "action",
			TargetID:   ptr(8), Target: "pack.sync", Reason: "maintenance", Outcome: "done",
			Request: []byte(`{"act": "pause", "changed": 1, "token": "s3cret"}`),
		},
		{
			ID: 310, At: *ago(20 * time.Minute), Actor: "alice@ops-2", Source: "attune-tui", Action: "execution.cancel",
			TargetType: "execution",
			TargetID:   ptr(884292), Target: "execution 884292", Outcome: "failed", Error: "the database went away",
		},
	}}
}

// sampleReplicas are two replicas that are well.
func sampleReplicas(reading monitor.Reading) *monitor.Replicas {
	replica := func(id, host string, age time.Duration, inFlight int) monitor.Replica {
		clock := frozen.Add(-age)
		return monitor.Replica{
			ID: id, Host: host, Version: "1.4.0", PID: 4711, State: "connected", Started: *ago(6 * time.Hour),
			LastSeen: clock, Age: age,
			InFlight: inFlight, Loops: map[string]time.Time{
				"recovery": clock.Add(-2 * time.Second),
				"timeouts": clock.Add(-11 * time.Second),
			},
			Details: monitor.ReplicaDetails{Clock: clock, Loops: map[string]monitor.ReplicaLoop{
				"recovery": {Timeout: 81 * time.Second}, "timeouts": {Timeout: 117 * time.Second},
			}},
		}
	}
	return &monitor.Replicas{Reading: reading, Total: 2, Well: 2, List: []monitor.Replica{
		replica("5e0f3c1a-6a3b-4d53-9f0e-2b4f6d1c8a01", "engine-a", time.Second, 12),
		replica("c77b9d20-0d5e-4f0b-8a77-91d3f7ce4402", "engine-b", 3*time.Second, 7),
	}}
}

func sampleQueues() []monitor.Queue {
	return []monitor.Queue{
		{
			ID: 42, ActionID: 4, ActionRef: "core.http_request", Queued: 612, Active: 4, Limit: ptr(4),
			LimitFrom: policyLimit("core.http", 4), Oldest: ago(14*time.Minute + 2*time.Second), Completed: 1_204_375,
			Enqueued: 1_204_991,
		},
		{
			ID: 43, ActionID: 5, ActionRef: "etl.load", Group: `{"tenant":"acme"}`, Queued: 301, Active: 1,
			Limit:     ptr(1),
			LimitFrom: policyLimit("etl.load", 1), Oldest: ago(9*time.Minute + 40*time.Second), Completed: 88_201,
		},
		{
			ID: 44, ActionID: 5, ActionRef: "etl.load", Group: `{"tenant":"zeta"}`, Queued: 120, Active: 1,
			Limit: ptr(1), LimitFrom: policyLimit("etl.load", 1), Oldest: ago(3*time.Minute + 12*time.Second),
			Completed: 61_040,
			Blocked:   "no worker has room", BlockedSince: ago(time.Minute),
		},
		{
			ID: 45, ActionID: 6, ActionRef: "mail.send", Queued: 88, QueuedHigh: 5, Active: 10, Limit: ptr(10),
			LimitFrom: monitor.LimitSource{Kind: monitor.LimitOverride, Policy: "mail.send", Threshold: ptr(20)},
			Oldest:    ago(41 * time.Second), Completed: 9_400_000,
		},
		{
			ID: 46, ActionID: 7, ActionRef: "core.echo", Queued: 83, Active: 8,
			LimitFrom: monitor.LimitSource{Kind: monitor.LimitNone}, Oldest: ago(12 * time.Second),
			Completed: 31_000_000,
		},
		{
			ID: 47, ActionID: 8, ActionRef: "pack.sync", Queued: 14, Active: 0, Limit: ptr(1),
			Oldest: ago(31 * time.Minute), Paused: true, PausedBy: "bob", PauseReason: "maintenance",
			LimitFrom: policyLimit("pack.one", 1),
		},
		{
			ID: 48, ActionID: 9, ActionRef: "report.render", Limit: ptr(2),
			LimitFrom: monitor.LimitSource{Kind: monitor.LimitAdaptive, Policy: "report.cpu", Threshold: ptr(5)},
			Completed: 4411,
		},
	}
}

// policyLimit is a limit by the policy with this name.
func policyLimit(ref string, n int64) monitor.LimitSource {
	return monitor.LimitSource{Kind: monitor.LimitPolicy, Policy: ref, Threshold: &n}
}

func sampleQueueDetail(reading monitor.Reading, q monitor.Queue) *explain.QueueDetail {
	q.Limit = ptr(2)
	q.QueuedHigh, q.QueuedLow, q.MaxQueued, q.QueueTimeout = 3, 20, ptr(10_000), time.Hour
	rate, age := 2.0, 3*time.Second
	scope := &monitor.Scope{ID: 1, Kind: "pack", Name: "pack etl", PolicyRef: "etl.all", Limit: 2, Active: 2}
	holder := func(id int64, worker string) monitor.Holder {
		return monitor.Holder{
			ID: id, ActionRef: "etl.load", Status: "running", Since: *ago(25 * time.Minute), WorkerID: ptr(7),
			WorkerName: worker,
			Health:     monitor.WorkerActive, HeartbeatAge: &age,
		}
	}
	return &explain.QueueDetail{
		Reading: reading, Queue: q, Exists: true,
		Groups: []monitor.Queue{{
			ID: 43, ActionRef: "etl.load", Group: `{"tenant":"acme"}`, Queued: 301, Active: 1,
			Limit: ptr(1),
		}},
		Holders: &monitor.Holders{Active: 1, Found: 1, List: []monitor.Holder{holder(884100, "worker-node-02")}},
		Scope:   scope, ScopeHolders: &monitor.Holders{
			Active: 2, Found: 2,
			List: []monitor.Holder{holder(884090, "worker-node-02"), holder(884100, "worker-node-02")},
		},
		Policies: []monitor.PolicyLine{
			{
				Ref: "etl.load", Kind: "concurrency", Scope: "action", Threshold: 2, Method: "enqueue",
				Parameters: []string{"tenant"}, Text: "1 of 2 in this queue",
			},
			{
				Ref: "etl.all", Kind: "concurrency", Scope: "pack", Threshold: 2, Method: "enqueue", Full: true,
				Text: "2 of 2 in pack etl",
			},
		},
		Timing: monitor.Timing{
			Sample: 800, From: ago(6 * time.Hour), To: ago(time.Minute),
			Wait: &monitor.Percentiles{
				Count: 800, P50: time.Minute, P90: 2 * time.Minute, P95: 3 * time.Minute,
				P99: 4 * time.Minute, Max: 5 * time.Minute,
			},
			Run: &monitor.Percentiles{
				Count: 799, P50: 20 * time.Second, P90: 30 * time.Second, P95: 31 * time.Second,
				P99: 40 * time.Second, Max: time.Minute,
			},
		},
		Ages: &monitor.Ages{
			Classes: []int64{0, 3, 20, 97, 0, 0}, Bounds: monitor.AgeBounds,
			Waited: &monitor.Percentiles{
				Count: 120, P50: 2 * time.Minute, P90: 3 * time.Minute, P95: 3 * time.Minute,
				Max: 3*time.Minute + 12*time.Second,
			},
		},
		Drain: explain.Drain{
			PerMinute: &rate, Ended: 30,
			Period: 15 * time.Minute,
		},
		Empties: explain.Expected{At: ago(-time.Hour)},
	}
}

// waitingDetail is a queued execution.
func waitingDetail(reading monitor.Reading) *monitor.ExecutionDetail {
	return &monitor.ExecutionDetail{
		Reading: reading, Execution: sampleExecutions()[6], ActionID: ptr(4), Attempt: ptr(0),
		Config: `{"url": "https://partner.example/feed"}`,
		Waiting: &monitor.Waiting{
			Queue: "core.http_request", Lane: monitor.LaneNormal, Since: *ago(14 * time.Minute),
			Of: 612,
		},
		Why: []string{
			"Execution 884294 waits in queue core.http_request: place 1 of 612, normal lane, for 14m.",
			"4 of 4 slots are taken (limit by policy core.http), 612 wait.",
			"Its slots are held by (the oldest first):",
			"  884100 core.http_request running on worker-node-02 (stale, heartbeat 4m11s ago)",
			"  884101 core.http_request running on worker-python-01 (active, heartbeat 4s ago)",
			"Policies in force:",
			"  core.http (action concurrency): at most 4 at once; 4 of 4 in this queue (full)",
			"Expected to start at 02:20:04Z (in 1m).",
			"If it still waits at 03:05:04Z (in 46m), it times out.",
		},
		Timeline: []monitor.Step{{At: *ago(14 * time.Minute), Status: "requested"}}, TimelineKnown: true,
	}
}

func probe(verdict, reason, health, why string, ahead time.Duration) *monitor.WorkerProbe {
	rtt, exists := 1300*time.Microsecond, true
	return &monitor.WorkerProbe{
		At: *ago(9 * time.Second), Verdict: verdict, Reason: reason, Since: *ago(2 * time.Minute), Health: health,
		HealthReason: why,
		RTT:          &rtt, QueueExists: &exists, Ready: ptr(3), Consumers: ptr(1), Skew: &ahead, Valid: true,
	}
}

func sampleWorkers() []monitor.Worker {
	registered := *ago(6 * time.Hour)
	return []monitor.Worker{
		{
			ID: 7, Name: "worker-node-02", Role: "action", Host: "node-b", Status: "active",
			Heartbeat: ago(4*time.Minute + 11*time.Second), Assigned: ptr(6), Capacity: ptr(8),
			Runtimes: []string{"node", "shell"}, Version: "1.4.0", Created: registered,
			Probe: probe("dead", "last heartbeat 4m11s ago", "healthy", "", 90*time.Second),
		},
		{
			ID: 1, Name: "worker-python-01", Role: "action", Status: "active", Heartbeat: ago(4 * time.Second),
			Assigned: ptr(8), Capacity: ptr(8), Runtimes: []string{"python"}, Created: registered,
		},
		{
			ID: 2, Name: "worker-python-03", Role: "action", Status: "active", Heartbeat: ago(9 * time.Second),
			Assigned: ptr(5), Capacity: ptr(8), Created: registered,
		},
		{
			ID: 3, Name: "worker-shell-01", Role: "action", Status: "active", Heartbeat: ago(12 * time.Second),
			Assigned: ptr(2), Capacity: ptr(8), Created: registered,
			Probe: probe("fresh", "", "degraded", "3 failures in a row", 0),
		},
		{
			ID: 4, Name: "worker-shell-02", Role: "action", Status: "active", Heartbeat: ago(3 * time.Second),
			Assigned: ptr(1), Capacity: ptr(8), Cordoned: true, CordonReason: "by bob", Created: registered,
		},
	}
}

func sampleExecutions() []monitor.Execution {
	row := func(id int64, status, action, worker string, created, lasted time.Duration,
		reason string,
	) monitor.Execution {
		r := monitor.Execution{
			ID: id, Status: status, ActionRef: action, WorkerName: worker, Created: *ago(created),
			Updated: *ago(created - lasted), MaxRetries: ptr(3), Reason: reason,
		}
		if worker != "" {
			r.WorkerID = ptr(7)
		}
		return r
	}
	return []monitor.Execution{
		row(884301, "failed", "core.http_request", "worker-node-02", 28*time.Minute, 5*time.Minute,
			"Worker queue TTL expired"),
		row(884300, "failed", "core.http_request", "worker-node-02", 28*time.Minute, 5*time.Minute,
			"Worker queue TTL expired"),
		row(884299, "running", "mail.send", "worker-shell-01", 2*time.Second, time.Second, ""),
		row(884298, "scheduled", "etl.load", "worker-node-02", 26*time.Minute, 0, ""),
		row(884297, "timeout", "report.render", "worker-python-01", 30*time.Minute, 30*time.Minute, "exceeded 30m"),
		row(884296, "completed", "core.echo", "worker-shell-02", 3*time.Second, 200*time.Millisecond, ""),
		row(884294, "requested", "core.http_request", "", 14*time.Minute, 0, ""),
		row(884293, "canceling", "etl.load", "worker-python-03", 48*time.Second, time.Second, ""),
		row(884292, "cancelled", "etl.load", "", 9*time.Minute, 3*time.Second, "by alice"),
		row(884291, "abandoned", "pack.sync", "worker-node-02", 31*time.Minute, 31*time.Minute, "worker lost"),
	}
}

func sampleDetail(reading monitor.Reading) *monitor.ExecutionDetail {
	x := sampleExecutions()[0]
	x.Parent = ptr(884050)
	return &monitor.ExecutionDetail{
		Reading: reading, Execution: x, ActionID: ptr(4), Enforcement: ptr(55120), Attempt: ptr(1),
		Config: `{"url": "https://partner.example/feed", "method": "GET", "headers": {"authorization": "Bearer abc", "accept": "application/json"}, "timeout": 30, "id": 9007199254740993}`,
		Result: `{"error": "Worker queue TTL expired", "message": "waited past the queue's time to live"}`,
		Timeline: []monitor.Step{
			{At: *ago(27 * time.Minute), Status: "requested"},
			{At: *ago(27*time.Minute - 1100*time.Millisecond), Status: "scheduled", Worker: ptr(7)},
			{At: *ago(22 * time.Minute), Status: "failed"},
		}, TimelineKnown: true,
	}
}

// empty is an installation in which nothing ever happened.
func empty() *fakeSource {
	reading := monitor.Reading{At: frozen}
	return &fakeSource{
		overview: &alerting.Overview{Reading: reading, Recent: monitor.Recent{Window: 15 * time.Minute}},
		broker:   &monitor.Broker{}, queues: &monitor.Queues{Reading: reading},
		workers: &monitor.Workers{Reading: reading},
		dead:    &monitor.DeadLetters{Reading: reading, QueueMissing: true},
		audit:   &monitor.Audit{Reading: reading, Recorded: true, Current: true},
		checks:  &monitor.Checks{Reading: reading},
		flows:   noFlows(reading), fakePlaces: noPlaces(reading),
		alerts: &alerting.Alerts{
			Reading: reading, Note: "No replica of the engine evaluates the alerts: these are the stored ones.",
			Rules: alerting.DescribeRules(config.Default().Alerts),
		},
	}
}

// hostile is an installation whose texts try to break out of their cells.
func hostile() *fakeSource {
	evil := "\x1b[2J\x1b]0;owned\a\u202Eevil\r\n世界世界世界\u200b👩‍👩‍👧‍👦 \x9b31m" + strings.Repeat("界", 80)
	s := sample()
	for i := range s.overview.Top {
		s.overview.Top[i].ActionRef, s.overview.Top[i].Group = evil, evil
	}
	s.overview.WorkQueues = []monitor.WorkQueue{{Ref: evil, Waiting: monitor.Count{Value: 1}, Oldest: frozen}}
	s.queues.List = s.overview.Top
	for i := range s.workers.List {
		s.workers.List[i].Name, s.workers.List[i].Host, s.workers.List[i].CordonReason = evil, evil, evil
		s.workers.List[i].SuspectReason = evil
	}
	for i := range s.workers.List[:2] {
		s.workers.List[i].SuspectSince = ago(time.Minute)
	}
	for i := range s.list {
		s.list[i].ActionRef, s.list[i].WorkerName, s.list[i].Reason, s.list[i].Status = evil, evil, evil, evil
	}
	for i := range s.broker.Queues {
		q := &s.broker.Queues[i]
		q.Name, q.Type, q.Policy, q.State, q.DeadLetterExchange, q.Overflow = q.Name+evil, evil, evil, evil, &evil, evil
	}
	for i := range s.checks.List {
		s.checks.List[i].Text, s.checks.List[i].Fix = evil, evil
	}
	s.broker.Nodes[0].Name, s.broker.Blocked, s.broker.Version = evil, []string{evil}, evil
	bad := &s.overview.Replicas.List[0]
	bad.ID, bad.Host, bad.State, bad.Problems = evil, evil, evil, []string{evil}
	s.broker.Node, s.broker.VHost, s.broker.Alarms = evil, evil, []string{evil}
	s.detail.Config, s.detail.Result, s.detail.ActionRef, s.detail.Reason = `{"k": "`+"\x1b[31m"+`x"}`, evil, evil, evil
	s.queue.ActionRef, s.queue.Group, s.queue.PauseReason, s.queue.PausedBy, s.queue.Paused = evil, evil, evil, evil,
		true
	s.queue.Holders.List[0].WorkerName, s.queue.Policies[0].Ref, s.queue.Scope.Name, s.queue.Groups[0].Group = evil,
		evil, evil, evil
	s.detail.Why = []string{evil, "  " + evil}
	for i := range s.audit.List {
		a := &s.audit.List[i]
		a.Actor, a.Source, a.Action, a.Target, a.Reason, a.Outcome, a.Error = evil, evil, evil, evil, evil, evil, evil
	}
	for i := range s.dead.Ledger.Recent {
		s.dead.Ledger.Recent[i].Type, s.dead.Ledger.Recent[i].Queue = evil, evil
	}
	s.flows = hostileFlows(evil)
	s.fakePlaces.spoil(evil)
	s.fail = map[screen.Feed]error{}
	return s
}

// huge is an installation with more rows than any screen.
func huge(rows int) *fakeSource {
	s := sample()
	s.queues.List, s.list, s.workers.List = nil, nil, nil
	s.flows = hugeFlows(rows)
	for i := range rows {
		id := int64(rows - i)
		s.queues.List = append(s.queues.List,
			monitor.Queue{
				ID: id, ActionRef: fmt.Sprintf("pack.action_%d", id), Queued: id, Active: 3, Limit: ptr(4),
				Oldest: ago(time.Duration(i) * time.Second), Completed: id * 1_000_000,
			})
		s.list = append(s.list, monitor.Execution{
			ID: id, ActionRef: "pack.action", Status: "completed",
			Created: *ago(time.Hour), Updated: frozen,
		})
		s.workers.List = append(s.workers.List, monitor.Worker{
			ID: id, Name: fmt.Sprintf("worker-%d", id),
			Status: "active", Heartbeat: ago(time.Second), Assigned: ptr(id), Capacity: ptr(8),
		})
	}
	return s
}

// feedNames are the names of all feeds.
func feedNames() []screen.Feed {
	names := make([]screen.Feed, len(feeds))
	for i, f := range feeds {
		names[i] = f.name
	}
	return names
}
