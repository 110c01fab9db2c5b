package widget

import (
	"slices"
	"strings"

	"github.com/attune-go/attune/tui/theme"
)

// Column describes one column of a table.
type Column struct {
	Title string
	// Width is the minimal width of the column.
	Width int
	// Grow gives the remaining width to this column. One column grows.
	Grow bool
	// Share is the percentage of the remaining width that this column takes from the growing one.
	Share int
	// Right aligns the cells to the right.
	Right bool
	// Priority decides which columns a narrow table drops: highest numbers first, zero never.
	Priority int
	// Watch underlines a cell that the last poll has changed. Ages are not watched: they change by themselves.
	Watch bool
	// Middle cuts long cells in the middle instead of at their end.
	Middle bool
}

// Cell is the text of one cell. Drawing cleans it.
type Cell struct {
	Text string
	Role theme.Role
}

// Rows is the data of a table. The table reads only visible rows.
type Rows interface {
	// Len is the number of rows.
	Len() int
	// Key identifies a row across changes of the data.
	Key(row int) string
	// Cells appends the cells of a row, one for each column of the table.
	Cells(row int, into []Cell) []Cell
}

// Table is a list with a cursor that follows the key of its row. It reads only visible rows, so that a million rows
// cost no more than forty.
type Table struct {
	columns []Column
	rows    Rows
	cursor  int
	offset  int
	key     string
	// gone is the key of the row under the cursor after it has left the data.
	gone string
	// moved is true once the operator has moved the cursor from the top.
	moved bool
	// atTop keeps an unmoved cursor on the first row after every SetRows, anew after the next one.
	atTop, anew bool
	height      int
	marks       marks
	// hidden marks the columns that are off; nil means none.
	hidden []bool
	// scroll is the number of columns scrolled past.
	scroll int
	widths []int
	cells  []Cell
	// sought is the key of a row that SetRows moves the cursor to.
	sought string
	// blurred is true while another part of the view has the focus.
	blurred bool
	// wrap unfolds the row under the cursor; unfolded is the number of lines that takes.
	wrap     bool
	unfolded int
	changes  changes
}

// NewTable makes an empty table.
func NewTable(columns []Column) *Table { return &Table{columns: columns} }

// NewFeed makes an empty table with the newest rows first: until the operator moves the cursor, it stays on the first
// row.
func NewFeed(columns []Column) *Table { return &Table{columns: columns, atTop: true} }

// Anew tells the table that the next rows have another filter or order: an unmoved cursor goes to the first row.
func (t *Table) Anew(on bool) { t.anew = on }

// SetRows replaces the data. The cursor follows the key of its row; once it was moved, that row also keeps its line
// on the screen. If the row is gone, the cursor keeps its place and Gone returns the key.
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
		if at, ok := t.find(t.sought); ok {
			t.cursor, t.key, t.moved = at, t.sought, true
		}
		t.sought = ""
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

// settle keeps cursor and offset in bounds and remembers the key of the row.
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

// SetColumns replaces the columns. Hidden columns stay hidden by index if the number is the same.
func (t *Table) SetColumns(columns []Column) {
	if len(columns) != len(t.columns) {
		t.ResetColumns()
	}
	t.columns = columns
}

// Focus tells the table whether it has the focus. Without it the cursor is a dim mark instead of a reversed line.
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

// Gone is the key of a row that left the data while the cursor was on it, or empty.
func (t *Table) Gone() string { return t.gone }

// Select moves the cursor to a visible line, counted from the first row below the header. It reports whether a row is
// there.
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

// SetSize fits the table into w by h cells, the header included, and scrolls to the cursor. The dashboard calls it
// after every change, so that drawing changes nothing.
func (t *Table) SetSize(w, h int) {
	if h <= 0 {
		return
	}
	t.fit(w, h)
	if t.watches() {
		for row := t.offset; row < min(t.len(), t.offset+t.height); row++ {
			t.cells = t.rows.Cells(row, t.cells[:0])
			t.changes.note(t.rows.Key(row), t.columns, t.cells)
		}
	}
}

func (t *Table) fit(w, h int) []unfoldedLine {
	t.layout(w - t.lead())
	below := t.below(w, h)
	t.height, t.unfolded = h-1-len(below), len(below)
	t.settle()
	return below
}

// lead is the width before the columns: the cursor, and the marks if there are any.
func (t *Table) lead() int {
	if len(t.marks.order) > 0 {
		return 3
	}
	return 1
}

func (t *Table) watches() bool {
	return slices.ContainsFunc(t.columns, func(c Column) bool { return c.Watch })
}

// Lines draws the table w cells wide and h lines high, the header included. It changes nothing, also if
// SetSize was called with another size.
func (t *Table) Lines(w, h int, th *theme.Theme) []string {
	if h <= 0 {
		return nil
	}
	shown := *t
	shown.widths, shown.cells = nil, nil // the copy shares no memory that drawing writes to
	below := shown.fit(w, h)
	return shown.draw(below, w, h, th)
}

func (t *Table) draw(below []unfoldedLine, w, h int, th *theme.Theme) []string {
	out, watches := make([]string, 0, h), t.watches()
	out = append(out, Blank(t.lead())+th.Paint(theme.Dim, t.header(t.widths)))
	for row := t.offset; row < t.len() && len(out) < h; row++ {
		t.cells = t.rows.Cells(row, t.cells[:0])
		key := ""
		if watches {
			key = t.rows.Key(row)
		}
		out = append(out, t.line(w, row, key, th))
		if row == t.cursor {
			for _, l := range below {
				out = append(out, Cut(Blank(wrapIndent)+th.Paint(theme.Dim, l.label)+th.Paint(l.role, l.text), w))
			}
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

// line draws a row; key is needed only if a column is watched. The cursor covers all w cells.
func (t *Table) line(w, row int, key string, th *theme.Theme) string {
	var b strings.Builder
	widths, cursor, pointer := t.widths, row == t.cursor, " "
	if cursor && t.blurred {
		cursor, pointer = false, th.Paint(theme.Dim, th.Glyphs.Rest)
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
		b.WriteString(Blank(w-Width(b.String())) + th.Stop(theme.Cursor))
	}
	return b.String()
}

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

// maxCell bounds the part of a cell's text that is cleaned.
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

// Key is the key of the row under the cursor; empty when there is none.
func (t *Table) Key() string {
	if t.len() == 0 {
		return ""
	}
	return t.rows.Key(t.cursor)
}

// Seek moves the cursor to the row with the key, now or with the next rows.
func (t *Table) Seek(key string) {
	t.gone, t.sought = "", ""
	if at, ok := t.find(key); ok {
		t.cursor, t.moved = at, true
		t.settle()
		return
	}
	t.sought = key
}

// Find moves the cursor to the next row that contains a text, wrapping around, and counts these rows. Step 1 searches
// after the cursor, -1 before it, 0 from the cursor on.
func (t *Table) Find(text string, step int) int {
	text = strings.ToLower(strings.TrimSpace(text))
	var rows []int
	for row := range t.len() {
		t.cells = t.rows.Cells(row, t.cells[:0])
		if text != "" && slices.ContainsFunc(t.cells,
			func(c Cell) bool { return strings.Contains(strings.ToLower(cleanCell(c.Text)), text) }) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return 0
	}
	to := rows[0] // wrapping around
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

const wrapIndent = 4

// ToggleWrap unfolds the row under the cursor: lines below it show what its cells have no room for.
func (t *Table) ToggleWrap() { t.wrap = !t.wrap }

type unfoldedLine struct {
	// label is blank on continuation lines.
	label, text string
	role        theme.Role
}

// below unfolds the row under the cursor: cells that are cut, and columns that are hidden. At least half of the rows
// stay visible.
func (t *Table) below(w, h int) []unfoldedLine {
	if !t.wrap || t.len() == 0 || h < 4 {
		return nil
	}
	var lines []unfoldedLine
	for i, cell := range t.rows.Cells(max(0, min(t.cursor, t.len()-1)), nil) {
		text := cleanCell(cell.Text)
		if i >= len(t.columns) || t.columns[i].Title == "" || t.isHidden(i) || text == "" ||
			Width(text) <= t.widths[i] {
			continue
		}
		label := t.columns[i].Title + "  "
		for _, part := range Wrap(text, max(8, w-wrapIndent-Width(label)-1)) {
			lines = append(lines, unfoldedLine{label: label, text: part, role: cell.Role})
			label = Blank(Width(label))
		}
	}
	if most := (h - 1) / 2; len(lines) > most {
		lines = append(slices.Clip(lines[:most-1]), unfoldedLine{text: "… enter shows all of it", role: theme.Dim})
	}
	return lines
}
