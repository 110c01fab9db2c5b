package inquiries

import (
	"cmp"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Render draws the view.
func (v *Inquiries) Render(w, h int) []string {
	e := v.env
	switch {
	case v.detail:
		return v.scroll.Window(v.detailLines(w-1), h, e.Theme)
	case e.Data.Inquiries == nil:
		return e.Missing(screen.FeedInquiries, "the inquiries", w)
	}
	foot := v.foot(w)
	if v.Len() == 0 {
		return append(v.Nothing(), foot...)
	}
	tw, th, below := v.layout(w, h, len(foot))
	lines := widget.Fit(v.Table().Lines(tw, th, e.Theme), tw, th)
	if tw < w {
		_, rw := screen.Halves(w)
		return e.Beside(append(lines, foot...), v.detailLines(rw), w, h)
	}
	if below > 0 {
		lines = append(lines, e.Rule("inquiry "+strconv.FormatInt(v.Subject(), 10), "enter = all of it", w))
		lines = append(lines, widget.Fit(v.detailLines(w-1), w, below-1)...)
	}
	return append(lines, foot...)
}

// Places is where the table is drawn.
func (v *Inquiries) Places(w, h int) screen.Places {
	if v.env.Data.Inquiries == nil || v.detail {
		return nil
	}
	tw, th, _ := v.layout(w, h, len(v.foot(w)))
	return screen.Places{{Table: v.Table(), W: tw, H: th, Focus: func() { v.linked = 0 }}}
}

// layout is the size of the table, and the height of the preview below it.
func (v *Inquiries) layout(w, h, foot int) (tw, th, below int) {
	room := max(1, h-foot)
	switch {
	case v.PreviewShown() && w >= 120 && h >= 15:
		lw, _ := screen.Halves(w)
		return lw - 1, room, 0
	case v.PreviewShown() && h >= 14:
		below = min(h/2, 9)
	}
	return w, room - below, below
}

func (v *Inquiries) foot(w int) []string {
	e, p := v.env, v.env.Data.Inquiries
	text := " " + e.Num(int64(v.Len())) + " loaded"
	if v.next != "" {
		text += ", more below: G loads them"
	}
	lines := []string{e.Dim(text) + v.Gone()}
	if len(p.Faults) > 0 {
		f := p.Faults[0]
		fault := " ▲ " + strconv.Itoa(len(p.Faults)) + " could not be asked, the newest by execution " +
			strconv.FormatInt(f.Execution, 10) + ": " + widget.Clean(f.Reason)
		lines = append(lines, e.Paint(theme.Warn, widget.Cut(fault, w)))
	}
	return lines
}

// detailLines describe one inquiry: the question, what fits as an answer, the answer, and who asks.
func (v *Inquiries) detailLines(w int) []string {
	e, d := v.env, v.current()
	switch {
	case d == nil && v.Subject() == 0:
		return nil
	case d == nil:
		return e.Missing(screen.FeedInquiry, "inquiry "+strconv.FormatInt(v.Subject(), 10), w)
	}
	asked := "   asked " + widget.Age(e.Since(d.Created)) + " ago"
	switch {
	case d.Open() && d.TimeoutAt == nil:
		asked += ", waits for ever"
	case d.Open():
		left := e.Worry(", "+widget.Age(d.TimeoutAt.Sub(e.Now))+" left", late(&d.Inquiry, e.Now))
		asked += e.Paint(left.Role, left.Text)
	}
	lines := []string{" " + e.State(d.Status) + "  for " +
		e.Paint(theme.Strong, widget.Clean(d.For())) + asked}
	for _, paragraph := range widget.CleanLines(d.Prompt) {
		for _, part := range widget.Wrap(paragraph, max(8, w-2)) {
			lines = append(lines, " "+part)
		}
	}
	lines = append(lines, "", " "+e.Dim("WHAT FITS"))
	lines = append(lines, v.formLines(w)...)
	if !d.Open() {
		lines = append(append(lines, "", " "+e.Dim("ANSWER")), answerLines(d)...)
	} else if e.Locked == "" {
		lines = append(lines, " "+e.Paint(theme.Accent, "A")+" answers it")
	}
	return append(lines, v.originLines(d)...)
}

// formLines describe the fields of an answer.
func (v *Inquiries) formLines(w int) []string {
	var lines []string
	for _, field := range v.form.Fields {
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
		label := v.env.Paint(theme.Accent, name)
		for _, part := range widget.Wrap(text, max(8, w-widget.Width(name)-4)) {
			lines, label = append(lines, " "+label+"  "+part), widget.Blank(widget.Width(name))
		}
	}
	return lines
}

func answerLines(d *monitor.InquiryDetail) []string {
	switch d.Status {
	case monitor.InquiryResponded:
		by := cmp.Or(widget.Clean(d.Responder), "an unknown person")
		return append([]string{" by " + by + " " + stamp(d.RespondedAt)},
			screen.Indented(jsonview.Text(string(d.Response)))...)
	case monitor.InquiryTimeout:
		return []string{" none: it timed out " + stamp(d.TimeoutAt)}
	default:
		return []string{" none: it was cancelled " + stamp(&d.Updated)}
	}
}

// originLines say who asks.
func (v *Inquiries) originLines(d *monitor.InquiryDetail) []string {
	e := v.env
	execution := " execution " + strconv.FormatInt(d.Execution, 10) + " " + widget.Clean(d.ActionRef) + "  " +
		e.State(d.ExecutionStatus)
	if d.Kind == monitor.InquiryOfResult {
		execution += "  in its result"
	}
	lines := []string{"", " " + e.Dim("ASKED BY"), execution}
	if d.Workflow != nil {
		task := ""
		if d.Task != "" {
			task = " task " + widget.Clean(d.Task)
		}
		lines = append(lines, " workflow  "+strconv.FormatInt(*d.Workflow, 10)+" "+widget.Clean(d.WorkflowRef)+task+
			"  "+e.State(d.WorkflowStatus))
	}
	return append(lines, e.Dim(" asked     "+stamp(&d.Created)))
}

func stamp(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05Z")
}
