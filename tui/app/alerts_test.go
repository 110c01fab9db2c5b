package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// TestAlertsOpenTheirTargets: enter goes to the view, narrowed to the target.
func TestAlertsOpenTheirTargets(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("7")
	require.Equal(t, keymap.InAlerts, b.view)
	require.Contains(t, b.View(), "evaluated 3s ago by the engine")
	require.Contains(t, b.View(), "dead letters growing: +3 in 5m")
	b.press("j", "enter")
	require.Equal(t, keymap.InQueues, b.view)
	require.Equal(t, "core.http_request", b.queues.Filter())
	b.press("q", "tab", "enter")
	require.Equal(t, keymap.InWorkers, b.view, "a cleared one opens it too")
}

// TestAlertsSayWhenNoReplicaEvaluates: an empty list is no health while no replica evaluates.
func TestAlertsSayWhenNoReplicaEvaluates(t *testing.T) {
	b := started(t, empty(), 80, 24)
	b.press("7")
	frame := b.View()
	require.Contains(t, frame, "No replica of the engine evaluates the alerts:")
	require.Contains(t, frame, "Nothing that could be checked needs attention.")
	b.press("enter")
	require.Equal(t, keymap.InAlerts, b.view)

	b.source.fail = map[screen.Feed]error{screen.FeedAlerts: errors.New("cut off")}
	fresh := started(t, empty(), 80, 24)
	fresh.source.fail = b.source.fail
	fresh.press("7")
	require.Contains(t, fresh.View(), "the alerts cannot be read: cut off")
}

// Alerts of a replica replace the dashboard's own findings. Pending alerts come last.
func TestTheOverviewShowsTheAlertsOfTheEngine(t *testing.T) {
	source := sample()
	alerts := sampleAlerts(source.overview.Reading)
	overview := *source.overview
	overview.Alerts = alerts
	source.overview = &overview
	b := started(t, source, 140, 40)
	found := b.env.Findings()
	require.Len(t, found, 5)
	require.Equal(t, alerting.LevelCritical, found[0].Level)
	require.Equal(t, "dead letters growing: +3 in 5m", found[0].Text)
	require.Equal(t, "core.http_request", found[1].Filter)
	require.WithinDuration(t, frozen.Add(-4*time.Minute), *found[1].Since, time.Second)
	require.Equal(t, "worker-node-02 is stale", found[2].Text, "it is shown as stale, without an alert yet")
	require.Equal(t, "3 checks have failed", found[3].Text)
	require.Equal(t, "22 % of executions are retries", found[4].Text)
}

// onAlerts is the view of alerts after changes by a test.
func onAlerts(t *testing.T, w, h int, change func(*fakeSource)) *bundle {
	t.Helper()
	source := sample()
	change(source)
	b := started(t, source, w, h)
	b.press("7")
	return b
}

// Alerts are filtered and sorted like all lists, also cleared ones.
func TestAlertsAreFilteredAndSorted(t *testing.T) {
	b := onAlerts(t, 140, 40, func(*fakeSource) {})
	for text, want := range map[string]int{
		"level:check": 3, "level:critical": 1, "target:core.http*": 1, "seen>1": 1, "age>5m": 1, "rule:topology.*": 2,
		"state:muted": 0, "measure:retry_rate": 1,
		"view:queues": 2, "nothing of the kind": 0, "dead | level:pending": 3,
	} {
		require.NoError(t, b.alerts.SetFilter(text))
		require.Equal(t, want, b.alerts.Len(), text)
		requireFits(t, b, 140, 40)
	}
	require.Error(t, b.alerts.SetFilter("colour:red"))
	require.Contains(t, b.alerts.Known("rule"), "dlq_growth")
	require.NoError(t, b.alerts.SetFilter("worker"))
	require.Contains(t, b.View(), "worker-node-02", "cleared alerts are filtered too")
	require.NoError(t, b.alerts.SetFilter("level:info"))
	require.Contains(t, b.View(), "No alert matches /level:info.")
	require.NotContains(t, b.View(), "recently cleared")
	require.NoError(t, b.alerts.SetFilter(""))
	first := func() string { return b.alerts.Table().Key() }
	b.press("gg", "s", "3")
	b.press("gg")
	require.Equal(t, "check\x1fadmission.leaked_slot", first(), "by rule")
	b.press("s", "3", "gg")
	require.Equal(t, "check\x1ftopology.ttl", first(), "the same again reverses")
	b.press("s", "5", "gg")
	require.Contains(t, first(), "queue_head_wait", "the alert that fired most often")
	require.Contains(t, b.View(), "sort seen↓")
}

// An alert names its cause in the other data, or explains its rule.
func TestAlertsNameTheirCauses(t *testing.T) {
	b := onAlerts(t, 140, 40, func(s *fakeSource) {
		for i := range s.dead.Ledger.Recent {
			l := &s.dead.Ledger.Recent[i]
			l.WorkerName, l.Reason = "worker-node-02", "expired"
		}
	})
	require.Contains(t, b.View(), "worker-node-02 is silent for 4m11s")
	require.Contains(t, b.View(), "dead letters came from worker-node-02, reason expired")
	require.Contains(t, b.View(), "dead_letters_growth above 0 for 5m")
	b.press("j")
	require.Contains(t, b.View(), "all 4/4 slots are taken")
	require.Contains(t, b.View(), "threshold above 10m")
	b.press("tab")
	require.Contains(t, b.View(), "it is silent for 4m11s")
	require.Contains(t, b.View(), "flap, 2nd that day")
	b.press("esc", "j")
	require.Contains(t, b.View(), "a policy with dead-letter-exchange attune.dlx")
}

// TestAlertsAreRelatedToTheirTargets: o and a letter, of a check too.
func TestAlertsAreRelatedToTheirTargets(t *testing.T) {
	b := onAlerts(t, 140, 40, func(*fakeSource) {})
	b.press("j", "o", "x")
	require.Equal(t, keymap.InExecutions, b.view)
	require.Equal(t, "action:core.http_request", b.executions.Filter())
	b.press("q", "o", "w")
	require.Contains(t, b.View(), "worker: it is about none")
	b.press("esc", "o", "d")
	require.Equal(t, keymap.InDeadLetters, b.view)
	require.Equal(t, "action:core.http_request", b.deadLetters.Filter())
	b.press("q", "tab", "o", "x")
	require.Equal(t, "worker:worker-node-02", b.executions.Filter())
	b.press("q", "G", "k", "o", "t")
	require.NotEqual(t, keymap.InAlerts, b.view)
}

// TestAlertsShowHowTheirValuesGo: a trend begins with the first poll, whichever view
// is open.
func TestAlertsShowHowTheirValuesGo(t *testing.T) {
	source := sample()
	overview := *source.overview
	overview.Alerts = sampleAlerts(source.overview.Reading)
	source.overview = &overview
	b := started(t, source, 140, 40)
	for i := range 10 {
		one := *b.source.overview.Alerts
		one.Open = append([]alerting.Alert(nil), one.Open...)
		one.Open[1].Target, one.Open[1].Value = "not.among.the.top", float64(100*(i+1))
		o := *b.source.overview
		o.Alerts = &one
		b.source.overview, b.source.alerts = &o, &one
		b.later(time.Minute)
		one.At = b.now
	}
	b.press("7")
	require.Contains(t, b.View(), "▂▄▅▇█")
}

// TestTrendsOfAlertsBeginBeforeTheDashboard: how a silence grew is known without having
// seen it, and how long a queue's head waited from the rows of the database.
func TestTrendsOfAlertsBeginBeforeTheDashboard(t *testing.T) {
	source := sample()
	one := *source.alerts
	one.Open = []alerting.Alert{
		{
			Rule: "worker_heartbeat", Target: "worker-node-02", Severity: alerting.LevelWarning,
			State: alerting.AlertFiring, Measure: "heartbeat_age", Of: "worker", View: "workers", Value: 600,
			Since: *ago(9 * time.Minute),
		},
		{
			Rule: "queue_head_wait", Target: "core.http_request", Severity: alerting.LevelWarning,
			State: alerting.AlertFiring, Measure: "head_wait", Of: "queue", View: "queues", Value: 842,
			Since: *ago(4 * time.Minute),
		},
	}
	past := monitor.QueuePast{ID: source.overview.Top[0].ID}
	for i := range 60 {
		past.Minutes = append(past.Minutes, monitor.QueueMinute{
			At:   frozen.Add(-time.Duration(59-i) * time.Minute),
			Head: time.Duration(max(0, i-44)) * time.Minute,
		})
	}
	source.alerts, source.queuesPast = &one, &monitor.QueuesPast{Reading: one.Reading, List: []monitor.QueuePast{past}}
	b := started(t, source, 140, 40)
	b.press("7")
	require.Regexp(t, `worker worker-node-02 +▁▁▁▂▄▅▇█`, b.View())
	require.Regexp(t, `queue core.http_request +▂▂▃▄▆▇██`, b.View())
}

// The tab counts alerts that are not muted, at both sizes.
func TestTheAlertsTabCountsUnmutedAlerts(t *testing.T) {
	t.Parallel()
	for size, name := range map[int]string{80: "7 Alrt", 140: "7 Alerts"} {
		source := sample()
		overview := *source.overview
		overview.Alerts = sampleAlerts(source.overview.Reading)
		source.overview = &overview
		b := started(t, source, size, 24)
		require.Contains(t, b.frame()[1], name+" 4 ")
		b.press("7", "m")
		require.Contains(t, b.frame()[1], name+" 3]")
	}
}

// dead is an installation whose replicas were killed: the alerts that they stored are old.
func dead() *fakeSource {
	source := sample()
	overview, listed := *source.overview, *source.alerts
	overview.Replicas = &monitor.Replicas{LastSeen: ago(132 * time.Second)}
	overview.Alerts = sampleAlerts(overview.Reading)
	overview.Alerts.Evaluated, listed.Evaluated = false, false
	for i := range overview.Alerts.Open {
		overview.Alerts.Open[i].NotEvaluated = true
	}
	listed.Open = append([]alerting.Alert{{
		Rule: "no_replica", Severity: alerting.LevelCritical, State: alerting.AlertFiring,
		Summary: "no replica of the engine runs", Since: *ago(132 * time.Second), View: "overview",
	}}, overview.Alerts.Open...)
	source.overview, source.alerts = &overview, &listed
	return source
}

// TestWithoutAReplicaAllViewsSayTheSame: the header, the overview and the alerts, live
// and in a snapshot.
func TestWithoutAReplicaAllViewsSayTheSame(t *testing.T) {
	b := started(t, dead(), 140, 40)
	for _, view := range []string{"1", "7"} {
		b.press(view)
		require.Contains(t, b.header(false), "■ 1 crit")
		require.Regexp(t, `no replica of the engine runs.* 2m`, b.View(), "since the last sign of life")
		require.Contains(t, b.View(), "dead letters growing", "as it was stored")
	}
	require.NotContains(t, b.View(), "by the engine")
	snapshot, err := Take(t.Context(), dead(), Options{Clock: func() time.Time { return frozen }}, "", 140, 40)
	require.NoError(t, err)
	require.Contains(t, snapshot.Text(), "■ 1 crit")
}

// calm is an installation in which no alert fires and every worker is well.
func calm() *fakeSource {
	source := sample()
	overview := *source.overview
	overview.Alerts = &alerting.Alerts{
		Reading: overview.Reading, Evaluated: true, EvaluatedAt: ago(3 * time.Second),
		QuietSince: ago(24 * time.Minute),
	}
	overview.WorkerList = []monitor.Worker{{
		ID: 3, Name: "w3", Status: "active", Heartbeat: &frozen, Assigned: ptr(1),
		Capacity: ptr(4),
	}}
	overview.Workers = monitor.WorkerTotals{Total: 1, Active: 1}
	source.overview, source.alerts = &overview, overview.Alerts
	source.checks = &monitor.Checks{Reading: overview.Reading}
	source.broker.Queues = []monitor.BrokerQueue{{Name: monitor.WorkerQueue(3), Consumers: 1}}
	return source
}

// TestNothingNeedsAttentionIsNeverSaidBesideARedRow: of a worker, a replica or a check.
func TestNothingNeedsAttentionIsNeverSaidBesideARedRow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fakeSource)
		says   string
	}{
		"all is well": {func(*fakeSource) {}, "Nothing needs attention since 01:55:04Z, 3s ago."},
		"deaf":        {func(s *fakeSource) { s.broker.Queues[0].Consumers = 0 }, "w3 is deaf"},
		"stale": {
			func(s *fakeSource) { s.overview.WorkerList[0].Heartbeat = ago(20 * time.Minute) },
			"w3 is stale",
		},
		"a replica": {func(s *fakeSource) {
			s.overview.Replicas.List[0].Problems, s.overview.Replicas.Well = []string{"silent for 12s"}, 1
		}, "No alert fires; see ENGINE."},
		"a check": {func(s *fakeSource) {
			s.checks.List = []monitor.Check{{Name: "topology.ttl", Status: monitor.CheckProblem, Text: "no policy"}}
		}, "1 check has failed"},
	} {
		for _, size := range [][2]int{{80, 24}, {140, 40}} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				t.Parallel()
				source := calm()
				c.change(source)
				b := started(t, source, size[0], size[1])
				require.Contains(t, b.View(), c.says)
				require.Equal(t, name == "all is well", strings.Contains(b.View(), "Nothing needs attention"))
				b.press("7")
				require.Equal(t, name == "all is well", strings.Contains(b.View(), "Nothing needs attention"),
					b.View())
			})
		}
	}
}

// TestTheFirstFrameSaysThatItStillReads: nothing is known to be well before it was read.
func TestTheFirstFrameSaysThatItStillReads(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{60, 15}, {80, 24}, {140, 40}} {
		source := calm()
		b := setup(t, source)
		b.send(sized(size[0], size[1]))
		b.env.Data.Broker = source.broker
		require.Contains(t, b.View(), "Reading the alerts …")
		require.NotContains(t, b.View(), "Nothing needs attention")
	}
}

// TestConsequencesOfABrokerOutageAreFolded, and not counted.
func TestConsequencesOfABrokerOutageAreFolded(t *testing.T) {
	source := calm()
	for i := range source.overview.Replicas.List {
		source.overview.Replicas.List[i].State = "disconnected"
	}
	source.alerts.Open = []alerting.Alert{
		{
			Rule: "no_active_workers", Severity: alerting.LevelCritical, State: alerting.AlertFiring,
			Summary: "0 workers take work", Hint: "start or uncordon a worker", Since: frozen, View: "workers",
		},
		{
			Rule: "leaked_slot", Severity: alerting.LevelWarning, State: alerting.AlertFiring,
			Summary: "a slot has leaked", Since: frozen, View: "queues",
		},
		{
			Rule: "replica_unwell", Target: "5e0f3c1a", Severity: alerting.LevelWarning, State: alerting.AlertFiring,
			Summary: "engine replica 5e0f3c1a: no publish connection to the broker since 5s", Since: frozen,
			View: "overview",
		},
	}
	source.fail = map[screen.Feed]error{screen.FeedBroker: errors.New("refused")}
	b := started(t, source, 140, 40)
	require.Contains(t, b.header(false), "■ 1 crit ▲ 1 warn")
	require.Contains(t, b.frame()[1], "7 Alerts 2")
	frame := b.View()
	broker, workers := strings.Index(frame, "■ refused"), strings.Index(frame,
		"└ 0 workers take work")
	require.Positive(t, broker)
	require.Less(t, broker, workers)
	require.Less(t, workers, strings.Index(frame, "a slot has leaked"))
	require.Contains(t, frame, "because the broker does not answer")
	require.NotContains(t, frame, "start or uncordon a worker")
	b.press("7")
	require.Contains(t, b.frame()[2], "1 critical · 1 warning · 2 explained")
	require.Contains(t, b.header(false), "■ 1 crit ▲ 1 warn")

	source.overview.Replicas.List[0].State = "connected"
	b = started(t, source, 140, 40)
	require.Contains(t, b.header(false), "■ 1 crit ▲ 3 warn", "the broker is there, and only its management away")
}

// TestTheTabTheHeaderAndTheViewOfAlertsCountTheSame, muted ones by themselves.
func TestTheTabTheHeaderAndTheViewOfAlertsCountTheSame(t *testing.T) {
	source := calm()
	source.overview.Flows = &monitor.Flows{Failed: monitor.Count{Value: 2}, Window: 15 * time.Minute}
	for i := range 6 {
		source.alerts.Open = append(source.alerts.Open, alerting.Alert{
			Rule: "queue_head_wait", Target: fmt.Sprint("demo.a", i), Severity: alerting.LevelWarning,
			State: alerting.AlertFiring, Summary: "waits", Since: frozen,
			View: "queues", Of: "queue", Measure: "head_wait",
		})
	}
	b := started(t, source, 140, 40)
	b.press("7")
	require.Contains(t, b.header(false), "▲ 7 warn")
	require.Contains(t, b.frame()[1], "[7 Alerts 7]")
	require.Contains(t, b.frame()[2], "7 warning ")
	require.Contains(t, b.View(), "2 workflows have failed")
	b.press("j", "m")
	require.Contains(t, b.header(false), "▲ 6 warn ‖ 1 muted")
	require.Contains(t, b.frame()[1], "[7 Alerts 6]")
	require.Contains(t, b.frame()[2], "6 warning · 1 muted")
	b.press("gg", "m")
	require.Contains(t, b.View(), "Only open alerts", "no rule has raised it")
}
