package deadletters

import "github.com/attune-go/attune/tui/act"

// Acts is what may be done with the dead letter under the cursor.
func (v *DeadLetters) Acts() (act.Menu, bool) {
	at := v.table.Cursor()
	if at < 0 || at >= len(v.rows) {
		return act.Menu{}, false
	}
	return act.ForLetter(&v.rows[at]), true
}
