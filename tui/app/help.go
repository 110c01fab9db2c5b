package app

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// help shows the keys of the open view, then its filter and the signs. A search lists the matching keys of all views.
type help struct {
	layer

	search string
	scroll int
}

func (o *help) scope() keymap.Scope { return keymap.InHelp }

func (o *help) key(m *Model, action keymap.Action, _ tea.KeyMsg) tea.Cmd {
	switch action {
	case keymap.Back:
		if o.search == "" {
			m.pop()
		}
		o.search = ""
	case keymap.Filter:
		m.push(&helpSearch{newInputLine(o.search), o})
	case keymap.RowDown:
		o.scrollBy(m, 1)
	case keymap.RowUp:
		o.scrollBy(m, -1)
	case keymap.HalfDown:
		o.scrollBy(m, 10)
	case keymap.HalfUp:
		o.scrollBy(m, -10)
	case keymap.Top:
		o.scroll = 0
	}
	return nil
}

func (o *help) scrollBy(m *Model, n int) {
	last := max(0, len(o.lines(m))-m.bodyHeight())
	o.scroll = max(0, min(min(o.scroll, last)+n, last))
}

func (o *help) draw(m *Model, f *frame) {
	lines, h := o.lines(m), len(f.body)
	from := max(0, min(o.scroll, len(lines)-h))
	f.left, f.right = "Help · "+string(m.view), "only keys that work here"
	f.body, f.keys = widget.Fit(lines[from:], m.width, h), m.keysOf(m.keymap.BottomLine(keymap.InHelp, nil))
}

func (o *help) lines(m *Model) []string {
	if o.search != "" {
		return m.helpMatches(o.search)
	}
	lines := m.helpColumns(m.width)
	for _, t := range m.helpTopics() {
		lines = append(append(lines, "", " "+m.env.Paint(theme.Dim, t.title)), t.lines...)
	}
	return lines
}

// helpSearch is the input line of the search. Every letter narrows the list.
type helpSearch struct {
	inputLine

	help *help
}

func (o *helpSearch) key(m *Model, _ keymap.Action, msg tea.KeyMsg) tea.Cmd {
	switch msg.String() {
	case "enter":
		m.pop()
	case "esc":
		m.pop()
		o.help.search = ""
	default:
		o.input.Update(msg)
		o.help.search, o.help.scroll = strings.TrimSpace(o.input.Value()), 0
	}
	return nil
}

func (o *helpSearch) draw(m *Model, f *frame) { f.message = o.line(m, filter.Span{}, "") }

// helpIndent is the column of the texts.
const helpIndent = 11

// helpLayouts are the columns by their minimal width, widest first.
var helpLayouts = []struct {
	width   int
	columns [][]string
}{
	{128, [][]string{{keymap.GroupMove}, {keymap.GroupRows}, {keymap.GroupView}, {keymap.GroupActs}}},
	{96, [][]string{{keymap.GroupMove}, {keymap.GroupRows, keymap.GroupActs}, {keymap.GroupView}}},
	{72, [][]string{{keymap.GroupMove, keymap.GroupActs}, {keymap.GroupRows, keymap.GroupView}}},
	{0, [][]string{keymap.Groups}},
}

// helpColumns puts the groups of keys side by side.
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

// helpMatches lists the matching topics, then the matching keys of every view and dialog, and the matching acts. If the
// search is the name of a view, its own keys come first.
func (m *Model) helpMatches(search string) []string {
	e := m.env
	wanted := strings.Fields(strings.ToLower(search))
	misses := func(text string) bool {
		return slices.ContainsFunc(wanted,
			func(word string) bool { return !strings.Contains(strings.ToLower(text), word) })
	}
	var lines []string
	for _, t := range m.helpTopics() {
		if !misses(t.title) {
			lines = append(append(lines, " "+e.Paint(theme.Dim, t.title)), append(t.lines, "")...)
		}
	}
	lines = append(lines,
		" "+e.Paint(theme.Dim, "KEYS AND ACTS OF ALL VIEWS WITH "+strings.ToUpper(widget.Clean(search))))
	topics := len(lines)
	all := m.keymap.All()
	if slices.Contains(Views, screen.View(search)) {
		slices.SortStableFunc(all, func(a, b keymap.Binding) int { return len(a.Scopes) - len(b.Scopes) })
	}
	for _, b := range all {
		if misses(b.Show + " " + b.Help + " " + string(b.Action) + " " + b.Where()) {
			continue
		}
		left := " " + e.Paint(theme.Accent, widget.Left(widget.Clean(b.Show), 9)) + " " + widget.Clean(b.Help)
		lines = append(lines, widget.Spread(left, e.Paint(theme.Dim, b.Where()), m.width-1))
	}
	for _, a := range act.All() {
		of := a.Kind.Of()
		key := m.keyOf(keymap.Act) + " " + a.Key
		if a.Key == "" || misses(key+" "+a.Label+" "+a.Help+" "+string(a.Kind)+" "+of) {
			continue
		}
		left := " " + e.Paint(theme.Accent, widget.Left(key, 9)) + " " + a.Label + ": " + a.Help
		lines = append(lines, widget.Spread(left, e.Paint(theme.Dim, "act on: "+of), m.width-1))
	}
	if len(lines) == topics {
		lines = append(lines, " No key matches; esc shows all.")
	}
	return lines
}

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

// helpColumn is one group of keys, empty if none of them works in the open view.
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

// topic is a section of the help below the keys.
type topic struct {
	title string
	lines []string
}

func (m *Model) helpTopics() []topic {
	g, w := &m.env.Theme.Glyphs, max(20, m.width-2)
	var topics []topic
	if q, ok := m.screen().(screen.Queryable); ok {
		lines := hung(strings.Join(q.Schema().Examples(), "  "), w)
		lines = append(lines,
			" space and   | or   ! not   , any of   * anything   regex:/…/   "+`"as it is"`+"   tab completes")
		topics = append(topics, topic{"FILTER", lines})
	}
	var commands []string
	for _, c := range m.commands() {
		commands = append(commands, strings.ReplaceAll(strings.TrimSpace(":"+c.Name+" "+c.Arg), " ", together))
	}
	topics = append(topics, topic{"COMMANDS", hung(strings.Join(commands, "   "), w)})
	return append(topics, topic{"DANGER", m.dangerText(w)}, topic{"SIGNS", []string{
		" " + strings.Join([]string{
			g.OK + " running", g.Busy + " busy", g.Idle + " idle, cancelled",
			g.Done + " completed", g.Failed + " failed, stale",
		}, "   "),
		" " + strings.Join([]string{
			g.Scheduled + " scheduled", g.Queued + " queued", g.Timeout + " timeout",
			g.Paused + " paused", g.Last + " degraded", g.Warning + " warning", g.Critical + " critical",
		}, "   "),
		" ~ older than two polls   ? source unreachable, last known value   -- not collected",
	}})
}

func (m *Model) dangerText(w int) []string {
	if m.env.Locked != "" {
		return hung("Read only: the keys that act are hidden here, and the header shows RO. "+m.env.Locked+".", w)
	}
	return hung(
		"Every change first shows a plan: what it is about, what is skipped and why, and a bound that is fixed then. "+
			"y confirms a small one; a large one, or one in a protected context, is confirmed by the name that is shown. Enter alone never confirms. "+
			"What is discarded is kept, and u puts it back. L lists what was done.", w)
}

// together is a space that Wrap does not break.
const together = "\u00a0"

func hung(text string, w int) []string {
	var lines []string
	for _, part := range widget.Wrap(text, w-1) {
		lines = append(lines, " "+strings.ReplaceAll(part, together, " "))
	}
	return lines
}

func (m *Model) topicNames() []string {
	var names []string
	for _, t := range m.helpTopics() {
		names = append(names, strings.ToLower(t.title))
	}
	for _, view := range Views {
		names = append(names, string(view))
	}
	return names
}
