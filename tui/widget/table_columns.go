package widget

import "slices"

// Choosable is a column in the column chooser.
type Choosable struct {
	// Column is its index in the table.
	Column int
	Title  string
	// On is true if the operator wants it, Fits if the width has room for it.
	On, Fits bool
	// Fixed is true for the column that names the row; it stays on.
	Fixed bool
}

// Choosables lists the columns that have a title. The first of them names the row.
func (t *Table) Choosables() []Choosable {
	var list []Choosable
	for i, c := range t.columns {
		if c.Title != "" {
			list = append(list, Choosable{
				Column: i, Title: c.Title, On: !t.isHidden(i), Fixed: len(list) == 0, Fits: i < len(t.widths) &&
					t.widths[i] >= 0,
			})
		}
	}
	return list
}

// ToggleColumn turns a column on or off. The column that names the row stays on.
func (t *Table) ToggleColumn(column int) {
	for _, c := range t.Choosables() {
		if c.Column == column && !c.Fixed {
			if t.hidden == nil {
				t.hidden = make([]bool, len(t.columns))
			}
			t.hidden[column] = !t.hidden[column]
		}
	}
}

// Shows reports whether the column with this title is visible.
func (t *Table) Shows(title string) bool {
	return slices.ContainsFunc(t.Choosables(), func(c Choosable) bool { return c.Title == title && c.On && c.Fits })
}

// ResetColumns turns every column on.
func (t *Table) ResetColumns() { t.hidden, t.scroll = nil, 0 }

// HiddenColumns lists the titles of the columns that are off.
func (t *Table) HiddenColumns() []string {
	var titles []string
	for i, c := range t.columns {
		if t.isHidden(i) {
			titles = append(titles, c.Title)
		}
	}
	return titles
}

// HideColumns turns off the columns with these titles, and all others on. It ignores unknown titles and the column
// that names the row.
func (t *Table) HideColumns(titles []string) {
	t.ResetColumns()
	for _, c := range t.Choosables() {
		if slices.Contains(titles, c.Title) {
			t.ToggleColumn(c.Column)
		}
	}
}

func (t *Table) isHidden(column int) bool { return t.hidden != nil && t.hidden[column] }

// ScrollColumns scrolls the columns by n. The columns on the left that name the row stay.
func (t *Table) ScrollColumns(n int) { t.scroll = max(0, t.scroll+n) }

// ScrollNote counts the hidden columns on both sides after scrolling.
func (t *Table) ScrollNote(space string) string {
	if t.scroll == 0 || len(t.widths) < len(t.columns) {
		return ""
	}
	right := 0
	for i := len(t.columns) - 1; i >= 0 && t.widths[i] < 0; i-- {
		if !t.isHidden(i) {
			right++
		}
	}
	return "columns: " + Number(int64(t.scroll), space) + " out of sight on the left, " + Number(int64(right), space) +
		" on the right"
}

// layout sets the width of every column; -1 means hidden.
func (t *Table) layout(w int) {
	t.widths = t.widths[:0]
	for i, c := range t.columns {
		width := c.Width
		if t.isHidden(i) {
			width = -1
		}
		t.widths = append(t.widths, width)
	}
	total := t.total()
	if total <= w {
		t.scroll = 0
	}
	if t.scroll > 0 {
		t.scrolled(w)
	}
	if t.scroll == 0 {
		t.dropLeastWanted(w)
	}
	t.spread(w - t.total())
}

// spread distributes the remaining width. Missing width is taken from the growing column.
func (t *Table) spread(left int) {
	rest := left
	for i, c := range t.columns {
		if share := left * c.Share / 100; share > 0 && t.widths[i] >= 0 {
			t.widths[i] += share
			rest -= share
		}
	}
	for i, c := range t.columns {
		if c.Grow && t.widths[i] >= 0 {
			t.widths[i] = max(4, t.widths[i]+rest)
			return
		}
	}
}

// total is the width of the visible columns with the spaces between them.
func (t *Table) total() int {
	total := -1
	for _, width := range t.widths {
		if width >= 0 {
			total += width + 1
		}
	}
	return total
}

func (t *Table) dropLeastWanted(w int) {
	for total := t.total(); total > w; total = t.total() {
		drop := -1
		for i, c := range t.columns {
			if t.widths[i] >= 0 && c.Priority > 0 && (drop < 0 || c.Priority >= t.columns[drop].Priority) {
				drop = i
			}
		}
		if drop < 0 {
			return
		}
		t.widths[drop] = -1
	}
}

// scrolled keeps the columns on the left that name the row, hides the next t.scroll ones, and shows the
// columns that fit after them. It does not scroll further than needed.
func (t *Table) scrolled(w int) {
	first, used := t.named(w)
	room := w - used
	fits := func(from int) int { // the first column that does not fit
		left := room
		at := from
		for ; at < len(t.widths); at++ {
			if t.widths[at] >= 0 {
				if left -= t.widths[at] + 1; left < 0 {
					break
				}
			}
		}
		return at
	}
	t.scroll = min(t.scroll, max(0, t.drawn(first)-1))
	from := t.after(first, t.scroll)
	for t.scroll > 0 && fits(t.after(first, t.scroll-1)) == len(t.widths) {
		t.scroll--
		from = t.after(first, t.scroll)
	}
	if t.scroll == 0 {
		return
	}
	end := max(fits(from), min(from+1, len(t.widths)))
	for i := first; i < len(t.widths); i++ {
		if i < from || i >= end {
			t.widths[i] = -1
		}
	}
}

// named returns the first column after the ones that name the row, and their width. They take at most three fifths of
// the room, so that something can scroll.
func (t *Table) named(w int) (first, used int) {
	for i, c := range t.columns {
		if t.widths[i] < 0 {
			continue
		}
		if next := used + t.widths[i] + 1; used > 2 && next > w*3/5 {
			return i, used
		}
		used += t.widths[i] + 1
		if c.Grow {
			return i + 1, used
		}
	}
	return len(t.columns), used
}

// drawn counts the visible columns from an index on.
func (t *Table) drawn(from int) int {
	n := 0
	for _, width := range t.widths[from:] {
		if width >= 0 {
			n++
		}
	}
	return n
}

// after is the index n visible columns further.
func (t *Table) after(column, n int) int {
	for ; column < len(t.widths) && (n > 0 || t.widths[column] < 0); column++ {
		if t.widths[column] >= 0 {
			n--
		}
	}
	return min(column, len(t.widths)-1)
}
