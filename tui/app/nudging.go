package app

import (
	"context"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// nudgeEvery collects changes, and bounds how often they bring a poll forward.
const nudgeEvery = 250 * time.Millisecond

// Nudger is a source that signals changes without details.
type Nudger interface {
	// Listen calls changed until ctx ends. The callback must not block.
	Listen(ctx context.Context, changed func())
}

type nudgeMsg struct{ of *connection }

// listen listens to the source of the open installation. Other sources are only polled.
func (m *Model) listen() tea.Cmd {
	source, ok := m.source.(Nudger)
	if !ok {
		return nil
	}
	p := m.conn
	p.nudges = make(chan struct{}, 1)
	var ctx context.Context
	ctx, p.stopListening = context.WithCancel(m.ctx)
	nudges := p.nudges
	listen := func() tea.Msg {
		source.Listen(ctx, func() {
			select {
			case nudges <- struct{}{}:
			default: // a signal is pending already
			}
		})
		return nil
	}
	return tea.Batch(listen, awaitNudge(ctx, p))
}

// awaitNudge waits for a change, and collects further changes that follow at once.
func awaitNudge(ctx context.Context, p *connection) tea.Cmd {
	p.listening = ctx
	return func() tea.Msg {
		select {
		case <-p.nudges:
		case <-ctx.Done():
			return nil
		}
		pause := time.NewTimer(nudgeEvery)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
		select { // changes in the pause count as this one
		case <-p.nudges:
		default:
		}
		return nudgeMsg{p}
	}
}

// nudged brings polls forward and waits for the next change. It skips feeds that are being read, have failed, or were
// read less than twice their duration ago, and skips all while the screen is frozen or without focus.
func (m *Model) nudged(msg nudgeMsg) tea.Cmd {
	if msg.of != m.conn {
		return nil
	}
	cmds := []tea.Cmd{awaitNudge(msg.of.listening, msg.of)}
	if m.paused || m.blurred {
		return cmds[0]
	}
	visible := m.visible()
	for _, f := range feeds {
		feed := f.name
		c, fresh := m.chain(feed), m.env.Data.Fresh(feed)
		if !f.nudged || !slices.Contains(visible, feed) || c.busy || fresh.Err != nil || fresh.At.IsZero() {
			continue
		}
		rest := max(nudgeEvery, m.refreshEvery/4, 2*fresh.Took) - m.env.Clock.Sub(fresh.At)
		c.gen++ // invalidates the running timer
		if rest > 0 {
			cmds = append(cmds, m.opts.After(rest, dueMsg{feed: feed, gen: c.gen}))
		} else {
			cmds = append(cmds, m.fetch(feed, false))
		}
	}
	return tea.Batch(cmds...)
}
