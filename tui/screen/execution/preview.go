package execution

import (
	"encoding/json"
	"strings"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Unread names what is to be read for the preview of an execution; empty when nothing
// is.
func Unread(e *screen.Env, id int64) screen.Feed {
	switch {
	case e.Data.Glance == nil || e.Data.Glance.ExecutionDetail == nil || e.Data.Glance.ID != id:
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
func Preview(e *screen.Env, r *monitor.Execution, w int) []string {
	x := &Execution{env: e, id: r.ID}
	d := &monitor.ExecutionDetail{Execution: *r}
	if read := Unread(e, r.ID); read != screen.FeedGlance {
		x.glance, d = e.Data.Glance.ExecutionDetail, e.Data.Glance.ExecutionDetail
	}
	line := func(name, text string) string {
		return " " + e.Paint(theme.Dim, widget.Left(name, 10)) + " " + widget.Cut(text, max(1, w-13))
	}
	lines := []string{" " + e.State(d.Status) + "  " + widget.Clean(d.ActionRef) + "   try " + monitor.Tries(d.RetryCount, d.MaxRetries) + "   " + x.placed(d)}
	if params := monitor.ParamsLine(d.Config); params != "" {
		lines = append(lines, line("params", widget.Clean(params)))
	}
	switch {
	case len(d.Why) > 0:
		lines = append(lines, line("waits", widget.Clean(strings.Join(strings.Fields(strings.Join(d.Why, " ")), " "))))
	case !attune.Status(d.Status).Terminal():
		lines = append(lines, line("reason", x.waits(d, "-")))
	default:
		lines = append(lines, x.results(d, line)...)
	}
	lines = append(lines, line("timeline", x.inALine(d)))
	if related := x.standings(); x.glance != nil && related != "" {
		lines = append(lines, line("related", related))
	}
	if x.glance == nil {
		return lines
	}
	verdict := strings.TrimSpace(x.verdictLine(d))
	return append(lines, " "+e.Paint(theme.Dim, widget.Left("repeat", 10))+" "+widget.Cut(verdict, max(1, w-13)))
}

// placed is its worker, and how that is where it is known.
func (x *Execution) placed(d *monitor.ExecutionDetail) string {
	if d.WorkerID == nil {
		return x.env.Paint(theme.Dim, "no worker")
	}
	text := "worker " + widget.Clean(screen.WorkerName(d.WorkerID, d.WorkerName))
	if health := x.worker(d); health != "" {
		text += " " + x.env.State(string(health))
	}
	return text
}

// results say why it ended as it did: the message of its result, and its error where
// that says something else.
func (x *Execution) results(d *monitor.ExecutionDetail, line func(name, text string) string) []string {
	reason := widget.Clean(d.Reason)
	if reason == "" {
		reason = "-"
	}
	lines := []string{line("reason", reason)}
	var result struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(d.Result), &result) != nil { // what is no object has no error of its own
		return lines
	}
	if text := widget.Clean(result.Error); text != "" && text != reason {
		lines = append(lines, line("error", text))
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
			text.WriteString(e.Paint(theme.Dim, " "+e.Theme.Glyphs.Arrow+" "+widget.Age(s.At.Sub(d.Timeline[i-1].At))+" "))
		}
		look := e.Theme.Of(s.Status)
		text.WriteString(e.Paint(look.Role, widget.Clean(s.Status)) + " " + s.At.UTC().Format("15:04:05"))
		if remark := x.remark(d, i); remark != "" && (i == 0 || s.Worker == nil || attune.Status(s.Status).Terminal()) {
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
		parts = append(parts, x.env.Paint(theme.Dim, widget.Clean(r.Label))+" "+strings.Join(strings.Fields(x.standing(r, 40)), " "))
	}
	return strings.Join(parts, " · ")
}
