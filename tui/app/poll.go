package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// Reader reads the data of the dashboard; *alerting.Reader is one.
type Reader interface {
	Overview(ctx context.Context) (*alerting.Overview, error)
	Broker(ctx context.Context) (*monitor.Broker, error)
	Queues(ctx context.Context, filter monitor.QueueFilter) (*monitor.Queues, error)
	QueueDetail(ctx context.Context, ref explain.QueueRef) (*explain.QueueDetail, error)
	Matching(ctx context.Context, filter monitor.ExecutionFilter) (*monitor.Matching, error)
	Executions(ctx context.Context, filter monitor.ExecutionFilter, cursor int64) (*monitor.Executions, error)
	Execution(ctx context.Context, id int64) (*monitor.ExecutionDetail, error)
	WholeExecution(ctx context.Context, id int64) (*monitor.ExecutionDetail, error)
	Workers(ctx context.Context) (*monitor.Workers, error)
	DeadLetters(ctx context.Context) (*monitor.DeadLetters, error)
	Audit(ctx context.Context, below int64) (*monitor.Audit, error)
	WholeAudit(ctx context.Context, below int64) (*monitor.Audit, error)
	Alerts(ctx context.Context) (*alerting.Alerts, error)
	Family(ctx context.Context, id int64) (*monitor.Family, error)
	Workflows(ctx context.Context, filter monitor.WorkflowFilter, cursor int64) (*monitor.Workflows, error)
	WorkflowBoard(ctx context.Context, filter monitor.WorkflowFilter, below int64) (*monitor.WorkflowBoard, error)
	WorkflowTree(ctx context.Context, ask monitor.WorkflowAsk) (*monitor.WorkflowDetail, error)
	Inquiries(ctx context.Context, filter monitor.InquiryFilter, cursor string) (*monitor.InquiryPage, error)
	Inquiry(ctx context.Context, id int64) (*monitor.InquiryDetail, error)
	Checks(ctx context.Context) (*monitor.Checks, error)
	DeadLetter(ctx context.Context, id int64) (*monitor.LedgerDetail, error)
	Route(ctx context.Context, exchange, key string) (*monitor.Route, error)
	LedgerList(ctx context.Context, filter monitor.DeadLetterFilter, cursor int64) (*monitor.LedgerPage, error)
	ExportDeadLetters(ctx context.Context, filter monitor.DeadLetterFilter, limit int,
		each func(*monitor.ExportedDeadLetter) error) (int, error)
	Past(ctx context.Context) (*monitor.Past, error)
	// Answers checks whether a source answers; monitor defines the names.
	Answers(ctx context.Context, source string) error
	QueueLine(ctx context.Context, ask monitor.LineAsk) (*monitor.Line, error)
	QueuesPast(ctx context.Context, id int64) (*monitor.QueuesPast, error)
	Worker(ctx context.Context, id int64) (*monitor.WorkerDetail, error)
	WorkersPast(ctx context.Context) (*monitor.WorkersPast, error)
}

const (
	// fetchTimeout ends a read. A feed that runs into its timeout gets twice as long, at most LongestRead, so that a
	// slow database is still shown.
	fetchTimeout = 1500 * time.Millisecond
	// LongestRead is the longest timeout of a read.
	LongestRead = 12 * time.Second
	// longestPause is the longest pause for the sake of a slow source. With LongestRead and the jitter, the next answer
	// is on the screen 30 s after the last one.
	longestPause = 16 * time.Second
	// blurFactor stretches the interval while the terminal has no focus, up to blurLongest: a screen on the wall has no
	// focus either.
	blurFactor  = 5
	blurLongest = checksEvery
	minRefresh  = 500 * time.Millisecond
	maxRefresh  = time.Minute
	maxBackoff  = 30 * time.Second
)

// chain is the polling of one feed.
type chain struct {
	// gen invalidates answers and timers of earlier generations.
	gen    int
	cancel context.CancelFunc
	busy   bool
	// once starts no further polls. probe only checks the source while the screen is frozen.
	once, probe bool
	// timeout ends the next read; it is at least fetchTimeout.
	timeout time.Duration
}

// answered sets the timeout of the next read.
func (c *chain) answered(took time.Duration, err error) {
	next := 2 * took
	if errors.Is(err, context.DeadlineExceeded) {
		next = 2 * c.currentTimeout()
	}
	c.timeout = min(next, LongestRead)
}

func (c *chain) currentTimeout() time.Duration { return max(c.timeout, fetchTimeout) }

// snapMsg is the answer of a read. dueMsg is the timer of the next one.
type snapMsg struct {
	feed   screen.Feed
	gen    int
	result any
	err    error
	took   time.Duration
}

type dueMsg struct {
	feed screen.Feed
	gen  int
}

// visible lists the feeds of the open view.
func (m *Model) visible() []screen.Feed {
	var visible []screen.Feed
	add := func(feed screen.Feed) {
		if !slices.Contains(visible, feed) {
			visible = append(visible, feed)
		}
	}
	for _, f := range feeds {
		if f.always(m) {
			add(f.name)
		}
	}
	for _, feed := range m.screen().Feeds() {
		add(feed)
	}
	return visible
}

// restart cancels the running read of a feed and reads it at once.
func (m *Model) restart(feed screen.Feed) tea.Cmd {
	m.stop(feed)
	return m.fetch(feed, m.paused)
}

// stop ends the chain of a feed.
func (m *Model) stop(feed screen.Feed) {
	c := m.chain(feed)
	c.gen++
	c.busy = false
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
}

func (m *Model) chain(feed screen.Feed) *chain {
	c, ok := m.chains[feed]
	if !ok {
		c = &chain{}
		m.chains[feed] = c
	}
	return c
}

// resume starts the feeds of the open view and stops those of hidden views.
func (m *Model) resume() tea.Cmd {
	visible := m.visible()
	var cmds []tea.Cmd
	for _, f := range feeds {
		if !slices.Contains(visible, f.name) {
			m.stop(f.name)
		} else if !f.always(m) || m.chain(f.name).gen == 0 || slices.Contains(m.screen().Feeds(), f.name) {
			cmds = append(cmds, m.restart(f.name))
		}
	}
	return tea.Batch(cmds...)
}

// refresh reads every feed of the open view now. While the screen is frozen it reads once.
func (m *Model) refresh() tea.Cmd {
	var cmds []tea.Cmd
	for _, feed := range m.visible() {
		fresh := m.env.Data.Fresh(feed)
		if feedNamed[feed].once(m) && fresh.Err == nil && !fresh.At.IsZero() {
			continue // the past does not change
		}
		cmds = append(cmds, m.restart(feed))
	}
	return tea.Batch(cmds...)
}

func (m *Model) fetch(feed screen.Feed, once bool) tea.Cmd {
	c := m.chain(feed)
	if c.busy {
		return nil
	}
	c.once, c.probe = once, false
	return m.read(feed, c.currentTimeout(), feedNamed[feed].read(m))
}

// read runs a function for a feed. The command touches nothing but its arguments.
func (m *Model) read(feed screen.Feed, timeout time.Duration, read func(context.Context) (any, error)) tea.Cmd {
	ctx, cancel := context.WithTimeout(m.ctx, timeout)
	c := m.chain(feed)
	c.busy, c.cancel = true, cancel
	gen, clock := c.gen, m.opts.Clock
	return func() tea.Msg {
		defer cancel()
		start := clock()
		result, err := read(ctx)
		if err == nil && ctx.Err() != nil && result == nil {
			err = ctx.Err()
		}
		return snapMsg{feed: feed, gen: gen, result: result, err: err, took: clock().Sub(start)}
	}
}

// snapshot takes the answer of a read and arms the next poll.
func (m *Model) snapshot(msg snapMsg) tea.Cmd {
	c := m.chain(msg.feed)
	if msg.gen != c.gen {
		return nil
	}
	c.busy, c.cancel = false, nil
	m.tick()
	if c.probe {
		return m.probed(msg)
	}
	fresh := m.env.Data.Fresh(msg.feed)
	fresh.Took = msg.took
	if half, ok := msg.result.(interface{ DatabaseErr() error }); ok && msg.err == nil {
		if msg.err = half.DatabaseErr(); msg.err != nil && fresh.At.IsZero() && !m.modal() {
			m.apply(msg.feed, msg.result) // without an earlier answer the broker's half is shown
		}
	}
	defer c.answered(msg.took, msg.err)
	var missed tea.Cmd
	if msg.feed == screen.FeedOverview && msg.err == nil && fresh.Err != nil {
		missed = m.restart(screen.FeedPast) // the time of the outage
		for _, feed := range []screen.Feed{screen.FeedQueuesPast, screen.FeedWorkersPast} {
			if slices.Contains(m.screen().Feeds(), feed) {
				missed = tea.Batch(missed, m.restart(feed))
			}
		}
	}
	if msg.err != nil {
		m.failed(msg.feed, fresh, msg.err)
	} else {
		fresh.Err, fresh.Fails, fresh.Connecting = nil, 0, false
		fresh.At = m.env.Clock.Add(-msg.took) // nothing is known of what happened during the read
		if at := feedNamed[msg.feed].readAt(msg.result); !at.IsZero() {
			// The database wrote its time at some moment of the read: a long read proves no difference of the clocks.
			latest := at.Sub(m.env.Clock)
			m.env.Skew, m.synced = min(max(m.env.Skew, latest), latest+msg.took), true
			m.tick()
		}
		if m.modal() {
			m.held[msg.feed] = msg.result
		} else {
			m.apply(msg.feed, msg.result)
		}
	}
	if m.paused {
		return tea.Batch(missed, m.probeLater(msg.feed))
	}
	if msg.feed == screen.FeedOverview && m.brokerOverdue() {
		missed = tea.Batch(missed, m.restart(screen.FeedBroker))
	}
	if c.once || feedNamed[msg.feed].once(m) && msg.err == nil {
		return missed // other polls extend the past
	}
	delay := m.delay(msg.feed, fresh)
	fresh.Every, fresh.Wanted = delay, m.wanted(msg.feed)
	return tea.Batch(missed, m.opts.After(m.jitter(delay), dueMsg{feed: msg.feed, gen: c.gen}))
}

// apply shows a result, and counts ages up to now.
func (m *Model) apply(feed screen.Feed, result any) {
	m.env.Now = m.now()
	feedNamed[feed].put(m.env.Data, result, m.env.Now)
	m.env.Locked = m.actingLock()
	for _, s := range m.screens {
		s.Changed(feed)
	}
}

// connectTime is how long a server that has never answered may take to start.
const connectTime = 15 * time.Second

func (m *Model) failed(feed screen.Feed, fresh *screen.Freshness, err error) {
	if fresh.Err == nil && !fresh.Connecting {
		fresh.Since = m.env.Clock
	}
	fresh.Connecting = !m.chain(feed).once && fresh.At.IsZero() && fresh.Err == nil && explain.Starting(err) &&
		m.env.Clock.Sub(fresh.Since) < connectTime
	if fresh.Connecting {
		return
	}
	fresh.Err = explain.Trouble(feedNamed[feed].source, err).Because(err)
	fresh.Fails++
}

// brokerOverdue reports whether the broker should be polled now: the poll was postponed after failures, and a replica
// is connected again.
func (m *Model) brokerOverdue() bool {
	fresh := m.env.Data.Fresh(screen.FeedBroker)
	return fresh.Fails > 0 && fresh.Every > brokerEvery && m.env.EngineReachesBroker()
}

// delay is the pause before the next poll.
func (m *Model) delay(feed screen.Feed, fresh *screen.Freshness) time.Duration {
	if fresh.Fails > 0 && feed == screen.FeedBroker && m.env.EngineReachesBroker() {
		return min(brokerEvery, time.Second<<min(fresh.Fails, 5))
	}
	if fresh.Fails > 0 {
		return min(maxBackoff, time.Second<<min(fresh.Fails, 5))
	}
	return max(m.wanted(feed), min(2*fresh.Took, longestPause))
}

// wanted is the interval of the polls of a fast source.
func (m *Model) wanted(feed screen.Feed) time.Duration {
	every := max(m.refreshEvery, feedNamed[feed].every(m))
	if m.blurred {
		every = max(every, min(every*blurFactor, blurLongest))
	}
	return every
}

// jitter spreads the polls of many dashboards by ±10 %.
func (m *Model) jitter(d time.Duration) time.Duration {
	return d + time.Duration((m.opts.Random()-0.5)*0.2*float64(d))
}

// follow reads the row under the cursor if it changed. It cancels no running read: scrolling through a list reads few
// rows, and at last the selected one. After a failure the feed retries by itself.
func (m *Model) follow(failed error) tea.Cmd {
	f, ok := m.screen().(screen.Follower)
	if !ok || failed != nil || m.modal() {
		return nil
	}
	feed := f.Behind()
	if feed == "" || m.chain(feed).busy {
		return nil
	}
	return m.restart(feed)
}

// setRefresh changes the interval. A shorter one polls at once.
func (m *Model) setRefresh(every time.Duration) tea.Cmd {
	shorter := every < m.refreshEvery
	m.refreshEvery = min(max(every, minRefresh), maxRefresh)
	m.say(fmt.Sprintf("poll every %s", m.refreshEvery))
	if shorter && !m.paused {
		return m.refresh()
	}
	return nil
}

// setPaused freezes the screen, or polls again. A frozen screen only checks the servers.
func (m *Model) setPaused(paused bool) tea.Cmd {
	m.paused = paused
	if !paused {
		return m.refresh()
	}
	for _, f := range feeds {
		m.stop(f.name)
	}
	return tea.Batch(m.probeLater(screen.FeedOverview), m.probeLater(screen.FeedBroker))
}

// probeEvery is the interval of checking a server while the screen is frozen.
const probeEvery = 5 * time.Second

func (m *Model) probeLater(feed screen.Feed) tea.Cmd {
	if !feedNamed[feed].probed {
		return nil
	}
	delay := max(m.delay(feed, m.env.Data.Fresh(feed)), probeEvery)
	return m.opts.After(m.jitter(delay), dueMsg{feed: feed, gen: m.chain(feed).gen})
}

// probe checks whether the source of a feed answers. It reads no data.
func (m *Model) probe(feed screen.Feed) tea.Cmd {
	c, source := m.chain(feed), feedNamed[feed].source
	if c.busy || !feedNamed[feed].probed {
		return nil
	}
	c.once, c.probe = false, true
	answers := m.source.Answers
	return m.read(feed, fetchTimeout, func(ctx context.Context) (any, error) { return true, answers(ctx, source) })
}

// probed records whether a source answers. The age of the data stays as it is.
func (m *Model) probed(msg snapMsg) tea.Cmd {
	fresh := m.env.Data.Fresh(msg.feed)
	fresh.Took = msg.took
	if msg.err != nil {
		m.failed(msg.feed, fresh, msg.err)
	} else {
		fresh.Err, fresh.Fails, fresh.Connecting = nil, 0, false
	}
	return m.probeLater(msg.feed)
}
