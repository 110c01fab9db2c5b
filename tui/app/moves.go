package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// RecordReader reads what leads from one thing to another; *alerting.Reader is one.
type RecordReader interface {
	Family(ctx context.Context, id int64) (*monitor.Family, error)
	Enforcement(ctx context.Context, id int64) (*monitor.EnforcementDetail, error)
	EventDetail(ctx context.Context, id int64) (*monitor.EventDetail, error)
	Rule(ctx context.Context, ref string) (*monitor.RuleDetail, error)
}

// readFamily reads what the execution in sight has to do with.
func (m *Model) readFamily() func(ctx context.Context) (any, error) {
	r, id := m.source, m.execution.ID()
	switch m.view {
	case keymap.InXray:
		id = m.xray.ID()
	case keymap.InExecutions:
		id = m.executions.Subject()
	}
	return func(ctx context.Context) (any, error) { return settle(r.Family(ctx, id)) }
}

// readRecord reads the record in sight.
func (m *Model) readRecord() func(ctx context.Context) (any, error) {
	r, ref := m.source, m.record.Ref()
	return func(ctx context.Context) (any, error) { return settle(recordOf(ctx, r, ref)) }
}

func recordOf(ctx context.Context, r RecordReader, ref screen.RecordRef) (*screen.Record, error) {
	var body any
	var reading monitor.Reading
	id, err := strconv.ParseInt(ref.Name, 10, 64)
	if ref.Kind != screen.RecordRule && err != nil {
		return nil, fmt.Errorf("%q is not the number of a record", ref.Name)
	}
	switch ref.Kind {
	case screen.RecordEnforcement:
		d, err := r.Enforcement(ctx, id)
		if err != nil {
			return nil, err
		}
		body, reading = d.Enforcement, d.Reading
	case screen.RecordEvent:
		d, err := r.EventDetail(ctx, id)
		if err != nil {
			return nil, err
		}
		reading, d.Reading = d.Reading, monitor.Reading{}
		body = d
	case screen.RecordRule:
		d, err := r.Rule(ctx, ref.Name)
		if err != nil {
			return nil, err
		}
		reading, d.Reading = d.Reading, monitor.Reading{}
		body = d
	default:
		return nil, fmt.Errorf("unknown kind of record %q", ref.Kind)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write %s %s: %w", ref.Kind, ref.Name, err)
	}
	return &screen.Record{RecordRef: ref, At: reading.At, Body: text}, nil
}

// openRelated opens the menu of what the row has to do with. One letter chooses.
func (m *Model) openRelated() tea.Cmd {
	related, ok := m.screen().(screen.Related)
	if !ok || m.tooSmall() {
		return nil
	}
	title, list, ok := related.Relations()
	if !ok {
		m.say("There is nothing under the cursor that has to do with others.")
		return nil
	}
	m.dialog = dialog{scope: keymap.InRelated, title: title}
	m.relate(list)
	about, ok := m.screen().(screen.RelatedExecution)
	if !ok {
		return nil
	}
	x, ok := about.RelatedExecution()
	if !ok {
		return nil
	}
	row := *x
	m.dialog.about, m.dialog.own = &row, screen.BesidesExecution(list, &row)
	r, ctx := m.source, m.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		family, err := r.Family(ctx, row.ID)
		return familyMsg{about: row.ID, family: family, err: err}
	}
}

// familyMsg is what was read of the row that the menu of related things is about.
type familyMsg struct {
	about  int64
	family *monitor.Family
	err    error
}

// relatedRead puts what was read into the menu, if that is still open. The cursor
// stays on its line.
func (m *Model) relatedRead(msg familyMsg) {
	d := &m.dialog
	if d.scope != keymap.InRelated || d.about == nil || d.about.ID != msg.about {
		return
	}
	if msg.err != nil {
		d.note = "more cannot be read: " + reason(msg.err).Error()
		return
	}
	at := d.list.Cursor()
	m.relate(append(slices.Clip(d.own), screen.ExecutionRelations(d.about, msg.family)...))
	d.list.Move(at - d.list.Cursor())
}

// relate lists what the menu turns to.
func (m *Model) relate(list []screen.Relation) {
	lines := make([]widget.Choice, len(list))
	for i, r := range list {
		lines[i] = widget.Choice{Key: r.Key, Label: r.Label, Help: r.Help, Not: r.Not}
	}
	m.dialog.relations, m.dialog.list = list, widget.NewMenu(lines)
}

func (m *Model) relatedKey(action keymap.Action, msg tea.KeyMsg) tea.Cmd {
	d := &m.dialog
	d.note = ""
	switch action {
	case keymap.RowDown:
		d.list.Move(1)
	case keymap.RowUp:
		d.list.Move(-1)
	case keymap.Back:
		m.drop()
	case keymap.Choose:
		return m.turnToRelated()
	default:
		if !msg.Paste && d.list.Select(msg.String()) {
			return m.turnToRelated()
		}
	}
	return nil
}

// turnToRelated turns to the line under the cursor, if that is anything.
func (m *Model) turnToRelated() tea.Cmd {
	d := &m.dialog
	at := d.list.Cursor()
	if at < 0 {
		return nil
	}
	r := d.relations[at]
	if r.Not != "" {
		d.note = r.Label + ": " + r.Not
		return nil
	}
	m.drop()
	return m.effect(r.To)
}

// openSearch begins a search in a document.
func (m *Model) openSearch(s screen.Searchable) tea.Cmd {
	m.prompt, m.inputErr, m.filtering = searchPrompt, "", filtering{}
	m.input.SetValue(s.Query())
	m.input.CursorEnd()
	return m.input.Focus()
}

// searchKey takes a key while a search is typed.
func (m *Model) searchKey(msg tea.KeyMsg) tea.Cmd {
	switch msg.String() {
	case "enter":
		m.prompt = noPrompt
		m.input.Blur()
		if s, ok := m.screen().(screen.Searchable); ok {
			if n := s.Search(m.input.Value()); n == 0 && m.input.Value() != "" {
				m.say("Nothing here has " + m.input.Value())
			}
		}
		return nil
	case "esc":
		m.prompt = noPrompt
		m.input.Blur()
		return nil
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return cmd
}
