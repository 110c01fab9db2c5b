package widget

import (
	"slices"
	"strings"
)

// Key is the key of the row under the cursor; empty when there is none.
func (t *Table) Key() string {
	if t.len() == 0 {
		return ""
	}
	return t.rows.Key(t.cursor)
}

// Seek puts the cursor on the row with the key: at once if it is there, otherwise
// when the rows come next.
func (t *Table) Seek(key string) {
	t.gone, t.sought = "", ""
	if at, ok := t.find(key); ok {
		t.cursor, t.moved = at, true
		t.settle()
		return
	}
	t.sought = key
}

// Find puts the cursor on the next row in which a text stands, around the end, and
// returns in how many rows it does: with a step of 1 behind the cursor, with -1 before
// it, with 0 from the cursor on.
func (t *Table) Find(text string, step int) int {
	text = strings.ToLower(strings.TrimSpace(text))
	var rows []int
	for row := range t.len() {
		if text != "" && t.says(row, text) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return 0
	}
	to := rows[0] // around the end
	switch at := slices.IndexFunc(rows, func(row int) bool { return row >= t.cursor+max(step, 0) }); {
	case step >= 0 && at >= 0:
		to = rows[at]
	case step < 0 && at == 0, step < 0 && at < 0:
		to = rows[len(rows)-1]
	case step < 0:
		to = rows[at-1]
	}
	t.Move(to - t.cursor)
	return len(rows)
}

// says reports whether a cell of a row has a text, whatever its capitals.
func (t *Table) says(row int, text string) bool {
	t.cells = t.rows.Cells(row, t.cells[:0])
	return slices.ContainsFunc(t.cells,
		func(c Cell) bool { return strings.Contains(strings.ToLower(cleanCell(c.Text)), text) })
}

// seek goes to the row that was sought, if it has come.
func (t *Table) seek() {
	if at, ok := t.find(t.sought); ok {
		t.cursor, t.key, t.moved = at, t.sought, true
	}
	t.sought = ""
}
