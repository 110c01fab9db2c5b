package jsonview

import (
	"slices"
	"sort"
	"strings"
)

// maxMatches bounds how many places of a search are kept.
const maxMatches = 10_000

// search is a text that is looked for, and where it is.
type search struct {
	text string
	// lines are the lines with it, in their order.
	lines []int32
	// more is true when there are more than are kept.
	more bool
}

// Search looks for a text, in whatever case it is written, folds or not, and goes
// to the first place at or behind the cursor. An empty text ends the search. It
// returns how many lines have it.
func (v *View) Search(text string) int {
	v.search.text = lower(strings.TrimSpace(text))
	v.find()
	if len(v.search.lines) > 0 && len(v.shown) > 0 {
		at := v.shown[v.cursor.line]
		next, _ := slices.BinarySearch(v.search.lines, at)
		v.show(v.search.lines[next%len(v.search.lines)])
	}
	return len(v.search.lines)
}

// Query is the text that is looked for.
func (v *View) Query() string { return v.search.text }

// find looks for the text anew. What is masked is not found.
func (v *View) find() {
	v.search.lines, v.search.more = nil, false
	if v.search.text == "" {
		return
	}
	d, low := v.doc, lower(v.doc.text)
	for from := 0; from < len(low); {
		at := strings.Index(low[from:], v.search.text)
		if at < 0 {
			return
		}
		from += at + len(v.search.text)
		i, ok := d.at(from - len(v.search.text))
		if !ok || v.hides(i, from-len(v.search.text)) {
			continue
		}
		if n := len(v.search.lines); n > 0 && v.search.lines[n-1] == i {
			continue
		}
		if len(v.search.lines) == maxMatches {
			v.search.more = true
			return
		}
		v.search.lines = append(v.search.lines, i)
	}
}

// at is the line that a position of the text belongs to.
func (d *document) at(position int) (int32, bool) {
	n := sort.Search(len(d.lines), func(i int) bool { return int(d.lines[i].key) > position }) - 1
	if n < 0 || position >= int(d.lines[n].valEnd) {
		return 0, false
	}
	return int32(n), true
}

// hides reports whether a position of the text is not shown: in a masked value, or
// in one around it.
func (v *View) hides(i int32, position int) bool {
	if v.revealed {
		return false
	}
	l := &v.doc.lines[i]
	if v.doc.plain || hasAddress(v.doc.text[l.val:l.valEnd]) {
		text := lower(v.plainText(i))
		return !strings.Contains(text, v.search.text)
	}
	if l.is(secret) && position >= int(l.val) {
		return true
	}
	for parent := l.parent; parent >= 0; parent = v.doc.lines[parent].parent {
		if v.doc.lines[parent].is(secret) {
			return true
		}
	}
	return false
}

// jump goes to the next or the previous place, and around the end.
func (v *View) jump(n int) {
	list := v.search.lines
	if len(list) == 0 || len(v.shown) == 0 {
		return
	}
	at, exact := slices.BinarySearch(list, v.shown[v.cursor.line])
	switch {
	case n < 0:
		at--
	case exact:
		at++
	}
	v.show(list[(at+len(list))%len(list)])
}

// position is where among the shown lines a line is.
func (v *View) position(i int32) (int, bool) { return slices.BinarySearch(v.shown, i) }

// lower writes the letters A to Z small and leaves every byte in its place.
func lower(text string) string {
	out := []byte(text)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}
