package execution

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// remark says of a step what its status does not: who asked for it, to which worker
// it went, why it ended.
func (x *Execution) remark(d *monitor.ExecutionDetail, i int) string {
	s := d.Timeline[i]
	switch {
	case i == 0 && s.Status == string(attune.StatusRequested):
		return x.source(d)
	case attune.Status(s.Status).Terminal():
		return x.ending(d, i)
	case s.Worker == nil:
		return ""
	case d.WorkerID != nil && *d.WorkerID == *s.Worker && d.WorkerName != "":
		return "on " + widget.Clean(d.WorkerName) + " (id " + strconv.FormatInt(*s.Worker, 10) + ")"
	default:
		return "on worker " + strconv.FormatInt(*s.Worker, 10)
	}
}

// source is what asked for an execution; empty where that was not read, or where it
// was a request from outside.
func (x *Execution) source(d *monitor.ExecutionDetail) string {
	f := x.family()
	switch {
	case d.Original != nil && d.RetryReason != "":
		return "retry of " + reference(d.Original) + ": " + widget.Clean(d.RetryReason)
	case d.Original != nil:
		return "retry of " + reference(d.Original)
	case f != nil && f.Of(x.id) != nil && f.Of(x.id).Task != "":
		return "task " + widget.Clean(f.Of(x.id).TaskName()) + " of " + reference(d.Parent)
	case d.Parent != nil:
		return "started by " + reference(d.Parent)
	case f != nil && f.Enforcement != nil:
		return "rule " + widget.Clean(f.Enforcement.RuleRef)
	case d.Enforcement != nil:
		return "enforcement " + reference(d.Enforcement)
	default:
		return ""
	}
}

// letterSlack is how far apart the end of an execution and what was stored of its
// letter may be.
const letterSlack = time.Minute

// ending says of the last step that the execution was never started, and that its
// hand-over had expired.
func (x *Execution) ending(d *monitor.ExecutionDetail, i int) string {
	e, s := x.env, d.Timeline[i]
	if i == 0 || d.Timeline[i-1].Status != string(attune.StatusScheduled) {
		return ""
	}
	expired := strings.Contains(strings.ToLower(d.Reason), "expired")
	if f := x.family(); f != nil {
		for _, l := range f.Letters {
			expired = expired || l.Reason == "expired" && l.At.Sub(s.At).Abs() < letterSlack
		}
	}
	if !expired || s.Status != string(attune.StatusFailed) {
		return e.Paint(theme.Dim, "never started")
	}
	return e.Paint(theme.Warn, e.Theme.Glyphs.Warning+" waited the full TTL, never started")
}
