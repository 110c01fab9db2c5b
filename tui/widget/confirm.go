package widget

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/theme"
)

// Text is a line of text with its role. Drawing cleans and wraps it.
type Text struct {
	Role theme.Role
	Text string
}

const (
	onReason = iota
	onWord
	onCancel
	onRun
)

// Confirm shows a plan and asks for a reason and an answer, or for a word if the plan is large. The focus begins on
// the cancel button, so that Enter alone does nothing; the first tab goes to the reason.
type Confirm struct {
	texts []Text
	word  string
	// verb labels the button that runs the plan.
	verb    string
	reason  *Input
	typed   *Input
	focus   int
	offset  int
	problem string
	moved   bool
	// notice is true if there is nothing to confirm.
	notice bool
}

const maxReason = 500

// NewConfirm makes a confirmation; verb labels its button. Without a word y is enough.
func NewConfirm(texts []Text, word, verb string) *Confirm {
	c := &Confirm{
		texts: texts, word: word, verb: verb, focus: onCancel,
		reason: NewInput("", maxReason), typed: NewInput("", maxFormValue),
	}
	if word != "" {
		c.focus = onWord
	}
	return c
}

// NewNotice makes a confirmation that can only be closed.
func NewNotice(texts []Text) *Confirm { return &Confirm{texts: texts, notice: true, focus: onCancel} }

// Typing reports whether the focus is on a text field.
func (c *Confirm) Typing() bool { return c.focus == onReason || c.focus == onWord }

// Reason is the typed reason.
func (c *Confirm) Reason() string { return strings.TrimSpace(c.reason.Value()) }

// Move moves the focus by n parts, wrapping around. The first step forward goes to the reason.
func (c *Confirm) Move(n int) {
	c.problem = ""
	if !c.notice && !c.moved && n > 0 {
		c.moved, c.focus = true, onReason
		return
	}
	c.moved = true
	for !c.notice {
		c.focus = (c.focus + n + onRun + 1) % (onRun + 1)
		if c.focus != onWord || c.word != "" {
			return
		}
	}
}

// Press moves the focus to the button that runs the plan, or to the cancel button.
func (c *Confirm) Press(run bool) {
	c.focus, c.moved = onCancel, true
	if run && !c.notice {
		c.focus = onRun
	}
}

// Type moves the focus to the reason and types there. A notice ignores it.
func (c *Confirm) Type(msg tea.KeyMsg) {
	if c.notice {
		return
	}
	c.focus, c.moved = onReason, true
	c.Update(msg)
}

// Scroll moves the texts by half pages in a box of w by h cells.
func (c *Confirm) Scroll(n, w, h int, th *theme.Theme) {
	_, c.offset = c.window(c.offset+n*4, w, h-len(c.ask(w, th)), th)
}

func (c *Confirm) window(offset, w, h int, th *theme.Theme) ([]string, int) {
	return Window(Paragraphs(c.texts, w, th), offset, max(1, h), th)
}

// Update passes a key to the text field in focus.
func (c *Confirm) Update(msg tea.KeyMsg) {
	c.problem = ""
	switch c.focus {
	case onReason:
		c.reason.Update(msg)
	case onWord:
		c.typed.Update(msg)
	}
}

// Answer is the state of a confirmation.
type Answer int

// The answers of the operator.
const (
	Undecided Answer = iota
	Cancelled
	Confirmed
)

// Enter presses the button in focus. In a text field it moves on.
func (c *Confirm) Enter() Answer {
	switch c.focus {
	case onReason:
		c.Move(1)
		return Undecided
	case onCancel:
		return Cancelled
	default:
		return c.Yes()
	}
}

// Yes confirms, unless the word is missing.
func (c *Confirm) Yes() Answer {
	if c.notice {
		return Cancelled
	}
	if c.word != "" && strings.TrimSpace(c.typed.Value()) != c.word {
		c.focus = onWord
		c.Refuse("type " + c.word + " to confirm")
		return Undecided
	}
	return Confirmed
}

// Refuse shows why the plan cannot run now.
func (c *Confirm) Refuse(why string) { c.problem = why }

// Lines draws the confirmation w cells wide and at most h lines high. The texts shrink first: the fields and buttons
// are always visible.
func (c *Confirm) Lines(w, h int, th *theme.Theme) []string {
	ask := c.ask(w, th)
	lines, _ := c.window(c.offset, w, h-len(ask), th)
	return append(lines, ask...)
}

func (c *Confirm) ask(w int, th *theme.Theme) []string {
	if c.notice {
		return []string{"", "  " + c.button(" close ", onCancel, th)}
	}
	field := func(label string, in *Input, focus int) string {
		mark := " "
		if c.focus == focus {
			mark = th.Glyphs.Cursor
		}
		return mark + " " + th.Paint(theme.Dim, label) + " " + in.View(max(4, w-Width(label)-3), c.focus == focus, th)
	}
	out := []string{"", field("reason", c.reason, onReason)}
	if c.word != "" {
		out = append(out, field("type "+Cut(Clean(c.word), w/3)+" to confirm:", c.typed, onWord))
	}
	buttons := c.button(" leave it ", onCancel, th) + "  " + c.button(" "+Cut(Clean(c.verb), w/3)+" ", onRun, th)
	note := ""
	if c.problem != "" {
		note = th.Paint(theme.Bad, "✗ "+Clean(c.problem))
	}
	return append(out, "  "+Spread(buttons, note, w-2))
}

func (c *Confirm) button(text string, focus int, th *theme.Theme) string {
	if c.focus == focus {
		return th.Paint(theme.Cursor, "["+th.Glyphs.Cursor+strings.TrimPrefix(text, " ")+"]")
	}
	return "[" + text + "]"
}

// Paragraphs wraps and paints texts. Continuation lines are indented.
func Paragraphs(texts []Text, w int, th *theme.Theme) []string {
	var out []string
	for _, t := range texts {
		body := strings.TrimLeft(t.Text, " ")
		indent := Blank(min(len(t.Text)-len(body), w/3))
		for i, part := range Wrap(body, max(8, w-len(indent)-2)) {
			if i > 0 {
				part = "  " + part
			}
			out = append(out, indent+th.Paint(t.Role, part))
		}
	}
	return out
}
