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
type matching struct {
	keys []string
	// cut is true if more rows match than one plan takes; bounded if the search stopped at its bound.
	cut, bounded bool
}

// matchingMsg answers a request to mark all rows.
type matchingMsg struct {
	view     screen.View
	asked    int
	wish     int
	matching matching
	err      error
	// then is the act on the marked rows.
	then keymap.Action
}

// markAll reads the keys of all matching rows and marks them. Later rows are not marked.
func (m *Model) markAll() tea.Cmd { return m.markAllFor(keymap.None) }

// markAllFor also starts an act on them.
func (m *Model) markAllFor(then keymap.Action) tea.Cmd {
	s, ok := m.screen().(screen.Taker)
	read := m.all()
	if !ok || read == nil {
		return nil
	}
	m.markRequest++
	m.say("Reading all that match, to mark them …")
	msg, ctx := matchingMsg{view: m.view, asked: s.Asked(), wish: m.markRequest, then: then}, m.ctx
	return func() tea.Msg {
		msg.err = msg.matching.read(ctx, read)
		return msg
	}
}

// read collects keys until there are as many as one plan takes.
func (t *matching) read(ctx context.Context, all export.Rows) error {
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
func (m *Model) marked(msg matchingMsg) tea.Cmd {
	s, ok := m.screens[msg.view].(screen.Taker)
	if !ok || msg.wish != m.markRequest || msg.asked != s.Asked() {
		return nil
	}
	if msg.err != nil {
		m.say("Only loaded rows are marked: " + msg.err.Error())
		return nil
	}
	s.Table().MarkAhead(msg.matching.keys)
	count := widget.Number(int64(len(msg.matching.keys)), m.env.Theme.Glyphs.Space)
	switch {
	case msg.matching.cut:
		m.say(fmt.Sprintf("The first %s are marked, which is the most that one plan takes; more match.", count))
	case msg.matching.bounded:
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
			" were searched: narrow it with status:, age< or id:a..b"
	}
	return "the search stopped at its bound; older matches may exist"
}
