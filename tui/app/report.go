package app

import (
	"strings"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// reportTime is how long a success is shown. Failures stay until they are dismissed.
const reportTime = 10 * time.Second

// newest is the newest report, or nil.
func (m *Model) newest() *widget.Toast {
	if len(m.reports) == 0 {
		return nil
	}
	op := m.reports[len(m.reports)-1]
	var sign string
	g := &m.env.Theme.Glyphs
	toast := &widget.Toast{Texts: receiptTexts(op), Note: "esc · L log"}
	switch op.State {
	case act.Failed:
		sign, toast.Role = g.Failed, theme.Bad
		toast.Texts = append([]widget.Text{{Role: theme.Bad, Text: op.Err}}, toast.Texts...)
	case act.Partial:
		sign, toast.Role = g.Warning, theme.Warn
	default:
		sign, toast.Role = g.Done, theme.Good
	}
	toast.Title = sign + " " + op.Title
	if older := len(m.reports) - 1; older > 0 {
		toast.Note = m.env.Num(int64(older)) + " more · " + toast.Note
	}
	return toast
}

// dismiss removes the newest report, if any.
func (m *Model) dismiss() bool {
	if len(m.reports) == 0 {
		return false
	}
	m.reports = m.reports[:len(m.reports)-1]
	return true
}

func receiptTexts(op *act.Operation) []widget.Text {
	r := op.Receipt
	if r == nil {
		return nil
	}
	list := []widget.Text{{Text: r.Text}}
	list = append(list, texts(r.Lines)...)
	if next := screen.Next(r); next != "" {
		list = append(list, widget.Text{Role: theme.Accent, Text: "→ " + next})
	}
	if len(r.Audits) > 0 {
		list = append(list, widget.Text{Role: theme.Dim, Text: act.AuditText(r.Audits)})
	}
	return list
}

// newOperation adds an operation to the log, which drops the oldest finished one.
func (m *Model) newOperation(request act.Request, title string, state act.State) *act.Operation {
	const most = 500
	m.lastOperation++
	op := &act.Operation{
		ID: m.lastOperation, Request: request, Title: title, State: state, Began: m.env.Clock,
		Progress: &act.Progress{},
	}
	m.env.Session = append(m.env.Session, op)
	if len(m.env.Session) > most && m.env.Session[0].Over() {
		m.env.Session = m.env.Session[1:]
	}
	m.operations.SessionChanged()
	return op
}

// busy names the running operations.
func (m *Model) busy() string {
	var names []string
	for _, op := range m.env.Session {
		if _, ok := m.underWay[op]; ok {
			names = append(names, op.Title)
		}
	}
	return strings.Join(names, ", ")
}
