package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/palette"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/settings"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

func (m *Model) bookmarkCommands() []command {
	var saved []string
	for _, b := range m.bookmarks {
		saved = append(saved, b.Name)
	}
	commands := []command{{palette.Entry{
		Name: "bookmark", Arg: "NAME [LETTER]",
		Help: "keep the view as it is arranged",
	}, m.saveBookmark}}
	if len(saved) > 0 {
		entry := palette.Entry{
			Name: "open", Arg: "NAME", Key: m.keyOf(keymap.Bookmarks), Help: "open a bookmark",
			Args: list(saved...),
		}
		commands = append(commands, command{entry, func(name string) (tea.Cmd, error) {
			at := slices.Index(saved, name)
			if at < 0 {
				return nil, fmt.Errorf("there is no bookmark %q", name)
			}
			return m.openBookmark(&m.bookmarks[at]), nil
		}})
	}
	return commands
}

// bookmarkLine lists the bookmarks with a letter and takes one.
type bookmarkLine struct{ layer }

func (o *bookmarkLine) key(m *Model, _ keymap.Action, msg tea.KeyMsg) tea.Cmd {
	m.pop()
	name := msg.String()
	if name == "esc" {
		return nil
	}
	for i := range m.bookmarks {
		if m.bookmarks[i].Key == name {
			return m.openBookmark(&m.bookmarks[i])
		}
	}
	m.say("No bookmark has the letter " + widget.Clean(name) + ".")
	return nil
}

func (o *bookmarkLine) draw(m *Model, f *frame) {
	parts := []string{" open"}
	for _, b := range m.bookmarks {
		if b.Key != "" {
			parts = append(parts, m.env.Paint(theme.Accent, widget.Clean(b.Key))+" "+widget.Clean(b.Name))
		}
	}
	f.message = strings.Join(append(parts, "esc stays"), "  ")
}

// openBookmark opens a view as it was saved. It reports and skips an invalid filter or order.
func (m *Model) openBookmark(b *settings.Bookmark) tea.Cmd {
	if !slices.Contains(Views, b.View) {
		m.say("Bookmark " + b.Name + ": there is no view " + string(b.View) + ".")
		return nil
	}
	target := m.screens[b.View]
	if f, ok := target.(screen.Filterable); ok {
		if err := f.SetFilter(b.Filter); err != nil {
			m.say("Bookmark " + b.Name + ": " + err.Error())
		}
	}
	m.sortBookmark(b)
	trouble := m.onlyProblems(target, b.Problems)
	if t, ok := target.(screen.Tabular); ok {
		showColumns(t.Table(), b.Columns)
	}
	if m.view == b.View {
		return tea.Batch(trouble, m.restartView())
	}
	return tea.Batch(trouble, m.goTo(b.View))
}

// onlyProblems turns the problems-only mode of a list on or off.
func (m *Model) onlyProblems(s screen.Screen, on bool) tea.Cmd {
	if t, ok := s.(screen.Troubled); ok && t.Problems() != on {
		return m.effect(t.Do(keymap.Problems))
	}
	return nil
}

func (m *Model) sortBookmark(b *settings.Bookmark) {
	s, ok := m.screens[b.View].(screen.Sortable)
	if !ok {
		if b.Sort != "" {
			m.say("Bookmark " + b.Name + ": the order of " + string(b.View) + " cannot be chosen.")
		}
		return
	}
	order, known := screen.ReadOrder(s, b.Sort)
	if !known {
		m.say("Bookmark " + b.Name + ": " + string(b.View) + " is sorted by one of " +
			strings.Join(s.SortKeys(), ", ") + ", not by " + b.Sort + ".")
	}
	if order != s.Order() {
		s.SetOrder(order)
	}
}

func (m *Model) restartView() tea.Cmd {
	var cmds []tea.Cmd
	for _, feed := range m.screen().Feeds() {
		cmds = append(cmds, m.restart(feed))
	}
	return tea.Batch(cmds...)
}

// showColumns hides all columns but these, compared without case; none means all.
func showColumns(table *widget.Table, titles []string) {
	var hidden []string
	for _, c := range table.Choosables() {
		shown := slices.ContainsFunc(titles, func(title string) bool { return strings.EqualFold(title, c.Title) })
		if len(titles) > 0 && !shown {
			hidden = append(hidden, c.Title)
		}
	}
	table.HideColumns(hidden)
}

// shownColumns lists the visible columns, or none if all are visible.
func shownColumns(table *widget.Table) []string {
	if len(table.HiddenColumns()) == 0 {
		return nil
	}
	var titles []string
	for _, c := range table.Choosables() {
		if c.On && c.Title != "" {
			titles = append(titles, c.Title)
		}
	}
	return titles
}

type savedMsg struct {
	bookmark settings.Bookmark
	err      error
}

// saveBookmark saves the open view under a name and an optional letter.
func (m *Model) saveBookmark(arg string) (tea.Cmd, error) {
	name, key, _ := strings.Cut(arg, " ")
	key = strings.TrimSpace(key)
	problem := settings.NameProblem(name)
	switch {
	case m.opts.SaveBookmark == nil:
		return nil, errors.New("bookmarks cannot be saved here")
	case problem != "":
		return nil, errors.New("the name of a bookmark " + problem)
	case key != "" && (utf8.RuneCountInString(key) != 1 || settings.NameProblem(key) != ""):
		return nil, errors.New("the letter of a bookmark is one character")
	case !slices.Contains(Views, m.view):
		return nil, errors.New("only lists can be kept as bookmarks, not one row")
	}
	at := m.here()
	b := settings.Bookmark{Name: name, Key: key, View: at.View, Filter: at.Filter, Problems: at.problems}
	if s, ok := m.screen().(screen.Sortable); ok {
		b.Sort = screen.OrderText(s)
	}
	if t := m.table(); t != nil {
		b.Columns = shownColumns(t)
	}
	save := m.opts.SaveBookmark
	return func() tea.Msg { return savedMsg{b, save(b)} }, nil
}

func (m *Model) saved(msg savedMsg) {
	if msg.err != nil {
		m.say("Not saved: " + msg.err.Error())
		return
	}
	m.bookmarks = slices.DeleteFunc(m.bookmarks, func(b settings.Bookmark) bool { return b.Name == msg.bookmark.Name })
	m.bookmarks = append(m.bookmarks, msg.bookmark)
	text := "Saved as " + msg.bookmark.Name
	if msg.bookmark.Key != "" {
		opener, _ := m.keymap.Of(keymap.Bookmarks)
		text += "; " + opener.Show + " and " + msg.bookmark.Key + " opens it"
	}
	m.say(text)
}
