package app

import (
	"context"
	"errors"
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
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
	progress := &act.Progress{}
	read := m.all(progress)
	if !ok || read == nil {
		return nil
	}
	m.stopMarking()
	m.markRequest++
	msg := matchingMsg{view: m.view, asked: s.Asked(), wish: m.markRequest, then: then}
	ctx, cancel := context.WithCancel(m.ctx)
	m.marking = &marking{progress: progress, cancel: cancel}
	return func() tea.Msg {
		defer cancel()
		msg.err = msg.matching.read(ctx, read)
		return msg
	}
}

// marking is a running search for all rows that match.
type marking struct {
	progress *act.Progress
	cancel   context.CancelFunc
}

// stopMarking ends the search; what it found is marked. It is false if none runs.
func (m *Model) stopMarking() bool {
	if m.marking == nil {
		return false
	}
	m.marking.cancel()
	m.marking = nil
	return true
}

// markingNote is the progress of the search.
func (m *Model) markingNote() string {
	if m.marking == nil {
		return ""
	}
	note := "marking all that match"
	if done, of := m.marking.progress.Read(); done > 0 {
		note += ": searched " + m.env.Num(done) + " of about " + m.env.Num(of)
	}
	return note + " · esc stops   "
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
		return !t.cut, ctx.Err()
	})
	t.bounded = bounded
	return err
}

// marked marks the rows, unless the list has another filter by now or the operator has removed the marks.
func (m *Model) marked(msg matchingMsg) tea.Cmd {
	s, ok := m.screens[msg.view].(screen.Taker)
	if msg.wish == m.markRequest {
		m.marking = nil
	}
	if !ok || msg.wish != m.markRequest || msg.asked != s.Asked() {
		return nil
	}
	stopped := errors.Is(msg.err, context.Canceled)
	if msg.err != nil && !stopped {
		m.say("Only loaded rows are marked: " + msg.err.Error())
		return nil
	}
	s.Table().MarkAhead(msg.matching.keys)
	count := widget.Number(int64(len(msg.matching.keys)), m.env.Theme.Glyphs.Space)
	switch {
	case stopped:
		m.say(fmt.Sprintf("%s are marked; the search was stopped, more may match.", count))
		return nil
	case msg.matching.cut:
		m.say(fmt.Sprintf("The first %s are marked, which is the most that one plan takes; more match.", count))
	case msg.matching.bounded:
		m.say(fmt.Sprintf("%s are marked; the search stopped at its bound; older matches may exist.", count))
	default:
		m.say(fmt.Sprintf("All %s that match now are marked.", count))
	}
	if msg.then != keymap.None && msg.view == m.view && m.top() == nil && s.Table().Marks() > 0 {
		return m.actAtOnce(msg.then)
	}
	return nil
}
