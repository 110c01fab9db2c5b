package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// running shows the progress of an act. Closing it leaves the act running.
type running struct {
	dialog

	item act.Item
	op   *act.Operation
}

type runMsg struct {
	op      *act.Operation
	receipt *act.Receipt
	err     error
}

func (m *Model) run(q *question) tea.Cmd {
	op, plan, reason := q.op, q.plan, q.confirm.Reason()
	op.State, op.Ran, op.Reason = act.Running, m.env.Clock, reason
	m.operations.SessionChanged()
	m.replace(&running{item: q.item, op: op})
	acts := m.opts.Acts
	work := m.work(op, act.RunTimeout, "act", func(ctx context.Context) (*act.Receipt, error) {
		receipt, err := acts.Run(ctx, plan, reason, op.Progress)
		if err == nil && receipt == nil {
			err = errors.New("no receipt")
		}
		return receipt, err
	})
	return tea.Batch(work, m.spin())
}

// work runs an operation outside of Update. Quitting asks first while it runs, and its end is a message.
func (m *Model) work(
	op *act.Operation, timeout time.Duration, what string, do func(context.Context) (*act.Receipt, error),
) tea.Cmd {
	ctx, cancel := context.WithTimeout(m.ctx, timeout)
	m.underWay[op] = cancel
	m.workers.Add(1)
	here := m.conn
	here.running.Add(1)
	return func() (msg tea.Msg) {
		defer m.workers.Done()
		defer here.running.Done()
		defer cancel()
		defer func() {
			if fault := recover(); fault != nil {
				msg = runMsg{op: op, err: fmt.Errorf("the %s failed: %v", what, fault)}
			}
		}()
		receipt, err := do(ctx)
		return runMsg{op: op, receipt: receipt, err: err}
	}
}

// ran records the result of an operation and reports it.
func (m *Model) ran(msg runMsg) tea.Cmd {
	op := msg.op
	delete(m.underWay, op)
	op.Receipt, op.Ended, op.State = msg.receipt, m.env.Clock, act.Done
	switch {
	case msg.err != nil:
		op.State, op.Err = act.Failed, widget.Clean(runReason(msg.err).Error())
	case msg.receipt.Partly, msg.receipt.Unchanged:
		op.State = act.Partial
	}
	m.operations.SessionChanged()
	if o, open := m.top().(*running); open && o.op == op {
		if op.State == act.Failed {
			m.replace(&failed{item: o.item, op: op})
			return nil
		}
		m.closeDialog()
	}
	if m.modal() && op.Request.Kind == kindExport && msg.err == nil {
		m.say("Written: " + op.Receipt.Next) // the dialog covers its report
	}
	m.unmark(op)
	m.reports = append(m.reports, op)
	return m.refresh()
}

// runReason is the error of an act for the operator.
func runReason(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("stopped after %s", act.RunTimeout)
	case errors.Is(err, context.Canceled):
		return errors.New("stopped; completed steps stay")
	default:
		return err
	}
}

func (o *running) scope() keymap.Scope { return keymap.InRunning }

func (o *running) key(m *Model, action keymap.Action, _ tea.KeyMsg) tea.Cmd {
	switch action {
	case keymap.Hide:
		m.say(o.op.Title + " goes on; L shows it")
		m.closeDialog()
	case keymap.Stop:
		m.stopOperation(o.op)
	}
	return nil
}

func (m *Model) stopOperation(op *act.Operation) {
	if cancel, runs := m.underWay[op]; runs {
		op.Remark = "stopped by hand"
		cancel()
	}
}

// draw draws the progress, as 18/27 and rows a second.
func (o *running) draw(m *Model, f *frame) {
	op, e := o.op, m.env
	ran := e.Clock.Sub(op.Ran)
	done, total := op.Progress.Read()
	first := m.turning() + " Running for " + widget.Age(ran)
	switch {
	case total > 0:
		first += "   " + e.Num(done) + "/" + e.Num(total) + "   " + m.perSecond(done, ran)
	case done > 0:
		first += "   " + e.Num(done) + " done"
	}
	f.armed = true
	f.box(m, keymap.InRunning, box{title: widget.Clean(op.Title), role: theme.Bad, lines: func(w, _ int) []string {
		lines := []string{widget.Cut(first, w)}
		if total > 0 {
			lines = append(lines, widget.Bar(done, total, min(w, 60)))
		}
		if op.Remark != "" {
			lines = append(lines, e.Paint(theme.Warn, "▲ stopping after the step under way"))
		}
		return append(lines,
			e.Paint(theme.Dim, widget.Cut("esc goes on in the background   x stops after this one", w)))
	}})
}

// perSecond is unknown in the first second.
func (m *Model) perSecond(done int64, ran time.Duration) string {
	if ran < time.Second {
		return "--/s"
	}
	return m.env.Num(int64(float64(done)/ran.Seconds()+0.5)) + "/s"
}

// spinMsg turns the spinner.
type spinMsg struct{}

const spinEvery = 120 * time.Millisecond

// spin turns the spinner of a waiting dialog.
func (m *Model) spin() tea.Cmd {
	switch m.top().(type) {
	case *planning, *running:
		if !m.spinning {
			m.spinning = true
			return m.opts.After(spinEvery, spinMsg{})
		}
	}
	return nil
}

func (m *Model) turning() string {
	g := &m.env.Theme.Glyphs
	signs := []string{g.Busy, g.OK, g.Idle, g.Scheduled}
	return signs[int(m.env.Clock.UnixMilli()/spinEvery.Milliseconds())%len(signs)]
}
