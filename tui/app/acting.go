package app

import (
	"context"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Acts plans and runs the acts of operators. The dialogs follow each other:
//
//	menu ─▸ form ─▸ planning ─▸ question ─▸ running ─▸ closed, receipt as a toast
//	                   └──▸ failed ◂──────────┘
//
// Esc goes one step back: from the question to the form with its values, and from the form to the menu; without a
// form it closes the dialog. Esc on a running act closes the dialog only: the act continues and reports its result.
type Acts interface {
	// Plan describes the changes of a request. It changes nothing.
	Plan(ctx context.Context, request act.Request) (*act.Plan, error)
	// Run runs a plan once. With an error, the receipt, if not nil, says what was done before.
	Run(ctx context.Context, plan *act.Plan, reason string, progress *act.Progress) (*act.Receipt, error)
}

// leave records that an operation was not confirmed.
func (m *Model) leave(op *act.Operation, why string) {
	if op.State == act.Planning || op.State == act.Planned {
		op.State, op.Ended, op.Remark = act.Dropped, m.env.Clock, why
		m.operations.SessionChanged()
	}
}

func texts(lines []act.TextLine) []widget.Text {
	out := make([]widget.Text, 0, len(lines)+2)
	for _, line := range lines {
		out = append(out, widget.Text{Role: screen.Tone(line.Tone), Text: line.Text})
	}
	return out
}

// actingLock says why acting is disabled; empty if it is enabled.
func (m *Model) actingLock() string {
	fresh := m.env.Data.Fresh(screen.FeedAudit)
	audit := m.env.Data.Audit
	switch {
	case m.opts.ReadOnly != "":
		return m.opts.ReadOnly
	case m.readOnly != "":
		return m.readOnly
	case m.opts.Acts == nil:
		return "this dashboard only reads"
	case audit == nil && fresh.Err != nil:
		return "the database has not answered yet: " + widget.Clean(fresh.Err.Error())
	case audit == nil:
		return "the database has not answered yet; try again"
	case audit.ReadOnly != "":
		return audit.ReadOnly
	case !audit.Recorded:
		return "this installation has no tables of attune-executor. `attune-executor migrate up` adds them"
	case !audit.Current:
		return "this database lacks tables of this version. `attune-executor migrate` adds them"
	case audit.Adopted && audit.Replicas == 0:
		return "no replica of attune-executor runs on this adopted installation. Start one"
	}
	return ""
}

// mode is RO or RW in the header. It is armed while an act is confirmed or runs.
func (m *Model) mode(armed bool) string {
	switch {
	case m.env.Locked != "":
		return "RO"
	case armed:
		return m.env.Paint(theme.Bad, "RW")
	default:
		return m.env.Paint(theme.Warn, "RW")
	}
}
