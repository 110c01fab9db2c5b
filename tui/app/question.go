package app

import (
	"maps"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// question shows a plan and asks for confirmation.
type question struct {
	dialog

	item    act.Item
	op      *act.Operation
	plan    *act.Plan
	planned time.Time
	confirm *widget.Confirm
	// held is a letter on a button until deadLetterPause has passed; press numbers it.
	held  tea.KeyMsg
	press int
}

// deadLetterPause is how long a letter on a button must stay alone to be an answer. Faster letters are text of the
// reason.
const deadLetterPause = 250 * time.Millisecond

// deadLetterMsg is the timer of deadLetterPause.
type deadLetterMsg struct{ press int }

func (o *question) scope() keymap.Scope {
	if o.confirm.Typing() {
		return keymap.InTyping
	}
	return keymap.InConfirm
}

func (o *question) closed(m *Model) {
	why := "left; nothing was done"
	if o.plan.Nothing != "" {
		why = "nothing to do: " + widget.Clean(o.plan.Nothing)
	}
	m.leave(o.op, why)
}

func (o *question) draw(m *Model, f *frame) {
	note := ""
	if age := m.env.Clock.Sub(o.planned); age > act.PlanTTL {
		note = "planned " + widget.Age(age) + " ago: too old"
	}
	var unused []keymap.Action
	if o.plan.Nothing != "" {
		unused = []keymap.Action{keymap.Yes, keymap.NextPane, keymap.Export, keymap.Yank}
	}
	f.armed = true
	f.box(m, o.scope(), box{
		title: widget.Clean(o.op.Title), note: note, role: theme.Warn, unused: unused,
		lines: func(w, h int) []string { return o.confirm.Lines(w, h, m.env.Theme) },
	})
}

// key takes a key. A letter on a button counts only if it stays alone: an operator who types a reason there must not
// answer the question.
func (o *question) key(m *Model, action keymap.Action, msg tea.KeyMsg) tea.Cmd {
	held := o.held.Type == tea.KeyRunes && len(o.held.Runes) == 1
	letter := !msg.Paste && !msg.Alt &&
		(msg.Type == tea.KeyRunes && len(msg.Runes) == 1 || msg.Type == tea.KeySpace && held)
	switch {
	case o.confirm.Typing():
		return o.answer(m, action, msg)
	case held && letter && msg.String() == o.held.String():
		return nil // the key repeats
	case held && letter:
		o.confirm.Type(o.held)
		o.confirm.Type(msg)
		o.held = tea.KeyMsg{}
		return nil
	case held:
		return m.deadLetterAlone(deadLetterMsg{o.press}) // the letter was alone; this key must not reach what it opens
	case !letter:
		return o.answer(m, action, msg)
	}
	if action == keymap.Yes || action == keymap.No {
		o.confirm.Press(action == keymap.Yes)
	}
	m.lastPress++
	o.held, o.press = msg, m.lastPress
	return m.opts.After(deadLetterPause, deadLetterMsg{o.press})
}

// deadLetterAlone takes a letter on a button as an answer.
func (m *Model) deadLetterAlone(msg deadLetterMsg) tea.Cmd {
	o, open := m.top().(*question)
	if !open || o.press != msg.press || len(o.held.Runes) == 0 {
		return nil
	}
	key := o.held
	o.held = tea.KeyMsg{}
	action, _ := m.keymap.Lookup(keymap.InConfirm, key.String())
	return o.answer(m, action, key)
}

func (o *question) answer(m *Model, action keymap.Action, msg tea.KeyMsg) tea.Cmd {
	answer := widget.Undecided
	switch action {
	case keymap.Back:
		m.backToForm()
		return nil
	case keymap.No:
		answer = widget.Cancelled
	case keymap.NextPane:
		o.confirm.Move(1)
	case keymap.PrevPane:
		o.confirm.Move(-1)
	case keymap.Left, keymap.Right:
		o.confirm.Press(action == keymap.Right)
	case keymap.HalfDown:
		o.scroll(m, 1)
	case keymap.HalfUp:
		o.scroll(m, -1)
	case keymap.Refresh:
		m.leave(o.op, "planned again")
		return m.plan(m.replace, o.item, o.op.Request)
	case keymap.Export:
		return o.export(m)
	case keymap.Yank:
		return o.copy(m)
	case keymap.Yes:
		answer = o.confirm.Yes()
	case keymap.Choose:
		answer = o.confirm.Enter()
	default:
		o.confirm.Update(msg)
	}
	switch answer {
	case widget.Cancelled:
		m.closeDialog()
	case widget.Confirmed:
		return o.run(m)
	}
	return nil
}

func (o *question) scroll(m *Model, n int) {
	w, h := m.boxRoom()
	o.confirm.Scroll(n, w, h, m.env.Theme)
}

// run runs the confirmed plan. That removes the question, so that no key runs it twice.
func (o *question) run(m *Model) tea.Cmd {
	age := m.env.Clock.Sub(o.planned)
	switch {
	case m.env.Locked != "":
		o.confirm.Refuse(m.env.Locked)
		return nil
	case age > act.PlanTTL:
		o.confirm.Press(false) // r must not be text
		o.confirm.Refuse("the plan is " + widget.Age(age) + " old: r plans again")
		return nil
	}
	return m.run(o)
}

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
	request := &o.op.Request
	doc := plannedDoc{
		Plan: o.plan.Title, Context: m.opts.Context, Planned: o.planned.Add(m.env.Skew), Kind: request.Kind,
		Target: request.Target,
		Values: maps.Clone(request.Values), Word: o.plan.Word, Nothing: o.plan.Nothing, Commands: o.commands(),
	}
	for _, line := range o.plan.Lines {
		doc.Lines = append(doc.Lines, line.Text)
	}
	for _, field := range o.item.Fields {
		if field.Secret && doc.Values[field.Name] != "" {
			doc.Values[field.Name] = jsonview.Masked
		}
	}
	set := &export.Set{Name: "plan-" + string(request.Kind), What: "plan", Values: []any{doc}}
	if deadLetters := o.plan.DeadLetters; len(deadLetters) > 0 {
		set.Rest, set.Wanted = export.DeadLettersInFull(m.source, deadLetters), len(set.Values)+len(deadLetters)
	} else {
		for i := range request.Targets {
			set.Values = append(set.Values, request.Targets[i])
		}
	}
	path, problem := m.exportPath(set.Name, ".jsonl")
	if problem != "" {
		m.say("Not written: " + problem)
		return nil
	}
	return m.export(set, path)
}

func (o *question) commands() []string {
	var lines []string
	for _, argv := range o.op.Request.Commands(o.confirm.Reason()) {
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
