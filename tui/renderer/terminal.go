// Package renderer draws the dashboard on a whole terminal, in place of Bubble Tea's renderer. That one wakes 60 times
// a second even if nothing changes, and shows a key at its next tick; this one draws when a message has changed the
// frame, at most 60 times a second, and sleeps otherwise.
//
// Terminal prepares a terminal and restores it. Draw wraps the model of the dashboard. An error while writing is not
// reported: a terminal that is gone ends the reading of keys, and with it the program.
package renderer

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// ErrNoTerminal is returned by Open if there is no terminal to read from or to draw on.
var ErrNoTerminal = errors.New("there is no terminal to draw on")

// Terminal is a terminal in raw mode that shows the alternate screen.
type Terminal struct {
	in, out *os.File
	// own is in if Open opened it.
	own    *os.File
	before *term.State
	// enable and disable are sequences that prepare and restore the terminal.
	enable, disable string
	signals         chan os.Signal
	close           sync.Once
}

// Open prepares a terminal for Draw: raw mode, the alternate screen without a cursor, reports of focus and pasted
// text, and of the mouse if wanted. If in is no terminal, keys are read from /dev/tty. Close undoes everything.
func Open(in, out *os.File, mouse bool) (*Terminal, error) {
	if !term.IsTerminal(int(out.Fd())) {
		return nil, fmt.Errorf("%w: the output is redirected", ErrNoTerminal)
	}
	t := &Terminal{in: in, out: out, signals: make(chan os.Signal, 8)}
	if !term.IsTerminal(int(in.Fd())) {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoTerminal, err)
		}
		t.in, t.own = tty, tty
	}
	before, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		t.closeInput()
		return nil, fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	t.before = before
	t.enable = ansi.SetModeAltScreenSaveCursor + ansi.EraseEntireScreen + ansi.HideCursor +
		ansi.SetModeBracketedPaste + ansi.SetModeFocusEvent
	t.disable = ansi.ResetModeFocusEvent + ansi.ResetModeBracketedPaste
	if mouse {
		t.enable += ansi.SetModeMouseButtonEvent + ansi.SetModeMouseExtSgr
		t.disable = ansi.ResetModeMouseExtSgr + ansi.ResetModeMouseButtonEvent + t.disable
	}
	t.disable += ansi.ShowCursor + ansi.ResetModeAltScreenSaveCursor
	_, _ = t.out.WriteString(t.enable)
	signal.Notify(t.signals, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT)
	return t, nil
}

// Input is the file to read keys from.
func (t *Terminal) Input() *os.File { return t.in }

// Close restores the terminal. It may be called more than once, and during a panic.
func (t *Terminal) Close() {
	t.close.Do(func() {
		signal.Stop(t.signals)
		close(t.signals)
		t.restore()
		t.closeInput()
	})
}

func (t *Terminal) restore() {
	_, _ = t.out.WriteString(t.disable)
	_ = term.Restore(int(t.in.Fd()), t.before) // a terminal that is gone needs no mode
}

// stop restores the terminal for the shell and stops the process. SIGCONT follows when the process continues.
func (t *Terminal) stop() {
	t.restore()
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // a process may always stop itself
}

// resume prepares the terminal again, also after a SIGSTOP, during which the shell may have changed the modes.
func (t *Terminal) resume() {
	_, _ = term.MakeRaw(int(t.in.Fd()))
	_, _ = t.out.WriteString(t.enable)
}

func (t *Terminal) closeInput() {
	if t.own != nil {
		_ = t.own.Close() // nothing was written to it
	}
}

// size reads the size of the terminal; nil if the terminal is gone. One that does not know its size, such as a serial
// console, is taken for 80×24.
func (t *Terminal) size() tea.Msg {
	width, height, err := term.GetSize(int(t.out.Fd()))
	switch {
	case err != nil:
		return nil
	case width == 0 || height == 0:
		width, height = 80, 24
	}
	return tea.WindowSizeMsg{Width: width, Height: height}
}

// signal waits for the next signal about the terminal; nil after Close.
func (t *Terminal) signal() tea.Msg {
	received, open := <-t.signals
	if !open {
		return nil
	}
	return signalMsg{received}
}
