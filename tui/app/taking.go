package app

import (
	"context"
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// matching are the keys of the rows that match a filter.
type taken struct {
	keys []string
	// cut is true if more rows match than one plan takes; bounded if the search stopped at its bound.
	cut, bounded bool
}

// matchingMsg answers a request to mark all rows.
type takenMsg struct {
	view  screen.View
	asked int
	wish  int
	taken taken
	err   error
	// then is the act on the marked rows.
	then keymap.Action
}

// markAll reads the keys of all matching rows and marks them. Later rows are not marked.
func (m *Model) take() tea.Cmd { return m.takeFor(keymap.None) }

// markAllFor also starts an act on them.
func (m *Model) takeFor(then keymap.Action) tea.Cmd {
	s, ok := m.screen().(screen.Taker)
	read := m.all()
	if !ok || read == nil {
		return nil
	}
	m.takes++
	m.say("Reading all that match, to mark them …")
	msg, ctx := takenMsg{view: m.view, asked: s.Asked(), wish: m.takes, then: then}, m.ctx
	return func() tea.Msg {
		msg.err = msg.taken.read(ctx, read)
		return msg
	}
}

// read collects keys until there are as many as one plan takes.
func (t *taken) read(ctx context.Context, all export.Rows) error {
	bounded, err := all(ctx, func(rows []export.Row, more bool) (bool, error) {
		for i := range rows {
			t.keys = append(t.keys, rows[i].Key)
		}
		if len(t.keys) > act.MaxTargets || len(t.keys) == act.MaxTargets && more {
			t.keys, t.cut = t.keys[:act.MaxTargets], true
		}
		return !t.cut, nil
	})
	t.bounded = bounded
	return err
}

// marked marks the rows, unless the list has another filter by now or the operator has removed the marks.
func (m *Model) marked(msg takenMsg) tea.Cmd {
	s, ok := m.screens[msg.view].(screen.Taker)
	if !ok || msg.wish != m.takes || msg.asked != s.Asked() {
		return nil
	}
	if msg.err != nil {
		m.say("Only those that are loaded are marked: " + msg.err.Error())
		return nil
	}
	s.Table().MarkAhead(msg.taken.keys)
	count := widget.Number(int64(len(msg.taken.keys)), m.env.Theme.Glyphs.Space)
	switch {
	case msg.taken.cut:
		m.say(fmt.Sprintf("The first %s are marked, which is the most that one plan takes; more match.", count))
	case msg.taken.bounded:
		m.say(fmt.Sprintf("%s are marked; %s.", count, m.boundText()))
	default:
		m.say(fmt.Sprintf("All %s that match now are marked.", count))
	}
	if msg.then != keymap.None && msg.view == m.view && m.top() == nil && s.Table().Marks() > 0 {
		return m.actAtOnce(msg.then)
	}
	return nil
}

// boundText says where a search stopped.
func (m *Model) boundText() string {
	if q := m.executions.Query(); m.view == keymap.InExecutions && q.ByParams() {
		end := "newest"
		if q.Oldest {
			end = "oldest"
		}
		return "only the " + end + " " + m.env.Num(monitor.ChoiceBound) +
			" were looked at: narrow it with status:, age< or id:a..b"
	}
	return "the search stopped at its bound; older matches may exist"
}
