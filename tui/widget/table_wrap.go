package widget

import (
	"slices"

	"github.com/attune-go/attune/tui/theme"
)

// wrapIndent is how far what is unfolded of a row stands to the right.
const wrapIndent = 4

// ToggleWrap shows what the cells of the row under the cursor have no room for, in
// lines below it, or hides it again.
func (t *Table) ToggleWrap() { t.wrap = !t.wrap }

// below are the lines under the row under the cursor: each cell that was cut, and each
// that has no column on the screen, whole. They leave room for half of the rows.
func (t *Table) below(widths []int, w, h int, th *theme.Theme) []string {
	if !t.wrap || t.len() == 0 || h < 4 {
		return nil
	}
	var lines []string
	for i, cell := range t.rows.Cells(max(0, min(t.cursor, t.len()-1)), nil) {
		text := cleanCell(cell.Text)
		if i >= len(t.columns) || t.columns[i].Title == "" || t.isHidden(i) || text == "" || Width(text) <= widths[i] {
			continue
		}
		label := t.columns[i].Title + "  "
		for n, part := range Wrap(text, max(8, w-wrapIndent-Width(label)-1)) {
			head := Blank(Width(label))
			if n == 0 {
				head = th.Paint(theme.Dim, label)
			}
			lines = append(lines, Cut(Blank(wrapIndent)+head+th.Paint(cell.Role, part), w))
		}
	}
	if most := (h - 1) / 2; len(lines) > most {
		lines = append(slices.Clip(lines[:most-1]), Blank(wrapIndent)+th.Paint(theme.Dim, "… enter shows all of it"))
	}
	return lines
}
