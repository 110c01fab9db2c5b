package app

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// statusField is the field that the chooser writes.
const statusField = "status"

// ticks are the statuses that are chosen for a filter.
type ticks struct {
	words []string
	on    map[string]bool
}

// openStatuses opens the list of the statuses that the filter can ask for, with those
// ticked that it asks for now.
func (m *Model) openStatuses() {
	q, ok := m.screen().(screen.Queryable)
	if !ok || m.tooSmall() {
		return
	}
	field, ok := q.Schema().Field(statusField)
	if !ok {
		return
	}
	query, err := filter.Parse(q.Schema(), q.Filter())
	if err != nil {
		m.say(err.Error())
		return
	}
	t := ticks{words: field.Values, on: map[string]bool{}}
	for _, terms := range query.Any {
		for i := range terms {
			for _, word := range terms[i].Values {
				if terms[i].Field == statusField && !terms[i].Not {
					t.on[word] = true
				}
			}
		}
	}
	m.dialog = dialog{scope: keymap.InStatuses, ticks: t, list: widget.NewMenu(nil)}
	m.drawStatuses(0)
}

// drawStatuses makes the lines of the list anew, with the cursor on one of them.
func (m *Model) drawStatuses(cursor int) {
	d := &m.dialog
	lines := make([]widget.Choice, len(d.ticks.words))
	for i, word := range d.ticks.words {
		box := "[ ] "
		if d.ticks.on[word] {
			box = "[x] "
		}
		lines[i] = widget.Choice{Label: box + word, Help: m.statusCount(word)}
	}
	d.list = widget.NewMenu(lines)
	d.list.Move(cursor)
}

// statusCount is how many have a status, as far as every poll counts them.
func (m *Model) statusCount(word string) string {
	o := m.env.Data.Overview
	if o == nil {
		return ""
	}
	switch {
	case m.view == keymap.InExecutions:
		live := map[attune.Status]monitor.Count{
			attune.StatusRequested: o.Live.Requested, attune.StatusScheduling: o.Live.Scheduling, attune.StatusScheduled: o.Live.Scheduled,
			attune.StatusRunning: o.Live.Running, attune.StatusCanceling: o.Live.Canceling,
		}
		if n, counted := live[attune.Status(word)]; counted {
			return m.env.Count(n)
		}
	case m.view == keymap.InInquiries && word == monitor.InquiryPending && o.Flows != nil:
		return m.env.Count(o.Flows.Inquiries)
	}
	return ""
}

func (m *Model) statusesKey(action keymap.Action) tea.Cmd {
	d := &m.dialog
	at := d.list.Cursor()
	switch action {
	case keymap.RowDown:
		d.list.Move(1)
	case keymap.RowUp:
		d.list.Move(-1)
	case keymap.Mark:
		d.ticks.on[d.ticks.words[at]] = !d.ticks.on[d.ticks.words[at]]
		m.drawStatuses(at)
	case keymap.No:
		clear(d.ticks.on)
		m.drawStatuses(at)
	case keymap.Choose:
		return m.applyStatuses()
	case keymap.Back:
		m.drop()
	}
	return nil
}

// applyStatuses puts what is ticked into the filter, in place of the statuses that it
// asked for. Nothing else of the filter changes.
func (m *Model) applyStatuses() tea.Cmd {
	d := m.dialog.ticks
	m.drop()
	q, ok := m.screen().(screen.Queryable)
	if !ok {
		return nil
	}
	words := slices.DeleteFunc(slices.Clone(d.words), func(word string) bool { return !d.on[word] })
	term := ""
	if len(words) > 0 {
		term = statusField + ":" + strings.Join(words, ",")
	}
	text, err := filter.With(q.Schema(), q.Filter(), term, func(t *filter.Term) bool { return t.Field == statusField })
	if err != nil {
		m.say(err.Error())
		return nil
	}
	return m.applyFilter(text)
}
