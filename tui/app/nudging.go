package app

import (
	"context"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// nudgeEvery is what happens within is told at once, and how often a nudge brings a
// poll forward at most.
const nudgeEvery = 250 * time.Millisecond

// Nudger is a source that can tell that something has changed, without saying what.
type Nudger interface {
	// Listen calls changed until ctx ends, from a goroutine that it must not hold up.
	Listen(ctx context.Context, changed func())
}

// nudgeMsg says that something has changed in an installation.
type nudgeMsg struct{ of *place }

// listen has the source of the installation that is shown tell of changes until it is
// left. Where nothing is told polls are all there is.
func (m *Model) listen() tea.Cmd {
	source, ok := m.source.(Nudger)
	if !ok {
		return nil
	}
	p := m.place
	p.nudges = make(chan struct{}, 1)
	var ctx context.Context
	ctx, p.deafen = context.WithCancel(m.ctx)
	nudges := p.nudges
	listen := func() tea.Msg {
		source.Listen(ctx, func() {
			select {
			case nudges <- struct{}{}:
			default: // one is on its way already
			}
		})
		return nil
	}
	return tea.Batch(listen, awaitNudge(ctx, p))
}

// awaitNudge waits for a change, and for what follows it at once.
func awaitNudge(ctx context.Context, p *place) tea.Cmd {
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
		select { // what came meanwhile is told with it
		case <-p.nudges:
		default:
		}
		return nudgeMsg{p}
	}
}

// nudged brings the next polls of what the open view shows of executions and workflows
// forward, and waits for the next change. Nothing is read sooner while the screen is
// frozen or out of sight, nor while the last reading is under way, has failed, or is
// not longer ago than twice what it took.
func (m *Model) nudged(msg nudgeMsg) tea.Cmd {
	if msg.of != m.place {
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
		c.gen++ // the timer that is armed counts no more
		if rest > 0 {
			cmds = append(cmds, m.opts.After(rest, dueMsg{feed: feed, gen: c.gen}))
		} else {
			cmds = append(cmds, m.fetch(feed, false))
		}
	}
	return tea.Batch(cmds...)
}
