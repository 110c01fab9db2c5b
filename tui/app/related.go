package app

import (
	"context"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// relatedMenu lists what a row is related to.
type relatedMenu struct {
	menu

	relations []screen.Relation
	// about is the execution whose relatives are being read; own are the lines before them.
	about *monitor.Execution
	own   []screen.Relation
}

// openRelated opens the menu of related things.
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
	o := &relatedMenu{menu: menu{keys: keymap.InRelated, title: title}}
	o.choose = func(m *Model, at int) tea.Cmd {
		m.closeDialog()
		return m.effect(o.relations[at].To)
	}
	o.relate(list)
	m.push(o)
	about, ok := m.screen().(screen.RelatedExecution)
	if !ok {
		return nil
	}
	x, ok := about.RelatedExecution()
	if !ok {
		return nil
	}
	row := *x
	o.about, o.own = &row, screen.WithoutExecution(list, &row)
	r, ctx := m.source, m.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		family, err := r.Family(ctx, row.ID)
		return familyMsg{about: row.ID, family: family, err: err}
	}
}

type familyMsg struct {
	about  int64
	family *monitor.Family
	err    error
}

// relatedRead adds the relatives to the menu if it is still open. The cursor keeps its line.
func (m *Model) relatedRead(msg familyMsg) {
	o, open := m.top().(*relatedMenu)
	if !open || o.about == nil || o.about.ID != msg.about {
		return
	}
	if msg.err != nil {
		o.note = "more cannot be read: " + explain.Trouble(monitor.SourceDatabase, msg.err).String()
		return
	}
	at := o.list.Cursor()
	o.relate(append(slices.Clip(o.own), screen.ExecutionRelations(o.about, msg.family)...))
	o.list.Move(at - o.list.Cursor())
}

func (o *relatedMenu) relate(list []screen.Relation) {
	lines := make([]widget.Choice, len(list))
	for i, r := range list {
		lines[i] = widget.Choice{Key: r.Key, Label: r.Label, Help: r.Help, Not: r.Not}
	}
	o.relations, o.list = list, widget.NewMenu(lines)
}
