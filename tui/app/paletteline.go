package app

import (
	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/palette"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// paletteLine is the input line of commands. The matching commands are listed above it.
type paletteLine struct {
	layer

	err error
}

func (m *Model) openPalette(text string) tea.Cmd {
	if m.tooSmall() {
		return nil
	}
	list := m.commands()
	entries := make([]palette.Entry, len(list))
	for i, c := range list {
		entries[i] = c.Entry
	}
	m.palette.Open(entries, text)
	m.push(&paletteLine{})
	return m.readNames()
}

func (o *paletteLine) key(m *Model, _ keymap.Action, msg tea.KeyMsg) tea.Cmd {
	o.err = nil
	switch m.palette.Key(msg) {
	case palette.Closed:
		m.pop()
	case palette.Entered:
		return o.run(m, m.palette.Value())
	}
	return nil
}

// run runs the command. After an error the line stays open and shows it.
func (o *paletteLine) run(m *Model, line string) (cmd tea.Cmd) {
	entry, arg, err := m.palette.Parse(line)
	if err != nil {
		o.err = err
		return nil
	}
	m.pop()
	for _, c := range m.commands() {
		if c.Name == entry.Name {
			cmd, o.err = c.run(arg)
			break // the name of an act may be that of a bookmark too
		}
	}
	if o.err != nil {
		m.push(o)
		return nil
	}
	return cmd
}

const maxOffers = 12

func (o *paletteLine) draw(m *Model, f *frame) {
	th := m.env.Theme
	room, wrong := m.width-2, ""
	if o.err != nil {
		wrong = widget.Cut("  ✗ "+widget.Clean(o.err.Error()), m.width*2/3)
		room = max(10, min(widget.Width(m.palette.Value())+2, room-widget.Width(wrong)))
	}
	f.message = " " + m.palette.Line(room, th) + th.Paint(theme.Bad, wrong)
	f.keys = " " + m.keyHint("↑ ↓ tab", "choose") + "  " + m.keyHint("^p", "earlier commands") + "  " +
		m.keyHint("enter", "do it") + "  " + m.keyHint("esc", "close")
	f.covered = true
	n := m.palette.Count()
	h := min(maxOffers, len(f.body)-2, n)
	if h < 1 {
		return
	}
	w := min(m.width-2, maxDialog)
	note := ""
	if n > h {
		note = m.env.Num(int64(n)) + " in all"
	}
	offers := widget.Box("Commands", note, widget.Fit(m.palette.Offers(w-4, h, th), w-4, h), w, theme.Accent, th)
	f.body = widget.Overlay(widget.Fade(f.body, th), offers, 1, len(f.body)-len(offers), m.width, th)
}
