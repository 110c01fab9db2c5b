package app

import (
	"cmp"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// maxDialog is how wide a dialog is at most; longer lines are hard to read.
const maxDialog = 96

// spinMsg turns the wheel of a dialog that waits.
type spinMsg struct{}

// spinEvery is how often the wheel turns.
const spinEvery = 120 * time.Millisecond

// waiting reports whether the dialog waits for an answer.
func (m *Model) waiting() bool {
	return m.dialog.scope == keymap.InPlanning || m.dialog.scope == keymap.InRunning
}

// spin starts the wheel unless it turns already.
func (m *Model) spin() tea.Cmd {
	if m.spinning || !m.waiting() {
		return nil
	}
	m.spinning = true
	return m.opts.After(spinEvery, spinMsg{})
}

func (m *Model) spun() tea.Cmd {
	m.spinning = false
	return m.spin()
}

func (m *Model) turning() string {
	g := &m.env.Theme.Glyphs
	signs := []string{g.Busy, g.OK, g.Idle, g.Scheduled}
	return signs[int(m.env.Clock.UnixMilli()/spinEvery.Milliseconds())%len(signs)]
}

// overlay lays the open dialog, or the newest report, upon the lines between the
// chrome.
func (m *Model) overlay(body []string) []string {
	th := m.env.Theme
	if m.dialog.scope != "" {
		box := m.dialogBox(min(m.width-2, maxDialog), len(body))
		x, y := (m.width-widget.Width(box[0]))/2, max(0, (len(body)-len(box))/2)
		return widget.Overlay(widget.Fade(body, th), box, x, y, m.width, th)
	}
	if m.prompt == palettePrompt {
		return m.paletteOverlay(body)
	}
	toast := m.newest()
	if toast == nil {
		return body
	}
	box := toast.Lines(m.width-2, len(body), th)
	return widget.Overlay(body, box, m.width-1-widget.Width(box[0]), len(body)-len(box), m.width, th)
}

// dialogBox draws the dialog in at most w cells and h lines.
func (m *Model) dialogBox(w, h int) []string {
	d, th := &m.dialog, m.env.Theme
	if d.scope == keymap.InMenu || d.scope == keymap.InColumns || d.scope == keymap.InRelated || d.scope == keymap.InCarry { // as narrow as it can be, so that the rows stay in sight
		w = min(w, max(d.list.Width(), widget.Width(m.dialogTitle())+4, widget.Width(d.note)+2)+4)
	}
	inner, room := w-4, h-2
	title, note, role := m.dialogTitle(), "", theme.Accent
	var lines []string
	switch d.scope {
	case keymap.InMenu, keymap.InRelated, keymap.InCarry:
		lines = d.list.Lines(inner, room-2, th)
		if d.note != "" {
			lines = append(lines, "", th.Paint(theme.Warn, widget.Cut("▲ "+widget.Clean(d.note), inner)))
		}
	case keymap.InColumns:
		lines = d.list.Lines(inner, room, th)
	case keymap.InForm:
		lines = m.formLines(inner, room)
	case keymap.InPlanning:
		note = widget.Age(m.env.Clock.Sub(d.op.Began))
		lines = []string{m.turning() + " Asking what this would change …", th.Paint(theme.Dim, "  Nothing was changed.")}
	case keymap.InConfirm:
		role = theme.Warn
		lines = d.confirm.Lines(inner, room, th)
		if m.env.Clock.Sub(d.planned) > act.PlanTTL {
			note = "planned " + widget.Age(m.env.Clock.Sub(d.planned)) + " ago: too old"
		}
	case keymap.InRunning:
		role = theme.Bad
		lines = m.runningLines(inner)
	case keymap.InFailed:
		role = theme.Bad
		lines = m.failedLines(inner, room)
	}
	return widget.Box(title, note, widget.Fit(lines, inner, min(len(lines), room)), w, role, th)
}

// dialogTitle names what is acted upon, and the act once it is known.
func (m *Model) dialogTitle() string {
	d := &m.dialog
	switch d.scope {
	case keymap.InRelated, keymap.InCarry:
		return widget.Clean(d.title)
	case keymap.InColumns:
		return "Columns"
	case keymap.InMenu:
		return widget.Clean(d.menu.Target.Name)
	case keymap.InForm:
		return d.item.Label + " " + widget.Clean(cmp.Or(d.item.Touches, d.target().Name))
	default:
		return widget.Clean(d.op.Title)
	}
}

// runningLines say how far an act has come: the mock-up's 18/27, how many a second, and
// what became of them where the act says so.
func (m *Model) runningLines(w int) []string {
	op, th := m.dialog.op, m.env.Theme
	ran := m.env.Clock.Sub(op.Ran)
	done, total := op.Progress.Read()
	counts := op.Progress.Counts()
	first := m.turning() + " Running for " + widget.Age(ran)
	switch {
	case total > 0:
		first += "   " + m.env.Num(done) + "/" + m.env.Num(total) + "   " + m.perSecond(done, ran)
	case done > 0:
		first += "   " + m.env.Num(done) + " done"
	}
	if counts != nil {
		first += "   " + m.env.Num(counts.Failed) + " errors"
	}
	lines := []string{widget.Cut(first, w)}
	if total > 0 {
		lines = append(lines, widget.Bar(done, total, min(w, 60)))
	}
	if counts != nil {
		lines = append(lines, m.countLines(counts, w)...)
	}
	if op.Remark != "" {
		lines = append(lines, th.Paint(theme.Warn, "▲ stopping after the step under way"))
	}
	return append(lines, th.Paint(theme.Dim, widget.Cut("esc goes on in the background   x stops after this one", w)))
}

// perSecond is how many are done in a second, once there is one.
func (m *Model) perSecond(done int64, ran time.Duration) string {
	if ran < time.Second {
		return "--/s"
	}
	return m.env.Num(int64(float64(done)/ran.Seconds()+0.5)) + "/s"
}

// countLines say what became of those that were come to.
func (m *Model) countLines(c *act.Counts, w int) []string {
	g := &m.env.Theme.Glyphs
	lines := []string{widget.Cut(g.Done+" "+m.env.Num(c.Done)+" confirmed   "+g.Again+" "+m.env.Num(c.Changed)+" changed meanwhile   "+g.Failed+" "+
		m.env.Num(c.Failed)+" failed", w)}
	if c.Depths != "" {
		lines = append(lines, widget.Cut(widget.Clean(c.Depths), w))
	}
	return lines
}

func (m *Model) failedLines(w, h int) []string {
	op, th := m.dialog.op, m.env.Theme
	list := []widget.Text{{Role: theme.Bad, Text: "✗ " + op.Err}}
	if op.Ran.IsZero() {
		list = append(list, widget.Text{Text: "Nothing was changed."})
	} else {
		list = append(list, receiptTexts(op)...)
	}
	list = append(list, widget.Text{Role: theme.Dim, Text: "r plans it again on newer facts; L keeps this."})
	lines, _ := widget.Window(widget.Paragraphs(list, w, th), 0, h, th)
	return lines
}

// keysOf writes as many key hints as fit into the line.
func (m *Model) keysOf(bindings []keymap.Binding) string {
	if len(bindings) == 0 {
		return ""
	}
	last := bindings[len(bindings)-1]
	end := " " + m.keyHint(last.Show, last.Short) + " "
	line := ""
	for _, b := range bindings[:len(bindings)-1] {
		next := " " + m.keyHint(b.Show, b.Short) + " "
		if widget.Width(line)+widget.Width(next)+widget.Width(end) > m.width {
			break
		}
		line += next
	}
	return line + end
}

// texts paints the lines of a plan or a receipt by how they are meant.
func texts(lines []act.Line) []widget.Text {
	out := make([]widget.Text, 0, len(lines)+2)
	for _, line := range lines {
		out = append(out, widget.Text{Role: screen.Tone(line.Tone), Text: line.Text})
	}
	return out
}
