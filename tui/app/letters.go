package app

import (
	"fmt"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// readFeed names the feed of what an act has read.
func readFeed(result any) screen.Feed {
	switch result.(type) {
	case *redrive.Snapshot:
		return screen.FeedSnapshot
	default:
		return screen.FeedSpool
	}
}

// orderLook plans what a screen wants looked at. It changes nothing of the
// installation, so it is possible where acting is locked; a dashboard that only reads
// has nobody who looks.
func (m *Model) orderLook(order act.Order) tea.Cmd {
	switch {
	case m.tooSmall() || m.dialog.scope != "":
		return nil
	case m.opts.Acts == nil || m.opts.ReadOnly != "" || m.readOnly != "":
		if order.Kind != act.ReadSpool { // what was not asked for by its own key is not refused aloud
			m.say("Nothing is looked at: " + m.env.Locked)
		}
		return nil
	}
	for op := range m.underWay {
		if op.Order.Kind == order.Kind {
			m.say("One is being taken; L shows it.")
			return nil
		}
	}
	return m.planFor(order)
}

// keepSpool asks how copies of removed letters are kept, or turns that on or off.
func (m *Model) keepSpool(arg string) (tea.Cmd, error) {
	if arg != "" && arg != "on" && arg != "off" {
		return nil, fmt.Errorf("spool is on or off, not %q", arg)
	}
	return m.orderLook(act.Order{Kind: act.KeepSpool, Target: act.Target{Name: "spool"}, Values: map[string]string{act.FieldSpool: arg}}), nil
}

// undo plans to take back the operation under the cursor or the marked letters, or
// else what was done last in this session and can be taken back.
func (m *Model) undo() tea.Cmd {
	if actionable, ok := m.screen().(screen.Actionable); ok && m.env.Locked == "" {
		if menu, ok := actionable.Acts(); ok {
			for _, item := range menu.Items {
				if item.Kind == act.UndoLetters {
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
	m.say("Nothing was discarded, purged or moved in this session that can be put back.")
	return nil
}
