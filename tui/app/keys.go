package app

import (
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Views lists the views that have a key, in the order of the keys.
var Views = func() (views []screen.View) {
	for _, v := range keymap.Views {
		if v.Turn != keymap.None {
			views = append(views, v.Scope)
		}
	}
	return views
}()

// keys takes a key message. A slow connection may put several letters into one message.
func (m *Model) keys(msg tea.KeyMsg) tea.Cmd {
	if m.isEscapeFirst(msg) {
		msg.Alt = false
		return tea.Batch(m.key(tea.KeyMsg{Type: tea.KeyEsc}), m.keys(msg))
	}
	if msg.Type != tea.KeyRunes || msg.Paste || len(msg.Runes) < 2 {
		return m.key(msg)
	}
	var cmds []tea.Cmd
	for _, r := range msg.Runes {
		cmds = append(cmds, m.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: msg.Alt}))
	}
	return tea.Batch(cmds...)
}

// isEscapeFirst reports whether a key with Alt is Escape followed by that key: terminals send both alike. Bound keys
// with Alt and those in text fields are really Alt.
func (m *Model) isEscapeFirst(msg tea.KeyMsg) bool {
	if !msg.Alt || msg.Type != tea.KeyRunes || msg.Paste {
		return false
	}
	scope := m.view
	if top := m.top(); top != nil {
		scope = top.scope()
		if scope == "" || scope == keymap.InForm || scope == keymap.InTyping {
			return false // letters are text
		}
	}
	action, prefix := m.keymap.Lookup(scope, msg.String())
	return action == keymap.None && !prefix
}

func (m *Model) key(msg tea.KeyMsg) tea.Cmd {
	m.env.LastKey = m.env.Clock
	if msg.Type == tea.KeyEsc {
		msg.Alt = false // two quick presses arrive as Alt+Esc
	}
	name := msg.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if bound, _ := m.keymap.Lookup(m.view, name); bound == keymap.Redraw && msg.Type != tea.KeyRunes {
		return tea.ClearScreen // also from a dialog
	}
	top, scope, action := m.top(), m.view, keymap.None
	if top != nil {
		scope = top.scope()
	}
	if scope != "" && !msg.Paste {
		action = m.lookup(scope, name)
	}
	switch {
	case top == nil:
		return m.do(action)
	case top.modal() && m.tooSmall() && action != keymap.Back && action != keymap.Hide:
		return nil // the operator cannot see what it confirms
	default:
		return top.key(m, action, msg)
	}
}

// lookup finds the action of a key, also of the second key of two.
func (m *Model) lookup(scope keymap.Scope, name string) keymap.Action {
	if m.pending != "" {
		sequence := m.pending + name
		m.pending = ""
		if action, _ := m.keymap.Lookup(scope, sequence); action != keymap.None {
			return action
		}
	}
	action, prefix := m.keymap.Lookup(scope, name)
	if action == keymap.None && prefix {
		m.pending = name
	}
	return action
}

// needRow are the actions that an empty list cannot do; needRows are also needless there, unless a filter or the
// problems-only mode empties it.
var (
	needRow = []keymap.Action{
		keymap.Open, keymap.Sort, keymap.Preview, keymap.NextPane, keymap.Why, keymap.FoldAll, keymap.Acknowledge,
		keymap.Mute, keymap.Yank, keymap.Export, keymap.Xray, keymap.Related,
	}
	needRows = []keymap.Action{keymap.Filter, keymap.Problems}
)

// useful reports whether a key does something with the present row.
func (m *Model) useful(b keymap.Binding) bool {
	t := m.table()
	if t == nil {
		return m.applies(b)
	}
	empty := t.Cursor() < 0 && !keymap.ViewOf(m.view).One
	if empty && slices.Contains(needRow, b.Action) {
		return false
	}
	if empty && slices.Contains(needRows, b.Action) {
		f, filters := m.screen().(screen.Filterable)
		p, hides := m.screen().(screen.Troubled)
		return filters && f.Filter() != "" || hides && p.Problems()
	}
	return t.Marks() > 0 && m.env.Locked == "" || m.applies(b)
}

// applies reports whether an act of a key applies to the selected row; true for keys that do not act.
func (m *Model) applies(b keymap.Binding) bool {
	if !b.Acts || b.Action == keymap.Undo {
		return !b.Acts || m.env.Locked == ""
	}
	actionable, ok := m.screen().(screen.Actionable)
	if !ok || m.env.Locked != "" {
		return false
	}
	acts, _ := actionable.Acts()
	return slices.ContainsFunc(acts.Items, func(i act.Item) bool {
		return i.Not == "" && (b.Action == keymap.Act || slices.Contains(byKey[b.Action], i.Kind))
	})
}

// do carries out an action of the dashboard, or passes it to the screen.
func (m *Model) do(action keymap.Action) tea.Cmd {
	if action == keymap.None {
		return nil
	}
	for _, v := range keymap.Views {
		if v.Turn == action {
			return m.goTo(v.Scope)
		}
	}
	switch action {
	case keymap.Abort:
		return tea.Quit
	case keymap.Redraw:
		return tea.ClearScreen
	case keymap.Quit:
		if len(m.parents) == 0 {
			return m.quit()
		}
		if m.dismiss() || m.closePart() {
			return nil
		}
		return m.up()
	case keymap.Back:
		return m.back()
	case keymap.Help:
		m.push(&help{})
	case keymap.Act:
		m.openMenu()
	case keymap.Requeue, keymap.Discard, keymap.Purge, keymap.MoveTo, keymap.Take:
		return m.actAtOnce(action)
	case keymap.Undo:
		return m.undo()
	case keymap.Log:
		return m.goTo(keymap.InLog)
	case keymap.Command:
		return m.openPalette("")
	case keymap.Related:
		return m.openRelated()
	case keymap.Export:
		m.openExport()
	case keymap.Yank:
		m.openYank()
	case keymap.Earlier:
		return m.travel(-1)
	case keymap.Later:
		return m.travel(1)
	case keymap.Columns:
		if table := m.table(); table != nil && !m.tooSmall() {
			m.push(&columns{table: table, list: widget.NewMenu(columnChoices(table))})
		}
	case keymap.Freeze:
		return m.setPaused(!m.paused)
	case keymap.Refresh:
		return m.refresh()
	case keymap.Slower:
		return m.setRefresh(m.refreshEvery * 2)
	case keymap.Faster:
		return m.setRefresh(m.refreshEvery / 2)
	case keymap.Theme:
		_, _ = m.setTheme(m.env.Theme.Next()) // the name is valid
	case keymap.Hints:
		if m.hinting.on {
			return m.endHints()
		}
		m.hinting = hinting{on: true, since: m.env.Clock}
	case keymap.Filter:
		return m.openFilter()
	case keymap.Sort:
		if _, ok := m.screen().(screen.Sortable); ok {
			m.push(&sortLine{})
		}
	case keymap.Bookmarks:
		if len(m.bookmarks) == 0 {
			m.say("There are no bookmarks: :bookmark NAME keeps this view.")
		} else {
			m.push(&bookmarkLine{})
		}
	default:
		if action == keymap.Unmark {
			m.markRequest++ // cancels a pending request to mark all
			m.stopMarking()
		}
		if t := m.table(); t != nil && action == keymap.Problems {
			t.Anew(true)
		}
		effect := m.screen().Do(action)
		if action == keymap.Xray && !effect.Handled {
			return m.openTree()
		}
		return m.effect(effect)
	}
	return nil
}

// confirmTimeout is how long a second q or :ctx confirms the first one.
const confirmTimeout = 5 * time.Second

// quit ends the program. While acts run it asks first.
func (m *Model) quit() tea.Cmd {
	if len(m.underWay) == 0 || m.again("quit") {
		return tea.Quit
	}
	m.say("Still running: " + m.busy() + ". q again stops it after the step under way and quits.")
	return nil
}

// openTree opens the tree of the selected execution.
func (m *Model) openTree() tea.Cmd {
	thing, ok := m.thing()
	if !ok || thing.Execution == 0 {
		m.say("This row has no execution, so there is no tree to show; enter and o lead on.")
		return nil
	}
	return m.effect(screen.OpenTree(thing.Execution))
}

func (m *Model) effect(effect screen.Effect) tea.Cmd {
	if effect.Note != "" {
		m.say(effect.Note)
	}
	var cmd tea.Cmd
	if effect.Refetch != "" {
		cmd = m.restart(effect.Refetch)
	}
	if effect.Take {
		cmd = tea.Batch(cmd, m.markAll())
	}
	if effect.Open.View == "" {
		return cmd
	}
	return tea.Batch(cmd, m.open(effect.Open))
}

// open opens a view with the present one as its parent.
func (m *Model) open(to screen.Nav) tea.Cmd {
	view := m.screens[to.View]
	if view == nil { // a newer engine may send findings about unknown views
		m.say("This dashboard has no view for that.")
		return nil
	}
	from := m.here()
	if s, ok := view.(screen.Showing); ok && to.Shown != "" {
		s.Show(to.Shown)
	}
	if l, ok := view.(screen.Leaver); ok && to.Why {
		l.Leave()
		view.Do(keymap.Why)
	}
	if f, ok := view.(screen.Filterable); ok && to.Filter != "" {
		if err := m.rearrange(to.View, func() error { return f.SetFilter(to.Filter) }); err != nil {
			m.say(err.Error())
		}
		m.openedFilters[to.View] = f.Filter()
	}
	if t := m.tableOf(to.View); t != nil && to.Row != "" {
		t.Seek(to.Row)
	}
	if to.View == m.view && m.here().same(from) {
		return nil
	}
	m.hideSecrets()
	return m.leaveFor(from, to.View)
}

// doubleClick is the longest time between two clicks on a row that open it.
const doubleClick = 400 * time.Millisecond

// mouse scrolls with the wheel and selects with the left button; a double click opens the row.
func (m *Model) mouse(msg tea.MouseMsg) tea.Cmd {
	if top := m.top(); top != nil {
		if help, ok := top.(*help); ok {
			wheel := map[tea.MouseButton]int{tea.MouseButtonWheelDown: 1, tea.MouseButtonWheelUp: -1}
			help.scrollBy(m, wheel[msg.Button])
		}
		return nil
	}
	m.env.LastKey = m.env.Clock
	switch {
	case msg.Button == tea.MouseButtonWheelDown:
		return m.wheel(keymap.RowDown)
	case msg.Button == tea.MouseButtonWheelUp:
		return m.wheel(keymap.RowUp)
	case msg.Button != tea.MouseButtonLeft || msg.Action != tea.MouseActionPress:
		return nil
	case msg.Y == tabLine:
		for _, t := range m.tabs() {
			if msg.X >= t.from && msg.X < t.to {
				return m.goTo(t.view)
			}
		}
		return nil
	}
	return m.point(msg.Y)
}

func (m *Model) point(y int) tea.Cmd {
	selected := false
	switch s := m.screen().(type) {
	case screen.Placed:
		selected = s.Places(m.width, m.bodyHeight()).Select(y - topLines)
	case screen.Selectable:
		selected = s.Select(y - topLines)
	}
	if !selected {
		return nil
	}
	again := m.clicked == y && m.env.Clock.Sub(m.clickedAt) < doubleClick
	m.clicked, m.clickedAt = y, m.env.Clock
	if again {
		m.clicked = -1
		return m.do(keymap.Open)
	}
	return nil
}

func (m *Model) wheel(action keymap.Action) tea.Cmd {
	var cmds []tea.Cmd
	for range 3 {
		cmds = append(cmds, m.effect(m.screen().Do(action)))
	}
	return tea.Batch(cmds...)
}
