package widget

import (
	"slices"
	"strings"

	"github.com/attune-go/attune/tui/theme"
)

// Column describes one column of a table.
type Column struct {
	Title string
	// Width is the room the column needs.
	Width int
	// Grow lets the column take the room that is left over. One column grows.
	Grow bool
	// Share is how many hundredths of the room left over this column takes from the
	// one that grows: both are where names and sentences are cut first.
	Share int
	// Right aligns the cells to the right, as numbers are.
	Right bool
	// Priority decides which columns stay when the room is short: the highest
	// numbers are dropped first, zero is never dropped.
	Priority int
	// Watch underlines a cell that a poll has changed, until the next one. It is not for
	// what changes by itself, such as ages.
	Watch bool
	// Middle cuts long cells in the middle instead of at their end.
	Middle bool
}

// Cell is one piece of text in a table. Its text is cleaned when drawn.
type Cell struct {
	Text string
	Role theme.Role
}

// Rows is what a table shows. It is asked only for rows that are visible.
type Rows interface {
	// Len is the number of rows.
	Len() int
	// Key identifies a row across changes of the data.
	Key(row int) string
	// Cells appends the cells of a row, one for each column of the table.
	Cells(row int, into []Cell) []Cell
}

// Table is a list with a cursor that follows the identity of its row. It draws
// only what is visible, so a million rows cost what forty cost.
type Table struct {
	columns []Column
	rows    Rows
	cursor  int
	offset  int
	key     string
	// gone is the key of a row that was under the cursor and has left the data.
	gone string
	// moved is true once the operator has moved the cursor away from the top.
	moved bool
	// atTop keeps a cursor that was not moved on the first row, whichever that is; anew
	// does so for the rows that come next.
	atTop, anew bool
	height      int
	marks       marks
	// hidden are the columns that were turned off; nil: none.
	hidden []bool
	// scroll is how many columns were scrolled past.
	scroll int
	widths []int
	cells  []Cell
	// sought is the key of a row to go to when the rows come.
	sought string
	// blurred is true while the keys go elsewhere.
	blurred bool
	// wrap shows below the row under the cursor what its cells have no room for;
	// unfolded is how many lines that took last.
	wrap     bool
	unfolded int
	changes  changes
}

// NewTable makes an empty table.
func NewTable(columns []Column) *Table { return &Table{columns: columns} }

// NewFeed makes an empty table of which the newest rows come first: until the operator
// moves the cursor, it stays on the first row, whichever that is.
func NewFeed(columns []Column) *Table { return &Table{columns: columns, atTop: true} }

// Anew says whether the next rows are filtered or sorted in another way: a cursor that
// was not moved goes to the first of them.
func (t *Table) Anew(on bool) { t.anew = on }

// SetRows replaces the data. The cursor stays on the row it was on, and once it was
// moved that row stays on its line of the screen, wherever it went; if it is gone,
// the cursor keeps its place and Gone says which row was lost.
func (t *Table) SetRows(rows Rows) {
	t.rows, t.gone = rows, ""
	follows := t.moved || !t.atTop && !t.anew
	t.anew = false
	t.changes.next()
	t.missing()
	n := t.len()
	if n == 0 {
		t.cursor, t.offset = 0, 0
		return
	}
	if t.sought != "" {
		t.seek()
	}
	line := t.cursor - t.offset
	if follows && t.key != "" && (t.cursor >= n || rows.Key(t.cursor) != t.key) {
		if at, ok := t.find(t.key); ok {
			t.cursor = at
		} else {
			t.gone, t.cursor = t.key, min(t.cursor, n-1)
		}
	}
	if t.moved {
		t.offset = t.cursor - line
	}
	t.settle()
}

func (t *Table) find(key string) (int, bool) {
	for i := range t.len() {
		if t.rows.Key(i) == key {
			return i, true
		}
	}
	return 0, false
}

func (t *Table) len() int {
	if t.rows == nil {
		return 0
	}
	return t.rows.Len()
}

// settle keeps cursor and offset inside the data and remembers the row.
func (t *Table) settle() {
	n := t.len()
	t.cursor = max(0, min(t.cursor, n-1))
	if t.height > 0 {
		t.offset = max(t.offset, t.cursor-t.height+1)
		t.offset = max(0, min(t.offset, n-t.height))
	}
	t.offset = max(0, min(t.offset, t.cursor))
	if n > 0 {
		t.key = t.rows.Key(t.cursor)
	}
}

// SetColumns replaces the columns, which the rows give cells for from then on. Those
// that were turned off stay so by their place while there are as many.
func (t *Table) SetColumns(columns []Column) {
	if len(columns) != len(t.columns) {
		t.ResetColumns()
	}
	t.columns = columns
}

// Focus says whether the keys go to this table. One that has not the focus shows its
// cursor as a dot only.
func (t *Table) Focus(on bool) { t.blurred = !on }

// Move moves the cursor by n rows.
func (t *Table) Move(n int) {
	t.cursor += n
	t.gone, t.sought, t.moved = "", "", true
	t.settle()
}

// Top moves the cursor to the first row.
func (t *Table) Top() {
	t.Move(-t.cursor)
	t.moved = false
}

// Bottom moves the cursor to the last row.
func (t *Table) Bottom() { t.Move(t.len() - 1 - t.cursor) }

// Page moves the cursor by half pages.
func (t *Table) Page(n int) { t.Move(n * max(1, t.height/2)) }

// Cursor is the row under the cursor, or -1 when there is none.
func (t *Table) Cursor() int {
	if t.len() == 0 {
		return -1
	}
	return t.cursor
}

// Offset is the first visible row.
func (t *Table) Offset() int { return t.offset }

// AtTop reports whether the cursor is on the first row.
func (t *Table) AtTop() bool { return t.cursor == 0 }

// Gone is the key of the row that was under the cursor and has left, or empty.
func (t *Table) Gone() string { return t.gone }

// Select puts the cursor on a visible line, counted from the first row below
// the header, and reports whether there is a row on it.
func (t *Table) Select(line int) bool {
	if below := line - (t.cursor - t.offset); below > 0 {
		line -= min(below, t.unfolded)
	}
	row := t.offset + line
	if line < 0 || line >= t.height || row >= t.len() {
		return false
	}
	t.Move(row - t.cursor)
	return true
}

// Lines draws the table w cells wide and h lines high, the header included.
func (t *Table) Lines(w, h int, th *theme.Theme) []string {
	if h <= 0 {
		return nil
	}
	lead := 1 // of every line: the cursor, and the marks while there are any
	if len(t.marks.order) > 0 {
		lead = 3
	}
	widths := t.layout(w - lead)
	below := t.below(widths, w, h, th)
	t.height, t.unfolded = h-1-len(below), len(below)
	t.settle()
	out := make([]string, 0, h)
	watches := slices.ContainsFunc(t.columns, func(c Column) bool { return c.Watch })
	out = append(out, Blank(lead)+th.Paint(theme.Dim, t.header(widths)))
	for row := t.offset; row < t.len() && len(out) < h; row++ {
		t.cells = t.rows.Cells(row, t.cells[:0])
		key := ""
		if watches {
			key = t.rows.Key(row)
		}
		out = append(out, t.line(widths, row, key, th))
		if watches {
			t.changes.note(key, t.columns, t.cells)
		}
		if row == t.cursor {
			out = append(out, below...)
		}
	}
	return out[:min(len(out), h)]
}

func (t *Table) header(widths []int) string {
	var b strings.Builder
	for i, c := range t.columns {
		if widths[i] < 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(align(c, c.Title, widths[i]))
	}
	return b.String()
}

// line draws a row; its key is wanted where columns are watched only.
func (t *Table) line(widths []int, row int, key string, th *theme.Theme) string {
	var b strings.Builder
	cursor, pointer := row == t.cursor, " "
	if cursor && t.blurred {
		cursor, pointer = false, th.Glyphs.Dot
	}
	if cursor {
		pointer = th.Glyphs.Cursor
		b.WriteString(th.Start(theme.Cursor))
	}
	b.WriteString(pointer)
	if len(t.marks.order) > 0 {
		b.WriteString(t.mark(row, cursor, th))
	}
	first, watched := true, 0
	for i, c := range t.columns {
		changed := false
		if c.Watch && i < len(t.cells) {
			changed = t.changes.changed(key, watched, t.cells[i].Text)
			watched++
		}
		if widths[i] < 0 || i >= len(t.cells) {
			continue
		}
		if !first {
			b.WriteByte(' ')
		}
		first = false
		text := align(c, cleanCell(t.cells[i].Text), widths[i])
		if changed {
			text = underlined(text, th)
		}
		if cursor {
			b.WriteString(text)
		} else {
			b.WriteString(th.Paint(t.cells[i].Role, text))
		}
	}
	if cursor {
		b.WriteString(th.Stop(theme.Cursor))
	}
	return b.String()
}

// mark is the sign of a marked row, in a column of its own.
func (t *Table) mark(row int, cursor bool, th *theme.Theme) string {
	switch {
	case !t.marks.has(t.rows.Key(row)):
		return "  "
	case cursor:
		return th.Glyphs.Done + " "
	default:
		return th.Paint(theme.Accent, th.Glyphs.Done) + " "
	}
}

// maxCell bounds what is looked at of a cell's text, so that a megabyte in one
// row costs no more than a word.
const maxCell = 2048

func cleanCell(text string) string {
	if len(text) > maxCell {
		text = text[:maxCell]
	}
	return Clean(text)
}

func align(c Column, text string, w int) string {
	if c.Middle {
		text = CutMiddle(text, w)
	}
	if c.Right {
		return Right(text, w)
	}
	return Left(text, w)
}
