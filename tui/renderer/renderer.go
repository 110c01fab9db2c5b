package renderer

import (
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

// interval is the shortest time between two frames.
const interval = time.Second / 60

type (
	// drawMsg draws a frame that had to wait for the interval.
	drawMsg struct{}
	// signalMsg says that the size of the terminal may have changed, or that the process is to stop or has continued.
	signalMsg struct{ os.Signal }
)

// frames is the model of the dashboard, drawn after each message. A program that runs it has no other renderer.
type frames struct {
	tea.Model

	terminal      *Terminal
	out           io.Writer
	width, height int
	// lines are on the terminal; nil if its content is unknown.
	lines   []string
	drawn   time.Time
	waiting bool // for a drawMsg
	stopped bool // until SIGCONT the terminal belongs to the shell
}

// Draw wraps a model. Run the result with tea.WithoutRenderer.
func (t *Terminal) Draw(model tea.Model) tea.Model {
	return &frames{Model: model, terminal: t, out: t.out}
}

// Init reads the size of the terminal, besides what the model does.
func (f *frames) Init() tea.Cmd { return tea.Batch(f.Model.Init(), f.terminal.size, f.terminal.signal) }

// Update has the model handle a message and draws the frame now, or as soon as the interval allows. A panic restores
// the terminal first, so that its text can be read.
func (f *frames) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	handled := false
	defer func() {
		if !handled {
			f.terminal.Close()
		}
	}()
	switch msg := msg.(type) {
	case drawMsg:
		f.waiting = false
	case signalMsg:
		f.handleSignal(msg.Signal)
		cmd = tea.Batch(f.terminal.size, f.terminal.signal)
	case tea.WindowSizeMsg:
		f.width, f.height, f.lines = msg.Width, msg.Height, nil
		f.Model, cmd = f.Model.Update(msg)
	default:
		if msg == tea.ClearScreen() {
			f.lines = nil
		}
		f.Model, cmd = f.Model.Update(msg)
	}
	if later := f.drawNext(time.Now()); later != nil {
		cmd = tea.Batch(cmd, later)
	}
	handled = true
	return f, cmd
}

// handleSignal stops the process at SIGTSTP and prepares the terminal at SIGCONT. The size is read after each signal,
// which draws the whole frame.
func (f *frames) handleSignal(received os.Signal) {
	switch received {
	case syscall.SIGTSTP:
		f.stopped = true
		f.terminal.stop()
	case syscall.SIGCONT:
		f.stopped = false
		f.terminal.resume()
	}
}

// View is empty: Bubble Tea draws nothing.
func (f *frames) View() string { return "" }

// drawNext draws the frame, or returns the command that does so later.
func (f *frames) drawNext(now time.Time) tea.Cmd {
	wait := interval - now.Sub(f.drawn)
	switch {
	case f.width == 0 || f.waiting || f.stopped: // before the first size, and before a drawMsg
		return nil
	case wait > 0:
		f.waiting = true
		return tea.Tick(wait, func(time.Time) tea.Msg { return drawMsg{} })
	}
	f.drawn = now
	f.draw(strings.Split(f.Model.View(), "\n"))
	return nil
}

// draw writes the lines that differ from the last frame, all in one write.
func (f *frames) draw(lines []string) {
	var out bytes.Buffer
	lines = lines[:min(len(lines), f.height)] // the terminal would put the others into its last line
	if f.lines == nil {
		out.WriteString(ansi.EraseEntireScreen)
	}
	for i, line := range lines {
		if i < len(f.lines) && f.lines[i] == line {
			continue
		}
		line = ansi.Truncate(line, f.width, "")
		out.WriteString(ansi.CursorPosition(1, i+1))
		out.WriteString(line)
		if ansi.StringWidth(line) < f.width { // at the right margin it would erase the last character
			out.WriteString(ansi.EraseLineRight)
		}
	}
	if len(lines) < len(f.lines) {
		out.WriteString(ansi.CursorPosition(1, len(lines)+1) + ansi.EraseScreenBelow)
	}
	f.lines = lines
	if out.Len() > 0 {
		_, _ = f.out.Write(out.Bytes())
	}
}
