package app

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// TestAQueueShowsTheExecutionUnderTheCursor beside its rows, where there is room.
func TestAQueueShowsTheExecutionUnderTheCursor(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.open(keymap.InQueue)
	frame := b.View()
	require.Contains(t, frame, "PREVIEW  execution 884100")
	require.Contains(t, frame, "TIMELINE")
	require.NotContains(t, frame, "Bearer abc", "secrets stay masked")
	b.press("tab", "j")
	require.Contains(t, b.View(), "PREVIEW  execution 884161")
	require.EqualValues(t, 884161, b.env.Data.Glance.ID)
	b.press("v")
	require.NotContains(t, b.View(), "PREVIEW")
	read := b.source.count(screen.FeedExecution)
	b.press("j", "j")
	require.Equal(t, read, b.source.count(screen.FeedExecution), "a hidden view is not read")
	b.press("v")
	require.Contains(t, b.View(), "PREVIEW  execution 884163")
	b.press("enter")
	require.Equal(t, keymap.InExecution, b.view)
	require.EqualValues(t, 884163, b.execution.ID())

	b = started(t, sample(), 80, 24)
	b.open(keymap.InQueue)
	require.NotContains(t, b.View(), "PREVIEW")
	b.send(tea.WindowSizeMsg{Width: 140, Height: 40})
	require.Contains(t, b.View(), "PREVIEW  execution 884100", "a larger window shows it")
}

// G and gg read the ends of a queue. More is read when the cursor comes near an unloaded part.
func TestTheEndOfAQueueIsReadByItself(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.open(keymap.InQueue)
	b.press("tab")
	require.Contains(t, b.View(), "20 more than are read, G the last")
	b.press("G")
	require.Equal(t, monitor.LineAsk{Queue: 44, Rows: 100, End: true}, b.source.lines[len(b.source.lines)-1])
	require.EqualValues(t, 884_279, b.queue.SelectedID())
	require.Contains(t, b.View(), "20 before those read, gg the first")
	b.press("gg")
	require.Equal(t, monitor.LineAsk{Queue: 44, Rows: 100}, b.source.lines[len(b.source.lines)-1])
	require.EqualValues(t, 884_160, b.queue.SelectedID())
	for range 80 {
		b.press("j")
	}
	require.Equal(t, monitor.LineAsk{Queue: 44, Rows: 200}, b.source.lines[len(b.source.lines)-1])
	require.EqualValues(t, 884_240, b.queue.SelectedID(), "the cursor stays where it was")
	require.Contains(t, b.View(), "wait p50 2m00s  p95 3m00s  max 3m12s")
}

// The pace of a queue is a number, with its greatest possible value.
func TestThePaceOfAQueueIsWrittenInDigits(t *testing.T) {
	t.Parallel()
	for rate, text := range map[float64]string{
		0.25: "up to 0.25/min", 999.4: "up to 999/min",
		1130.4: "up to 1\u2009130/min",
	} {
		source := sample()
		source.queue.Drain.PerMinute = &rate
		b := started(t, source, 80, 24)
		b.open(keymap.InQueue)
		require.Contains(t, b.View(), text)
	}
}

// The page of a queue says how many of its executions will not start in time.
func TestAQueueIsForewarnedOfItsTimeouts(t *testing.T) {
	t.Parallel()
	source := sample()
	first := frozen.Add(time.Hour)
	source.queue.TimingOut = &explain.TimingOut{Count: ptr(13_800), Of: 16_751, First: &first}
	b := started(t, source, 80, 24)
	b.open(keymap.InQueue)
	text := strings.Join(strings.Fields(b.View()), " ")
	require.Contains(t, text, "About 13800 of 16751 will time out before they start, the first at "+
		first.UTC().Format("15:04:05Z")+" (in 1h).")
	source.queue = sampleQueueDetail(source.queue.Reading, source.queue.Queue)
	source.queue.TimingOut = &explain.TimingOut{Of: 16_751, First: &first, Basis: "its run time is not known"}
	b.run(b.refresh())
	require.NotContains(t, b.View(), "will time out")
}

// A queue begins with the last hour of the database, which is read once.
func TestAQueueBeginsWithTheLastHour(t *testing.T) {
	source := sample()
	past := monitor.QueuePast{ID: 44}
	for i := range 60 {
		past.Minutes = append(past.Minutes, monitor.QueueMinute{
			At:    frozen.Add(-time.Duration(59-i) * time.Minute),
			Depth: float64(i), Head: time.Duration(i) * time.Second,
		})
	}
	source.queuesPast = &monitor.QueuesPast{Reading: source.overview.Reading, List: []monitor.QueuePast{past}}
	b := started(t, source, 140, 40)
	b.press("2")
	require.Equal(t, []int64{0, 0}, source.pastIDs, "the overview and the list ask for the busiest")
	trend := b.env.Data.History.Trend(screen.QueueSeries(44), time.Hour, 60)
	require.InDelta(t, 30, trend[30], 1)
	require.InDelta(t, 120, trend[59], 0, "polled values stay")
	b.open(keymap.InQueue)
	require.EqualValues(t, 44, source.pastIDs[2])
	head := b.env.Data.History.Trend(screen.QueueHead(44), time.Hour, 60)
	require.InDelta(t, 30, head[30], 1)
	require.InDelta(t, 192, head[59], 1)
	require.NotContains(t, b.View(), screen.Gaps)
	requireGolden(t, "queue_past_140x40", b.View())
	b.later(time.Minute)
	require.Len(t, source.pastIDs, 3)

	source.fail = map[screen.Feed]error{screen.FeedOverview: errors.New("down")}
	b.run(b.refresh())
	source.fail = nil
	b.run(b.refresh())
	require.Len(t, source.pastIDs, 4, "the time of the outage is read again")
}

// TestMinutesWithoutAnEngineAreGaps and no zeros, with the reason.
func TestMinutesWithoutAnEngineAreGaps(t *testing.T) {
	source := sample()
	source.past = samplePast(frozen)
	queue, worker := monitor.QueuePast{ID: 44}, monitor.WorkerPast{ID: 7}
	for i := range 60 {
		at, unseen := frozen.Add(-time.Duration(59-i)*time.Minute), i >= 20 && i < 25
		queue.Minutes = append(queue.Minutes, monitor.QueueMinute{At: at, Depth: 30, Unseen: unseen})
		worker.Minutes = append(worker.Minutes, monitor.WorkerMinute{At: at, Slots: 3, Unseen: unseen})
		source.past.Minutes[i].Queued, source.past.Minutes[i].Unseen = 30, unseen
	}
	reading := source.overview.Reading
	source.queuesPast = &monitor.QueuesPast{Reading: reading, List: []monitor.QueuePast{queue}}
	source.workersPast = &monitor.WorkersPast{Reading: reading, List: []monitor.WorkerPast{worker}}
	b := started(t, source, 140, 40)
	require.NotContains(t, b.View(), screen.Gaps, "what ended was counted afterwards")
	for _, series := range []string{
		screen.SeriesQueued, screen.QueueSeries(44), screen.QueueHead(44), screen.WorkerSeries(7),
	} {
		for i, v := range b.env.Data.History.Trend(series, time.Hour, 60) {
			require.Equal(t, i >= 20 && i < 25, math.IsNaN(v), "%s %d", series, i)
		}
		_, known := b.env.Data.History.Change(series, 37*time.Minute)
		require.True(t, known)
	}
	b.open(keymap.InQueue)
	require.Contains(t, b.View(), "QUEUED, 60m"+screen.Gaps)
	b.open(keymap.InWorker)
	require.Contains(t, b.View(), "SLOTS, 60m"+screen.Gaps)

	for i := range 20 {
		source.past.Minutes[i].Uncounted, source.past.Minutes[i].Unseen = true, true
	}
	b = started(t, source, 140, 40)
	require.Contains(t, b.View(), screen.Gaps)
	require.Regexp(t, `┤ {20,}`, b.charts()[0])
}

// TestTheOverviewBeginsWithTheLastHourOfQueuesAndWorkers, once its own numbers are
// there, and where it has room for them.
func TestTheOverviewBeginsWithTheLastHourOfQueuesAndWorkers(t *testing.T) {
	b := started(t, sample(), 80, 24)
	require.Empty(t, b.source.pastIDs)
	b = started(t, sample(), 140, 40)
	require.Equal(t, []int64{0}, b.source.pastIDs)
	require.Equal(t, 1, b.source.count(screen.FeedWorkersPast))
	b.later(time.Minute)
	require.Len(t, b.source.pastIDs, 1, "the polls go on from there")
	require.Equal(t, 1, b.source.count(screen.FeedWorkersPast))
	require.Empty(t, b.timers.due(screen.FeedWorkersPast))
}

// TestHoldersShowProblemsOfTheirWorkers.
func TestHoldersShowProblemsOfTheirWorkers(t *testing.T) {
	source := sample()
	h := &source.queue.Holders.List[0]
	h.Health, h.HeartbeatAge = monitor.WorkerStale, new(4*time.Minute+11*time.Second)
	b := started(t, source, 140, 40)
	b.open(keymap.InQueue)
	require.Contains(t, b.View(), "▲ 48x p95, worker stale 4m11s")
	require.Contains(t, b.View(), "Its worker is stale 4m11s: the slot stays")
	b.press("o", "w")
	require.Equal(t, keymap.InWorker, b.view)
	require.EqualValues(t, 7, b.worker.ID())
	b.press("esc")
	require.Equal(t, keymap.InQueue, b.view)
	b.press("o", "e")
	require.EqualValues(t, 884100, b.execution.ID())
}

// TestPointingPutsTheCursorIntoTheTableThatIsThere.
func TestPointingPutsTheCursorIntoTheTableThatIsThere(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.open(keymap.InQueue)
	point := func(text string) {
		for y, line := range b.frame() {
			if strings.Contains(line, text) {
				b.send(tea.MouseMsg{X: 5, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
				return
			}
		}
		t.Fatalf("nothing shows %s", text)
	}
	point("884163")
	require.EqualValues(t, 884_163, b.queue.SelectedID())
	point("884100")
	require.EqualValues(t, 884_100, b.queue.SelectedID())
	point("884100")
	require.Equal(t, keymap.InExecution, b.view, "pointing twice opens it")
	b.open(keymap.InWorker)
	_ = b.View()
	point("884105")
	require.Equal(t, "884105", b.worker.Key(2))
	b.press("enter")
	require.EqualValues(t, 884_105, b.execution.ID())
}

func TestAnEmptyQueueHasAText(t *testing.T) {
	source := sample()
	source.queue.Holders, source.queue.Active, source.queue.Queued, source.queue.Ages = &monitor.Holders{}, 0, 0, nil
	source.line = &monitor.Line{Reading: source.line.Reading}
	b := started(t, source, 140, 40)
	b.open(keymap.InQueue)
	require.Contains(t, b.View(), "No execution holds a slot.")
	require.Contains(t, b.View(), "No execution waits.")
	b.press("enter")
	require.Equal(t, "action:etl.load", b.executions.Filter())
}

// The preview of the selected queue is read less often than its view.
func TestAWideListHasAPreviewOfTheSelectedQueue(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("2", "j")
	require.Zero(t, b.source.count(screen.FeedQueue), "there is no room for it")
	b = started(t, sample(), 140, 40)
	b.press("2", "j", "j", "j")
	require.EqualValues(t, 44, b.env.Data.Queue.ID)
	require.Equal(t, monitor.LineAsk{Queue: 44, Rows: 10}, b.source.lines[len(b.source.lines)-1])
	frame := b.View()
	require.Contains(t, frame, "SLOT HOLDERS 1/2")
	require.Contains(t, frame, "FIRST WAITING")
	require.Contains(t, frame, "▲ 884100 holds a slot for 25m00s: 48x p95.")
	require.Equal(t, 5*time.Second, b.timers.due(screen.FeedQueue)[0].after)
	read := b.source.count(screen.FeedQueue)
	b.press("enter")
	require.Contains(t, b.View(), "ACTIVE 1/2")
	require.Greater(t, b.source.count(screen.FeedQueue), read)
	b.press("esc", "v", "j")
	require.NotContains(t, b.View(), "FIRST WAITING")
}

// TestAWorkerIsOpened from the list, with its executions and changes.
func TestAWorkerIsOpened(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("4", "j", "enter")
	require.Equal(t, keymap.InWorker, b.view)
	require.EqualValues(t, 7, b.worker.ID())
	frame := b.View()
	require.Contains(t, frame, "Workers › worker-node-02")
	require.Contains(t, frame, "[4 Work]")
	require.Contains(t, frame, "ASSIGNED HERE 4")
	require.Contains(t, frame, "heartbeat lost")
	b.press("tab")
	require.Contains(t, b.View(), "flapped 1x")
	require.Contains(t, b.View(), "active (flap)")
	require.Contains(t, b.View(), "11-20 20:19:04 registered")
	b.press("tab", "j", "enter")
	require.EqualValues(t, 884_103, b.execution.ID())
	b.press("esc", "o", "x")
	require.Equal(t, "worker:7", b.executions.Filter())
	b.press("esc", "esc")
	require.Equal(t, keymap.InWorkers, b.view)
	b.press("gg", "enter")
	require.EqualValues(t, 9, b.worker.ID(), "a queue without a worker")
	require.Contains(t, b.View(), "no row has this id")
}

// TestTheWorkerUnderTheCursorIsReadWhereItIsShown.
func TestTheWorkerUnderTheCursorIsReadWhereItIsShown(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("4", "j")
	require.Equal(t, []int64{7}, b.source.workerIDs, "a queue without a worker has nothing to read")
	require.Regexp(t, `owns +6 executions of 8 slots, the oldest 884101 for 9m00s`, b.View())
	b.press("v", "j")
	require.Equal(t, 1, b.source.count(screen.FeedWorker), "a hidden view is not read")
	b = started(t, sample(), 140, 40)
	b.press("4", "j")
	require.Equal(t, int64(7), b.source.workerIDs[len(b.source.workerIDs)-1])
	require.Contains(t, b.View(), "ASSIGNED HERE 4")
	require.Contains(t, b.View(), "flap")
	b.press("j")
	require.Equal(t, int64(3), b.source.workerIDs[len(b.source.workerIDs)-1])
}

// The wait of a worker's queue is forecast from the broker, or from unstarted executions.
func TestTheHeadOfAWorkersQueueIsForecast(t *testing.T) {
	t.Parallel()
	frame := func(change func(q *monitor.BrokerQueue, w *monitor.Worker)) string {
		source := sample()
		for i := range source.broker.Queues {
			if source.broker.Queues[i].Name == monitor.WorkerQueue(7) {
				change(&source.broker.Queues[i], &source.workers.List[0])
			}
		}
		b := started(t, source, 100, 30)
		b.open(keymap.InWorker)
		return b.View()
	}
	require.Contains(t,
		frame(func(q *monitor.BrokerQueue, _ *monitor.Worker) { q.Head = ago(3*time.Minute + 2*time.Second) }),
		"▲ head expires in 1m58s → dead letter")
	require.Contains(t, frame(func(_ *monitor.BrokerQueue, w *monitor.Worker) { w.Probe.Oldest = ago(time.Minute) }),
		"head expires in 4m00s")
	require.Contains(t,
		frame(func(q *monitor.BrokerQueue, _ *monitor.Worker) { q.Head, q.DeadLetterExchange = ago(time.Hour), nil }),
		"head is about to expire → deleted by the broker")
	require.Contains(t,
		frame(func(q *monitor.BrokerQueue, _ *monitor.Worker) { q.Head, q.Consumers = ago(time.Minute), 1 }),
		"unless it is taken before")
	require.Contains(t, frame(func(*monitor.BrokerQueue, *monitor.Worker) {}), "the age of the head is unknown")
	require.NotContains(t, frame(func(q *monitor.BrokerQueue, _ *monitor.Worker) { q.TTL = nil }), "expire")
	require.NotContains(t, frame(func(q *monitor.BrokerQueue, _ *monitor.Worker) { q.Ready = 0 }), "expires")
}

// Slots begin with the last hour, and completed executions are counted.
func TestSlotsBeginWithTheLastHour(t *testing.T) {
	source := sample()
	past := monitor.WorkerPast{ID: 1}
	for i := range 60 {
		past.Minutes = append(past.Minutes,
			monitor.WorkerMinute{At: frozen.Add(-time.Duration(59-i) * time.Minute), Slots: float64(i % 8), Ended: 61})
	}
	source.workersPast = &monitor.WorkersPast{Reading: source.overview.Reading, List: []monitor.WorkerPast{past}}
	b := started(t, source, 140, 40)
	b.press("4")
	trend := b.env.Data.History.Trend(screen.WorkerSeries(1), time.Hour, 60)
	require.InDelta(t, 6, trend[30], 1)
	require.InDelta(t, 8, trend[59], 0, "polled values stay")
	require.Regexp(t, `worker-python-01.* 61 `, b.View())
	require.Equal(t, time.Minute, b.timers.due(screen.FeedWorkersPast)[0].after, "it is read once a minute")
}

// A queue that was opened before its list was read is named by its own reading.
func TestTheTitleNamesAQueueThatNoListNames(t *testing.T) {
	b := started(t, sample(), 100, 24)
	b.enter("q core.http_request")
	require.Equal(t, keymap.InQueue, b.view)
	require.Contains(t, b.frame()[2], "─ Overview › core.http_request ", "not by its number")
}
