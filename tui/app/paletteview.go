package app

import (
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// paletteLine is the line on which a command is typed, with what is wrong with it.
func (m *Model) paletteLine() string {
	th := m.env.Theme
	if m.inputErr == "" {
		return " " + m.palette.Line(m.width-2, th)
	}
	wrong := widget.Cut("  ✗ "+widget.Clean(m.inputErr), m.width*2/3)
	room := max(10, min(widget.Width(m.palette.Value())+2, m.width-2-widget.Width(wrong)))
	return " " + m.palette.Line(room, th) + th.Paint(theme.Bad, wrong)
}

// maxOffers is how many commands are listed at once.
const maxOffers = 12

// paletteOverlay lays what the line may become upon the lines above it.
func (m *Model) paletteOverlay(body []string) []string {
	th := m.env.Theme
	h := min(maxOffers, len(body)-2, m.palette.Count())
	if h < 1 {
		return body
	}
	w := min(m.width-2, maxDialog)
	note := ""
	if n := m.palette.Count(); n > h {
		note = m.env.Num(int64(n)) + " in all"
	}
	box := widget.Box("Commands", note, widget.Fit(m.palette.Offers(w-4, h, th), w-4, h), w, theme.Accent, th)
	return widget.Overlay(widget.Fade(body, th), box, 1, len(body)-len(box), m.width, th)
}
