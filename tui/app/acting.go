package app

import (
	"context"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Acts carries out what operators ask for. Its dialogs follow each other:
//
//	menu ─▸ form ─▸ planning ─▸ question ─▸ running ─▸ closed, receipt as a toast
//	                   └──▸ failed ◂──────────┘
//
// Esc leads one step back: from the question to the form, with what was written
// there, and from the form to the menu; where there is no form, out of the dialog. Out
// of running it leaves the operation alone, which goes on and reports.
type Acts interface {
	// Plan says what an order would change, and changes nothing.
	Plan(ctx context.Context, order act.Order) (*act.Plan, error)
	// Run carries out a plan, once. With an error the receipt, if there is one,
	// says what had been done by then.
	Run(ctx context.Context, plan *act.Plan, reason string, progress *act.Progress) (*act.Receipt, error)
}

// leave writes down that an operation was not confirmed.
func (m *Model) leave(op *act.Operation, why string) {
	if op.State == act.Planning || op.State == act.Planned {
		op.State, op.Ended, op.Remark = act.Dropped, m.env.Clock, why
		m.operations.SessionChanged()
	}
}

// texts paints the lines of a plan or a receipt by how they are meant.
func texts(lines []act.Line) []widget.Text {
	out := make([]widget.Text, 0, len(lines)+2)
	for _, line := range lines {
		out = append(out, widget.Text{Role: screen.Tone(line.Tone), Text: line.Text})
	}
	return out
}
