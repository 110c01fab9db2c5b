package inquiries

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// asked is the inquiry under the cursor, as far as it is known; nil without one.
func (v *Inquiries) asked() *monitor.Inquiry {
	if d := v.current(); d != nil {
		return &d.Inquiry
	}
	if at := v.table.Cursor(); v.wanted == 0 && at >= 0 && at < len(v.rows) {
		return &v.rows[at]
	}
	return nil
}

// RelatedExecution is the execution that asks.
func (v *Inquiries) RelatedExecution() (*monitor.Execution, bool) {
	i := v.asked()
	if i == nil || i.Execution == 0 {
		return nil, false
	}
	return &monitor.Execution{ID: i.Execution, ActionRef: i.ActionRef, Status: i.ExecutionStatus, Parent: i.Workflow}, true
}

// Relations is what the inquiry under the cursor has to do with, first who asks.
func (v *Inquiries) Relations() (title string, list []screen.Relation, ok bool) {
	i := v.asked()
	if i == nil {
		return "", nil, false
	}
	title = "inquiry " + strconv.FormatInt(i.ID, 10)
	x, ok := v.RelatedExecution()
	if !ok {
		return title, []screen.Relation{{Key: "x", Label: "execution", Not: "none asks any more"}}, true
	}
	task := screen.Relation{Key: "t", Label: "task", Not: "no workflow asks"}
	if i.Workflow != nil {
		task = screen.Relation{
			Key: "t", Label: "task", Help: i.Task + " of " + i.WorkflowRef, To: screen.Effect{Handled: true, Open: keymap.InWorkflows, Workflow: *i.Workflow},
		}
	}
	list = []screen.Relation{
		{Key: "x", Label: "execution", Help: strconv.FormatInt(x.ID, 10) + "  " + x.ActionRef, To: screen.OpenExecution(x.ID)},
		task,
	}
	return title, append(list, screen.ExecutionRelations(x, nil)...), true
}
