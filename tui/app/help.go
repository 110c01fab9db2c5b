package app

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// helpLines draws the help: the keys that work in the open view, from the key
// map, then the filter and the signs. While something is searched it lists the
// keys of all views that match.
func (m *Model) helpLines(w, h int) []string {
	lines := m.helpMatches(w)
	if m.helpSearch == "" {
		lines = m.helpColumns(w)
		for _, t := range m.helpTopics() {
			lines = append(append(lines, "", " "+m.env.Paint(theme.Dim, t.title)), t.lines...)
		}
	}
	m.helpScroll = max(0, min(m.helpScroll, len(lines)-h))
	return lines[m.helpScroll:]
}

// helpIndent is where the meaning of a key begins.
const helpIndent = 11

// helpLayouts are the columns of the help by the width they need, widest first.
var helpLayouts = []struct {
	width   int
	columns [][]string
}{
	{128, [][]string{{keymap.GroupMove}, {keymap.GroupRows}, {keymap.GroupView}, {keymap.GroupActs}}},
	{96, [][]string{{keymap.GroupMove}, {keymap.GroupRows, keymap.GroupActs}, {keymap.GroupView}}},
	{72, [][]string{{keymap.GroupMove, keymap.GroupActs}, {keymap.GroupRows, keymap.GroupView}}},
	{0, [][]string{keymap.Groups}},
}

// helpColumns puts the groups side by side, as many as there is room for.
func (m *Model) helpColumns(w int) []string {
	for _, layout := range helpLayouts {
		if w < layout.width {
			continue
		}
		columns := make([][]string, len(layout.columns))
		for i, names := range layout.columns {
			for _, name := range names {
				group := m.helpColumn(name, w/len(columns)-2)
				if len(columns[i]) > 0 && len(group) > 0 {
					columns[i] = append(columns[i], "")
				}
				columns[i] = append(columns[i], group...)
			}
		}
		return beside(columns, w)
	}
	return nil
}

// helpMatches lists the keys of every view and dialog that match what is
// searched, each with where it works, below the topics that are called so.
func (m *Model) helpMatches(w int) []string {
	e := m.env
	wanted := strings.Fields(strings.ToLower(m.helpSearch))
	lines := m.topicsWith(wanted)
	lines = append(lines, " "+e.Paint(theme.Dim, "KEYS OF ALL VIEWS WITH "+strings.ToUpper(widget.Clean(m.helpSearch))))
	topics := len(lines)
	for _, b := range m.searchedKeys() {
		text := strings.ToLower(b.Show + " " + b.Help + " " + string(b.Action) + " " + b.Where())
		if slices.ContainsFunc(wanted, func(word string) bool { return !strings.Contains(text, word) }) {
			continue
		}
		left := " " + e.Paint(theme.Accent, widget.Left(widget.Clean(b.Show), 9)) + " " + widget.Clean(b.Help)
		lines = append(lines, widget.Spread(left, e.Paint(theme.Dim, b.Where()), w-1))
	}
	if len(lines) == topics {
		lines = append(lines, " No key matches; esc shows all.")
	}
	return lines
}

// searchedKeys are the keys to be searched: all, those first that work nowhere but in
// the view that is asked for by its name.
func (m *Model) searchedKeys() []keymap.Binding {
	all := m.keymap.All()
	if slices.Contains(Views, screen.View(m.helpSearch)) {
		slices.SortStableFunc(all, func(a, b keymap.Binding) int { return len(a.Scopes) - len(b.Scopes) })
	}
	return all
}

// beside puts columns next to each other, each as wide as the others.
func beside(columns [][]string, w int) []string {
	high := 0
	for _, c := range columns {
		high = max(high, len(c))
	}
	out := make([]string, high)
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

// helpColumn is one group of keys with its title, no wider than w; nothing when no key of the group
// works here.
func (m *Model) helpColumn(group string, w int) []string {
	e := m.env
	lines := []string{" " + e.Paint(theme.Dim, group)}
	locked := m.env.Locked != ""
	for _, b := range m.keymap.For(m.view) {
		if b.Group != group || b.Acts && locked {
			continue
		}
		for i, part := range widget.Wrap(b.Help, w-helpIndent) {
			key := widget.Blank(helpIndent)
			if i == 0 {
				key = " " + e.Paint(theme.Accent, widget.Left(widget.Clean(b.Show), helpIndent-2)) + " "
			}
			lines = append(lines, key+part)
		}
	}
	if len(lines) == 1 {
		return nil
	}
	if group == keymap.GroupActs && locked {
		for _, part := range widget.Wrap("Not here: "+m.env.Locked, w-1) {
			lines = append(lines, " "+e.Paint(theme.Warn, part))
		}
	}
	return lines
}

// helpKey takes a key while the help is open.
func (m *Model) helpKey(action keymap.Action) tea.Cmd {
	switch action {
	case keymap.Back:
		m.help = m.helpSearch != ""
		m.helpSearch = ""
	case keymap.Filter:
		m.prompt = helpPrompt
		m.input.SetValue(m.helpSearch)
		m.input.CursorEnd()
		return m.input.Focus()
	case keymap.RowDown:
		m.helpScroll++
	case keymap.RowUp:
		m.helpScroll = max(0, m.helpScroll-1)
	case keymap.HalfDown:
		m.helpScroll += 10
	case keymap.HalfUp:
		m.helpScroll = max(0, m.helpScroll-10)
	case keymap.Top:
		m.helpScroll = 0
	}
	return nil
}

// helpSearchKey takes a key while the help is searched: every letter narrows the
// list.
func (m *Model) helpSearchKey(msg tea.KeyMsg) tea.Cmd {
	var cmd tea.Cmd
	switch msg.String() {
	case "enter":
		m.prompt = noPrompt
		m.input.Blur()
	case "esc":
		m.prompt, m.helpSearch = noPrompt, ""
		m.input.Blur()
	default:
		m.input, cmd = m.input.Update(msg)
		m.helpSearch, m.helpScroll = strings.TrimSpace(m.input.Value()), 0
	}
	return cmd
}
