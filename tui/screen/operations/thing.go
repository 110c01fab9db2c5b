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

// taken is an operation as it is now; what becomes of it later does not change that.
func taken(op *act.Operation, skew time.Duration) Operation {
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

// thing is the operation of a row.
func (v *Operations) thing(r *row) screen.Thing {
	if len(r.acts) > 0 {
		return screen.Thing{Name: "operation", ID: said(r.audit.Action), Value: bundle(r)}
	}
	if r.op == nil {
		return screen.Numbered("audit", r.audit.ID, "", "operator_audit", recorded(r.audit))
	}
	o := taken(r.op, v.env.Now.Sub(v.env.Clock))
	o.Recorded = r.audit
	if r.audit != nil {
		return screen.Numbered("audit", r.audit.ID, "", "operator_audit", o)
	}
	return screen.Thing{Name: "operation", ID: r.op.Title, Value: o}
}

// recorded is an act of which only its record is known.
func recorded(a *monitor.AuditEntry) Operation {
	return Operation{
		At: a.At, Title: a.Action + " " + a.Target, Kind: act.Kind(a.Action), Target: a.Target,
		State: act.State(a.Outcome), Reason: a.Reason,
		Audits: []int64{a.ID}, Recorded: a,
	}
}

// Older is the id below which acts are recorded that were not read; zero for none.
func (v *Operations) Older() int64 { return v.acts.Next() }
