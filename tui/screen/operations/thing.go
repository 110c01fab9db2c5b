package operations

import (
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
)

// Operation is an operation of this session as it leaves the dashboard. Values of
// forms are left out: some are secret.
type Operation struct {
	At       time.Time           `json:"at"`
	Title    string              `json:"title"`
	Kind     act.Kind            `json:"kind"`
	Target   string              `json:"target"`
	State    act.State           `json:"state"`
	Ended    time.Time           `json:"ended,omitzero"`
	Reason   string              `json:"reason,omitempty"`
	Outcome  string              `json:"outcome,omitempty"`
	Details  []string            `json:"details,omitempty"`
	Error    string              `json:"error,omitempty"`
	Remark   string              `json:"remark,omitempty"`
	Audits   []int64             `json:"audits,omitempty"`
	Recorded *monitor.AuditEntry `json:"recorded,omitempty"`
}

// Taken is an operation as it is now; what becomes of it later does not change that.
func Taken(op *act.Operation, skew time.Duration) Operation {
	o := Operation{
		At: op.Began.Add(skew), Title: op.Title, Kind: op.Order.Kind, Target: op.Order.Target.Name, State: op.State,
		Reason: op.Reason, Error: op.Err, Remark: op.Remark,
	}
	if !op.Ended.IsZero() {
		o.Ended = op.Ended.Add(skew)
	}
	if r := op.Receipt; r != nil {
		o.Outcome, o.Audits = r.Text, r.Audits
		for _, line := range r.Lines {
			o.Details = append(o.Details, line.Text)
		}
	}
	return o
}

// Thing is the operation of a row.
func (v *Operations) Thing(row int) screen.Thing {
	r := v.rows[row]
	var thing screen.Thing
	if r.audit != nil {
		thing = screen.Numbered("audit", r.audit.ID, "", "operator_audit", nil)
	} else {
		thing = screen.Thing{Name: "operation", ID: r.op.Title}
	}
	o := Operation{At: r.at, Recorded: r.audit}
	if r.op != nil {
		o = Taken(r.op, v.env.Now.Sub(v.env.Clock))
		o.Recorded = r.audit
	} else {
		o.Title, o.Kind, o.Target = r.audit.Action+" "+r.audit.Target, act.Kind(r.audit.Action), r.audit.Target
		o.State, o.Reason, o.Audits = act.State(r.audit.Outcome), r.audit.Reason, []int64{r.audit.ID}
	}
	thing.Value = o
	return thing
}

// Beyond says that older acts are recorded.
func (v *Operations) Beyond() string {
	if v.acts.Next() != 0 {
		return "older acts are recorded; the newest are read"
	}
	return ""
}
