package widget

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/theme"
)

func look(t testing.TB) *theme.Theme {
	t.Helper()
	th, err := theme.New(theme.Options{Plain: true})
	require.NoError(t, err)
	return th
}

// drawn fits a table and draws it, as the dashboard does after every change.
func drawn(table *Table, w, h int, th *theme.Theme) []string {
	table.SetSize(w, h)
	return table.Lines(w, h, th)
}

func TestDrawingATableChangesNothing(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	table.SetRows(numbered{0, 100})
	require.Len(t, drawn(table, 40, 11, look(t)), 11)
	table.Move(50)
	table.ToggleWrap()
	table.ScrollColumns(1)
	before := *table
	before.widths = slices.Clone(table.widths)
	for _, size := range [][2]int{{20, 5}, {200, 60}, {40, 11}, {5, 2}} {
		first := table.Lines(size[0], size[1], look(t))
		require.Equal(t, first, table.Lines(size[0], size[1], look(t)))
		require.Equal(t, before, *table)
	}
}

func TestCleanMakesTextInert(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain": "plain", "a\x1b[31mb\x1b[0m": `a\x1b[31mb\x1b[0m`, "\x1b]0;title\abody": `\x1b]0;title\abody`,
		"a\nb\tc": "a b c", "\u202eevil\u202c": `\u202eevil\u202c`, "a\u200bb": `a\u200bb`, "bell\a": `bell\a`,
		"世界": "世界", "\xff\xfe": "\uFFFD\uFFFD", "del\x7f": `del\x7f`, "c1\u009b31m": `c1\u009b31m`,
	} {
		require.Equal(t, want, Clean(in), "%q", in)
	}
}

func FuzzCleanLeavesNothingThatMovesTheCursor(f *testing.F) {
	f.Add("\x1b[2J\x9b31m\u202e")
	f.Fuzz(func(t *testing.T, in string) {
		out := Clean(in)
		for _, r := range out {
			if r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0) {
				t.Fatalf("%q keeps %q", in, r)
			}
		}
		if w := ansi.StringWidth(Cut(out, 10)); w > 10 {
			t.Fatalf("%q cut to 10 is %d wide", in, w)
		}
	})
}

func TestCutting(t *testing.T) {
	t.Parallel()
	require.Equal(t, "core.ht…", Cut("core.http_request", 8))
	require.Equal(t, "core.http…uest", CutMiddle("core.http_request", 14))
	require.Equal(t, 14, Width(CutMiddle("core.http_request", 14)))
	require.Equal(t, "  7", Right("7", 3))
	require.Equal(t, "7  ", Left("7", 3))
	require.Equal(t, "left right", Spread("left", "right", 10))
	for w := range 12 {
		require.LessOrEqual(t, Width(Cut("世界世界世界", w)), w)
		require.LessOrEqual(t, Width(CutMiddle("世界世界世界", w)), max(w, 0))
		require.Equal(t, w, Width(Left("世界世界世界", w)))
	}
}

func TestNumbersAndAges(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1204: "1_204", 88_201: "88_201", 1_204_375: "1.2M",
		31_000_000: "31M", -1500: "-1_500", 1_500_000_000: "1.5G",
	} {
		require.Equal(t, want, Number(n, "_"))
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 200 * time.Millisecond: "0.2s", 41 * time.Second: "41s",
		14*time.Minute + 2*time.Second: "14m02s",
		9*time.Hour + 5*time.Minute:    "9h05m", 76 * time.Hour: "3d04h", 4000 * time.Hour: "166d",
	} {
		require.Equal(t, want, Age(d))
		require.LessOrEqual(t, len(Age(d)), 6)
	}
	require.Equal(t, "+22", Signed(22, "_"))
	require.Equal(t, "0", Signed(0, "_"))
	require.Equal(t, "1ms", Latency(0))
}

func TestSparkScalesAndLeavesGaps(t *testing.T) {
	t.Parallel()
	th := look(t)
	g := &th.Glyphs
	require.Equal(t, "▁▄█", Spark([]float64{0, 4, 8}, 3, g))
	require.Equal(t, "  █", Spark([]float64{8}, 3, g))
	require.Equal(t, "█ █", Spark([]float64{8, Missing, 8}, 3, g))
	require.Equal(t, "▁▁", Spark([]float64{0, 0}, 2, g))
	for _, h := range []int{1, 2, 5, 9} {
		lines := Chart([]float64{1, 2, 3, Missing, 500}, 40, h, th)
		require.LessOrEqual(t, len(lines), h)
		for _, line := range lines {
			require.LessOrEqual(t, Width(line), 40)
		}
	}
}

func TestChartsInDotsShowTwoValuesACell(t *testing.T) {
	t.Parallel()
	th, err := theme.New(theme.Options{Plain: true, Braille: true})
	require.NoError(t, err)
	require.Equal(t, "⣀⣸", Spark([]float64{0, 0, 1, 8}, 2, &th.Glyphs), "zero is measured, eight is full")
	require.Equal(t, " ⢸", Spark([]float64{8}, 2, &th.Glyphs), "one value leaves its neighbour blank")
	require.Equal(t, "⡇ ", Spark([]float64{8, Missing, Missing, Missing}, 2, &th.Glyphs))
	lines := Chart([]float64{0, 8, 1, 4}, 12, 3, th)
	require.Equal(t, []string{"     8 ┤  ⢸ ", "     4 ┤  ⢸⣸"}, lines[:2])
	ascii, err := theme.New(theme.Options{Plain: true, Braille: true, ASCII: true})
	require.NoError(t, err)
	require.Equal(t, "▁█", Spark([]float64{0, 8}, 2, &ascii.Glyphs), "dots have no twin in ASCII")
}

func TestALongTextIsShownWithBothItsEnds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("m", 1<<20), strings.Repeat("界", 1<<19),
		"a" + strings.Repeat("界", 1<<19), strings.Repeat("\xff", 1<<20), strings.Repeat("é", 1<<15),
	} {
		text = "begins " + text + " ends"
		got := Clean(text)
		require.LessOrEqual(t, len(got), 4*longest)
		require.True(t, strings.HasPrefix(got, "begins "))
		require.True(t, strings.HasSuffix(got, " ends"))
		require.Contains(t, got, "…")
		if utf8.ValidString(text) {
			require.NotContains(t, got, "\uFFFD", "a character was cut in two")
		}
	}
	require.NotContains(t, Clean(strings.Repeat("m", longest)), "…", "what fits is whole")
}

// numbered is a list of n rows with the numbers as keys, in order.
type numbered struct{ from, n int }

func (r numbered) Len() int           { return r.n }
func (r numbered) Key(row int) string { return strconv.Itoa(r.from + row) }
func (r numbered) Cells(row int, into []Cell) []Cell {
	return append(into, Cell{Text: r.Key(row)}, Cell{Text: "name " + r.Key(row)})
}

var twoColumns = []Column{{Title: "ID", Width: 6, Right: true}, {Title: "NAME", Width: 10, Grow: true}}

func TestTheCursorFollowsItsRow(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	table.SetRows(numbered{0, 100})
	drawn(table, 40, 11, look(t))
	table.Move(50)
	line := table.Cursor() - table.Offset()
	table.SetRows(numbered{-20, 120}) // twenty new rows above
	require.Equal(t, 70, table.Cursor())
	require.Equal(t, line, table.Cursor()-table.Offset(), "the row stays on its line")
	require.Empty(t, table.Gone())
	table.SetRows(numbered{60, 10}) // row 50 has left
	require.Equal(t, "50", table.Gone())
	require.Equal(t, 9, table.Cursor())
	table.SetRows(numbered{0, 0})
	require.Equal(t, -1, table.Cursor())
}

func TestAnUntouchedCursorFollowsItsRowToo(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	table.SetRows(numbered{0, 10})
	drawn(table, 40, 11, look(t))
	table.SetRows(numbered{-5, 15})
	require.Equal(t, "0", table.Key())
	require.Zero(t, table.Offset(), "and the rows above it stay in sight")
	table.Top()
	table.SetRows(numbered{-7, 17})
	require.Equal(t, "-5", table.Key())
	table.SetRows(numbered{0, 10})
	require.Equal(t, "-5", table.Gone())
}

func TestAnUntouchedCursorOfAFeedStaysOnTop(t *testing.T) {
	t.Parallel()
	table := NewFeed(twoColumns)
	table.SetRows(numbered{0, 10})
	table.SetRows(numbered{-5, 15})
	require.Zero(t, table.Cursor())
	table.Move(1)
	table.SetRows(numbered{-7, 17})
	require.Equal(t, "-4", table.Key())
}

func TestAnUntouchedCursorGoesToTheFirstRowOfAnotherFilter(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	table.SetRows(numbered{0, 10})
	table.Anew(true)
	table.SetRows(numbered{3, 4})
	require.Equal(t, "3", table.Key())
	require.Empty(t, table.Gone())
	table.SetRows(numbered{2, 5})
	require.Equal(t, "3", table.Key())
}

func TestMovingStaysInside(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	table.SetRows(numbered{0, 30})
	drawn(table, 40, 11, look(t))
	table.Move(-5)
	require.Zero(t, table.Cursor())
	table.Bottom()
	require.Equal(t, 29, table.Cursor())
	require.Equal(t, 20, table.Offset())
	table.Page(-1)
	require.Equal(t, 24, table.Cursor())
	table.Top()
	require.Zero(t, table.Offset())
	require.True(t, table.Select(3))
	require.Equal(t, 3, table.Cursor())
	require.False(t, table.Select(99))
}

func TestColumnsLeaveByPriority(t *testing.T) {
	t.Parallel()
	table := NewTable([]Column{
		{Title: "A", Width: 10, Grow: true},
		{Title: "B", Width: 10, Priority: 1},
		{Title: "C", Width: 10, Priority: 2},
	})
	table.SetRows(numbered{0, 0})
	header := func(w int) string { return strings.Join(strings.Fields(drawn(table, w, 5, look(t))[0]), "") }
	require.Equal(t, "ABC", header(40))
	require.Equal(t, "AB", header(30))
	require.Equal(t, "A", header(15))
}

// Spare width goes to names and sentences, and a line is as wide as the terminal.
func TestColumnsShareTheRoomThatIsLeft(t *testing.T) {
	t.Parallel()
	table := NewTable([]Column{
		{Title: "A", Width: 10, Grow: true},
		{Title: "B", Width: 10, Right: true},
		{Title: "C", Width: 10, Share: 60, Priority: 1},
	})
	table.SetRows(numbered{0, 0})
	for width, want := range map[int][]int{
		32: {10, 10, 10}, 132: {50, 10, 70}, 31: {20, 10, -1}, 21: {10, 10, -1},
		18: {7, 10, -1},
	} {
		table.layout(width)
		require.Equal(t, want, table.widths, width)
	}
}

func BenchmarkTable(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			table, th := NewTable(twoColumns), look(b)
			table.SetRows(numbered{0, n})
			b.ReportAllocs()
			for range b.N {
				table.Move(1)
				_ = drawn(table, 140, 36, th)
			}
		})
	}
}

func TestChartsOfTimesAreLabelledWithTimes(t *testing.T) {
	t.Parallel()
	th := look(t)
	for seconds, top := range map[float64]string{20: "1m", 192: "4m", 840: "16m", 3_700: "2h", 5 * 86_400: "5d"} {
		lines := DurationChart([]float64{0, seconds}, 40, 5, th)
		require.Len(t, lines, 5)
		require.Contains(t, lines[0], " "+top+" ", seconds)
		require.Contains(t, lines[4], " 0 ")
	}
}

func TestWrappedTextsAreIndented(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"state  one two", "       three"}, Hang("state  ", "one two three", 19))
	require.Equal(t, []string{"state  one t…"}, Hang("state  ", "one two three", 13),
		"where there is no room it is cut")
}

func TestAgesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, write := range []func(time.Duration) string{Age, Short, Latency} {
		for d := time.Millisecond; d < 400*24*time.Hour; d = d*7/5 + time.Nanosecond {
			got, err := phrase.ParseSpan(write(d))
			require.NoError(t, err)
			require.Equal(t, write(d), write(got))
		}
	}
}

// What is left of a number would be another number, so a number goes to a shorter unit or away.
func TestNumbersAreNotCut(t *testing.T) {
	t.Parallel()
	const thin = "\u2009"
	for _, c := range []struct {
		text string
		w    int
		want string
	}{
		{Signed(19_345, thin), 6, "+19.3k"}, {Signed(-19_345, thin), 5, " -19k"}, {Signed(119_345, thin), 5, "+119k"},
		{Number(100_000, thin), 6, "  100k"}, {Number(19_345, thin), 6, "19" + thin + "345"},
		{Number(19_345, thin) + "/" + Number(20_000, thin), 9, "19.3k/20k"}, {"884301", 4, "   …"},
		{"abcdef", 4, "abc…"},
		{Number(19_345, thin), 2, " …"},
	} {
		require.Equal(t, c.want, Right(c.text, c.w), c.text)
	}
	for text, want := range map[string]string{
		"waits 19" + thin + "345 more": "waits …", "queue 1.25 is": "queue …", "by -12345678": "by…",
		"a name of text": "a name o…",
		"at 12 of 130":   "at 12 of…", "worker-0123456": "worker-…",
	} {
		require.Equal(t, want, Cut(text, 9), text)
		require.Equal(t, want, ansi.Strip(Cut("\x1b[90m"+text+"\x1b[0m", 9)), "in colour")
	}
}
