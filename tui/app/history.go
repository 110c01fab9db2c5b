package app

import (
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// location is a view with its content, filter, order and selected row.
type location struct {
	screen.Nav

	order screen.Order
	// problems is true in the problems-only mode.
	problems bool
	// label names the location in the breadcrumbs.
	label string
}

// historyEntry is a location with its parents.
type historyEntry struct {
	location
	parents []location
}

const (
	maxParents = 20
	maxHistory = 200
)

// here is the present location.
func (m *Model) here() location {
	p := location{Nav: screen.Nav{View: m.view}, label: m.lastCrumb()}
	if s, ok := m.screen().(screen.Showing); ok {
		p.Shown = s.Shown()
	}
	if f, ok := m.screen().(screen.Filterable); ok {
		p.Filter = f.Filter()
	}
	if s, ok := m.screen().(screen.Sortable); ok {
		p.order = s.Order()
	}
	if s, ok := m.screen().(screen.Troubled); ok {
		p.problems = s.Problems()
	}
	if t := m.table(); t != nil && !t.AtTop() {
		p.Row = t.Key()
	}
	return p
}

// same reports whether both show the same content.
func (p location) same(other location) bool {
	return p.View == other.View && p.Shown == other.Shown && p.Filter == other.Filter
}

// leaveFor opens a view that is filled already, with a location as its parent.
func (m *Model) leaveFor(from location, view screen.View) tea.Cmd {
	parents := append(slices.Clip(m.parents), from)
	if len(parents) > maxParents {
		parents = parents[1:]
	}
	return m.switchView(from, view, parents)
}

func (m *Model) switchView(from location, view screen.View, parents []location) tea.Cmd {
	m.recordLeft(from)
	m.parents, m.view = parents, view
	m.env.LastKey = time.Time{} // the opened list is in its order, not in the one in which it was left
	m.arrive()
	return m.resume()
}

// recordLeft updates the history entry of the location that is left.
func (m *Model) recordLeft(from location) {
	if len(m.history) == 0 {
		m.history = []historyEntry{{}}
	}
	m.history[m.historyAt] = historyEntry{from, m.parents}
}

// arrive appends the present location to the history and drops the entries after the previous one.
func (m *Model) arrive() {
	m.history = append(m.history[:m.historyAt+1:m.historyAt+1], historyEntry{m.here(), m.parents})
	if len(m.history) > maxHistory {
		m.history = m.history[1:]
	}
	m.historyAt = len(m.history) - 1
}

// travel goes back or forward in the history.
func (m *Model) travel(n int) tea.Cmd {
	to := m.historyAt + n
	if to < 0 || to >= len(m.history) {
		if n < 0 {
			m.say("This is the first view of this session.")
		} else {
			m.say("There is nothing ahead: this is the newest view.")
		}
		return nil
	}
	m.recordLeft(m.here())
	m.historyAt = to
	m.parents = m.history[to].parents
	return m.restore(m.history[to].location)
}

// restore shows a location again.
func (m *Model) restore(p location) tea.Cmd {
	m.hideSecrets()
	m.view = p.View
	s := m.screen()
	if shows, ok := s.(screen.Showing); ok && p.Shown != shows.Shown() {
		shows.Show(p.Shown)
	}
	if f, ok := s.(screen.Filterable); ok && f.Filter() != p.Filter {
		if err := f.SetFilter(p.Filter); err != nil {
			m.say(err.Error())
		}
	}
	if sorts, ok := s.(screen.Sortable); ok && sorts.Order() != p.order {
		sorts.SetOrder(p.order)
	}
	trouble := m.onlyProblems(s, p.problems)
	if t := m.table(); t != nil && p.Row != "" && t.Key() != p.Row {
		t.Seek(p.Row)
	}
	return tea.Batch(trouble, m.resume())
}

// up returns to the parent.
func (m *Model) up() tea.Cmd {
	to := m.parents[len(m.parents)-1]
	m.recordLeft(m.here())
	m.parents = m.parents[:len(m.parents)-1]
	cmd := m.restore(to)
	m.arrive()
	return cmd
}

func (m *Model) hideSecrets() {
	if s, ok := m.screen().(screen.Revealing); ok {
		s.Hide()
	}
}

// lastCrumb is the last breadcrumb: the title without its parents.
func (m *Model) lastCrumb() string {
	left, _ := m.screen().Title()
	left, _, _ = strings.Cut(left, "  ") // a note follows
	if at := strings.LastIndex(left, crumb); at >= 0 {
		return left[at+len(crumb):]
	}
	return left
}

// crumb separates the breadcrumbs.
const crumb = " › "

// crumbs are the breadcrumbs from the last list to the open view. It drops the first ones if they are wider than w
// cells.
func (m *Model) crumbs(left string, w int) string {
	from := len(m.parents)
	if !isTab(m.view) {
		for from > 0 {
			from--
			if isTab(m.parents[from].View) {
				break
			}
		}
	}
	if from == len(m.parents) {
		return left
	}
	var names []string
	for _, p := range m.parents[from:] {
		names = append(names, p.label)
	}
	names = append(names, m.lastCrumb())
	for len(names) > 2 && widget.Width(widget.Clean(strings.Join(names, crumb))) > w {
		names = names[1:]
		names[0] = "…"
	}
	return strings.Join(names, crumb)
}

// isTab reports whether a view can be opened from everywhere.
func isTab(view screen.View) bool { return view == keymap.InLog || slices.Contains(Views, view) }
