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
	groups := []string{keymap.GroupMove, keymap.GroupRows, keymap.GroupView}
	columns := make([][]string, len(groups))
	tallest := 0
	for i, group := range groups {
		columns[i] = m.helpColumn(group)
		tallest = max(tallest, len(columns[i]))
	}
	var lines []string
	switch {
	case w >= 96:
		lines = beside(columns, w, tallest)
	case w >= 72:
		right := append(append(columns[1], ""), columns[2]...)
		lines = beside([][]string{columns[0], right}, w, max(tallest, len(right)))
	default:
		for _, c := range columns {
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
				text = c[i]
			}
			out[i] += text + widget.Blank(each-widget.Width(text))
		}
	}
	return out
}

func (m *Model) helpColumn(group string) []string {
	e := m.env
	lines := []string{" " + e.Paint(theme.Dim, group)}
	for _, b := range keymap.For(m.view) {
		if b.Group == group {
			lines = append(lines, " "+e.Paint(theme.Accent, widget.Left(b.Show, 9))+" "+b.Help)
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
