package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// planning is the dialog that waits for a plan.
type planning struct {
	dialog

	item   act.Item
	op     *act.Operation
	cancel context.CancelFunc
}

type planMsg struct {
	op   *act.Operation
	plan *act.Plan
	err  error
}

// plan requests the plan of a request. show puts the dialog on the stack.
func (m *Model) plan(show func(overlay), item act.Item, request act.Request) tea.Cmd {
	title := string(request.Kind) + " " + request.Target.Name
	if item.Label != "" {
		title = item.Label + " " + cmp.Or(item.Touches, request.Target.Name)
	}
	op := m.newOperation(request, title, act.Planning)
	ctx, cancel := context.WithTimeout(m.ctx, act.PlanTimeout)
	show(&planning{item: item, op: op, cancel: cancel})
	acts := m.opts.Acts
	ask := func() (msg tea.Msg) {
		defer cancel()
		defer func() {
			if fault := recover(); fault != nil {
				msg = planMsg{op: op, err: fmt.Errorf("the plan failed: %v", fault)}
			}
		}()
		plan, err := acts.Plan(ctx, request)
		if err == nil && plan == nil {
			err = errors.New("no answer")
		}
		return planMsg{op: op, plan: plan, err: err}
	}
	return tea.Batch(ask, m.spin())
}

// planned shows a plan as a question. It drops the plan if its dialog was closed.
func (m *Model) planned(msg planMsg) {
	o, open := m.top().(*planning)
	if !open || o.op != msg.op {
		if msg.op.Remark == "" {
			msg.op.Remark = "left before its plan came; nothing was done"
		}
		return
	}
	if msg.err != nil {
		o.failed(m, msg.err)
		return
	}
	if m.opts.Protected && msg.plan.Word == "" {
		msg.plan.Word = m.opts.Context // confirms that the operator acts on the right installation
	}
	o.op.State, o.op.Title = act.Planned, widget.Clean(msg.plan.Title)
	q := &question{item: o.item, op: o.op, plan: msg.plan, planned: m.env.Clock}
	list := texts(msg.plan.Lines)
	if msg.plan.Nothing != "" {
		list = append(list, widget.Text{}, widget.Text{Role: theme.Warn, Text: "Nothing to do: " + msg.plan.Nothing})
		q.confirm = widget.NewNotice(list)
	} else {
		q.confirm = widget.NewConfirm(list, msg.plan.Word, cmp.Or(o.item.Label, o.op.Request.Kind.Verb(), "run"))
	}
	m.replace(q)
}

// failed shows why there is no plan. Invalid values lead back to the form, which shows them beside the fields.
func (o *planning) failed(m *Model, err error) {
	if invalid, ok := errors.AsType[*act.InvalidError](err); ok && len(m.overlays) > 1 {
		if f, ok := m.overlays[len(m.overlays)-2].(*form); ok {
			m.leave(o.op, "it did not fit: "+widget.Clean(invalid.Error()))
			f.fields.Refuse(invalid.Problems)
			m.pop()
			return
		}
	}
	o.op.State, o.op.Err, o.op.Ended = act.Failed, widget.Clean(planReason(err).Error()), m.env.Clock
	m.operations.SessionChanged()
	m.replace(&failed{item: o.item, op: o.op})
}

// planReason is the error of a plan for the operator.
func planReason(err error) error {
	var server interface {
		error
		SQLState() string
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s: the database or the broker is busy; nothing has changed", act.PlanTimeout)
	case errors.As(err, &server):
		return server
	default:
		return err
	}
}

func (o *planning) scope() keymap.Scope { return keymap.InPlanning }

func (o *planning) key(m *Model, action keymap.Action, _ tea.KeyMsg) tea.Cmd {
	if action == keymap.Back {
		m.backToForm()
	}
	return nil
}

// backToForm closes the plan. Its form, if any, still has the values.
func (m *Model) backToForm() {
	m.pop()
	if f, ok := m.top().(*form); ok {
		f.fields.Select()
	}
}

func (o *planning) closed(m *Model) {
	m.leave(o.op, "left; nothing was done")
	o.cancel()
}

func (o *planning) draw(m *Model, f *frame) {
	f.box(m, keymap.InPlanning, box{
		title: widget.Clean(o.op.Title), note: widget.Age(m.env.Clock.Sub(o.op.Began)), role: theme.Accent,
		lines: func(int, int) []string {
			return []string{
				m.turning() + " Asking what this would change …",
				m.env.Paint(theme.Dim, "  Nothing was changed."),
			}
		},
	})
}

// failed shows why there is no plan, or why an act failed and what it did before.
type failed struct {
	dialog

	item act.Item
	op   *act.Operation
}

func (o *failed) scope() keymap.Scope { return keymap.InFailed }

func (o *failed) key(m *Model, action keymap.Action, _ tea.KeyMsg) tea.Cmd {
	switch {
	case action == keymap.Refresh:
		return m.plan(m.replace, o.item, o.op.Request)
	case action == keymap.Back && o.op.Ran.IsZero():
		m.backToForm()
	case action == keymap.Back:
		m.closeDialog()
	}
	return nil
}

func (o *failed) draw(m *Model, f *frame) {
	list := []widget.Text{{Role: theme.Bad, Text: "✗ " + o.op.Err}}
	if o.op.Ran.IsZero() {
		list = append(list, widget.Text{Text: "Nothing was changed."})
	} else {
		list = append(list, receiptTexts(o.op)...)
	}
	list = append(list, widget.Text{Role: theme.Dim, Text: "r plans it again on newer facts; L keeps this."})
	f.box(m, keymap.InFailed, box{title: widget.Clean(o.op.Title), role: theme.Bad, lines: func(w, h int) []string {
		lines, _ := widget.Window(widget.Paragraphs(list, w, m.env.Theme), 0, h, m.env.Theme)
		return lines
	}})
}
