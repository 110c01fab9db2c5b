package app

import (
	"errors"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// filtering is a filter that is being typed.
type filtering struct {
	// before is the filter that was in place, which esc brings back.
	before string
	// bad is the piece that cannot be understood.
	bad filter.Span
	// offers are what tab goes through, from the place where they begin; at is the
	// one that stands there.
	offers filter.Completion
	at     int
}

func (m *Model) openFilter() tea.Cmd {
	if s, ok := m.screen().(screen.Searchable); ok {
		return m.openSearch(s)
	}
	f, ok := m.screen().(screen.Filterable)
	if !ok {
		return nil
	}
	m.prompt, m.inputErr, m.filtering = filterPrompt, "", filtering{before: f.Filter()}
	m.input.SetValue(f.Filter())
	if _, language := f.(screen.Queryable); language && f.Filter() != "" {
		m.input.SetValue(f.Filter() + " ") // what is typed is a further term
	}
	m.input.CursorEnd()
	return m.input.Focus()
}

// filterKey takes a key while a filter is typed.
func (m *Model) filterKey(msg tea.KeyMsg) tea.Cmd {
	switch msg.String() {
	case "enter":
		return m.applyFilter(m.input.Value())
	case "esc":
		return m.leaveFilter()
	case "tab", "shift+tab":
		m.complete(msg.String() == "tab")
	default:
		m.input, _ = m.input.Update(msg) // its commands only blink and read a clipboard
		m.filtering.offers = filter.Completion{}
	}
	m.tryFilter()
	return nil
}

// leaveFilter brings back the filter that was in place.
func (m *Model) leaveFilter() tea.Cmd {
	m.prompt, m.inputErr = noPrompt, ""
	m.input.Blur()
	if q, ok := m.screen().(screen.Queryable); ok && q.Live() && q.Filter() != m.filtering.before {
		return m.applyFilter(m.filtering.before)
	}
	return nil
}

// tryFilter says of what is typed whether it can be understood, and shows at once
// what it leaves where nothing has to be read for that.
func (m *Model) tryFilter() {
	m.inputErr, m.filtering.bad = "", filter.Span{}
	q, ok := m.screen().(screen.Queryable)
	if !ok {
		return
	}
	if q.Live() {
		m.refuseFilter(m.rearrange(m.view, func() error { return q.SetFilter(m.input.Value()) }))
		return
	}
	_, err := filter.Parse(q.Schema(), m.input.Value())
	m.refuseFilter(err)
}

func (m *Model) refuseFilter(err error) {
	if err == nil {
		return
	}
	m.inputErr = err.Error()
	if mistake, ok := errors.AsType[*filter.Error](err); ok {
		m.filtering.bad = mistake.Span
	}
}

// applyFilter puts a filter in place and reads anew. One that cannot be understood
// is not applied: the line stays and says why.
func (m *Model) applyFilter(text string) tea.Cmd {
	f, ok := m.screen().(screen.Filterable)
	if !ok {
		return nil
	}
	if err := m.rearrange(m.view, func() error { return f.SetFilter(text) }); err != nil {
		m.refuseFilter(err)
		return nil
	}
	m.inputErr, m.prompt = "", noPrompt
	m.input.Blur()
	var cmds []tea.Cmd
	for _, feed := range m.screen().Feeds() {
		cmds = append(cmds, m.restart(feed))
	}
	return tea.Batch(cmds...)
}

// complete puts the next of what may stand at the caret there, the first time as
// far as all of it agrees.
func (m *Model) complete(forward bool) {
	q, ok := m.screen().(screen.Queryable)
	if !ok {
		return
	}
	f, text := &m.filtering, m.input.Value()
	caret := len(string([]rune(text)[:m.input.Position()]))
	if len(f.offers.Offers) == 0 {
		c := filter.Complete(q.Schema(), text, caret, q.Known)
		if len(c.Offers) == 0 {
			return
		}
		f.offers, f.at = c, -1
		if shared := common(c.Offers); len(c.Offers) == 1 || len(shared) > c.To-c.From {
			m.put(text, caret, shared)
			if len(c.Offers) == 1 {
				f.offers = filter.Completion{}
			}
			return
		}
	}
	step := 1
	if !forward {
		step = -1
	}
	n := len(f.offers.Offers)
	f.at = (max(f.at, -1) + step + n) % n
	m.put(text, caret, f.offers.Offers[f.at])
}

// put replaces what stands between the beginning of the offers and the caret.
func (m *Model) put(text string, caret int, offer string) {
	head := text[:min(m.filtering.offers.From, caret)] + offer
	m.input.SetValue(head + text[caret:])
	m.input.SetCursor(len([]rune(head)))
}

// common is how far texts agree from their beginning on.
func common(texts []string) string {
	shared := texts[0]
	for _, text := range texts[1:] {
		for !strings.HasPrefix(text, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	return strings.ToValidUTF8(shared, "")
}

// filterLine is the line in which a filter is typed: what cannot be understood is
// painted as wrong, then comes why, or what tab offers.
func (m *Model) filterLine() string {
	e := m.env
	note := ""
	switch {
	case len(m.filtering.offers.Offers) > 1:
		note = e.Paint(theme.Dim, widget.Clean(strings.Join(m.filtering.offers.Offers, "  ")))
	case m.inputErr != "":
		note = e.Paint(theme.Bad, "✗ "+widget.Clean(m.inputErr))
	}
	line := " /" + m.typed()
	if over := widget.Width(line) + min(widget.Width(note)+3, m.width/2) - m.width; over > 0 {
		line = " …" + ansi.TruncateLeft(line, over+2, "")
	}
	return widget.Cut(line+"  "+note, m.width)
}

// typed is the text of the filter with the caret in it.
func (m *Model) typed() string {
	text, bad := m.input.Value(), m.filtering.bad
	caret := len(string([]rune(text)[:m.input.Position()]))
	edges := []int{0, caret, min(bad.From, len(text)), min(bad.To, len(text)), len(text)}
	slices.Sort(edges)
	var b strings.Builder
	drawn := false
	for i, from := range edges {
		if from == caret && !drawn {
			b.WriteString(m.env.Paint(theme.Accent, "▌"))
			drawn = true
		}
		if i+1 == len(edges) {
			break
		}
		role := theme.Plain
		if m.inputErr != "" && from >= bad.From && from < bad.To {
			role = theme.Bad
		}
		b.WriteString(m.env.Paint(role, widget.Clean(text[from:edges[i+1]])))
	}
	return b.String()
}
