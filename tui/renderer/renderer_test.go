package renderer

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is a model that shows a text. A message of type string is its next text.
type page string

func (p page) Init() tea.Cmd { return nil }

func (p page) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if text, ok := msg.(string); ok {
		if text == "panic" {
			panic(text)
		}
		return page(text), nil
	}
	return p, nil
}

func (p page) View() string { return string(p) }

// emulator understands what the renderer writes, and counts the writes.
type emulator struct {
	t      require.TestingT
	cells  [][]string
	writes int
}

func (e *emulator) resize(width, height int) {
	e.cells = make([][]string, height)
	for y := range e.cells {
		e.cells[y] = strings.Split(strings.Repeat("?", width), "") // a terminal may show anything after a resize
	}
}

// Write implements io.Writer.
func (e *emulator) Write(raw []byte) (int, error) {
	e.writes++
	x, y := 0, 0
	var state byte
	for text := string(raw); text != ""; {
		seq, width, n, next := ansi.DecodeSequence(text, state, nil)
		state, text = next, text[n:]
		switch {
		case width > 0:
			require.LessOrEqual(e.t, x+width, len(e.cells[y]), "the line wraps: %q", raw)
			e.cells[y][x] = seq
			for i := 1; i < width; i++ {
				e.cells[y][x+i] = ""
			}
			x += width
		case seq == ansi.EraseEntireScreen:
			for row := range e.cells {
				e.erase(row, 0)
			}
		case seq == ansi.EraseLineRight:
			require.Less(e.t, x, len(e.cells[y]), "erases the last character: %q", raw)
			e.erase(y, x)
		case seq == ansi.EraseScreenBelow:
			for row := y; row < len(e.cells); row++ {
				e.erase(row, 0)
			}
		case strings.HasSuffix(seq, "H"):
			x, y = 1, 1 // an omitted number is 1
			row, column, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(seq, "\x1b["), "H"), ";")
			for text, number := range map[string]*int{row: &y, column: &x} {
				if text != "" {
					_, err := fmt.Sscan(text, number)
					require.NoError(e.t, err, "%q", seq)
				}
			}
			x, y = x-1, y-1
			require.Less(e.t, y, len(e.cells), "below the terminal: %q", raw)
		case strings.HasSuffix(seq, "m"):
		default:
			require.Fail(e.t, "unknown", "%q", seq)
		}
	}
	return len(raw), nil
}

func (e *emulator) erase(y, from int) {
	for x := from; x < len(e.cells[y]); x++ {
		e.cells[y][x] = " "
	}
}

func (e *emulator) text() []string {
	lines := make([]string, len(e.cells))
	for y, row := range e.cells {
		lines[y] = strings.TrimRight(strings.Join(row, ""), " ")
	}
	return lines
}

// framesOn draws on a writer instead of a terminal.
func framesOn(out io.Writer) *frames {
	f := &frames{Model: page(""), out: out, terminal: &Terminal{}}
	f.terminal.close.Do(func() {})
	return f
}

// Whatever frames follow each other, also around changes of the size, the terminal shows the last one, cut to its
// size.
func TestTheTerminalShowsTheLastFrame(t *testing.T) {
	t.Parallel()
	line := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", "bc", " ", "é", "語", "\x1b[31mred\x1b[0m", "\x1b[1;4m語x\x1b[m", "…",
		}), 0, 14).Draw(t, "parts"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		on := &emulator{t: t}
		f := framesOn(on)
		var last []string
		for range rapid.IntRange(1, 12).Draw(t, "frames") {
			if f.width == 0 || rapid.IntRange(0, 4).Draw(t, "resize") == 0 {
				width, height := rapid.IntRange(2, 20).Draw(t, "width"), rapid.IntRange(1, 6).Draw(t, "height")
				on.resize(width, height)
				f.Update(tea.WindowSizeMsg{Width: width, Height: height})
			}
			lines := rapid.SliceOfN(line, 1, 8).Draw(t, "lines")
			for i := range min(len(lines), len(last)) {
				if rapid.Bool().Draw(t, "same") {
					lines[i] = last[i]
				}
			}
			last = lines
			f.drawn = time.Time{} // the interval is over
			f.Update(strings.Join(lines, "\n"))
			if f.waiting {
				f.drawn = time.Time{}
				f.Update(drawMsg{})
			}
			want := make([]string, f.height)
			for i := range min(len(lines), f.height) {
				want[i] = strings.TrimRight(ansi.Strip(ansi.Truncate(lines[i], f.width, "")), " ")
			}
			require.Equal(t, want, on.text())
		}
	})
}

func TestAnUnchangedFrameWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		on := &emulator{t: t}
		on.resize(10, 2)
		f := framesOn(on)
		f.Update("one")
		require.Zero(t, on.writes, "before the size is known")
		f.Update(tea.WindowSizeMsg{Width: 10, Height: 2})
		require.Equal(t, 1, on.writes)
		for range 3 {
			time.Sleep(interval)
			_, cmd := f.Update("one")
			require.Nil(t, cmd)
		}
		time.Sleep(interval)
		require.Equal(t, 1, on.writes)
		f.Update("two")
		require.Equal(t, 2, on.writes, "a changed frame is drawn at once")
		require.Equal(t, []string{"two", ""}, on.text())
	})
}

// Another program may have written to the terminal.
func TestClearScreenDrawsTheWholeFrame(t *testing.T) {
	t.Parallel()
	on := &emulator{t: t}
	on.resize(10, 2)
	f := framesOn(on)
	f.Update(tea.WindowSizeMsg{Width: 10, Height: 2})
	f.drawn = time.Time{} // the interval is over
	f.Update("one\ntwo")
	on.cells[1][0] = "X"
	f.drawn = time.Time{}
	f.Update(tea.ClearScreen())
	require.Equal(t, []string{"one", "two"}, on.text())
}

// A thousand messages in a second draw 60 frames, and the last message is drawn.
func TestABurstDrawsAFrameForEachInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		on := &emulator{t: t}
		on.resize(10, 1)
		f := framesOn(on)
		f.Update(tea.WindowSizeMsg{Width: 10, Height: 1})
		later := make(chan tea.Msg, 1)
		handle := func(msg tea.Msg) {
			if _, cmd := f.Update(msg); cmd != nil {
				go func() { later <- cmd() }()
			}
		}
		for i := range 1000 {
			select {
			case msg := <-later:
				handle(msg)
			case <-time.After(time.Millisecond):
			}
			handle(fmt.Sprint(i))
		}
		handle(<-later)
		require.False(t, f.waiting)
		require.Equal(t, []string{"999"}, on.text())
		require.LessOrEqual(t, on.writes, 62)
		require.GreaterOrEqual(t, on.writes, 50)
	})
}
