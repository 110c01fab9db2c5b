package app

import (
	"errors"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// filterLine is the input line of a filter.
type filterLine struct {
	inputLine

	// before is the previous filter, which esc restores.
	before string
	err    error
	// offers are the completions that tab cycles through; at is the present one.
	offers filter.Completion
	at     int
}

// openFilter opens the input line of a filter, or of a search if the view can only be searched.
func (m *Model) openFilter() tea.Cmd {
	if s, ok := m.screen().(screen.Searchable); ok {
		m.push(&searchLine{newInputLine(s.Query())})
		return nil
	}
	f, ok := m.screen().(screen.Filterable)
	if !ok {
		return nil
	}
	text := f.Filter()
	if _, language := f.(screen.Queryable); language && text != "" {
		text += " " // the operator types a further term
	}
	m.push(&filterLine{inputLine: newInputLine(text), before: f.Filter()})
	return m.readNames()
}

// namesTTL is how long names are completed before they are read again.
const namesTTL = time.Minute

// readNames reads the queues and the workers once, whose names an opened input line completes. It reads nothing that is
// polled or was read lately.
func (m *Model) readNames() tea.Cmd {
	var cmds []tea.Cmd
	for _, feed := range []screen.Feed{screen.FeedQueues, screen.FeedWorkers} {
		if at := m.env.Data.Fresh(feed).At; !m.paused && !slices.Contains(m.visible(), feed) &&
			(at.IsZero() || m.env.Clock.Sub(at) >= namesTTL) {
			cmds = append(cmds, m.fetch(feed, true))
		}
	}
	return tea.Batch(cmds...)
}

func (o *filterLine) key(m *Model, _ keymap.Action, msg tea.KeyMsg) tea.Cmd {
	switch msg.String() {
	case "enter":
		cmd, err := m.applyFilter(o.input.Value())
		if o.err = err; err == nil {
			m.pop()
		}
		return cmd
	case "esc":
		m.pop()
		if q, ok := m.screen().(screen.Queryable); ok && q.Live() && q.Filter() != o.before {
			cmd, _ := m.applyFilter(o.before) // it was valid before
			return cmd
		}
		return nil
	case "tab", "shift+tab":
		o.complete(m, msg.String() == "tab")
	default:
		o.input.Update(msg)
		o.offers = filter.Completion{}
	}
	o.try(m)
	return nil
}

// try checks the text, and filters at once if that needs no read.
func (o *filterLine) try(m *Model) {
	o.err = nil
	q, ok := m.screen().(screen.Queryable)
	switch {
	case ok && q.Live():
		o.err = m.rearrange(m.view, func() error { return q.SetFilter(o.input.Value()) })
	case ok:
		_, o.err = filter.Parse(q.Schema(), o.input.Value())
	}
}

// applyFilter filters the open view and reads it again. An invalid filter changes nothing.
func (m *Model) applyFilter(text string) (tea.Cmd, error) {
	f, ok := m.screen().(screen.Filterable)
	if !ok {
		return nil, nil
	}
	if err := m.rearrange(m.view, func() error { return f.SetFilter(text) }); err != nil {
		return nil, err
	}
	return m.restartView(), nil
}

// complete inserts the next completion. The first press inserts the common beginning of all.
func (o *filterLine) complete(m *Model, forward bool) {
	q, ok := m.screen().(screen.Queryable)
	if !ok {
		return
	}
	text, caret := o.input.Value(), o.input.Caret()
	if len(o.offers.Offers) == 0 {
		c := filter.Complete(q.Schema(), text, caret, func(field string) []string {
			return append(q.Known(field), m.env.Data.Names(field)...)
		})
		if len(c.Offers) == 0 {
			return
		}
		o.offers, o.at = c, -1
		if shared := common(c.Offers); len(c.Offers) == 1 || len(shared) > c.To-c.From {
			o.put(shared)
			if len(c.Offers) == 1 {
				o.offers = filter.Completion{}
			}
			return
		}
	}
	step := 1
	if !forward {
		step = -1
	}
	n := len(o.offers.Offers)
	o.at = (max(o.at, -1) + step + n) % n
	o.put(o.offers.Offers[o.at])
}

// put replaces the text between the start of the completion and the caret.
func (o *filterLine) put(offer string) {
	text, caret := o.input.Value(), o.input.Caret()
	head := text[:min(o.offers.From, caret)] + offer
	o.input.Set(head+text[caret:], len(head))
}

// common is the longest common beginning.
func common(texts []string) string {
	shared := texts[0]
	for _, text := range texts[1:] {
		for !strings.HasPrefix(text, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	return strings.ToValidUTF8(shared, "")
}

// draw marks the invalid part, and shows the error or the completions after it.
func (o *filterLine) draw(m *Model, f *frame) {
	e, note := m.env, ""
	switch {
	case len(o.offers.Offers) > 1:
		note = e.Paint(theme.Dim, widget.Clean(strings.Join(o.offers.Offers, "  ")))
	case o.err != nil:
		note = e.Paint(theme.Bad, "✗ "+widget.Clean(o.err.Error()))
	}
	var wrong filter.Span
	if mistake, ok := errors.AsType[*filter.Error](o.err); ok {
		wrong = mistake.Span
	}
	f.message = o.line(m, wrong, note)
	f.keys = " " + m.keyHint("enter", "apply it") + "  " + m.keyHint("esc", "the filter before")
	if _, ok := m.screen().(screen.Queryable); ok {
		f.keys = " " + m.keyHint("tab", "complete") + " " + f.keys
	}
}
