package app

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

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
		" " + strings.Join([]string{g.OK + " running", g.Busy + " busy", g.Idle + " idle, cancelled",
			g.Done + " completed", g.Failed + " failed, stale"}, "   "),
		" " + strings.Join([]string{g.Scheduled + " scheduled", g.Queued + " queued", g.Timeout + " timeout",
			g.Paused + " paused", g.Last + " degraded", g.Warning + " warning", g.Critical + " critical"}, "   "),
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

// topicsWith lists the topics whose title contains all words.
func (m *Model) topicsWith(words []string) []string {
	var lines []string
	for _, t := range m.helpTopics() {
		if slices.ContainsFunc(words,
			func(word string) bool { return !strings.Contains(strings.ToLower(t.title), word) }) {
			continue
		}
		lines = append(append(lines, " "+m.env.Paint(theme.Dim, t.title)), append(t.lines, "")...)
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

// showHelp opens the help with a search: a topic, a view, or a word.
func (m *Model) showHelp(about string) (tea.Cmd, error) {
	m.push(&help{search: about})
	return nil, nil
}
