package app

import (
	"maps"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/carry"
	"github.com/attune-go/attune/tui/jsonview"
)

// plannedDoc is a plan as it leaves the dashboard, before what it is about.
type plannedDoc struct {
	Plan     string            `json:"plan"`
	Context  string            `json:"context"`
	Planned  time.Time         `json:"planned"`
	Kind     act.Kind          `json:"kind"`
	Target   act.Target        `json:"target"`
	Values   map[string]string `json:"values,omitempty"`
	Lines    []string          `json:"lines"`
	Word     string            `json:"word,omitempty"`
	Nothing  string            `json:"nothing,omitempty"`
	Commands []string          `json:"commands,omitempty"`
}

// exportPlan writes the open plan to a file, and below it what it is about, a line each:
// dead letters in full, as `dlq export` writes them, else the ids of marked rows.
func (m *Model) exportPlan() tea.Cmd {
	d := &m.dialog
	order := &d.op.Order
	doc := plannedDoc{
		Plan: d.plan.Title, Context: m.opts.Context, Planned: d.planned.Add(m.skew), Kind: order.Kind, Target: order.Target, Values: maps.Clone(order.Values),
		Word: d.plan.Word, Nothing: d.plan.Nothing, Commands: m.commandLines(),
	}
	for _, line := range d.plan.Lines {
		doc.Lines = append(doc.Lines, line.Text)
	}
	for _, field := range d.item.Fields {
		if field.Secret && doc.Values[field.Name] != "" {
			doc.Values[field.Name] = jsonview.Masked
		}
	}
	h := &haul{name: "plan-" + string(order.Kind), what: "plan", values: []any{doc}}
	if letters := d.plan.Letters; len(letters) > 0 {
		h.rest, h.wanted = lettersInFull(m.source, letters), len(h.values)+len(letters)
	} else {
		for i := range order.Targets {
			h.values = append(h.values, order.Targets[i])
		}
	}
	path, problem := m.exportPath(h.name, ".jsonl")
	if problem != "" {
		m.say("Not written: " + problem)
		return nil
	}
	return m.export(h, path)
}

// commandLines are the commands that do what the open plan does.
func (m *Model) commandLines() []string {
	var lines []string
	for _, argv := range m.dialog.op.Order.Commands(m.dialog.confirm.Reason()) {
		lines = append(lines, carry.Shell(append([]string{executor}, argv...)...))
	}
	return lines
}

// copyPlan copies the commands that do what the open plan does.
func (m *Model) copyPlan() tea.Cmd {
	lines := m.commandLines()
	switch {
	case m.opts.Clipboard == nil:
		m.say("Nothing can be copied here: there is no terminal to ask.")
		return nil
	case len(lines) == 0:
		m.say("No command of " + executor + " does this.")
		return nil
	}
	return m.copyText("command", func() (string, error) { return strings.Join(lines, "\n"), nil })
}
