package app

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// hintTime is how long hints are shown.
const hintTime = time.Minute

const hintsShown = 3

type hinting struct {
	on    bool
	since time.Time
}

// hintLine shows important keys of the open view and the key that hides them. It is empty if not one key fits.
func (m *Model) hintLine() string {
	ends, ok := m.keymap.Of(keymap.Hints)
	if !m.hinting.on || !ok || m.top() != nil || m.neverAnswered() {
		return ""
	}
	tail := "   " + m.keyHint(ends.Show, "hides this")
	line, shown := " ", 0
	for _, h := range keymap.ViewOf(m.view).Hints {
		b, ok := m.keymap.Of(h.Action)
		if !ok || b.Acts && m.env.Locked != "" || shown == hintsShown {
			continue
		}
		part := m.keyHint(b.Show, h.Text)
		if shown > 0 {
			part = m.env.Paint(theme.Dim, " · ") + part
		}
		if widget.Width(line+part+tail) > m.width {
			break
		}
		line, shown = line+part, shown+1
	}
	if shown == 0 {
		return ""
	}
	return line + tail
}

func (m *Model) endHints() tea.Cmd {
	m.hinting.on = false
	ended := m.opts.HintsEnded
	if ended == nil {
		return nil
	}
	return func() tea.Msg { return hintsEndedMsg{ended()} }
}

type hintsEndedMsg struct{ err error }
