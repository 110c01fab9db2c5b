package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/nearest"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// Installation is what the dashboard can be turned to.
type Installation struct {
	// Name, Colour and Protected are as in Options, and so is ReadOnly.
	Name, Colour string
	Protected    bool
	ReadOnly     string
	// Source is where it is read, Acts what carries out acts, nil for none.
	Source Reader
	Acts   Acts
	// Origin is where it is looked for.
	Origin Origin
	// Close ends its sessions. It is called once, off the path of keys and frames,
	// and may wait for what is under way; nil does nothing.
	Close func()
}

// Connect prepares an installation by the name of its context. It must not wait
// for a server: one that is away is shown as down. It runs as a command, so it
// may read files.
type Connect func(ctx context.Context, name string) (*Installation, error)

// place is the installation that is shown, with what has to end before its
// sessions do.
type place struct {
	close   func()
	running sync.WaitGroup
	// nudges says that something has changed, deafen ends that, and listening ends
	// with it; nil where nobody tells.
	nudges    chan struct{}
	deafen    context.CancelFunc
	listening context.Context //nolint:containedctx // it is the time for which nudges are heard
}

// leave ends the sessions once nothing runs in them any more.
func (p *place) leave() {
	if p.deafen != nil {
		p.deafen()
	}
	p.running.Wait()
	if p.close != nil {
		p.close()
	}
}

// turnedMsg is the answer to a wish for another context.
type turnedMsg struct {
	name  string
	to    *Installation
	err   error
	order int
}

// switchTo turns the dashboard to another context of the settings, without
// waiting for any server: the installation that is shown stays until the other
// one is prepared, and a context that cannot be prepared is told in one line.
// While acts run it asks first; the same again stops them after the step under
// way.
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
	m.wishes++
	order, connect, ctx := m.wishes, m.opts.Connect, m.ctx
	m.say("Turning to " + name + " …")
	return func() tea.Msg {
		to, err := connect(ctx, name)
		if err == nil && to == nil {
			err = errors.New("no answer")
		}
		return turnedMsg{name: name, to: to, err: err, order: order}
	}
}

// contextProblem says why the dashboard cannot be turned to a context.
func (m *Model) contextProblem(name string) string {
	switch {
	case m.opts.Connect == nil || len(m.opts.Contexts) == 0:
		return "There are no contexts to turn to: tui.yaml names them."
	case name == "":
		return "Which context? " + strings.Join(m.opts.Contexts, ", ")
	case !slices.Contains(m.opts.Contexts, name):
		if near := nearest.Of(name, m.opts.Contexts); near != "" {
			return fmt.Sprintf("There is no context %s; did you mean %s?", name, near)
		}
		return fmt.Sprintf("There is no context %s; there are %s.", name, strings.Join(m.opts.Contexts, ", "))
	case name == m.opts.Context:
		return "This is " + name + "."
	default:
		return ""
	}
}

// again reports whether the operator asks for the same as within the last few
// seconds, which is the answer to the question of the first time.
func (m *Model) again(what string) bool {
	same := m.leaving == what && m.env.Clock.Sub(m.leavingAt) < leavePatience
	m.leaving, m.leavingAt = what, m.env.Clock
	return same
}

// turned takes over the installation that was asked for last. One that was asked
// for before is closed again.
func (m *Model) turned(msg turnedMsg) tea.Cmd {
	if msg.order != m.wishes {
		return closing(msg.to)
	}
	if msg.err != nil {
		m.say("Not turned to " + msg.name + ": " + msg.err.Error())
		return nil
	}
	old := m.place
	m.leaveInstallation()
	m.place = &place{close: msg.to.Close}
	m.source = msg.to.Source
	m.opts.Context, m.opts.Colour, m.opts.Protected = msg.to.Name, msg.to.Colour, msg.to.Protected
	m.opts.ReadOnly, m.opts.Acts, m.opts.Origin = msg.to.ReadOnly, msg.to.Acts, msg.to.Origin
	m.furnish()
	m.env.Session = m.sessions[msg.to.Name]
	m.tick()
	m.operations.SessionChanged()
	m.say("Turned to " + msg.to.Name)
	return tea.Batch(m.refresh(), m.listen(), func() tea.Msg {
		old.leave()
		return nil
	})
}

func closing(to *Installation) tea.Cmd {
	if to == nil || to.Close == nil {
		return nil
	}
	return func() tea.Msg {
		to.Close()
		return nil
	}
}

// leaveInstallation ends all that belongs to the installation that was shown.
// What its operators did stays in its log for when it is shown again.
func (m *Model) leaveInstallation() {
	for m.top() != nil {
		m.pop()
	}
	for _, f := range feeds {
		m.stop(f.name)
	}
	for op := range m.underWay { // it will report while another installation is shown
		op.Title = m.opts.Context + " › " + op.Title
	}
	if m.sessions == nil {
		m.sessions = map[string][]*act.Operation{}
	}
	m.sessions[m.opts.Context] = m.env.Session
	m.view = m.topView()
	m.pending, m.paused, m.skew, m.synced = "", false, 0, false
}

// topView is the view to stay in elsewhere: the open one, or the one that the
// row it shows was opened from.
func (m *Model) topView() screen.View {
	if slices.Contains(Views, m.view) {
		return m.view
	}
	for _, p := range slices.Backward(m.trail) {
		if slices.Contains(Views, p.View) {
			return p.View
		}
	}
	return keymap.InOverview
}

// Close ends the sessions of the installation that is shown. It is called when
// the program has ended, and waits for the reads and acts under way.
func (m *Model) Close() { m.place.leave() }
