package screen

import (
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/widget"
)

// RowSearch is a search through the rows of a table, for views that are not filtered
// because they show one thing. A screen embeds it.
type RowSearch struct{ query string }

// Query is the text that is looked for.
func (s *RowSearch) Query() string { return s.query }

// SearchIn goes to the first row from the cursor on that has the text, and counts them.
func (s *RowSearch) SearchIn(t *widget.Table, text string) int {
	s.query = text
	if t == nil {
		return 0
	}
	return t.Find(text, 0)
}

// Again goes to the next row that has the text, or to the one before. It reports
// whether the action was one of these.
func (s *RowSearch) Again(t *widget.Table, action keymap.Action) bool {
	step := map[keymap.Action]int{keymap.NextMatch: 1, keymap.PrevMatch: -1}[action]
	if step == 0 || t == nil {
		return step != 0
	}
	t.Find(s.query, step)
	return true
}
