package app

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/palette"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// command is a command of the palette.
type command struct {
	palette.Entry

	// run carries it out. After an error the palette stays open.
	run func(arg string) (tea.Cmd, error)
}

var viewAliases = map[screen.View][]string{
	keymap.InOverview: {"ov"}, keymap.InQueues: {"queue"}, keymap.InExecutions: {"exec"}, keymap.InWorkers: {"worker"},
	keymap.InDeadLetters: {"deadletters", "dead-letters"}, keymap.InAlerts: {"alert"},
	"workflows": {"flows"}, "inquiries": {"ask"}, "broker": {"mq"},
}

// commands lists the commands that are available now, the acts on the row first.
func (m *Model) commands() []command {
	list := m.actCommands()
	for _, v := range keymap.Views {
		if v.Help != "" {
			entry := palette.Entry{Name: string(v.Scope), Aliases: viewAliases[v.Scope], Key: m.keyOf(v.Turn)}
			entry.Help = "open the view"
			list = append(list, command{entry, m.turnTo(v.Scope)})
		}
	}
	list = append(list, m.openCommands()...)
	list = append(list, m.bookmarkCommands()...)
	list = append(list, command{palette.Entry{
		Name: "export", Arg: "[FILE]", Key: m.keyOf(keymap.Export),
		Help: "write the marked rows, or all that match; .csv makes CSV",
	}, m.exportTo})
	return append(list, m.otherCommands()...)
}

// actCommands are the acts on the selected or the marked rows. One that does not apply says why.
func (m *Model) actCommands() []command {
	actionable, ok := m.screen().(screen.Actionable)
	if !ok {
		return nil
	}
	var list []command
	acts, _ := actionable.Acts()
	for _, item := range acts.Items {
		entry := palette.Entry{
			Name: strings.ReplaceAll(item.Label, " ", "-"), Key: m.keyOf(keymap.Act) + " " + item.Key,
			Help: item.Help + ": " + cmp.Or(item.Target.Name, acts.Target.Name),
		}
		not := cmp.Or(m.env.Locked, item.Not)
		if not != "" {
			entry.Help = "not now: " + not
		}
		list = append(list, command{entry, func(string) (tea.Cmd, error) {
			if not != "" {
				return nil, errors.New(item.Label + ": " + not)
			}
			o := m.openMenu()
			if o == nil {
				return nil, nil
			}
			o.list.Select(item.Key)
			return o.take(m), nil
		}})
	}
	return list
}

func (m *Model) openCommands() []command {
	execution := m.numbered("the number of an execution", screen.OpenExecution)
	workflow := m.numbered("the execution of a workflow", screen.OpenWorkflow)
	inquiry := m.numbered("the number of an inquiry", screen.OpenInquiry)
	queue := m.named(keymap.InQueues, m.queueNamed, screen.OpenQueue)
	worker := m.named(keymap.InWorkers, m.workerNamed, screen.OpenWorker)
	return []command{
		{palette.Entry{Name: "q", Arg: "NAME", Help: "open a queue by its action", Args: m.queueNames}, queue},
		{palette.Entry{Name: "e", Arg: "ID", Help: "open an execution", Args: m.executionIDs}, execution},
		{palette.Entry{Name: "wf", Arg: "ID", Help: "open a workflow by its execution", Args: m.workflowIDs}, workflow},
		{palette.Entry{Name: "inq", Arg: "ID", Help: "open an inquiry", Args: m.inquiryIDs}, inquiry},
		{palette.Entry{Name: "w", Arg: "NAME", Help: "go to a worker", Args: m.workerNames}, worker},
		{palette.Entry{
			Name: "since", Arg: "AGE", Help: "executions requested within an age; off ends it",
			Args: list("15m", "1h", "24h", "7d", "off"),
		}, m.since},
		{palette.Entry{
			Name: "jobs", Aliases: []string{"log"}, Key: m.keyOf(keymap.Log),
			Help: "what was done, here and by others",
		}, m.turnTo(keymap.InLog)},
		{palette.Entry{
			Name: "lint", Aliases: []string{"doctor", "checks"},
			Help: "what is wrong with the installation",
		}, m.turnTo(keymap.InBroker)},
	}
}

func (m *Model) otherCommands() []command {
	commands := []command{
		{palette.Entry{
			Name: "set", Arg: "poll AGE", Key: "+ -", Help: "set the interval between polls",
			Args: list("poll 1s", "poll 2s", "poll 5s", "poll 10s", "poll 30s", "poll 1m"),
		}, m.set},
		{palette.Entry{
			Name: "theme", Arg: "NAME", Key: m.keyOf(keymap.Theme), Help: "choose the look",
			Args: list(theme.Names...),
		}, m.setTheme},
		{palette.Entry{
			Name: "readonly", Aliases: []string{"ro"}, Arg: "on|off",
			Help: "refuse every act in this session", Args: list("on", "off"),
		}, m.setReadOnly},
		{
			palette.Entry{
				Name: "help", Aliases: []string{"h"}, Arg: "[TOPIC]", Key: m.keyOf(keymap.Help),
				Help: "the keys that work here; a topic, a view or a word", Args: m.topicNames,
			},
			func(search string) (tea.Cmd, error) {
				m.push(&help{search: search})
				return nil, nil
			},
		},
		{palette.Entry{
			Name: "quit", Aliases: []string{"exit", "q!"}, Key: m.keyOf(keymap.Quit),
			Help: "leave the dashboard",
		}, func(string) (tea.Cmd, error) {
			return m.quit(), nil
		}},
	}
	if len(m.opts.Contexts) > 0 {
		entry := palette.Entry{
			Name: "ctx", Aliases: []string{"context"}, Arg: "NAME",
			Help: "turn to another installation", Args: list(m.opts.Contexts...),
		}
		commands = append(commands, command{entry, func(name string) (tea.Cmd, error) {
			if problem := m.contextProblem(name); problem != "" {
				return nil, errors.New(problem) // keeps the palette open
			}
			return m.switchTo(name), nil
		}})
	}
	return commands
}

func list(words ...string) func() []string { return func() []string { return words } }

func (m *Model) turnTo(view screen.View) func(string) (tea.Cmd, error) {
	return func(string) (tea.Cmd, error) { return m.goTo(view), nil }
}

// keyOf writes the keys of an action; empty if it has none.
func (m *Model) keyOf(action keymap.Action) string {
	b, _ := m.keymap.Of(action)
	return b.Show
}

func (m *Model) queueNames() []string {
	var names []string
	for _, q := range m.knownQueues() {
		if name := screen.QueueName(&q); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (m *Model) knownQueues() []monitor.Queue {
	var known []monitor.Queue
	if d := m.env.Data.Queues; d != nil {
		known = append(known, d.List...)
	}
	if d := m.env.Data.Overview; d != nil {
		known = append(known, d.Top...)
	}
	return known
}

// queueNamed finds a loaded queue by its name, or returns 0.
func (m *Model) queueNamed(name string) int64 {
	for _, q := range m.knownQueues() {
		if screen.QueueName(&q) == name || q.Name() == name || q.ActionRef == name && q.Group == "" {
			return q.ID
		}
	}
	return 0
}

// named is a command that opens a loaded thing by its name, or else lists the things that contain the name.
func (m *Model) named(
	view screen.View, find func(name string) int64, open func(id int64) screen.Effect,
) func(string) (tea.Cmd, error) {
	return func(name string) (tea.Cmd, error) {
		if id := find(name); id != 0 {
			return m.effect(open(id)), nil
		}
		m.say("No such name among the loaded " + string(view) + "; the filter lists names that contain it.")
		return m.open(screen.Nav{View: view, Filter: name}), nil
	}
}

// numbered is a command that opens something by its number; what names the number in errors.
func (m *Model) numbered(what string, open func(id int64) screen.Effect) func(string) (tea.Cmd, error) {
	return func(arg string) (tea.Cmd, error) {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return nil, fmt.Errorf("%q is not %s", arg, what)
		}
		return m.effect(open(id)), nil
	}
}

func numbers[T any](list []T, number func(*T) int64) []string {
	var out []string
	for i := range list {
		out = append(out, strconv.FormatInt(number(&list[i]), 10))
	}
	return out
}

func (m *Model) executionIDs() []string {
	if d := m.env.Data.Executions; d != nil {
		return numbers(d.List, func(x *monitor.Execution) int64 { return x.ID })
	}
	return nil
}

func (m *Model) workflowIDs() []string {
	if d := m.env.Data.Workflows; d != nil {
		return numbers(d.List, func(w *monitor.Workflow) int64 { return w.Execution })
	}
	return nil
}

func (m *Model) inquiryIDs() []string {
	if d := m.env.Data.Inquiries; d != nil {
		return numbers(d.List, func(i *monitor.Inquiry) int64 { return i.ID })
	}
	return nil
}

func (m *Model) knownWorkers() []monitor.Worker {
	if d := m.env.Data.Workers; d != nil {
		return d.List
	}
	if d := m.env.Data.Overview; d != nil {
		return d.WorkerList
	}
	return nil
}

func (m *Model) workerNames() []string {
	var names []string
	for _, w := range m.knownWorkers() {
		names = append(names, w.Name)
	}
	return names
}

// workerNamed finds a loaded worker by its name or number, or returns 0.
func (m *Model) workerNamed(name string) int64 {
	for _, w := range m.knownWorkers() {
		if w.Name == name || strconv.FormatInt(w.ID, 10) == name {
			return w.ID
		}
	}
	return 0
}

// since replaces the age in the filter of the executions.
func (m *Model) since(arg string) (tea.Cmd, error) {
	term := ""
	if arg != "off" {
		term = "age<" + arg
	}
	text, err := filter.With(filter.Executions, m.executions.Filter(), term, func(t *filter.Term) bool {
		return t.Field == "age" && !t.Not && (t.Op == filter.Less || t.Op == filter.LessEqual)
	})
	if err != nil {
		return nil, err
	}
	from := m.here()
	if err := m.executions.SetFilter(text); err != nil {
		return nil, err
	}
	if from.View == keymap.InExecutions {
		return m.resume(), nil
	}
	return m.leaveFor(from, keymap.InExecutions), nil
}

func (m *Model) set(arg string) (tea.Cmd, error) {
	name, value, _ := strings.Cut(arg, " ")
	if name != "poll" {
		return nil, fmt.Errorf("there is no setting %q: set poll 5s", name)
	}
	every, err := phrase.ParseSpan(value)
	if err != nil || every < minRefresh || every > maxRefresh {
		return nil, fmt.Errorf("%q is not an interval from %s to %s, such as 5s", strings.TrimSpace(value), minRefresh,
			maxRefresh)
	}
	return m.setRefresh(every), nil
}

func (m *Model) setTheme(name string) (tea.Cmd, error) {
	opts := m.opts.Theme
	opts.Name = name
	look, err := theme.New(opts)
	if err == nil {
		m.env.Theme = look
		m.say("theme " + look.Name())
	}
	return nil, err
}

// setReadOnly disables acting for this session, or enables it again. It cannot override Options.ReadOnly.
func (m *Model) setReadOnly(arg string) (tea.Cmd, error) {
	switch arg {
	case "on":
		m.readOnly = "this session was set to read only; :readonly off ends that"
		m.say("Acting is disabled until :readonly off.")
	case "off":
		m.readOnly = ""
		if m.opts.ReadOnly != "" {
			return nil, errors.New("it stays read only: " + m.opts.ReadOnly)
		}
		m.say("Acting is allowed again where the installation allows it.")
	default:
		return nil, fmt.Errorf("readonly is on or off, not %q", arg)
	}
	m.env.Locked = m.actingLock()
	return nil, nil
}
