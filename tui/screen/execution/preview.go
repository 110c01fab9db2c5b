package execution

import (
	"strings"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Unread names the feed that the preview of an execution lacks; empty if none.
func Unread(e *screen.Env, id int64) screen.Feed {
	switch d := e.Data.Glanced(); {
	case d == nil || d.ID != id:
		return screen.FeedGlance
	case e.Data.Family == nil || e.Data.Family.ID != id:
		return screen.FeedFamily
	default:
		return ""
	}
}

// Preview describes an execution below a list: why it waits or ended, its timeline in a line, its
// relations, and whether R can repeat it. Unread parts are left out.
func (x *Execution) Preview(r *monitor.Execution, w int) []string {
	e, d, health, params, failure := x.env, x.current(), x.health, x.params, x.failure
	read := d != nil && d.ID == r.ID
	if !read {
		d = &monitor.ExecutionDetail{Execution: *r}
		health, params, failure = x.workerHealth(d), "", ""
	}
	worker := e.Dim("no worker")
	if d.WorkerID != nil {
		worker = "worker " + widget.Clean(monitor.WorkerName(d.WorkerID, d.WorkerName))
	}
	if health != "" {
		worker += " " + e.State(string(health))
	}
	list := []screen.Fact{{Name: "params", Text: params}}
	switch ended := lifecycle.Status(d.Status).Terminal(); {
	case len(d.Why) > 0:
		why := strings.Join(strings.Fields(strings.Join(d.Why, " ")), " ")
		list = append(list, screen.Fact{Name: "waits", Text: widget.Clean(why)})
	case !ended && d.Status != string(lifecycle.StatusScheduled):
		list = append(list, screen.Fact{Name: "reason", Text: "-"})
	default:
		list = append(list, screen.Fact{Name: "reason", Text: reason(d)})
		if ended && failure != reason(d) {
			list = append(list, screen.Fact{Name: "error", Text: failure})
		}
	}
	list = append(list, screen.Fact{Name: "timeline", Text: x.timelineLine(d)})
	if read {
		list = append(list, screen.Fact{Name: "related", Text: x.relatedLine()},
			screen.Fact{Name: "repeat", Text: strings.TrimSpace(x.verdictLine())})
	}
	lines := []string{x.headline(d, worker)}
	for _, fact := range list {
		if fact.Text != "" {
			lines = append(lines, " "+e.Label(fact.Name, 10)+" "+widget.Cut(fact.Text, max(1, w-13)))
		}
	}
	return lines
}

// timelineLine is the timeline with the time between its steps.
func (x *Execution) timelineLine(d *monitor.ExecutionDetail) string {
	e := x.env
	if !d.TimelineKnown {
		text := "created " + screen.TimeOfDay(d.Created)
		if d.StartedAt != nil {
			text += "  started " + screen.TimeOfDay(*d.StartedAt)
		}
		if d.FinishedAt != nil {
			text += "  ended " + screen.TimeOfDay(*d.FinishedAt)
		}
		return text + "  updated " + screen.TimeOfDay(d.Updated)
	}
	text := ""
	for i := range d.Timeline {
		s := &d.Timeline[i]
		if s.Status == "" {
			continue
		}
		if text != "" {
			text += e.Dim(" " + e.Theme.Glyphs.Arrow + " " + widget.Age(s.At.Sub(d.Timeline[i-1].At)) + " ")
		}
		text += e.Paint(e.Theme.Of(s.Status).Role, widget.Clean(s.Status)) + " " + screen.TimeOfDay(s.At)
		remark := x.remark(d, i)
		if remark != "" && (i == 0 || s.Worker == nil || lifecycle.Status(s.Status).Terminal()) {
			text += " " + remark // the headline names the worker
		}
	}
	return text
}

// relatedLine lists the existing relations. It leaves out the worker, which the headline names, and
// the tree, which its parent stands for.
func (x *Execution) relatedLine() string {
	_, list, _ := x.Relations()
	var parts []string
	for i := range list {
		r := &list[i]
		if r.Not != "" || r.Key == "w" || r.Key == "f" || r.Key == "c" && x.current().Children.Value == 0 {
			continue
		}
		parts = append(parts, x.env.Dim(widget.Clean(r.Label))+" "+strings.Join(strings.Fields(x.target(r, 40)), " "))
	}
	return strings.Join(parts, " · ")
}
