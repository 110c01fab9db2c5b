package widget

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/theme"
)

func themed(t *testing.T, opts theme.Options) *theme.Theme {
	t.Helper()
	th, err := theme.New(opts)
	require.NoError(t, err)
	return th
}

func TestAnOverlayKeepsTheWidthOfEveryLine(t *testing.T) {
	t.Parallel()
	th := themed(t, theme.Options{Name: "dark"})
	below := []string{
		"", "plain text that is short", th.Paint(theme.Bad, strings.Repeat("x", 40)),
		strings.Repeat("世", 20), "a世b" + strings.Repeat("👩‍👩‍👧", 12),
	}
	for w := 20; w <= 40; w++ {
		frame := Fit(below, w, len(below))
		for x := 0; x <= w-12; x++ {
			block := Box("title", "note", []string{"ab", "世界"}, 12, theme.Accent, th)
			out := Overlay(frame, block, x, 1, w, th)
			require.Len(t, out, len(frame))
			for i, line := range out {
				require.LessOrEqual(t, ansi.StringWidth(line), w, "line %d at %d of %d: %q", i, x, w, line)
			}
			require.Contains(t, ansi.Strip(out[1]), "title")
		}
	}
}

func TestBesideAnOverlayNoHalfWordIsLeft(t *testing.T) {
	t.Parallel()
	th := themed(t, theme.Options{Plain: true})
	frame := []string{"name of a queue, paused by bob main…"}
	require.Equal(t, []string{" |" + strings.Repeat("-", 32) + "|  "},
		Overlay(frame, []string{"|" + strings.Repeat("-", 32) + "|"}, 1, 0, 37, th))
	require.Equal(t, []string{"name|--|a queue, paused by bob main…"}, Overlay(frame, []string{"|--|"}, 4, 0, 36, th),
		"what can be read stays")
}

func TestAnOverlayOutsideTheFrameIsLeftOut(t *testing.T) {
	t.Parallel()
	th := themed(t, theme.Options{Plain: true})
	require.Equal(t, []string{"a", "b"}, Overlay([]string{"a", "b"}, []string{"x", "y"}, 0, 2, 1, th))
	require.Equal(t, []string{"y", "b"}, Overlay([]string{"a", "b"}, []string{"x", "y"}, 0, -1, 1, th))
}

func TestABarIsAsWideAsItIsAskedToBe(t *testing.T) {
	t.Parallel()
	for _, done := range []int64{-1, 0, 1, 5, 10, 99} {
		require.Equal(t, 20, Width(Bar(done, 10, 20)), done)
	}
	require.Empty(t, Bar(3, 0, 20), "of an unknown total there is no bar")
	require.Equal(t, "██░░", Bar(1, 2, 4))
}

func TestAWindowCountsItsHiddenLines(t *testing.T) {
	t.Parallel()
	th := themed(t, theme.Options{Plain: true})
	var lines []string
	for i := range 10 {
		lines = append(lines, fmt.Sprint(i))
	}
	shown, at := Window(lines, 0, 4, th)
	require.Equal(t, []string{"0", "1", "2", "… 7 more lines: pgdn"}, shown)
	require.Zero(t, at)
	shown, at = Window(lines, 99, 4, th)
	require.Equal(t, []string{"7", "8", "9", "… 7 lines above: pgup"}, shown)
	require.Equal(t, 7, at)
	shown, _ = Window(lines, 3, 10, th)
	require.Equal(t, lines, shown)
}

func TestAMenuStartsOnAnEnabledItem(t *testing.T) {
	t.Parallel()
	th := themed(t, theme.Options{Plain: true})
	m := NewMenu([]Choice{
		{Key: "a", Label: "first", Not: "gone"},
		{Key: "b", Label: "second", Help: "does it"},
		{Key: "c", Label: "third"},
	})
	require.Equal(t, 1, m.Cursor())
	m.Move(9)
	require.Equal(t, 2, m.Cursor())
	require.True(t, m.Select("a"))
	require.False(t, m.Select("x"))
	require.Equal(t, []string{"▶ a  first   not now: gone", "  b  second  does it"}, trimmed(m.Lines(40, 2, th)),
		"the line under the cursor is in sight")
	m.Select("c")
	require.Equal(t, []string{"  b  second  does it", "▶ c  third"}, trimmed(m.Lines(40, 2, th)))
	require.Equal(t, -1, NewMenu(nil).Cursor())
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRight(line, " ")
	}
	return out
}

func letters(text string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text)} }

func TestAFormIsDoneWhenAllItsFieldsAreTaken(t *testing.T) {
	t.Parallel()
	refuse := func(value string) error {
		if value == "" {
			return errors.New("it is missing")
		}
		return nil
	}
	f := NewForm([]FormField{
		{Name: "a", Label: "A", Check: refuse},
		{Name: "b", Label: "B", Value: "2", Check: refuse},
	})
	require.False(t, f.Next())
	require.Contains(t, strings.Join(f.Lines(40, 9, themed(t, theme.Options{Plain: true})), "\n"), "✗ it is missing")
	f.Move(1)
	require.False(t, f.Next(), "the first is looked at again at the end")
	f.Update(letters("1"))
	require.False(t, f.Next())
	require.True(t, f.Next())
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, f.Values())
}

// A typed word does not choose by its letters.
func TestATypedWordChoosesNothing(t *testing.T) {
	t.Parallel()
	f := NewForm([]FormField{
		{Name: "ok", Label: "OK", Choices: []string{"yes", "no", "never"}, Optional: true},
		{Name: "b", Label: "B"},
	})
	typed := func(text string) string {
		for _, r := range text {
			f.Update(letters(string(r)))
		}
		return f.Values()["ok"]
	}
	require.Empty(t, typed("maybe"))
	require.Contains(t, strings.Join(f.Lines(60, 9, themed(t, theme.Options{Plain: true})), "\n"),
		`"maybe" is none of yes, no, never`)
	f.Move(1)
	f.Move(1)
	require.Equal(t, "no", typed("n"))
	require.Equal(t, "never", typed("n"), "the next with this letter")
	f.Update(tea.KeyMsg{Type: tea.KeyLeft})
	require.Equal(t, "never", typed("nev"))
	f.Update(tea.KeyMsg{Type: tea.KeyBackspace})
	require.Equal(t, "yes", typed("Y"))
}

func TestAnInputShowsThePartAroundItsCaret(t *testing.T) {
	t.Parallel()
	th := themed(t, theme.Options{Plain: true})
	in := NewInput(strings.Repeat("x", 50)+"end", 100)
	require.Equal(t, 10, Width(in.View(10, true, th)))
	require.Equal(t, "xxxxxxend▌", in.View(10, true, th))
	in.Update(tea.KeyMsg{Type: tea.KeyHome})
	require.True(t, strings.HasPrefix(in.View(10, true, th), "▌xxx"))
	require.Equal(t, 10, Width(in.View(10, true, th)))
	require.NotContains(t, in.View(10, false, th), "▌")
}

func TestAConfirmationKeepsItsQuestionVisible(t *testing.T) {
	t.Parallel()
	th := themed(t, theme.Options{Plain: true})
	var texts []Text
	for i := range 40 {
		texts = append(texts, Text{Text: fmt.Sprintf("line %d", i)})
	}
	c := NewConfirm(texts, "word", "run")
	lines := c.Lines(40, 8, th)
	require.Len(t, lines, 8)
	require.Contains(t, lines[7], "[ leave it ]")
	require.Contains(t, strings.Join(lines, "\n"), "more lines: pgdn")
	c.Scroll(99, 40, 8, th)
	require.Contains(t, strings.Join(c.Lines(40, 8, th), "\n"), "line 39")
	require.Equal(t, Undecided, c.Yes())
	c.Update(letters("word"))
	require.Equal(t, Confirmed, c.Yes())
	require.Equal(t, Confirmed, c.Enter())
	c.Move(1)
	require.Equal(t, Undecided, c.Enter(), "the reason comes first")
	c.Move(1)
	require.Equal(t, Cancelled, c.Enter(), "the button that leaves it comes after the word")
	notice := NewNotice(texts)
	notice.Move(1)
	require.Equal(t, Cancelled, notice.Enter())
	require.Equal(t, Cancelled, notice.Yes())
}

// A toast has no keys: the log shows the rest.
func TestALongToastNamesNoKeyToScroll(t *testing.T) {
	t.Parallel()
	toast := &Toast{Title: "title", Texts: make([]Text, 30), Note: "esc · L log"}
	for h := 1; h < 12; h++ {
		require.LessOrEqual(t, len(toast.Lines(60, h, themed(t, theme.Options{Plain: true}))), max(h, 3))
	}
	text := strings.Join(toast.Lines(60, 20, themed(t, theme.Options{Plain: true})), "\n")
	require.Contains(t, text, "more lines ")
	require.NotContains(t, text, "pgdn")
}
