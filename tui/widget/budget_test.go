package widget

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// counted are numbered rows that count their reads.
type counted struct {
	numbered
	keys, cells *int
}

func (r counted) Key(row int) string {
	*r.keys++
	return r.numbered.Key(row)
}

func (r counted) Cells(row int, into []Cell) []Cell {
	*r.cells++
	return r.numbered.Cells(row, into)
}

// TestATableReadsVisibleRowsOnly moves the cursor in a million rows, and counts the reads of each frame.
func TestATableReadsVisibleRowsOnly(t *testing.T) {
	t.Parallel()
	const height = 36
	rows := counted{numbered: numbered{0, 1_000_000}, keys: new(int), cells: new(int)}
	table := NewTable(twoColumns)
	table.SetRows(rows)
	for _, move := range []func(){
		func() { table.Move(1) }, table.Bottom, func() { table.Page(-1) }, table.Top,
		func() { table.Move(500_000) }, func() { table.Select(3) },
	} {
		*rows.keys, *rows.cells = 0, 0
		move()
		require.Len(t, drawn(table, 140, height, look(t)), height)
		require.LessOrEqual(t, *rows.cells, height)
		require.LessOrEqual(t, *rows.keys, 3*height)
	}
}
