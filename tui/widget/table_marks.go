package widget

import (
	"slices"
	"strings"
)

// Named is implemented by rows that people call otherwise than by their key, so
// that a marked row can be named after it has left.
type Named interface {
	Name(row int) string
}

// marks are the rows that were chosen, by key: they stay chosen wherever their
// rows go, and when these leave.
type marks struct {
	// names are what the marked rows are called, by their keys.
	names map[string]string
	// order lists the keys as they were marked.
	order []string
	// anchor is the key of the row marked last, from which a range begins.
	anchor string
	// unseen are the keys of rows that were marked before they were among the rows.
	unseen map[string]bool
	// lost are the names of marked rows that have left the rows.
	lost []string
}

func (m *marks) has(key string) bool {
	_, marked := m.names[key]
	return marked
}

func (m *marks) add(key, name string) {
	if m.has(key) {
		return
	}
	if m.names == nil {
		m.names = map[string]string{}
	}
	m.names[key] = name
	m.order = append(m.order, key)
}

func (m *marks) remove(keys ...string) {
	for _, key := range keys {
		delete(m.names, key)
	}
	m.order = slices.DeleteFunc(m.order, func(key string) bool { return !m.has(key) })
}

// name is what people call a row.
func (t *Table) name(row int) string {
	if named, ok := t.rows.(Named); ok {
		return named.Name(row)
	}
	return t.rows.Key(row)
}

// Mark marks the row under the cursor, or takes its mark away, and moves down.
func (t *Table) Mark() {
	if t.len() == 0 {
		return
	}
	if key := t.rows.Key(t.cursor); t.marks.has(key) {
		t.marks.remove(key)
	} else {
		t.marks.add(key, t.name(t.cursor))
		t.marks.anchor = key
	}
	t.Move(1)
}

// MarkRange marks the rows from the one that was marked last to the one under the
// cursor. Without such a row it marks the one under the cursor.
func (t *Table) MarkRange() {
	if t.len() == 0 {
		return
	}
	from, ok := t.find(t.marks.anchor)
	if !ok {
		from = t.cursor
	}
	for row := min(from, t.cursor); row <= max(from, t.cursor); row++ {
		t.marks.add(t.rows.Key(row), t.name(row))
	}
	t.marks.anchor = t.rows.Key(t.cursor)
}

// MarkAll marks every row there is now. Rows that come later are not marked.
func (t *Table) MarkAll() {
	for row := range t.len() {
		t.marks.add(t.rows.Key(row), t.name(row))
	}
}

// MarkKeys marks rows by their keys, whether they are among the rows now or not.
func (t *Table) MarkKeys(keys []string) {
	for _, key := range keys {
		t.marks.add(key, key)
	}
	t.missing()
}

// MarkAhead marks rows by their keys of which most have not come yet. These are not
// missed before they have been there.
func (t *Table) MarkAhead(keys []string) {
	if t.marks.unseen == nil {
		t.marks.unseen = map[string]bool{}
	}
	for _, key := range keys {
		if !t.marks.has(key) {
			t.marks.unseen[key] = true
		}
	}
	t.MarkKeys(keys)
}

// Unmark takes all marks away.
func (t *Table) Unmark() { t.marks = marks{} }

// UnmarkKeys takes the marks of some rows away.
func (t *Table) UnmarkKeys(keys []string) {
	t.marks.remove(keys...)
	t.missing()
}

// Marked lists the keys of the marked rows: in the order of the list those that
// are in it, then the others in the order in which they were marked.
func (t *Table) Marked() []string {
	if len(t.marks.order) == 0 {
		return nil
	}
	keys := make([]string, 0, len(t.marks.order))
	listed := make(map[string]bool, len(t.marks.order))
	for row := 0; row < t.len() && len(keys) < len(t.marks.order); row++ {
		if key := t.rows.Key(row); t.marks.has(key) && !listed[key] {
			keys, listed[key] = append(keys, key), true
		}
	}
	for _, key := range t.marks.order {
		if !listed[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// MarkName is what the row of a mark is, or was, called.
func (t *Table) MarkName(key string) string { return t.marks.names[key] }

// Marks is how many rows are marked.
func (t *Table) Marks() int { return len(t.marks.order) }

// missing finds the marked rows that are not among the rows.
func (t *Table) missing() {
	t.marks.lost = nil
	if len(t.marks.order) == 0 {
		return
	}
	here := make(map[string]bool, len(t.marks.order))
	for row := range t.len() {
		if key := t.rows.Key(row); t.marks.has(key) {
			here[key] = true
			delete(t.marks.unseen, key)
		}
	}
	for _, key := range t.marks.order {
		if !here[key] && !t.marks.unseen[key] {
			t.marks.lost = append(t.marks.lost, t.marks.names[key])
		}
	}
}

// maxLost bounds how many marked rows that have left are named.
const maxLost = 3

// MarkNote says how many rows are marked, and which of them are not in the list
// now; empty while none is.
func (t *Table) MarkNote(space string) string {
	if len(t.marks.order) == 0 {
		return ""
	}
	note := Number(int64(len(t.marks.order)), space) + " marked"
	lost := t.marks.lost
	if len(lost) == 0 {
		return note
	}
	note += ", " + Number(int64(len(lost)), space) + " of them not in the list now: " +
		Clean(strings.Join(lost[:min(len(lost), maxLost)], ", "))
	if len(lost) > maxLost {
		note += " …"
	}
	return note
}
