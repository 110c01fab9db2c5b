package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/settings"
	"github.com/attune-go/attune/tui/widget"
)

const (
	// commandTime ends a command in the background that does not end by itself.
	commandTime = 10 * time.Minute
	// commandOutput is how much of what it writes is kept.
	commandOutput = 64 << 10
	// brief is how long a command may take for its output to be held before the
	// dashboard comes back over it.
	brief = 2 * time.Second
)

// kindCommand is the kind under which the log has commands of the operator.
const kindCommand act.Kind = "command"

// commandOf finds the command that an action stands for.
func (m *Model) commandOf(action keymap.Action) *settings.Command {
	for i := range m.opts.Commands {
		if m.opts.Commands[i].Action() == action {
			return &m.opts.Commands[i]
		}
	}
	return nil
}

// startCommand begins a command of the operator: it is refused where it acts and
// nothing may be acted upon, and where it needs a row and there is none.
func (m *Model) startCommand(c *settings.Command) tea.Cmd {
	if c.Acts && m.env.Locked != "" {
		m.say("Not run: " + c.Name + " acts, and nothing can be acted upon: " + m.env.Locked)
		return nil
	}
	target, values, found := m.rowValues()
	for _, name := range c.Needs() {
		if !found && slices.Contains([]string{"id", "name", "action", "group"}, name) {
			m.say("Not run: " + c.Name + " needs the " + name + " of a row, and there is none under the cursor.")
			return nil
		}
	}
	m.asked = &askedCommand{command: c, argv: c.Argv(values), values: values, target: target}
	if c.Confirm {
		m.prompt = commandPrompt
		return nil
	}
	return m.runCommand()
}

// askedCommand is a command with the values of the row that was under the cursor
// when it was asked for. Nothing that is read later changes it.
type askedCommand struct {
	command *settings.Command
	argv    []string
	values  map[string]string
	target  act.Target
}

// rowValues is what the row under the cursor can give to a command.
func (m *Model) rowValues() (target act.Target, values map[string]string, found bool) {
	values = map[string]string{"view": string(m.view), "context": m.opts.Context}
	if f, ok := m.screen().(screen.Filterable); ok {
		values["filter"] = f.Filter()
	}
	actionable, ok := m.screen().(screen.Actionable)
	if !ok {
		return target, values, false
	}
	menu, ok := actionable.Acts()
	if !ok {
		return target, values, false
	}
	t := menu.Target
	values["id"], values["name"], values["action"], values["group"] = strconv.FormatInt(t.ID, 10), t.Ref, t.Action, t.Group
	if t.Ref == "" {
		values["name"] = t.Name
	}
	return t, values, true
}

// commandLine asks whether a command is to be run.
func (m *Model) commandLine() string {
	return " Run " + m.asked.command.Name + "?  " + widget.Clean(quoted(m.asked.argv)) + "   y runs it, any other key does not"
}

// quoted writes arguments so that one can see where each of them ends.
func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = arg
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'\\$`|&;<>()*?[]#~") {
			words[i] = strconv.Quote(arg)
		}
	}
	return strings.Join(words, " ")
}

// commandKey takes the answer to the question whether a command is to be run.
func (m *Model) commandKey(name string) tea.Cmd {
	m.prompt = noPrompt
	if name != "y" {
		m.say("Not run.")
		return nil
	}
	return m.runCommand()
}

// runCommand runs the command that was asked for, in the terminal in place of the
// dashboard or beside it.
func (m *Model) runCommand() tea.Cmd {
	asked := m.asked
	m.asked = nil
	op := m.commandOperation(asked)
	environ := m.commandEnviron(asked.values)
	if asked.command.Background {
		return m.inBackground(op, asked.argv, environ)
	}
	outside := &outside{title: asked.command.Name, argv: asked.argv, clock: m.opts.Clock}
	outside.cmd = exec.CommandContext(m.ctx, asked.argv[0], asked.argv[1:]...)
	outside.cmd.Env = environ
	return m.opts.Exec(outside, func(err error) tea.Msg { return runMsg{op: op, receipt: commandReceipt(nil), err: commandError(err)} })
}

// commandOperation is the entry of the log for a command.
func (m *Model) commandOperation(asked *askedCommand) *act.Operation {
	m.lastOperation++
	op := &act.Operation{
		ID: m.lastOperation, Order: act.Order{Kind: kindCommand, Target: asked.target}, Title: asked.command.Name,
		State: act.Running, Began: m.env.Clock, Ran: m.env.Clock, Progress: &act.Progress{},
	}
	if asked.target.Name != "" {
		op.Title += " " + widget.Clean(asked.target.Name)
	}
	m.remember(op)
	return op
}

// commandEnviron is the environment of a command: that of the dashboard and the
// values of the row.
func (m *Model) commandEnviron(values map[string]string) []string {
	environ := slices.Clone(m.opts.Environ)
	for _, name := range settings.Placeholders {
		environ = append(environ, settings.Variable(name)+"="+values[name])
	}
	return environ
}

// inBackground runs a command without the terminal. It counts as under way, so
// that leaving asks first, and what it writes goes to the log.
func (m *Model) inBackground(op *act.Operation, argv, environ []string) tea.Cmd {
	ctx, cancel := context.WithTimeout(m.ctx, commandTime)
	m.underWay[op] = cancel
	m.workers.Add(1)
	here := m.place
	here.running.Add(1)
	m.say(op.Title + " runs; L shows what it writes when it ends")
	work := func() tea.Msg {
		defer m.workers.Done()
		defer here.running.Done()
		defer cancel()
		out := &tail{}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env, cmd.Stdout, cmd.Stderr = environ, out, out
		cmd.WaitDelay = time.Second // what it has started itself may hold its output open
		err := cmd.Run()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return runMsg{op: op, receipt: commandReceipt(out), err: commandError(err)}
	}
	return tea.Batch(work, m.spin())
}

// commandError says how a command has failed.
func commandError(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("it ended with %s", exit.ProcessState)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stopped after %s", commandTime)
	}
	return err
}

func commandReceipt(out *tail) *act.Receipt {
	r := &act.Receipt{Text: "It ended."}
	if out == nil {
		return r
	}
	for _, line := range out.lines() {
		r.Lines = append(r.Lines, act.Line{Text: line})
	}
	return r
}

// tail keeps the last of what is written to it.
type tail struct {
	text []byte
	lost bool
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - commandOutput; over > 0 {
		t.text, t.lost = append([]byte(nil), t.text[over:]...), true
	}
	return len(p), nil
}

func (t *tail) lines() []string {
	text := string(bytes.TrimRight(t.text, "\n"))
	if text == "" {
		return nil
	}
	lines := widget.CleanLines(text)
	if t.lost {
		lines[0] = "… the beginning is not kept"
	}
	return lines
}

// outside is a command that has the terminal to itself. When it fails or ends at
// once, it waits for enter before the dashboard comes back over its output.
type outside struct {
	title    string
	argv     []string
	cmd      *exec.Cmd
	clock    func() time.Time
	in       io.Reader
	out, err io.Writer
}

// SetStdin is given the terminal.
func (o *outside) SetStdin(r io.Reader) { o.in = r }

// SetStdout is given the terminal.
func (o *outside) SetStdout(w io.Writer) { o.out = w }

// SetStderr is given the terminal.
func (o *outside) SetStderr(w io.Writer) { o.err = w }

// Run runs the command to its end.
func (o *outside) Run() error {
	o.cmd.Stdin, o.cmd.Stdout, o.cmd.Stderr = o.in, o.out, o.err
	_, _ = fmt.Fprintf(o.out, "attune-tui runs %s\n", widget.Clean(quoted(o.argv))) // A terminal that is gone is noticed later.
	began := o.clock()
	err := o.cmd.Run()
	if err == nil && o.clock().Sub(began) >= brief {
		return nil
	}
	said := "ended"
	if err != nil {
		said = commandError(err).Error()
	}
	_, _ = fmt.Fprintf(o.out, "%s: %s. Enter goes back to the dashboard.", o.title, said)
	_, _ = bufio.NewReader(o.in).ReadString('\n') // Whatever ends the line, or the input, goes back.
	return err
}
