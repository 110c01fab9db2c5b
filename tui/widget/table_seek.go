package widget

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

// seek goes to the row that was sought, if it has come.
func (t *Table) seek() {
	if at, ok := t.find(t.sought); ok {
		t.cursor, t.key, t.moved = at, t.sought, true
	}
	t.sought = ""
}
