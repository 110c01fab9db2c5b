package app

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/keymap"
)

// letterPause is how long a letter on a button of a question must stay alone to be an
// answer. Letters that follow each other faster are a text: they go into the reason.
const letterPause = 250 * time.Millisecond

// letterMsg says that letterPause has passed since a press.
type letterMsg struct{ press int }

// questionKey takes a key of a question. On a button a letter counts only alone, so that
// a reason typed there neither answers the question nor does anything else.
func (m *Model) questionKey(action keymap.Action, msg tea.KeyMsg) tea.Cmd {
	d := &m.dialog
	held := d.held.Type == tea.KeyRunes && len(d.held.Runes) == 1
	letter := !msg.Paste && !msg.Alt && (msg.Type == tea.KeyRunes && len(msg.Runes) == 1 || msg.Type == tea.KeySpace && held)
	switch {
	case d.confirm.Typing():
		return m.confirmKey(action, msg)
	case held && letter && msg.String() == d.held.String():
		return nil // the key repeats
	case held && letter:
		d.confirm.Type(d.held)
		d.confirm.Type(msg)
		d.held = tea.KeyMsg{}
		return nil
	case held:
		return m.letterAlone(letterMsg{d.press}) // it was alone; the key after it is not for what it opens
	case !letter:
		return m.confirmKey(action, msg)
	}
	if action == keymap.Yes || action == keymap.No {
		d.confirm.Press(action == keymap.Yes)
	}
	m.lastPress++
	d.held, d.press = msg, m.lastPress
	return m.opts.After(letterPause, letterMsg{d.press})
}

// letterAlone takes the letter that was pressed on a button as an answer.
func (m *Model) letterAlone(msg letterMsg) tea.Cmd {
	d := &m.dialog
	if d.scope != keymap.InConfirm || d.press != msg.press || len(d.held.Runes) == 0 {
		return nil
	}
	key := d.held
	d.held = tea.KeyMsg{}
	action, _ := m.keymap.Lookup(keymap.InConfirm, key.String())
	return m.confirmKey(action, key)
}
