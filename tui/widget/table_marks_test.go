package widget

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// called is a list whose rows have names besides their keys.
type called struct{ numbered }

func (r called) Name(row int) string { return "execution " + r.Key(row) }

func TestMarksFollowTheirRows(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	table.SetRows(called{numbered{0, 10}})
	require.Empty(t, table.MarkNote(" "))
	table.Mark()
	table.Move(1)
	table.Mark()
	require.Equal(t, 3, table.Cursor(), "a mark moves down")
	require.Equal(t, []string{"0", "2"}, table.Marked())
	require.Equal(t, "2 marked", table.MarkNote(" "))
	table.SetRows(called{numbered{-5, 15}})
	require.Equal(t, []string{"0", "2"}, table.Marked(), "rows that came in above change nothing")
	table.SetRows(called{numbered{1, 10}})
	require.Equal(t, []string{"2", "0"}, table.Marked(), "rows that left stay marked")
	require.Equal(t, "2 marked, 1 of them not in the list now: execution 0", table.MarkNote(" "))
	table.SetRows(called{numbered{0, 10}})
	require.Equal(t, "2 marked", table.MarkNote(" "), "it came back")
	table.Unmark()
	require.Empty(t, table.Marked())
}

func TestMarkingARange(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	table.SetRows(numbered{0, 10})
	table.Move(5)
	table.MarkRange()
	require.Equal(t, []string{"5"}, table.Marked(), "without a mark it begins here")
	table.Move(-3)
	table.MarkRange()
	require.Equal(t, []string{"2", "3", "4", "5"}, table.Marked())
	table.SetRows(numbered{-1, 11}) // the anchor follows its row
	table.Move(3)
	table.MarkRange()
	require.Equal(t, []string{"2", "3", "4", "5"}, table.Marked())
	table.Move(-2)
	table.Mark()
	require.Equal(t, []string{"2", "4", "5"}, table.Marked(), "space takes a mark away")
}

func TestMarkingAllIsFrozen(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	table.SetRows(numbered{0, 3})
	table.MarkAll()
	table.SetRows(numbered{0, 5})
	require.Equal(t, []string{"0", "1", "2"}, table.Marked(), "what came later is not marked")
	table.MarkKeys([]string{"9"})
	require.Equal(t, 4, table.Marks())
	require.Equal(t, "4 marked, 1 of them not in the list now: 9", table.MarkNote(" "))
	table.UnmarkKeys([]string{"9", "1", "never marked"})
	require.Equal(t, []string{"0", "2"}, table.Marked())
}

func TestRowsAreMarkedBeforeTheyCome(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	table.SetRows(numbered{0, 3})
	table.MarkAhead([]string{"1", "7", "8"})
	require.Equal(t, "3 marked", table.MarkNote(" "), "they are not missed")
	table.SetRows(numbered{0, 9})
	require.Equal(t, []string{"1", "7", "8"}, table.Marked())
	table.SetRows(numbered{0, 8})
	require.Equal(t, "3 marked, 1 of them not in the list now: 8", table.MarkNote(" "), "it was there")
}

func TestAnEmptyListTakesNoMarks(t *testing.T) {
	t.Parallel()
	table := NewTable(twoColumns)
	for _, rows := range []Rows{nil, numbered{0, 0}} {
		if rows != nil {
			table.SetRows(rows)
		}
		table.Mark()
		table.MarkRange()
		table.MarkAll()
		require.Empty(t, table.Marked())
	}
}

func TestMarksAreSeenWithoutColours(t *testing.T) {
	t.Parallel()
	table, th := NewTable(twoColumns), look(t)
	table.SetRows(numbered{0, 3})
	require.True(t, strings.HasPrefix(drawn(table, 40, 5, th)[1], "▶     0 name 0"),
		"no room is taken while nothing is marked")
	table.Mark()
	lines := drawn(table, 40, 5, th)
	require.True(t, strings.HasPrefix(lines[1], " ✓      0 name 0"), "%q", lines[1])
	require.True(t, strings.HasPrefix(lines[2], "▶       1 name 1"), "%q", lines[2])
	require.True(t, strings.HasPrefix(lines[0], "       ID NAME"), "%q", lines[0])
	for _, line := range lines {
		require.LessOrEqual(t, Width(line), 40)
	}
}

// many columns of different sizes, the third of which grows.
func manyColumns() []Column {
	return []Column{
		{Title: "A", Width: 6},
		{Title: "", Width: 1},
		{Title: "C", Width: 12, Grow: true},
		{Title: "D", Width: 10, Priority: 3},
		{Title: "E", Width: 20, Priority: 1},
		{Title: "F", Width: 8, Priority: 2},
		{Title: "G", Width: 30, Priority: 4},
	}
}

type wideRows struct{ numbered }

func (r wideRows) Cells(row int, into []Cell) []Cell {
	for range 7 {
		into = append(into, Cell{Text: r.Key(row)})
	}
	return into
}

func head(t *testing.T, table *Table, w int) string {
	t.Helper()
	return strings.Join(strings.Fields(drawn(table, w, 5, look(t))[0]), "")
}

func TestColumnsThatDoNotFitAreScrolledTo(t *testing.T) {
	t.Parallel()
	table := NewTable(manyColumns())
	table.SetRows(wideRows{numbered{0, 3}})
	require.Equal(t, "ACEF", head(t, table, 60), "by priority")
	seen := []string{}
	for range 6 {
		table.ScrollColumns(1)
		seen = append(seen, head(t, table, 60))
	}
	require.Equal(t, []string{"ACEF", "ACF", "ACG", "ACG", "ACG", "ACG"}, seen,
		"in their order, to the last and no further")
	require.Equal(t, "columns: 3 out of sight on the left, 0 on the right", table.ScrollNote(" "))
	table.ScrollColumns(-1)
	require.Equal(t, "ACF", head(t, table, 60), "one back is one back")
	require.Equal(t, "ACDEFG", head(t, table, 140), "all return when there is room")
	require.Empty(t, table.ScrollNote(" "))
	require.Equal(t, "ACEF", head(t, table, 60))
}

func TestColumnsAreChosen(t *testing.T) {
	t.Parallel()
	table := NewTable(manyColumns())
	table.SetRows(wideRows{numbered{0, 3}})
	require.Equal(t, "ACEF", head(t, table, 60))
	list := table.Choosables()
	require.Len(t, list, 6, "a column without a title is no choice")
	require.Equal(t, Choosable{Column: 0, Title: "A", On: true, Fits: true, Fixed: true}, list[0])
	require.Equal(t, Choosable{Column: 6, Title: "G", On: true}, list[5])
	table.ToggleColumn(0)
	table.ToggleColumn(4)
	require.Equal(t, "ACDF", head(t, table, 60), "what names the row stays; the room goes to others")
	require.Equal(t, []string{"E"}, table.HiddenColumns())
	table.HideColumns([]string{"F", "A", "never heard of"})
	require.Equal(t, []string{"F"}, table.HiddenColumns())
	table.ResetColumns()
	require.Empty(t, table.HiddenColumns())
}

func TestATableAlwaysFits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	table, th := NewTable(manyColumns()), look(t)
	for range 3000 {
		switch random.IntN(9) {
		case 0:
			table.SetRows(wideRows{numbered{random.IntN(20) - 10, random.IntN(30)}})
		case 1:
			table.Mark()
		case 2:
			table.MarkRange()
		case 3:
			table.ScrollColumns(random.IntN(9) - 4)
		case 4:
			table.ToggleColumn(random.IntN(8) - 1)
		case 5:
			table.Move(random.IntN(9) - 4)
		case 6:
			table.UnmarkKeys(table.Marked()[:min(1, table.Marks())])
		default:
			w, h := random.IntN(150), random.IntN(12)
			lines := drawn(table, w, h, th)
			require.LessOrEqual(t, len(lines), h)
			table.ScrollNote(" ")
		}
		marked := table.Marked()
		slices.Sort(marked)
		require.Len(t, slices.Compact(marked), table.Marks(), "nothing is marked twice")
	}
}

// The rest of a long row stands below it, and its lines belong to it.
func TestARowIsUnfoldedBelowItself(t *testing.T) {
	t.Parallel()
	table, th := NewTable(manyColumns()), look(t)
	table.SetRows(wideRows{numbered{1_000_000_000, 10}})
	table.Move(1)
	table.ToggleWrap()
	lines := drawn(table, 40, 9, th)
	require.Len(t, lines, 9)
	require.Contains(t, lines[3], "A  1000000001")
	require.Contains(t, lines[4], "D  1000000001", "it has no column here")
	require.True(t, table.Select(3))
	require.Equal(t, 1, table.Cursor(), "a line below belongs to its row")
	drawn(table, 40, 9, th)
	require.True(t, table.Select(6))
	require.Equal(t, 2, table.Cursor(), "the first line below is the next row")
	for h := range 12 {
		require.LessOrEqual(t, len(drawn(table, 40, h, th)), h)
	}
	for range 9 {
		table.Move(1)
		lines = drawn(table, 40, 9, th)
		require.Contains(t, strings.Join(lines, "\n"), "▶", "the cursor stays visible")
	}
	table.ToggleWrap()
	require.NotContains(t, strings.Join(drawn(table, 40, 9, th), "\n"), "A  10000")
}

// asked counts reads of its rows.
type asked struct {
	numbered
	times *int
}

func (r asked) Key(row int) string {
	*r.times++
	return r.numbered.Key(row)
}

func TestOnlyVisibleRowsAreAskedForTheirMarks(t *testing.T) {
	t.Parallel()
	times := 0
	table := NewTable(twoColumns)
	table.SetRows(asked{numbered{0, 1_000_000}, &times})
	require.LessOrEqual(t, times, 2, "nothing is marked")
	table.Mark()
	times = 0
	_ = drawn(table, 140, 36, look(t))
	require.LessOrEqual(t, times, 80)
}
