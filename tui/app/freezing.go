package app

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/screen"
)

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
	read := m.source.Answers
	ctx, cancel := context.WithTimeout(m.ctx, fetchTimeout)
	c.busy, c.once, c.probe, c.cancel = true, false, true, cancel
	gen, clock := c.gen, m.opts.Clock
	return func() tea.Msg {
		defer cancel()
		start := clock()
		err := read(ctx, source)
		return snapMsg{feed: feed, gen: gen, err: err, took: clock().Sub(start)}
	}
}

// probed records whether a source answers. The age of the data stays as it is.
func (m *Model) probed(msg snapMsg) tea.Cmd {
	fresh := m.env.Data.Fresh(msg.feed)
	fresh.Took = msg.took
	if msg.err != nil {
		m.failed(fresh, msg.err, fetchTimeout)
	} else {
		fresh.Err, fresh.Fails = nil, 0
	}
	return m.probeLater(msg.feed)
}
