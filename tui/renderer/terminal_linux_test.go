package renderer

import (
	"os"
	"strconv"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pseudoTerminal makes a terminal of 20×5 and returns both of its ends.
func pseudoTerminal(t *testing.T) (operator, program *os.File) {
	t.Helper()
	operator, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this machine makes no terminals")
	}
	t.Cleanup(func() { require.NoError(t, operator.Close()) })
	fd := int(operator.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 5, Col: 20}))
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, program.Close()) })
	return operator, program
}

func read(t *testing.T, operator *os.File) string {
	t.Helper()
	raw := make([]byte, 64<<10)
	n, err := operator.Read(raw)
	require.NoError(t, err)
	return string(raw[:n])
}

func modes(t *testing.T, program *os.File) unix.Termios {
	t.Helper()
	termios, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return *termios
}

func TestCloseRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	operator, program := pseudoTerminal(t)
	before := modes(t, program)
	terminal, err := Open(program, program, true)
	require.NoError(t, err)
	require.Equal(t, "\x1b[?1049h\x1b[2J\x1b[?25l\x1b[?2004h\x1b[?1004h\x1b[?1002h\x1b[?1006h", read(t, operator))
	require.NotEqual(t, before, modes(t, program), "raw mode")
	require.Equal(t, tea.WindowSizeMsg{Width: 20, Height: 5}, terminal.size())
	terminal.Close()
	terminal.Close()
	require.Equal(t, "\x1b[?1006l\x1b[?1002l\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[?1049l", read(t, operator))
	require.Equal(t, before, modes(t, program))
	require.Nil(t, terminal.signal(), "nothing waits for a signal")
}

func TestATerminalWithoutASizeHas80By24(t *testing.T) {
	t.Parallel()
	operator, program := pseudoTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(operator.Fd()), unix.TIOCSWINSZ, &unix.Winsize{}))
	require.Equal(t, tea.WindowSizeMsg{Width: 80, Height: 24}, (&Terminal{out: program}).size())
}

// A panic must be readable: it is printed after the alternate screen is left.
func TestAPanicRestoresTheTerminalFirst(t *testing.T) {
	t.Parallel()
	operator, program := pseudoTerminal(t)
	before := modes(t, program)
	terminal, err := Open(program, program, false)
	require.NoError(t, err)
	read(t, operator)
	require.Panics(t, func() { terminal.Draw(page("")).Update("panic") })
	require.Contains(t, read(t, operator), ansi.ResetModeAltScreenSaveCursor)
	require.Equal(t, before, modes(t, program))
}

func TestARedirectedOutputIsNoTerminal(t *testing.T) {
	t.Parallel()
	_, program := pseudoTerminal(t)
	file, err := os.CreateTemp(t.TempDir(), "out")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	before := modes(t, program)
	_, err = Open(program, file, false)
	require.ErrorIs(t, err, ErrNoTerminal)
	require.Equal(t, before, modes(t, program))
}
