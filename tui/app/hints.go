package app

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// hintTime is how long the hints of the first session are shown.
const hintTime = time.Minute

// hintsShown is how many keys a hint names.
const hintsShown = 3

// hint says in a few words what a key does in one view.
type hint struct {
	action keymap.Action
	text   string
}

// hintsOf are the keys that matter in a view, the most useful first. The last ones stand
// in for keys that act where acting is not allowed.
var hintsOf = map[screen.View][]hint{
	keymap.InOverview:    {{keymap.Open, "opens the row"}, {keymap.NextPane, "next section"}, {keymap.Queues, "queues (1–9: views)"}},
	keymap.InQueues:      {{keymap.Open, "opens the queue"}, {keymap.Act, "pauses or limits it"}, {keymap.Problems, "only problems"}, {keymap.Filter, "filters"}},
	keymap.InQueue:       {{keymap.Open, "opens the execution"}, {keymap.Act, "acts on it"}, {keymap.Back, "back"}, {keymap.Filter, "searches"}},
	keymap.InExecutions:  {{keymap.Open, "opens the execution"}, {keymap.Problems, "only problems"}, {keymap.Requeue, "repeats it"}, {keymap.Filter, "filters"}},
	keymap.InExecution:   {{keymap.Why, "why it waits"}, {keymap.Related, "related things"}, {keymap.Back, "back"}},
	keymap.InWorkers:     {{keymap.Open, "opens the worker"}, {keymap.Act, "cordons or drains it"}, {keymap.Problems, "only problems"}, {keymap.Filter, "filters"}},
	keymap.InWorker:      {{keymap.NextPane, "next section"}, {keymap.Act, "acts on it"}, {keymap.Back, "back"}, {keymap.Filter, "searches"}},
	keymap.InDeadLetters: {{keymap.Open, "opens the message"}, {keymap.Requeue, "requeues it"}, {keymap.NextPane, "groups"}, {keymap.Filter, "filters"}},
	keymap.InLetter:      {{keymap.Requeue, "requeues it"}, {keymap.Discard, "discards it"}, {keymap.Back, "back"}, {keymap.NextPane, "next section"}, {keymap.Filter, "searches"}},
	keymap.InWorkflows:   {{keymap.NextPane, "its tasks"}, {keymap.Why, "why it waits"}, {keymap.Open, "opens it"}},
	keymap.InAlerts:      {{keymap.Open, "what it is about"}, {keymap.Acknowledge, "acknowledges"}, {keymap.Mute, "mutes for 15m"}},
	keymap.InInquiries:   {{keymap.Act, "answers it"}, {keymap.Open, "opens what asks"}, {keymap.Problems, "only problems"}, {keymap.Filter, "filters"}},
	keymap.InBroker:      {{keymap.Open, "what it belongs to"}, {keymap.Problems, "only problems"}, {keymap.Filter, "filters"}},
}

// hinting is whether hints are shown, and since when.
type hinting struct {
	on    bool
	since time.Time
}

// hintLine names the keys that matter in the open view, and the key that ends this;
// empty where there is no hint, or no room for one key.
func (m *Model) hintLine() string {
	ends, ok := m.keymap.Of(keymap.Hints)
	if !m.hinting.on || !ok || m.top() != nil || m.neverAnswered() {
		return ""
	}
	tail := "   " + m.keyHint(ends.Show, "hides this")
	line, shown := " ", 0
	for _, h := range hintsOf[m.view] {
		b, ok := m.keymap.Of(h.action)
		if !ok || b.Acts && m.env.Locked != "" || shown == hintsShown {
			continue
		}
		part := m.keyHint(b.Show, h.text)
		if shown > 0 {
			part = m.env.Paint(theme.Dim, " · ") + part
		}
		if widget.Width(line+part+tail) > m.width {
			break
		}
		line, shown = line+part, shown+1
	}
	if shown == 0 {
		return ""
	}
	return line + tail
}

// toggleHints ends the hints for good, or shows them for a minute.
func (m *Model) toggleHints() tea.Cmd {
	if m.hinting.on {
		return m.endHints()
	}
	m.hinting = hinting{on: true, since: m.env.Clock}
	return nil
}

// ageHints ends the hints after their time.
func (m *Model) ageHints() tea.Cmd {
	if !m.hinting.on || m.env.Clock.Sub(m.hinting.since) < hintTime {
		return nil
	}
	return m.endHints()
}

// endHints ends the hints and has that remembered.
func (m *Model) endHints() tea.Cmd {
	m.hinting.on = false
	ended := m.opts.HintsEnded
	if ended == nil {
		return nil
	}
	return func() tea.Msg { return hintsEndedMsg{ended()} }
}

// hintsEndedMsg says whether the end of the hints was remembered.
type hintsEndedMsg struct{ err error }

func (m *Model) hintsEnded(msg hintsEndedMsg) {
	if msg.err != nil {
		m.say("The end of the hints could not be remembered: " + msg.err.Error())
	}
}
