package app

import (
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// helpLines draws the help: the keys that work in the open view, from the key
// map, then the filter and the signs.
func (m *Model) helpLines(w, h int) []string {
	move, rows, view, acts := m.helpColumn(keymap.GroupMove), m.helpColumn(keymap.GroupRows), m.helpColumn(keymap.GroupView), m.helpColumn(keymap.GroupActs)
	tallest := func(columns ...[]string) int {
		high := 0
		for _, c := range columns {
			high = max(high, len(c))
		}
		return high
	}
	var lines []string
	switch {
	case w >= 96:
		rows = append(append(rows, ""), acts...)
		lines = beside([][]string{move, rows, view}, w, tallest(move, rows, view))
	case w >= 72:
		left, right := append(append(move, ""), acts...), append(append(rows, ""), view...)
		lines = beside([][]string{left, right}, w, tallest(left, right))
	default:
		for _, c := range [][]string{move, rows, view, acts} {
			lines = append(append(lines, c...), "")
		}
	}
	lines = append(lines, m.helpText()...)
	m.helpScroll = max(0, min(m.helpScroll, len(lines)-h))
	return lines[m.helpScroll:]
}

func beside(columns [][]string, w, h int) []string {
	out := make([]string, h)
	each := w / len(columns)
	for _, c := range columns {
		for i := range out {
			text := ""
			if i < len(c) {
				text = widget.Cut(c[i], each-1)
			}
			out[i] += text + widget.Blank(each-widget.Width(text))
		}
	}
	return out
}

func (m *Model) helpColumn(group string) []string {
	e := m.env
	lines := []string{" " + e.Paint(theme.Dim, group)}
	for _, b := range m.keymap.For(m.view) {
		if b.Group == group {
			lines = append(lines, " "+e.Paint(theme.Accent, widget.Left(b.Show, 9))+" "+b.Help)
		}
	}
	if group == keymap.GroupActs && m.env.Locked != "" {
		for _, part := range widget.Wrap("Not here: "+m.env.Locked, 36) {
			lines = append(lines, " "+e.Paint(theme.Warn, part))
		}
	}
	return lines
}

func (m *Model) helpText() []string {
	e := m.env
	g := &e.Theme.Glyphs
	return []string{
		"", " " + e.Paint(theme.Dim, "FILTER"),
		" executions: " + strings.Join(monitor.Terms[:len(monitor.Terms)-1], "  "),
		" a space means and; " + monitor.Terms[len(monitor.Terms)-1] + ". Queues and workers: any part of the name.",
		"", " " + e.Paint(theme.Dim, "SIGNS"),
		" " + strings.Join([]string{g.OK + " running", g.Busy + " busy", g.Idle + " idle, cancelled", g.Done + " completed", g.Failed + " failed, stale"}, "   "),
		" " + strings.Join([]string{g.Scheduled + " scheduled", g.Queued + " queued", g.Timeout + " timeout", g.Paused + " paused", g.Warning + " warning", g.Critical + " critical"}, "   "),
		" ~ older than two polls   ? source unreachable, last known value   -- not collected",
	}
}
