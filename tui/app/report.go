package app

import (
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// report shows the result of an operation.
func (m *Model) report(op *act.Operation) { m.reports = append(m.reports, op) }

// reportTime is how long a success is shown. Failures stay until they are dismissed.
const reportTime = 10 * time.Second

func (m *Model) ageReports() {
	m.reports = slices.DeleteFunc(m.reports, func(op *act.Operation) bool {
		return op.State == act.Done && m.env.Clock.Sub(op.Ended) >= reportTime
	})
}

// newest is the newest report, or nil.
func (m *Model) newest() *widget.Toast {
	if len(m.reports) == 0 {
		return nil
	}
	op := m.reports[len(m.reports)-1]
	toast := &widget.Toast{Title: m.outcome(op) + " " + op.Title, Texts: receiptTexts(op), Role: theme.Good,
		Note: "esc · L log"}
	switch op.State {
	case act.Failed:
		toast.Role = theme.Bad
		toast.Texts = append([]widget.Text{{Role: theme.Bad, Text: op.Err}}, toast.Texts...)
	case act.Partial:
		toast.Role = theme.Warn
	}
	if older := len(m.reports) - 1; older > 0 {
		toast.Note = m.env.Num(int64(older)) + " more · " + toast.Note
	}
	return toast
}

func (m *Model) outcome(op *act.Operation) string {
	g := &m.env.Theme.Glyphs
	switch op.State {
	case act.Failed:
		return g.Failed
	case act.Partial:
		return g.Warning
	default:
		return g.Done
	}
}

// dismiss removes the newest report, if any.
func (m *Model) dismiss() bool {
	if m.newest() == nil {
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
	if r.Next != "" {
		list = append(list, widget.Text{Role: theme.Accent, Text: "→ " + r.Next})
	}
	if len(r.Audits) > 0 {
		list = append(list, widget.Text{Role: theme.Dim, Text: act.AuditText(r.Audits)})
	}
	return list
}

// remember adds an operation to the log, which drops the oldest finished one.
func (m *Model) remember(op *act.Operation) {
	const most = 500
	m.env.Session = append(m.env.Session, op)
	if len(m.env.Session) > most && m.env.Session[0].Over() {
		m.env.Session = m.env.Session[1:]
	}
	m.operations.SessionChanged()
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
