package app

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

func TestAFeedIsPolledAgainOnlyAfterItsAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, sample())
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	cmd := b.fetch(screen.FeedOverview, false)
	require.NotNil(t, cmd)
	require.Nil(t, b.fetch(screen.FeedOverview, false), "one read at a time")
	require.Empty(t, b.timers.due(screen.FeedOverview), "nothing is armed while it runs")
	b.send(cmd())
	require.Len(t, b.timers.due(screen.FeedOverview), 1)
	require.Equal(t, DefaultRefresh, b.timers.due(screen.FeedOverview)[0].after)
}

func TestASlowSourceIsAskedLessOften(t *testing.T) {
	t.Parallel()
	b := setup(t, sample())
	cmd := b.fetch(screen.FeedOverview, false)
	msg, ok := cmd().(snapMsg)
	require.True(t, ok)
	msg.took = 1400 * time.Millisecond
	b.send(msg)
	require.Equal(t, 2800*time.Millisecond, b.timers.due(screen.FeedOverview)[0].after)

	fresh := b.env.Data.Fresh(screen.FeedOverview)
	fresh.Took = LongestRead
	pause := b.delay(screen.FeedOverview, fresh)
	require.Greater(t, pause, LongestRead)
	require.LessOrEqual(t, pause+pause/10+LongestRead, 30*time.Second, "a finding is on the screen within 30 s")
}

func TestFailuresBackOffAndRecover(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.source.fail = map[screen.Feed]error{screen.FeedOverview: errors.New("refused")}
	b.timers.pending = nil
	var waits []time.Duration
	for range 6 {
		b.send(dueMsg{feed: screen.FeedOverview, gen: b.chain(screen.FeedOverview).gen})
		due := b.timers.due(screen.FeedOverview)
		waits = append(waits, due[len(due)-1].after)
	}
	require.Equal(t, []time.Duration{2e9, 4e9, 8e9, 16e9, 30e9, 30e9}, waits)
	require.NotNil(t, b.env.Data.Overview, "the old data stays")
	require.Contains(t, b.View(), " ✗ refused (since ")

	b.source.fail = nil
	b.send(dueMsg{feed: screen.FeedOverview, gen: b.chain(screen.FeedOverview).gen})
	due := b.timers.due(screen.FeedOverview)
	require.Equal(t, DefaultRefresh, due[len(due)-1].after)
	require.NotContains(t, b.View(), "(since ")
}

// Polls of a broker that does not answer back off, and resume when a replica of the engine is connected again.
func TestABrokerThatIsBackIsSeenSoon(t *testing.T) {
	b := started(t, sample(), 80, 24)
	due := func() time.Duration {
		list := b.timers.due(screen.FeedBroker)
		return list[len(list)-1].after
	}
	poll := func(feed screen.Feed) { b.send(dueMsg{feed: feed, gen: b.chain(feed).gen}) }
	say := func(state string) {
		o := *b.source.overview
		replicas := *o.Replicas
		replicas.List = slices.Clone(replicas.List)
		for i := range replicas.List {
			replicas.List[i].State = state
		}
		o.Replicas, b.source.overview = &replicas, &o
		poll(screen.FeedOverview)
	}
	say("disconnected")
	b.source.fail = map[screen.Feed]error{screen.FeedBroker: errors.New("refused")}
	for range 6 {
		poll(screen.FeedBroker)
	}
	require.Equal(t, maxBackoff, due())
	require.Contains(t, b.View(), "MQ ✗ down")

	asked := b.source.count(screen.FeedBroker)
	say("connected")
	require.Equal(t, asked+1, b.source.count(screen.FeedBroker), "it is polled at once")
	require.Equal(t, brokerEvery, due(), "and then every few seconds")
	say("connected")
	require.Equal(t, asked+1, b.source.count(screen.FeedBroker))
	b.source.fail = nil
	poll(screen.FeedBroker)
	require.NotContains(t, b.View(), "MQ ✗ down")
}

func TestAnswersOfAnEarlierGenerationAreDropped(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.timers.pending = nil
	late := b.fetch(screen.FeedOverview, false)()
	before := b.env.Data.Overview
	b.stop(screen.FeedOverview)
	other := *b.source.overview
	b.source.overview = &other
	b.send(late)
	require.Same(t, before, b.env.Data.Overview)
	require.Empty(t, b.timers.due(screen.FeedOverview), "and it arms nothing")

	calls := b.source.count(screen.FeedOverview)
	b.send(dueMsg{feed: screen.FeedOverview, gen: b.chain(screen.FeedOverview).gen - 1})
	require.Equal(t, calls, b.source.count(screen.FeedOverview), "an old timer polls nothing")
}

func TestHiddenViewsAreNotPolled(t *testing.T) {
	b := started(t, sample(), 80, 24)
	require.Zero(t, b.source.count(screen.FeedQueues))
	b.press("2")
	require.Equal(t, 1, b.source.count(screen.FeedQueues))
	gen := b.chain(screen.FeedQueues).gen
	b.press("4")
	b.send(dueMsg{feed: screen.FeedQueues, gen: gen})
	require.Equal(t, 1, b.source.count(screen.FeedQueues))
	require.Equal(t, 1, b.source.count(screen.FeedWorkers))
	require.Equal(t, 1, b.source.count(screen.FeedOverview), "turning a page does not double the polls that always run")
}

func TestAFrozenScreenReallyIsFrozen(t *testing.T) {
	b := started(t, sample(), 80, 24)
	gen := b.chain(screen.FeedOverview).gen
	b.press("p")
	require.Contains(t, b.View(), "FROZEN")
	b.send(dueMsg{feed: screen.FeedOverview, gen: gen})
	require.Equal(t, 1, b.source.count(screen.FeedOverview))

	b.timers.pending = nil
	b.press("r")
	require.Equal(t, 2, b.source.count(screen.FeedOverview), "r reads once")
	for _, due := range b.timers.due(screen.FeedOverview) {
		b.send(due.msg)
	}
	require.Equal(t, 2, b.source.count(screen.FeedOverview), "and starts no polling")
	b.press("p")
	require.Equal(t, 3, b.source.count(screen.FeedOverview))
	require.NotEmpty(t, b.timers.due(screen.FeedOverview))
}

func TestLosingTheFocusSlowsPolling(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.timers.pending = nil
	b.send(tea.BlurMsg{})
	b.send(dueMsg{feed: screen.FeedOverview, gen: b.chain(screen.FeedOverview).gen})
	require.Equal(t, 5*DefaultRefresh, b.timers.due(screen.FeedOverview)[0].after)
	require.Equal(t, checksEvery, b.wanted(screen.FeedChecks), "what is shown within 30 s stays so")
	require.Equal(t, pastEvery, b.wanted(screen.FeedPast))
	calls := b.source.count(screen.FeedOverview)
	b.send(tea.FocusMsg{})
	require.Equal(t, calls+1, b.source.count(screen.FeedOverview), "coming back reads at once")
}

func TestTheBrokerIsAskedAtMostEveryFiveSeconds(t *testing.T) {
	b := started(t, sample(), 80, 24)
	require.Equal(t, 5*time.Second, b.timers.due(screen.FeedBroker)[0].after)
}

func TestTheIntervalChangesByKey(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("+")
	require.Contains(t, b.View(), "poll 4s")
	for range 10 {
		b.press("-")
	}
	require.Contains(t, b.View(), "poll 500ms")
	for range 20 {
		b.press("+")
	}
	require.Contains(t, b.View(), "poll 1m0s")
}

func TestOldDataIsMarkedAndUnreachableIsNotZero(t *testing.T) {
	b := started(t, sample(), 100, 30)
	require.NotContains(t, b.View(), "1\u2009204~")
	b.now = b.now.Add(20 * time.Second)
	b.send(clockMsg{})
	require.Contains(t, b.View(), "1\u2009204~", "older than two polls")
	b.source.fail = map[screen.Feed]error{
		screen.FeedOverview: errors.New("refused"),
		screen.FeedBroker:   errors.New("refused"),
	}
	b.press("r")
	require.Contains(t, b.View(), "1\u2009204?", "the last value, marked")
	require.Contains(t, b.View(), "PG ✗ down")
	require.Contains(t, b.View(), "MQ ✗ down")
}

func TestWithoutAnySourceTheDashboardStaysUsable(t *testing.T) {
	s := empty()
	s.fail = map[screen.Feed]error{}
	for _, feed := range feedNames() {
		s.fail[feed] = errors.New("connection refused")
	}
	b := started(t, s, 80, 24)
	require.Contains(t, b.View(), "cannot be read: connection refused")
	b.press("2")
	require.Contains(t, b.View(), "the queues cannot be read")
	b.press("?")
	require.Contains(t, b.View(), "Help")
}

func TestOneSourceDownLeavesTheOther(t *testing.T) {
	s := sample()
	s.fail = map[screen.Feed]error{screen.FeedBroker: errors.New("management refused")}
	s.broker = nil
	b := started(t, s, 80, 24)
	require.Contains(t, b.View(), "PG ●")
	require.Contains(t, b.View(), "MQ ? unread")
	require.Contains(t, b.View(), "1\u2009204")
	require.NotContains(t, b.View(), "ready 0", "an unreachable broker has no depth of zero")
}

// TestAStuckSourceDelaysNoKey runs the real chains and timers on a fake clock. While the database hangs, keys work,
// other feeds are read, and every hung read ends at its deadline.
func TestAStuckSourceDelaysNoKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := sample()
		source.stuck = map[screen.Feed]bool{screen.FeedOverview: true, screen.FeedQueues: true}
		ctx, cancel := context.WithCancel(t.Context())
		m, err := New(ctx, source, Options{Random: func() float64 { return 0.5 }})
		require.NoError(t, err)
		loop := newLoop(m)
		loop.send(tea.WindowSizeMsg{Width: 80, Height: 24})
		loop.start(m.Init())
		loop.settle()

		pressed := time.Now()
		loop.send(keyMsg("2"))
		require.Equal(t, keymap.InQueues, m.view)
		require.Zero(t, time.Since(pressed), "the key took effect while both reads hang")

		loop.pass(21 * time.Second)
		require.GreaterOrEqual(t, source.count(screen.FeedBroker), 4, "the other source goes on")
		require.Contains(t, m.View(), "the database does not answer in time")
		// Reads at 0, 3.5 and 10.5 s end after 1.5, 3 and 6 s; then 2, 4, 8 s pass.
		require.Equal(t, 3, source.count(screen.FeedOverview))
		cancel()
		loop.stop()
	})
}

// loop is the loop of Bubble Tea without a terminal: one goroutine handles messages, each command has its own.
type loop struct {
	model    *Model
	messages chan tea.Msg
	done     chan struct{}
}

func newLoop(m *Model) *loop {
	return &loop{model: m, messages: make(chan tea.Msg, 64), done: make(chan struct{})}
}

func (l *loop) start(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		msg := cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for _, c := range batch {
				l.start(c)
			}
			return
		}
		select {
		case l.messages <- msg:
		case <-l.done:
		}
	}()
}

func (l *loop) send(msg tea.Msg) {
	_, cmd := l.model.Update(msg)
	l.start(cmd)
}

// settle handles messages until only the passing of time brings more.
func (l *loop) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-l.messages:
			l.send(msg)
		default:
			return
		}
	}
}

func (l *loop) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); l.settle() {
		time.Sleep(100 * time.Millisecond)
	}
}

// A database that needs longer than the first timeout is shown: each timeout doubles the next one. After a fast read
// the timeout is short again.
func TestADatabaseThatIsOnlySlowIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := sample()
		source.takes = map[screen.Feed]time.Duration{screen.FeedOverview: 5 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		m, err := New(ctx, source, Options{Random: func() float64 { return 0.5 }})
		require.NoError(t, err)
		loop := newLoop(m)
		loop.send(tea.WindowSizeMsg{Width: 80, Height: 24})
		loop.start(m.Init())
		loop.settle()

		loop.pass(10 * time.Second)
		require.Contains(t, m.View(), "the database does not answer in time")
		loop.pass(6 * time.Second) // the third read began at 10.5 s
		require.NoError(t, m.env.Data.Fresh(screen.FeedOverview).Err)
		require.Equal(t, 10*time.Second, m.chain(screen.FeedOverview).currentTimeout())

		source.mu.Lock()
		clear(source.takes)
		source.mu.Unlock()
		loop.pass(10 * time.Second)
		require.Equal(t, fetchTimeout, m.chain(screen.FeedOverview).currentTimeout())
		cancel()
		loop.stop()
	})
}

// stop lets running timers expire, because commands cannot be cancelled.
func (l *loop) stop() {
	close(l.done)
	time.Sleep(2 * maxRefresh)
}

// While the screen is frozen only the states of the servers change.
func TestServersAreWatchedWhileTheScreenIsFrozen(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.timers.pending = nil
	b.press("p")
	later := func() {
		t.Helper()
		b.now = b.now.Add(10 * time.Second)
		pending := b.timers.pending
		b.timers.pending = nil
		for _, p := range pending {
			b.send(p.msg)
		}
	}
	later()
	require.Contains(t, b.frame()[0], "PG ▣ ~10s  MQ ▣ ~10s")
	b.source.fail = map[screen.Feed]error{screen.FeedOverview: errNoRoute}
	later()
	require.Contains(t, b.frame()[0], "PG ✗ down 0s  MQ ▣ ~20s")
	b.source.fail = nil
	later()
	require.Contains(t, b.frame()[0], "PG ▣ ~30s  MQ ▣ ~30s", "the server is back, and the old data as old as before")
	require.Equal(t, 1, b.source.count(screen.FeedOverview))
	b.press("p")
	require.Equal(t, 2, b.source.count(screen.FeedOverview))
	require.Contains(t, b.frame()[0], "PG ● ")
	probes := b.source.probes
	later()
	require.Equal(t, probes, b.source.probes, "polled servers are not probed")
}

// TestALongReadIsNoDifferenceOfTheClocks: the database wrote its time at some moment of it.
func TestALongReadIsNoDifferenceOfTheClocks(t *testing.T) {
	b := started(t, sample(), 140, 24)
	read := func(at time.Time, took time.Duration) {
		overview := *b.source.overview
		overview.At = at
		b.send(snapMsg{
			feed: screen.FeedOverview, gen: b.chain(screen.FeedOverview).gen, result: &overview, took: took,
		})
	}
	read(b.now.Add(-24*time.Second), 24*time.Second)
	require.NotContains(t, b.header(false), "skew")
	read(b.now.Add(7*time.Second), time.Second)
	require.Contains(t, b.header(false), "skew 7s")
	read(b.now.Add(-5*time.Second), 20*time.Second)
	require.Contains(t, b.header(false), "skew 7s", "what is known stays")
}
