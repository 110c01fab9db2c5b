package app

import (
	"context"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
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
	// Plan describes the changes of an order. It changes nothing.
	Plan(ctx context.Context, order act.Order) (*act.Plan, error)
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

func texts(lines []act.Line) []widget.Text {
	out := make([]widget.Text, 0, len(lines)+2)
	for _, line := range lines {
		out = append(out, widget.Text{Role: screen.Tone(line.Tone), Text: line.Text})
	}
	return out
}
