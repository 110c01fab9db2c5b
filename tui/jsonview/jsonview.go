// Package jsonview shows a document that can be folded and searched, with masked secrets.
//
// Parsing finds the lines of a text once: one for every member, element and closing bracket. Values stay as written,
// so that numbers keep all digits. Only visible lines are cleaned and coloured.
//
// A truncated text is shown as far as it goes, and a text that is no JSON as it is.
//
// Secrets are values of keys that name a secret, values that the platform has redacted, and passwords in addresses.
// They are not drawn, found or copied until they are revealed. Leaving the document masks them again.
package jsonview

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/attune-go/attune/tui/keymap"
)

// View shows a document. New makes one.
type View struct {
	doc    *document
	folded map[int32]bool
	// rows are the rows that no fold and no mask hides. cursor and top are indexes; top is the first visible row.
	rows        []row
	cursor, top int
	wrap        bool
	revealed    bool
	// blurred is true while another part of the view has the focus.
	blurred bool
	// height and width are the size of the text without line numbers and signs.
	height, width int
	// query is searched for; matches are its lines. more is true if there are more than maxMatches.
	query   string
	matches []int32
	more    bool
}

// row is a line on the screen, or one part of a wrapped line.
type row struct{ line, part int32 }

const (
	// maxKept is the largest document that keeps its folds when it changes: that computes the path of every line.
	maxKept = 20_000
	// maxMatches bounds the matches of a search.
	maxMatches = 10_000
)

// New makes an empty view.
func New() *View { return &View{doc: &document{}, folded: map[int32]bool{}} }

// Focus tells the document whether it has the focus. Without it the cursor is a dim mark.
func (v *View) Focus(on bool) { v.blurred = !on }

// Set shows a document. A changed one keeps folds, cursor and search by their paths.
func (v *View) Set(text string) { v.set(text, parse) }

// SetText shows a text as it is, even if it is JSON.
func (v *View) SetText(text string) { v.set(text, parseText) }

func (v *View) set(text string, parse func(string) *document) {
	if text == v.doc.text {
		return
	}
	var folds []string
	at, where := "", map[string]int32{}
	if n := len(v.doc.lines); n > 0 && n <= maxKept && !v.doc.plain {
		if v.cursor > 0 {
			at = v.doc.path(v.current())
		}
		for i := range v.folded {
			folds = append(folds, v.doc.path(i))
		}
	}
	v.doc, v.folded = parse(text), map[int32]bool{}
	if len(v.doc.lines) <= maxKept && (at != "" || len(folds) > 0) {
		for i := range int32(len(v.doc.lines)) {
			if !v.doc.lines[i].is(closes) {
				where[v.doc.path(i)] = i
			}
		}
	}
	for _, path := range folds {
		if i, ok := where[path]; ok && v.doc.lines[i].is(opens) {
			v.folded[i] = true
		}
	}
	v.arrange()
	if i, ok := where[at]; ok && at != "" {
		v.show(i)
	}
	v.find()
}

// Reset drops folds, cursor and search, and masks secrets, for another document.
func (v *View) Reset() {
	wrap, blurred := v.wrap, v.blurred
	*v = *New()
	v.wrap, v.blurred = wrap, blurred
}

// arrange computes the rows.
func (v *View) arrange() {
	v.rows = make([]row, 0, len(v.rows)) // a copy of the view must not write here
	for i := int32(0); int(i) < len(v.doc.lines); i++ {
		parts := 1
		if v.wrap && v.width > 0 {
			parts = len(v.wrapped(i))
		}
		for part := range int32(parts) {
			v.rows = append(v.rows, row{i, part})
		}
		if v.doc.lines[i].is(opens) && (v.folded[i] || v.masked(i)) {
			i = v.doc.last(i)
		}
	}
	v.settle()
}

// rearrange computes the rows after a change of the width, and keeps cursor and top on their lines.
func (v *View) rearrange() {
	cursor, top := v.row(v.cursor), v.row(v.top)
	v.arrange()
	v.cursor, v.top = v.position(cursor), v.position(top)
	v.settle()
}

// row is the row at a position.
func (v *View) row(at int) row {
	if at < len(v.rows) {
		return v.rows[at]
	}
	return row{}
}

// current is the line under the cursor.
func (v *View) current() int32 { return v.row(v.cursor).line }

// position is the position of a row, or of the last row of its line.
func (v *View) position(r row) int {
	at, _ := slices.BinarySearchFunc(v.rows, r, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.part, b.part))
	})
	if v.row(at).line != r.line || at == len(v.rows) {
		at--
	}
	return max(0, at)
}

// masked reports whether the value of a line is masked.
func (v *View) masked(i int32) bool { return !v.revealed && v.doc.lines[i].is(secret) }

// outermost is the outermost enclosing bracket with a property, or the line itself.
func (v *View) outermost(i int32, is func(int32) bool) int32 {
	for parent := v.doc.lines[i].parent; parent >= 0; parent = v.doc.lines[parent].parent {
		if is(parent) {
			i = parent
		}
	}
	return i
}

// settle keeps cursor and top in bounds.
func (v *View) settle() {
	v.cursor = max(0, min(v.cursor, len(v.rows)-1))
	v.top = min(v.top, v.cursor)
	if v.height > 0 {
		v.top = min(max(v.top, v.cursor-v.height+1), max(0, len(v.rows)-v.height))
	}
}

// Do carries out an action. It reports whether the action applies to a document.
func (v *View) Do(action keymap.Action) bool {
	half := max(1, v.height/2)
	moves := map[keymap.Action]int{
		keymap.RowDown: 1, keymap.RowUp: -1, keymap.HalfDown: half, keymap.HalfUp: -half,
		keymap.Top: -len(v.rows), keymap.Bottom: len(v.rows),
	}
	n, moved := moves[action]
	v.cursor += n
	switch action {
	case keymap.Left, keymap.Right, keymap.FoldAll, keymap.Reveal:
		if len(v.rows) > 0 {
			v.fold(action, v.current())
		}
	case keymap.Wrap:
		v.wrap = !v.wrap
		v.cursor, v.top = v.cursor-int(v.row(v.cursor).part), v.top-int(v.row(v.top).part)
		v.rearrange()
	case keymap.NextMatch, keymap.PrevMatch: // wrapping around
		at, exact := slices.BinarySearch(v.matches, v.current())
		if action == keymap.PrevMatch {
			at--
		} else if exact {
			at++
		}
		if n := len(v.matches); n > 0 {
			v.show(v.matches[(at+n)%n])
		}
	default:
		if !moved {
			return false
		}
	}
	v.settle()
	return true
}

// fold changes folds and masks at a line.
func (v *View) fold(action keymap.Action, at int32) {
	switch action {
	case keymap.Left: // fold the bracket, or go to the enclosing one
		if v.doc.lines[at].is(closes) {
			at = v.doc.lines[at].pair
		}
		if l := &v.doc.lines[at]; l.is(opens) && !v.folded[at] && !v.masked(at) {
			v.folded[at] = true
		} else if at = l.parent; at < 0 {
			return
		}
	case keymap.Right:
		if !v.folded[at] {
			return
		}
		delete(v.folded, at)
	case keymap.FoldAll: // unfold all, or fold all but the outermost if nothing is folded
		if len(v.folded) > 0 {
			v.folded = map[int32]bool{}
			break
		}
		for i := range int32(len(v.doc.lines)) {
			if l := &v.doc.lines[i]; l.is(opens) && l.depth > 0 {
				v.folded[i] = true
			}
		}
		at = v.outermost(at, func(i int32) bool { return v.folded[i] })
	case keymap.Reveal:
		v.revealed = !v.revealed
		at = v.outermost(at, v.masked) // the cursor may be inside a masked value
		defer v.find()
	default:
	}
	v.arrange()
	v.show(at)
}

// Hide masks the secrets again.
func (v *View) Hide() {
	if v.revealed {
		v.Do(keymap.Reveal)
	}
}

// show unfolds the brackets around a line and moves the cursor there.
func (v *View) show(i int32) {
	folds := len(v.folded)
	for parent := v.doc.lines[i].parent; parent >= 0; parent = v.doc.lines[parent].parent {
		delete(v.folded, parent)
	}
	if len(v.folded) < folds {
		v.arrange()
	}
	if at := v.position(row{line: i}); v.row(at).line == i {
		v.cursor = at
	}
	v.settle()
}

// Search moves to the next line that contains a text, ignoring case, also in folded parts. It returns the number of
// lines. An empty text ends the search.
func (v *View) Search(text string) int {
	v.query = lower(strings.TrimSpace(text))
	v.find()
	if len(v.matches) > 0 {
		next, _ := slices.BinarySearch(v.matches, v.current())
		v.show(v.matches[next%len(v.matches)])
	}
	return len(v.matches)
}

// Query is the searched text.
func (v *View) Query() string { return v.query }

// find searches again. Masked values do not match.
func (v *View) find() {
	v.matches, v.more = nil, false
	if v.query == "" {
		return
	}
	low := lower(v.doc.text)
	for i := int32(0); int(i) < len(v.doc.lines); i++ {
		l := &v.doc.lines[i]
		text := low[l.key:l.valEnd]
		switch {
		case v.masked(i):
			text = low[l.key:l.val]
		case v.revealed || !strings.Contains(text, v.query):
		case v.doc.plain:
			text = lower(v.plainText(i))
		default:
			text = maskAddresses(text)
		}
		if found := strings.Contains(text, v.query); found && len(v.matches) == maxMatches {
			v.more = true
			return
		} else if found {
			v.matches = append(v.matches, i)
		}
		if v.masked(i) {
			i = v.doc.last(i)
		}
	}
}

// lower converts A to Z only, so that offsets stay.
func lower(text string) string {
	out := []byte(text)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// Value is the path and the text of the value under the cursor; a string is decoded. It is false if there is none.
func (v *View) Value() (path, text string, ok bool) {
	if len(v.rows) == 0 {
		return "", "", false
	}
	i := v.current()
	if v.doc.lines[i].is(closes) {
		i = v.doc.lines[i].pair
	}
	path = v.doc.path(i)
	switch {
	case v.doc.plain:
		return "", v.plainText(i), true
	case v.masked(i), v.masked(v.outermost(i, v.masked)):
		return path, Masked, true
	}
	text = v.doc.text[v.doc.lines[i].val:v.doc.end(i)]
	if !v.revealed {
		text = Redact(text)
	}
	var said string
	if json.Unmarshal([]byte(text), &said) == nil {
		text = said
	}
	return path, text, true
}
