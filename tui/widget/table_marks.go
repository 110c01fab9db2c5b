package widget

import (
	"slices"
	"strings"
)

// Named is implemented by rows whose name differs from their key. A mark keeps the name after its row has left.
type Named interface {
	Name(row int) string
}

// marks are the marked rows by key. A mark stays when its row moves or leaves.
type marks struct {
	names map[string]string
	// order lists the keys in the order of marking.
	order []string
	// anchor is the key of the last marked row, where a range begins.
	anchor string
	// unseen are marked keys that have not been among the rows yet.
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

// MarkRange marks the rows between the last marked one and the cursor, or else the row under the cursor.
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

// MarkAll marks all present rows.
func (t *Table) MarkAll() {
	for row := range t.len() {
		t.marks.add(t.rows.Key(row), t.name(row))
	}
}

// MarkKeys marks rows by their keys, also absent ones.
func (t *Table) MarkKeys(keys []string) {
	for _, key := range keys {
		t.marks.add(key, key)
	}
	t.missing()
}

// MarkAhead marks rows by their keys before they are loaded. They do not count as lost until they have been there.
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

// Unmark removes all marks.
func (t *Table) Unmark() { t.marks = marks{} }

// UnmarkKeys removes the marks of some rows.
func (t *Table) UnmarkKeys(keys []string) {
	t.marks.remove(keys...)
	t.missing()
}

// Marked lists the marked keys: present rows first in the order of the list, then absent ones in the order of
// marking.
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

// MarkName is the name of a marked row, also after it has left.
func (t *Table) MarkName(key string) string { return t.marks.names[key] }

// Marks is the number of marked rows.
func (t *Table) Marks() int { return len(t.marks.order) }

// missing updates the lost marks.
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

const maxLost = 3

// MarkNote counts the marked rows and names absent ones; empty without marks.
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
