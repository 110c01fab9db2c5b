package execution

import (
	"strings"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Unread names what is to be read for the preview of an execution; empty when nothing
// is.
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

// Preview is an execution below a wide list: why it is as it is, its steps in a line,
// what it has to do with, and whether it can be repeated. What was not read yet is left
// out.
func (x *Execution) Preview(r *monitor.Execution, w int) []string {
	e, d, health, params, failure := x.env, x.current(), x.health, x.params, x.failure
	read := d != nil && d.ID == r.ID
	if !read {
		d = &monitor.ExecutionDetail{Execution: *r}
		health, params, failure = x.worker(d), "", ""
	}
	placed := e.Dim("no worker")
	if d.WorkerID != nil {
		placed = "worker " + widget.Clean(screen.WorkerName(d.WorkerID, d.WorkerName))
	}
	if health != "" {
		placed += " " + e.State(string(health))
	}
	list := []screen.Fact{{Name: "params", Text: params}}
	switch why := strings.Join(strings.Fields(strings.Join(d.Why, " ")), " "); {
	case len(d.Why) > 0:
		list = append(list, screen.Fact{Name: "waits", Text: widget.Clean(why)})
	case attune.Status(d.Status).Terminal():
		list = append(list, screen.Fact{Name: "reason", Text: reason(d)})
		if failure != reason(d) {
			list = append(list, screen.Fact{Name: "error", Text: failure})
		}
	case d.Status == string(attune.StatusScheduled):
		list = append(list, screen.Fact{Name: "reason", Text: reason(d)})
	default:
		list = append(list, screen.Fact{Name: "reason", Text: "-"})
	}
	list = append(list, screen.Fact{Name: "timeline", Text: x.inALine(d)})
	if read {
		list = append(list, screen.Fact{Name: "related", Text: x.standings()},
			screen.Fact{Name: "repeat", Text: strings.TrimSpace(x.verdictLine())})
	}
	lines := []string{x.first(d, placed)}
	for _, fact := range list {
		if fact.Text != "" {
			lines = append(lines, " "+e.Label(fact.Name, 10)+" "+widget.Cut(fact.Text, max(1, w-13)))
		}
	}
	return lines
}

// inALine is the timeline as one line, with the time between its steps.
func (x *Execution) inALine(d *monitor.ExecutionDetail) string {
	e := x.env
	if !d.TimelineKnown {
		text := "created " + d.Created.UTC().Format("15:04:05")
		if d.StartedAt != nil {
			text += "  started " + d.StartedAt.UTC().Format("15:04:05")
		}
		if d.FinishedAt != nil {
			text += "  ended " + d.FinishedAt.UTC().Format("15:04:05")
		}
		return text + "  updated " + d.Updated.UTC().Format("15:04:05")
	}
	var text strings.Builder
	for i := range d.Timeline {
		s := &d.Timeline[i]
		if s.Status == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteString(e.Dim(" " + e.Theme.Glyphs.Arrow + " " + widget.Age(s.At.Sub(d.Timeline[i-1].At)) + " "))
		}
		text.WriteString(e.Paint(e.Theme.Of(s.Status).Role, widget.Clean(s.Status)))
		text.WriteString(" " + s.At.UTC().Format("15:04:05"))
		remark := x.remark(d, i)
		if remark != "" && (i == 0 || s.Worker == nil || attune.Status(s.Status).Terminal()) {
			text.WriteString(" " + remark) // its worker stands above
		}
	}
	return text.String()
}

// standings are the things it has to do with that there are, in a line.
func (x *Execution) standings() string {
	_, list, _ := x.Relations()
	var parts []string
	for i := range list {
		r := &list[i]
		elsewhere := r.Key == "w" || r.Key == "f" // above, and the tree that its parent stands for
		if r.Not != "" || elsewhere || r.Key == "c" && x.current().Children.Value == 0 {
			continue
		}
		parts = append(parts, x.env.Dim(widget.Clean(r.Label))+" "+strings.Join(strings.Fields(x.standing(r, 40)), " "))
	}
	return strings.Join(parts, " · ")
}
