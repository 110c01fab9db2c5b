package app

import (
	"net/url"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// offer is a line of the copy or export menu. It holds the rows of the moment when the menu was opened.
type offer struct {
	widget.Choice

	take func() tea.Cmd
}

func (m *Model) openOffers(title string, offers []offer) {
	lines := make([]widget.Choice, len(offers))
	for i := range offers {
		lines[i] = offers[i].Choice
	}
	take := func(m *Model, at int) tea.Cmd {
		m.closeDialog()
		return offers[at].take()
	}
	m.push(&menu{keys: keymap.InExport, title: title, list: widget.NewMenu(lines), choose: take})
}

// thing is what the open view shows, or the selected row of its list.
func (m *Model) thing() (screen.Thing, bool) {
	if s, ok := m.screen().(screen.Shows); ok {
		if thing, ok := s.Shows(); ok {
			return thing, true
		}
	}
	list, ok := m.screen().(screen.Listed)
	table := m.table()
	if !ok || table == nil {
		return screen.Thing{}, false
	}
	at := table.Cursor()
	if at < 0 || at >= list.Len() {
		return screen.Thing{}, false
	}
	return list.Thing(at), true
}

// markedThings are the marked rows of the open list in its order, and the keys of absent ones.
func (m *Model) markedThings() (things []screen.Thing, missing []string) {
	list, ok := m.screen().(screen.Listed)
	table := m.table()
	if !ok || table == nil || table.Marks() == 0 {
		return nil, nil
	}
	at := make(map[string]int, list.Len())
	for i := range list.Len() {
		at[list.Key(i)] = i
	}
	for _, key := range table.Marked() {
		if i, listed := at[key]; listed {
			things = append(things, list.Thing(i))
		} else {
			missing = append(missing, key)
		}
	}
	return things, missing
}

// openYank opens the copy menu of the marked rows, or else of the selected one.
func (m *Model) openYank() {
	if m.tooSmall() {
		return
	}
	if !m.canCopy() {
		return
	}
	if things, missing := m.markedThings(); len(things)+len(missing) > 0 {
		unread := ""
		if len(missing) > 0 {
			unread = m.env.Num(int64(len(missing))) + " of them are not loaded: e writes all to a file"
		}
		if m.view == keymap.InExecutions { // marking all that match also marks rows that are not loaded
			for _, id := range numbersOf(missing) {
				things = append(things, screen.ExecutionThing(&monitor.Execution{ID: id}, nil))
			}
		}
		m.openOffers("copy "+m.env.Num(int64(len(things)))+" marked", m.yankMarked(things, unread))
		return
	}
	thing, ok := m.thing()
	if !ok {
		m.say("There is nothing under the cursor to copy.")
		return
	}
	m.openOffers("copy of "+thing.Name, m.yankOne(thing))
}

func (m *Model) canCopy() bool {
	if m.opts.Clipboard == nil {
		m.say("Nothing can be copied here: there is no terminal to ask.")
	}
	return m.opts.Clipboard != nil
}

func (m *Model) yankOne(t screen.Thing) []offer {
	link, noLink, query := "", "it has no page in the broker's management interface", ""
	if t.Queue != "" && m.opts.Origin.Queues != "" {
		link = m.opts.Origin.Queues + url.PathEscape(t.Queue)
	} else if t.Queue != "" {
		noLink = "message_queue.management_url is not known here"
	}
	if t.Table != "" {
		query = export.Query(m.opts.Origin.Schema, t.Table, t.Where)
	}
	loaded := "the loaded data, secrets masked"
	if t.Cut {
		loaded = "the loaded parts of its documents, secrets masked: e writes all"
	}
	offers := []offer{
		m.yank("i", "id", widget.Clean(t.ID), "", func() (string, error) { return widget.Clean(t.ID), nil }),
		m.yank("j", "JSON", loaded, "",
			func() (string, error) { return export.JSON(t.Value) }),
		m.yankText("l", "link", link, noLink),
		m.yankText("c", "command", commandOf(&t), "no command shows it"),
		m.yankText("s", "psql", query, "it is no row of the database"),
	}
	if t.InDocument {
		offers = append(offers,
			m.yankText("p", "path", export.Plain(t.Path), "the cursor is on no member"),
			m.yank(".", "value", "the one under the cursor, as it is shown", "",
				func() (string, error) { return export.Plain(t.Text), nil }))
	}
	return offers
}

// yankMarked offers texts about many rows; unread warns of rows that are not loaded.
func (m *Model) yankMarked(things []screen.Thing, unread string) []offer {
	ids := make([]string, len(things))
	var commands []string
	for i := range things {
		ids[i] = widget.Clean(things[i].ID)
		if line := commandOf(&things[i]); line != "" && !slices.Contains(commands, line) {
			commands = append(commands, line)
		}
	}
	jsonLines := func() (string, error) {
		var b strings.Builder
		for _, value := range valuesOf(things) {
			line, err := export.JSON(value)
			if err != nil {
				return "", err
			}
			b.WriteString(line + "\n")
		}
		return b.String(), nil
	}
	return []offer{
		m.yank("i", "ids", "a line each", "", func() (string, error) { return strings.Join(ids, "\n"), nil }),
		m.yank("j", "JSON", "a line each, secrets masked", unread, jsonLines),
		m.yankText("c", "command", strings.Join(commands, "\n"), "no command shows them"),
	}
}

// yankText offers a text that the menu shows; not says why it is empty.
func (m *Model) yankText(key, label, text, not string) offer {
	if text != "" {
		not = ""
	}
	return m.yank(key, label, text, not, func() (string, error) { return text, nil })
}

// yank offers the result of a function. The function runs outside of Update.
func (m *Model) yank(key, label, help, not string, text func() (string, error)) offer {
	return offer{
		widget.Choice{Key: key, Label: label, Help: help, Not: not},
		func() tea.Cmd { return m.copyText(label, text) },
	}
}

type copiedMsg struct {
	what  string
	bytes int
	err   error
}

// copyText asks the terminal to take a text.
func (m *Model) copyText(what string, text func() (string, error)) tea.Cmd {
	put := m.opts.Clipboard
	return func() tea.Msg {
		made, err := text()
		if err == nil {
			err = put(made)
		}
		return copiedMsg{what: what, bytes: len(made), err: err}
	}
}

func (m *Model) copied(msg copiedMsg) {
	if msg.err != nil {
		m.say("Not copied: " + msg.err.Error())
		return
	}
	m.say("Copied " + msg.what + ": " + m.env.Num(int64(msg.bytes)) + " " + phrase.Nouns(msg.bytes, "byte") +
		" given to the terminal.")
}

const executor = "attune-executor"

func commandOf(t *screen.Thing) string {
	if len(t.Command) == 0 {
		return ""
	}
	return act.Shell(slices.Concat([]string{executor}, t.Command)...)
}
