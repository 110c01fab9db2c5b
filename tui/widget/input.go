package widget

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/bubbles/cursor"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/attune-go/attune/tui/theme"
)

// Input is a one-line text field. It draws its caret as a character, which is visible without colours too.
type Input struct {
	model textinput.Model
	// hidden draws dots instead of the text.
	hidden bool
}

// NewInput makes an input with a text; limit bounds its length, 0 means no limit.
func NewInput(value string, limit int) *Input {
	in := &Input{model: textinput.New()}
	in.model.CharLimit = limit
	in.model.Cursor.SetMode(cursor.CursorStatic)
	in.model.SetValue(value)
	in.model.CursorEnd()
	in.model.Focus()
	return in
}

// Hide draws the text as dots.
func (in *Input) Hide(hidden bool) { in.hidden = hidden }

// Clear empties the text.
func (in *Input) Clear() { in.model.Reset() }

// Value is the text.
func (in *Input) Value() string { return in.model.Value() }

// Set replaces the text and puts the caret before the byte at an index.
func (in *Input) Set(text string, caret int) {
	in.model.SetValue(text)
	in.model.SetCursor(utf8.RuneCountInString(text[:caret]))
}

// Caret is the number of bytes before the caret.
func (in *Input) Caret() int { return len(string([]rune(in.model.Value())[:in.model.Position()])) }

// Update takes a key. Pasted line breaks are left out.
func (in *Input) Update(msg tea.KeyMsg) {
	in.model, _ = in.model.Update(msg) // its commands only blink the cursor and read a clipboard
}

// View draws the text w cells wide, the part around the caret if it is longer.
func (in *Input) View(w int, focused bool, th *theme.Theme) string {
	text := in.model.Value()
	if in.hidden {
		text = strings.Repeat(th.Glyphs.OK, len([]rune(text)))
	}
	if !focused {
		return Left(Clean(text), w)
	}
	runes := []rune(text)
	at := in.model.Position()
	before, after := Clean(string(runes[:at])), Clean(string(runes[at:]))
	if over := Width(before) + 1 - w; over > 0 {
		before = ansi.TruncateLeft(before, over, "")
	}
	rest := Cut(after, max(0, w-Width(before)-1))
	line := before + th.Paint(theme.Accent, "▌") + rest
	return line + Blank(w-Width(line))
}
