package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// Installation is a connected installation.
type Installation struct {
	// See the fields of the same name in Options.
	Name, Colour string
	Protected    bool
	ReadOnly     string
	// Source reads the installation. Acts is nil if acting is not possible.
	Source Reader
	Acts   Acts
	Origin Origin
	// Close is called once, outside of Update. It may wait for running reads and acts; nil does nothing.
	Close func()
}

// Connect opens the installation of a context. It may read files but must not wait for a server: the dashboard shows
// an unreachable server as down.
type Connect func(ctx context.Context, name string) (*Installation, error)

// connection is an open installation with its running operations. Close waits for them.
type connection struct {
	close   func()
	running sync.WaitGroup
	// nudges signals changes until stopListening; nil if the source sends none.
	nudges        chan struct{}
	stopListening context.CancelFunc
	listening     context.Context //nolint:containedctx // the lifetime of nudges
}

// leave closes the installation after its last operation.
func (p *connection) leave() {
	if p.stopListening != nil {
		p.stopListening()
	}
	p.running.Wait()
	if p.close != nil {
		p.close()
	}
}

type turnedMsg struct {
	name  string
	to    *Installation
	err   error
	order int
}

// switchTo connects to another context. The present installation stays until the other one is ready; an error is one
// line. While acts run it asks first; the second time it stops them after their current step.
func (m *Model) switchTo(name string) tea.Cmd {
	if problem := m.contextProblem(name); problem != "" {
		m.say(problem)
		return nil
	}
	if len(m.underWay) > 0 && !m.again("switch "+name) {
		m.say("Still running: " + m.busy() + ". The same again stops it after the step under way and switches.")
		return nil
	}
	for op, stop := range m.underWay {
		op.Remark = "stopped to turn to " + name
		stop()
	}
	m.connects++
	order, connect, ctx := m.connects, m.opts.Connect, m.ctx
	m.say("Turning to " + name + " …")
	return func() tea.Msg {
		to, err := connect(ctx, name)
		if err == nil && to == nil {
			err = errors.New("no answer")
		}
		return turnedMsg{name: name, to: to, err: err, order: order}
	}
}

// contextProblem says why the dashboard cannot switch to a context.
func (m *Model) contextProblem(name string) string {
	switch {
	case m.opts.Connect == nil || len(m.opts.Contexts) == 0:
		return "There are no contexts to turn to: tui.yaml names them."
	case name == "":
		return "Which context? " + strings.Join(m.opts.Contexts, ", ")
	case !slices.Contains(m.opts.Contexts, name):
		if near := phrase.Nearest(name, m.opts.Contexts); near != "" {
			return fmt.Sprintf("There is no context %s; did you mean %s?", name, near)
		}
		return fmt.Sprintf("There is no context %s; there are %s.", name, strings.Join(m.opts.Contexts, ", "))
	case name == m.opts.Context:
		return "This is " + name + "."
	default:
		return ""
	}
}

// again reports whether the operator repeats a request within a few seconds, which confirms it.
func (m *Model) again(what string) bool {
	same := m.leaving == what && m.env.Clock.Sub(m.leavingAt) < confirmTimeout
	m.leaving, m.leavingAt = what, m.env.Clock
	return same
}

// turned shows the installation of the last request. Earlier ones are closed.
func (m *Model) turned(msg turnedMsg) tea.Cmd {
	if msg.order != m.connects {
		if msg.to == nil || msg.to.Close == nil {
			return nil
		}
		return func() tea.Msg {
			msg.to.Close()
			return nil
		}
	}
	if msg.err != nil {
		m.say("Not turned to " + msg.name + ": " + msg.err.Error())
		return nil
	}
	old := m.conn
	m.leaveInstallation()
	m.conn = &connection{close: msg.to.Close}
	m.source = msg.to.Source
	m.opts.Context, m.opts.Colour, m.opts.Protected = msg.to.Name, msg.to.Colour, msg.to.Protected
	m.opts.ReadOnly, m.opts.Acts, m.opts.Origin = msg.to.ReadOnly, msg.to.Acts, msg.to.Origin
	m.newScreens()
	m.env.Session = m.sessions[msg.to.Name]
	m.tick()
	m.operations.SessionChanged()
	m.say("Turned to " + msg.to.Name)
	return tea.Batch(m.refresh(), m.listen(), func() tea.Msg {
		old.leave()
		return nil
	})
}

// leaveInstallation ends everything of the present installation. Its operations stay in its log for the next visit.
func (m *Model) leaveInstallation() {
	for m.top() != nil {
		m.pop()
	}
	for _, f := range feeds {
		m.stop(f.name)
	}
	for op := range m.underWay { // it reports under another installation
		op.Title = m.opts.Context + " › " + op.Title
	}
	if m.sessions == nil {
		m.sessions = map[string][]*act.Operation{}
	}
	m.sessions[m.opts.Context] = m.env.Session
	m.view = m.topView()
	m.pending, m.paused, m.env.Skew, m.synced = "", false, 0, false
}

// topView is the list to show after the switch: the open one or the nearest parent.
func (m *Model) topView() screen.View {
	if slices.Contains(Views, m.view) {
		return m.view
	}
	for _, p := range slices.Backward(m.parents) {
		if slices.Contains(Views, p.View) {
			return p.View
		}
	}
	return keymap.InOverview
}

// Close closes the installation after the program has ended, and waits for running reads and acts.
func (m *Model) Close() { m.conn.leave() }
