package widget

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/theme"
)

// tallied are rows with a watched number and an unwatched one.
type tallied []string

func (r tallied) Len() int           { return len(r) }
func (r tallied) Key(row int) string { return strings.SplitN(r[row], " ", 2)[0] }

func (r tallied) Cells(row int, into []Cell) []Cell {
	for text := range strings.FieldsSeq(r[row]) {
		into = append(into, Cell{Text: text})
	}
	return into
}

func TestCellsThatAPollHasChangedAreUnderlinedOnce(t *testing.T) {
	t.Parallel()
	look, err := theme.New(theme.Options{Name: "mono"})
	require.NoError(t, err)
	table := NewTable([]Column{
		{Title: "NAME", Width: 4},
		{Title: "N", Width: 5, Right: true, Watch: true},
		{Title: "AGE", Width: 4},
	})
	draw := func(th *theme.Theme) string { return strings.Join(drawn(table, 20, 4, th), "\n") }
	table.SetRows(tallied{"a 1 1s", "b 2 1s"})
	require.NotContains(t, draw(look), "\x1b[4m", "a new row is no change")
	table.SetRows(tallied{"b 3 2s", "a 1 2s"})
	require.Equal(t, 1, strings.Count(draw(look), "\x1b[4m"))
	require.Contains(t, draw(look), "    \x1b[4m3\x1b[24m",
		"by its row, wherever it stands, without the room beside it, and for as long as it stands")
	bare, err := theme.New(theme.Options{Plain: true})
	require.NoError(t, err)
	require.NotContains(t, draw(bare), "\x1b", "where only text is drawn")
	table.SetRows(tallied{"b 3 3s", "a 1 3s"})
	require.NotContains(t, draw(look), "\x1b[4m", "once")
	table.SetRows(tallied{"b 9 4s", "a 1 4s"})
	table.SetRows(tallied{"b 8 4s", "a 1 4s"})
	require.Contains(t, draw(look), "\x1b[4m8\x1b[24m", "values that were not drawn are not compared with")
}
