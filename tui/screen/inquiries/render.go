package inquiries

import (
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Render draws the view.
func (v *Inquiries) Render(w, h int) []string {
	e := v.env
	if v.detail {
		return v.scroll.Window(v.about(w-1), h, e.Theme)
	}
	if e.Data.Inquiries == nil {
		return e.Missing(screen.FeedInquiries, "the inquiries", w)
	}
	foot := v.foot(w)
	if v.Len() == 0 {
		return append(v.empty(), foot...)
	}
	room := max(1, h-len(foot))
	if v.PreviewShown() && w >= 120 && h >= 15 {
		lw, rw := screen.Halves(w)
		left := append(widget.Fit(v.Table().Lines(lw-1, room, e.Theme), lw-1, room), foot...)
		return e.Beside(left, v.about(rw), w, h)
	}
	below := 0
	if v.PreviewShown() && h >= 14 {
		below = min(h/2, 9)
	}
	lines := widget.Fit(v.Table().Lines(w, room-below, e.Theme), w, room-below)
	if below > 0 {
		lines = append(lines, e.Rule("inquiry "+strconv.FormatInt(v.Subject(), 10), "enter = all of it", w))
		lines = append(lines, widget.Fit(v.about(w-1), w, below-1)...)
	}
	return append(lines, foot...)
}

// foot says of the rows what they do not say themselves.
func (v *Inquiries) foot(w int) []string {
	e, p := v.env, v.env.Data.Inquiries
	text := " " + e.Num(int64(v.Len())) + " loaded"
	if v.next != "" {
		text += ", more below: G loads them"
	}
	if p.Bounded {
		text += " · search stopped at its bound"
	}
	lines := []string{e.Paint(theme.Dim, text) + v.Gone()}
	if len(p.Faults) > 0 {
		f := p.Faults[0]
		says := " ▲ " + strconv.Itoa(len(p.Faults)) + " could not be asked, the newest by execution " +
			strconv.FormatInt(f.Execution, 10) + ": " + widget.Clean(f.Reason)
		lines = append(lines, e.Paint(theme.Warn, widget.Cut(says, w)))
	}
	return lines
}

func (v *Inquiries) empty() []string {
	if v.Problems() && v.Filter() == "" {
		return []string{"", " No question has used up most of its time, waits for long, or was answered by nobody.",
			" z shows all of them again."}
	}
	if v.Filter() != "" {
		also := ""
		if v.Problems() {
			also = " among those in trouble (z shows all)"
		}
		lines := []string{
			"", " No inquiry matches /" + widget.Clean(v.Filter()) + also + ".",
			" esc clears the filter; terms: " + strings.Join(filter.Inquiries.Examples(), "  "),
		}
		if v.env.Data.Inquiries.Open.Value > 0 {
			lines = append(lines, " "+v.env.Count(v.env.Data.Inquiries.Open)+" wait for an answer that do not match.")
		}
		return lines
	}
	return []string{
		"", " Nobody has been asked anything yet.",
		" A task with the action core.ask asks a person, and its workflow goes on",
		" from the answer: docs/inquiries.md",
	}
}

// about is all that is known of the inquiry under the cursor: what is asked, what
// fits, who asks and whom, and what was answered.
func (v *Inquiries) about(w int) []string {
	e, d := v.env, v.current()
	if d == nil {
		if v.Subject() == 0 {
			return nil
		}
		return e.Missing(screen.FeedInquiry, "inquiry "+strconv.FormatInt(v.Subject(), 10), w)
	}
	lines := []string{" " + e.State(d.Status) + "  for " +
		e.Paint(theme.Strong, widget.Clean(whom(&d.Inquiry))) + v.deadline(&d.Inquiry)}
	for _, paragraph := range widget.CleanLines(d.Prompt) {
		for _, part := range widget.Wrap(paragraph, max(8, w-2)) {
			lines = append(lines, " "+part)
		}
	}
	lines = append(lines, "", " "+e.Paint(theme.Dim, "WHAT FITS"))
	lines = append(lines, v.fits(d, w)...)
	if !d.Open() {
		lines = append(lines, v.answer(d)...)
	} else if e.Locked == "" {
		lines = append(lines, " "+e.Paint(theme.Accent, "A")+" answers it")
	}
	return append(lines, v.origin(d)...)
}

// deadline says until when it may be answered.
func (v *Inquiries) deadline(i *monitor.Inquiry) string {
	e := v.env
	asked := "   asked " + widget.Age(e.Since(i.Created)) + " ago"
	switch {
	case !i.Open():
		return asked
	case i.TimeoutAt == nil:
		return asked + ", waits for ever"
	}
	role := theme.Plain
	if late(i, e.Now) {
		role = theme.Warn
	}
	return asked + e.Paint(role, ", "+widget.Age(i.TimeoutAt.Sub(e.Now))+" left")
}

// fits says in words what an answer must look like.
func (v *Inquiries) fits(d *monitor.InquiryDetail, w int) []string {
	var lines []string
	for _, field := range v.asks(d).Fields {
		text := field.Words
		if field.Required {
			text += ", required"
		}
		if field.Default != "" {
			text += ", default " + field.Default
		}
		if field.Secret {
			text += ", secret"
		}
		if field.About != "" {
			text += ": " + field.About
		}
		name := widget.Cut(widget.Clean(field.Name), max(8, w/3))
		for i, part := range widget.Wrap(text, max(8, w-widget.Width(name)-4)) {
			label := widget.Blank(widget.Width(name))
			if i == 0 {
				label = v.env.Paint(theme.Accent, name)
			}
			lines = append(lines, " "+label+"  "+part)
		}
	}
	return lines
}

// answer says how it ended.
func (v *Inquiries) answer(d *monitor.InquiryDetail) []string {
	e := v.env
	lines := []string{"", " " + e.Paint(theme.Dim, "ANSWER")}
	switch d.Status {
	case monitor.InquiryResponded:
		by := widget.Clean(d.Responder)
		if by == "" {
			by = "somebody"
		}
		lines = append(lines, " by "+by+" "+stamp(d.RespondedAt))
		for _, line := range jsonview.Text(string(d.Response)) {
			lines = append(lines, " "+line)
		}
	case monitor.InquiryTimeout:
		lines = append(lines, " none: its time was over "+stamp(d.TimeoutAt))
	default:
		lines = append(lines, " none: it was cancelled "+stamp(&d.Updated))
	}
	return lines
}

// origin says who asks and what follows from an answer.
func (v *Inquiries) origin(d *monitor.InquiryDetail) []string {
	e := v.env
	execution := strconv.FormatInt(d.Execution, 10) + " " + widget.Clean(d.ActionRef)
	lines := []string{"", " " + e.Paint(theme.Dim, "ASKED BY"),
		" execution " + execution + "  " + e.State(d.ExecutionStatus)}
	if d.Kind == monitor.InquiryOfResult {
		lines[len(lines)-1] += "  in its result"
	}
	if d.Workflow != nil {
		task := ""
		if d.Task != "" {
			task = " task " + widget.Clean(d.Task)
		}
		lines = append(lines, " workflow  "+strconv.FormatInt(*d.Workflow, 10)+" "+widget.Clean(d.WorkflowRef)+task+
			"  "+e.State(d.WorkflowStatus))
	}
	return append(lines, e.Paint(theme.Dim, " asked     "+stamp(&d.Created)))
}

func stamp(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05Z")
}
