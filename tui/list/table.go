package list

import (
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Table is a table of rows that are neither filtered nor put in order: a part of a view that
// shows one thing. Of its fields only the columns count.
type Table[R any] struct {
	*widget.Table

	// List are the rows, which SetList replaces.
	List []R

	env    *screen.Env
	fields []Field[R]
	key    func(r *R) string
}

// NewTable makes a table without rows.
func NewTable[R any](env *screen.Env, key func(r *R) string, fields []Field[R]) *Table[R] {
	columns := make([]widget.Column, len(fields))
	for i := range fields {
		columns[i] = fields[i].column
	}
	return &Table[R]{Table: widget.NewTable(columns), env: env, fields: fields, key: key}
}

// SetList replaces the rows.
func (t *Table[R]) SetList(rows []R) {
	t.List = rows
	t.SetRows(t)
}

// Current is the row under the cursor, or nil.
func (t *Table[R]) Current() *R {
	if at := t.Cursor(); at >= 0 && at < len(t.List) {
		return &t.List[at]
	}
	return nil
}

// Len is the number of rows.
func (t *Table[R]) Len() int { return len(t.List) }

// Key identifies a row.
func (t *Table[R]) Key(row int) string { return t.key(&t.List[row]) }

// Cells are the texts of a row.
func (t *Table[R]) Cells(row int, into []widget.Cell) []widget.Cell {
	for i := range t.fields {
		into = append(into, t.fields[i].cell(t.env, &t.List[row]))
	}
	return into
}
