package operations

import (
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// Operation is an operation as it is exported. Values of forms are left out: some are secret.
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

// Bundle is a folded group as it is exported.
type Bundle []Operation

func (v *Operations) export(r *row) screen.Thing {
	switch {
	case len(r.group) > 0:
		var bundle Bundle // empty if unfolded: the records are rows themselves
		for i := range r.group {
			if !r.unfolded {
				bundle = append(bundle, recorded(r.group[i].audit))
			}
		}
		return screen.Thing{Name: "operation", ID: verbFirst(r.kind), Value: bundle}
	case r.op == nil:
		return screen.Numbered("audit", r.audit.ID, "", "operator_audit", recorded(r.audit))
	}
	o := snapshot(r.op, v.env.Skew)
	o.Recorded = r.audit
	if r.audit != nil {
		return screen.Numbered("audit", r.audit.ID, "", "operator_audit", o)
	}
	return screen.Thing{Name: "operation", ID: r.op.Title, Value: o}
}

// snapshot copies an operation, so that an export does not change with it.
func snapshot(op *act.Operation, skew time.Duration) Operation {
	o := Operation{
		At: op.Began.Add(skew), Title: op.Title, Kind: op.Request.Kind, Target: op.Request.Target.Name, State: op.State,
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

func recorded(a *monitor.AuditEntry) Operation {
	return Operation{
		At: a.At, Title: a.Action + " " + a.Target, Kind: act.Kind(a.Action), Target: a.Target,
		State: act.State(a.Outcome), Reason: a.Reason, Audits: []int64{a.ID}, Recorded: a,
	}
}
