package app

import (
	"maps"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/jsonview"
)

// plannedDoc is the first line of an exported plan.
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

// export writes the plan to a file with one line for each of its rows: dead letters in full, as `dlq export` writes
// them, other rows by their ids.
func (o *question) export(m *Model) tea.Cmd {
	order := &o.op.Order
	doc := plannedDoc{
		Plan: o.plan.Title, Context: m.opts.Context, Planned: o.planned.Add(m.skew), Kind: order.Kind,
		Target: order.Target,
		Values: maps.Clone(order.Values), Word: o.plan.Word, Nothing: o.plan.Nothing, Commands: o.commands(),
	}
	for _, line := range o.plan.Lines {
		doc.Lines = append(doc.Lines, line.Text)
	}
	for _, field := range o.item.Fields {
		if field.Secret && doc.Values[field.Name] != "" {
			doc.Values[field.Name] = jsonview.Masked
		}
	}
	h := &export.Set{Name: "plan-" + string(order.Kind), What: "plan", Values: []any{doc}}
	if letters := o.plan.Letters; len(letters) > 0 {
		h.Rest, h.Wanted = export.LettersInFull(m.source, letters), len(h.Values)+len(letters)
	} else {
		for i := range order.Targets {
			h.Values = append(h.Values, order.Targets[i])
		}
	}
	path, problem := m.exportPath(h.Name, ".jsonl")
	if problem != "" {
		m.say("Not written: " + problem)
		return nil
	}
	return m.export(h, path)
}

func (o *question) commands() []string {
	var lines []string
	for _, argv := range o.op.Order.Commands(o.confirm.Reason()) {
		lines = append(lines, act.Shell(append([]string{executor}, argv...)...))
	}
	return lines
}

func (o *question) copy(m *Model) tea.Cmd {
	lines := o.commands()
	if !m.canCopy() {
		return nil
	}
	if len(lines) == 0 {
		m.say("No command of " + executor + " does this.")
		return nil
	}
	return m.copyText("command", func() (string, error) { return strings.Join(lines, "\n"), nil })
}
