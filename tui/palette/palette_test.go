package palette_test

import (
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/palette"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

func entries() []palette.Entry {
	return []palette.Entry{
		{Name: "overview", Key: "1", Help: "open the view"},
		{Name: "queues", Key: "2", Help: "open the view"},
		{Name: "executions", Aliases: []string{"exec"}, Key: "3", Help: "open the view"},
		{
			Name: "q", Arg: "NAME", Help: "open a queue",
			Args: func() []string { return []string{"core.http_request", "core.echo", "etl.load tenant=acme"} },
		},
		{Name: "export", Arg: "[FILE]", Key: "e", Help: "write rows to a file"},
		{Name: "quit", Key: "q", Help: "leave"},
	}
}

func opened(text string) *palette.Palette {
	p := palette.New()
	p.Open(entries(), text)
	return p
}

func press(p *palette.Palette, keys ...string) (last palette.Outcome) {
	special := map[string]tea.KeyType{
		"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "up": tea.KeyUp,
		"down": tea.KeyDown, "ctrl+p": tea.KeyCtrlP, "ctrl+n": tea.KeyCtrlN,
		"backspace": tea.KeyBackspace,
	}
	for _, key := range keys {
		msg := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(key)}
		if t, ok := special[key]; ok {
			msg = tea.KeyMsg{Type: t}
		}
		last = p.Key(msg)
	}
	return last
}

func offers(t *testing.T, p *palette.Palette) []string {
	t.Helper()
	th, err := theme.New(theme.Options{Plain: true})
	require.NoError(t, err)
	lines := p.Offers(76, 20, th)
	for i, text := range lines {
		require.LessOrEqual(t, widget.Width(text), 76)
		lines[i] = strings.TrimSpace(text)
	}
	return lines
}

func TestOffersShowKeyAndHelp(t *testing.T) {
	t.Parallel()
	p := opened("")
	require.Len(t, offers(t, p), 6)
	require.Regexp(t, `^:export \[FILE\] +e +write rows to a file$`, offers(t, p)[4])
	press(p, "e", "x")
	require.Len(t, offers(t, p), 2)
	press(p, "e", "c")
	require.Regexp(t, "^:executions +3 ", offers(t, p)[0], "an alias finds its command")
}

func TestTabCompletesAndTakesTurns(t *testing.T) {
	t.Parallel()
	p := opened("")
	press(p, "q", "u", "tab")
	require.Equal(t, "quit", p.Value(), "the shorter name comes first")
	press(p, "tab")
	require.Equal(t, "queues", p.Value())
	require.True(t, strings.HasPrefix(offers(t, p)[1], "▶ :queues"))
	press(p, "tab")
	require.Equal(t, "quit", p.Value(), "around the end")
	press(p, "shift+tab")
	require.Equal(t, "queues", p.Value())
}

func TestCommandsMatchWithMissingLetters(t *testing.T) {
	t.Parallel()
	p := opened("")
	press(p, "o", "v", "w", "tab")
	require.Equal(t, "overview", p.Value())
}

func TestArgumentsAreCompletedFromTheData(t *testing.T) {
	t.Parallel()
	p := opened("q ")
	require.Len(t, offers(t, p), 3)
	press(p, "a", "c", "m", "e", "tab")
	require.Equal(t, "q etl.load tenant=acme", p.Value())
	entry, arg, err := p.Parse(p.Value())
	require.NoError(t, err)
	require.Equal(t, "q", entry.Name)
	require.Equal(t, "etl.load tenant=acme", arg)
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	p := opened("")
	for line, want := range map[string]string{
		"qeues":       "no command :qeues; near: :queues",
		"zzzzzzzz":    "no command :zzzzzzzz; tab lists them",
		"q":           ":q needs NAME",
		"queues core": `:queues takes nothing, not "core"`,
		"ex":          "no command :ex; near: :executions :export",
	} {
		_, _, err := p.Parse(line)
		require.EqualError(t, err, want)
	}
	for line, want := range map[string]string{
		":queues": "queues", "ov": "overview", "exec": "executions",
		"export": "export", "exp  a b.csv": "export",
	} {
		entry, _, err := p.Parse(line)
		require.NoError(t, err, line)
		require.Equal(t, want, entry.Name)
	}
}

func TestEnteredCommandsAreRecalled(t *testing.T) {
	t.Parallel()
	p := opened("")
	for _, line := range []string{"queues", "q core.echo", "q core.echo"} {
		p.Open(entries(), line)
		require.Equal(t, palette.Entered, press(p, "enter"))
	}
	p.Open(entries(), "")
	press(p, "o", "v", "ctrl+p")
	require.Equal(t, "q core.echo", p.Value())
	press(p, "ctrl+p")
	require.Equal(t, "queues", p.Value(), "the same line twice is remembered once")
	press(p, "ctrl+p", "ctrl+n", "ctrl+n")
	require.Equal(t, "ov", p.Value(), "the typed text is kept")
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	require.Equal(t, palette.Closed, press(opened("qu"), "esc"))
	require.Equal(t, palette.Closed, press(opened(""), "enter"))
	require.Equal(t, palette.Typing, press(opened("q"), "backspace"))
	require.Equal(t, palette.Closed, press(opened("q"), "backspace", "backspace"))
}

func TestArrowsMoveInTheList(t *testing.T) {
	t.Parallel()
	p := opened("")
	press(p, "down")
	first := p.Value()
	press(p, "down", "up")
	require.Equal(t, first, p.Value())
	require.NotEmpty(t, first)
	p = opened("")
	press(p, "up")
	require.NotEqual(t, first, p.Value(), "from the first line up to the last one")
}
