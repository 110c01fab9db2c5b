package main

import (
	"os"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/app"
	"github.com/attune-go/attune/tui/theme"
)

func TestTheEnvironmentSaysHowManyColoursThereAre(t *testing.T) {
	t.Parallel()
	for want, environ := range map[termenv.Profile][]string{
		termenv.TrueColor: {"TERM=xterm-256color", "COLORTERM=truecolor"},
		termenv.ANSI256:   {"TERM=xterm-256color"},
		termenv.ANSI:      {"TERM=xterm"},
		termenv.Ascii:     {"TERM=dumb"},
	} {
		require.Equal(t, want, profile(environ), environ)
	}
	require.False(t, asksBackground(theme.Options{Name: "dark"}, nil))
	require.False(t, asksBackground(theme.Options{NoColor: true}, nil))
}

// What a terminal answers is no key, also where it comes in two parts or among keys.
func TestAnswersAreTakenOutOfWhatIsTyped(t *testing.T) {
	t.Parallel()
	hands, screen, err := os.Pipe()
	require.NoError(t, err)
	answers := make(chan tea.Msg, 10)
	in := &input{File: hands, answered: func(msg tea.Msg) { answers <- msg }}
	for _, step := range []struct {
		typed, keys string
		answer      tea.Msg
	}{
		{"jk", "jk", nil},
		{"\x1b", "\x1b", nil},
		{"\x1b]11;rgb:ffff/ffff/dddd\x1b\\", "", app.BackgroundMsg{}},
		{"a\x1b]11;rgb:1e/1e/2e\ab", "ab", app.BackgroundMsg{Dark: true}},
		{"a\x1b]11;rgb:00", "a", nil},
		{"00/0000/0000\x1b\\b", "b", app.BackgroundMsg{Dark: true}},
		{"\x1b]11;pink\a\x1b[A", "\x1b[A", nil},
		{"\x1b]12;x", "\x1b]12;x", nil},
	} {
		_, err := screen.WriteString(step.typed)
		require.NoError(t, err)
		buf := make([]byte, 256)
		n, err := in.Read(buf)
		require.NoError(t, err)
		require.Equal(t, step.keys, string(buf[:n]))
		select {
		case got := <-answers:
			require.Equal(t, step.answer, got, "%q", step.typed)
		case <-time.After(map[bool]time.Duration{true: 20 * time.Millisecond, false: wait}[step.answer == nil]):
			require.Nil(t, step.answer, "%q", step.typed)
		}
	}
}
