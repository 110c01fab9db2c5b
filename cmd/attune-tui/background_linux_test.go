package main

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const lightAnswer = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\"

// The answer of a terminal decides the colours, and is not handled as keys. A terminal that does not answer delays no
// frame.
func TestTheTerminalIsAskedForItsBackground(t *testing.T) {
	t.Parallel()
	light := false
	for try := 0; try < 10 && !light; try++ { // the program waits for 200 ms only, and other tests use the processors
		p := launchColoured(t)
		p.shows("\x1b]11;?\a")
		p.press(lightAnswer, "ATTUNE")
		p.press("?", "keys that work here")
		light = p.hasDrawn("\x1b[38;5;244m") // dim in the theme light
		p.kill()
	}
	require.True(t, light)
}

func TestATerminalThatAnswersLateKeepsItsColours(t *testing.T) {
	t.Parallel()
	p := launchColoured(t)
	p.shows("ATTUNE")
	time.Sleep(250 * time.Millisecond)
	_, err := p.keys.WriteString(lightAnswer)
	require.NoError(t, err)
	p.press("?", "keys that work here")
	require.False(t, p.hasDrawn("\x1b[38;5;244m"))
}

func TestTheTerminalIsRestored(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*dashboard) error{
		"key": func(p *dashboard) error {
			_, err := p.keys.WriteString("q")
			return err
		},
		"SIGTERM": func(p *dashboard) error { return p.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGINT":  func(p *dashboard) error { return p.cmd.Process.Signal(syscall.SIGINT) },
		"SIGHUP":  func(p *dashboard) error { return p.cmd.Process.Signal(syscall.SIGHUP) },
		"SIGQUIT": func(p *dashboard) error { return p.cmd.Process.Signal(syscall.SIGQUIT) },
	} {
		p := launchColoured(t)
		p.shows("ATTUNE")
		require.NoError(t, end(p), name)
		p.awaitExit()
		require.Zero(t, p.cmd.ProcessState.ExitCode(), "%s: %s", name, p.output.String())
		require.True(t, strings.HasSuffix(p.output.String(), ansi.ShowCursor+ansi.ResetModeAltScreenSaveCursor),
			"%s: %q", name, p.output.String())
	}
}

// After fg the terminal has the modes of the shell, and its screen shows what the shell wrote.
func TestAStoppedProgramReturnsTheTerminal(t *testing.T) {
	t.Parallel()
	p := launchColoured(t)
	p.shows("ATTUNE")
	raw := p.modes()
	for key, stop := range map[string]syscall.Signal{"2": syscall.SIGTSTP, "3": syscall.SIGSTOP} {
		p.signal(stop)
		require.Eventually(t, p.isStopped, wait, time.Millisecond, "%s", stop)
		if stop == syscall.SIGTSTP {
			p.shows(ansi.ShowCursor + ansi.ResetModeAltScreenSaveCursor)
			require.NotEqual(t, raw, p.modes())
		}
		cooked := raw
		cooked.Lflag |= unix.ICANON | unix.ECHO
		require.NoError(t, unix.IoctlSetTermios(int(p.keys.Fd()), unix.TCSETS, &cooked))
		from := p.drawn()
		p.signal(syscall.SIGCONT)
		p.sees(from, ansi.SetModeAltScreenSaveCursor, time.Now())
		p.sees(from, "?help", time.Now())
		require.Equal(t, raw, p.modes(), "%s", stop)
		p.press(key, "["+key+" ")
	}
}

func TestAKeyDrawsTheScreenAnew(t *testing.T) {
	t.Parallel()
	p := launchColoured(t)
	p.shows("ATTUNE")
	for _, keys := range []string{"", "?", "\x1b:"} { // also in a dialog and in a text
		_, err := p.keys.WriteString(keys)
		require.NoError(t, err)
		p.press("\f", ansi.EraseEntireScreen)
	}
}

func (p *dashboard) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

func (p *dashboard) modes() unix.Termios {
	p.t.Helper()
	termios, err := unix.IoctlGetTermios(int(p.keys.Fd()), unix.TCGETS)
	require.NoError(p.t, err)
	return *termios
}

func (p *dashboard) isStopped() bool {
	raw, err := os.ReadFile(p.proc("stat"))
	return err == nil && strings.Contains(string(raw), ") T ")
}

// drawn is the length of the output so far.
func (p *dashboard) drawn() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Len()
}

// The terminal of a stalled connection reads nothing, so drawing blocks and the terminal cannot be restored.
func TestASecondSIGTERMEndsTheProgramOnAStalledTerminal(t *testing.T) {
	t.Parallel()
	p := launchColoured(t)
	p.shows("ATTUNE")
	p.mu.Lock() // stops the reading of the output
	for i := range uint16(60) {
		size := unix.Winsize{Row: 60, Col: 200 + i%2}
		if err := unix.IoctlSetWinsize(int(p.keys.Fd()), unix.TIOCSWINSZ, &size); err != nil {
			p.mu.Unlock()
			require.NoError(t, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	ended := make(chan struct{})
	go func() {
		_ = p.cmd.Wait() // the second signal ends it
		close(ended)
	}()
	first := p.cmd.Process.Signal(syscall.SIGTERM)
	time.Sleep(500 * time.Millisecond)
	second := p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(wait):
		_ = p.cmd.Process.Kill()
		t.Error("the program does not end")
		<-ended
	}
	p.mu.Unlock()
	p.read.Wait()
	require.NoError(t, errors.Join(first, second, p.keys.Close()))
}

// launchColoured starts the program without servers on a terminal that has colours.
func launchColoured(t *testing.T) *dashboard {
	t.Helper()
	return launch(t, os.Args[0], append([]string{asProgram + "=1", "NO_COLOR="}, noServers...))
}

func (p *dashboard) hasDrawn(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.output.String(), text)
}
