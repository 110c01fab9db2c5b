package app

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// undo plans to take back the operation under the cursor or the marked letters, or
// else what was done last in this session and can be taken back.
func (m *Model) undo() tea.Cmd {
	if actionable, ok := m.screen().(screen.Actionable); ok && m.env.Locked == "" {
		if menu, ok := actionable.Acts(); ok {
			for _, item := range menu.Items {
				if item.Kind == act.UndoLetters && item.Not == "" {
					return m.actAtOnce(keymap.Undo)
				}
			}
		}
	}
	if m.env.Locked != "" {
		m.say("Nothing can be acted upon: " + m.env.Locked)
		return nil
	}
	for _, op := range slices.Backward(m.env.Session) {
		if op.Receipt != nil && op.Receipt.Undo != nil {
			return m.planFor(*op.Receipt.Undo)
		}
	}
	m.say("Nothing was discarded or taken in this session that can be taken back.")
	return nil
}
