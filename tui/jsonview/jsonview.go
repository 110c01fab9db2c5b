package jsonview

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/tui/keymap"
)

// View shows one document. Its zero value shows nothing; New makes one.
type View struct {
	doc *document
	// shown are the lines in sight when nothing is scrolled: those that no fold and
	// no mask hides.
	shown  []int32
	folded map[int32]bool
	// cursor and top are positions among the shown lines; sub is the row within a
	// line that is wrapped.
	cursor, top spot
	wrap        bool
	revealed    bool
	// height and width are those of the last drawing.
	height, width int
	rows          map[int32][][]segment
	search        search
}

// spot is a row on the screen: a shown line, and the row within it.
type spot struct{ line, sub int }

// New makes a view without a document.
func New() *View { return &View{doc: &document{}, folded: map[int32]bool{}} }

// Set puts a document in. The same one leaves everything as it is; one that has
// changed keeps folds, cursor and search, by the names of what they are at.
func (v *View) Set(text string) {
	if text == v.doc.text {
		return
	}
	folds, at := v.paths()
	v.doc = scan(text)
	v.folded = map[int32]bool{}
	target := int32(-1)
	if len(folds) > 0 || at != "" {
		target = v.restore(folds, at)
	}
	v.arrange()
	if target >= 0 {
		v.show(target)
	}
	v.find()
}

// Reset forgets folds, cursor, search, and that secrets were revealed: what comes
// next is another document.
func (v *View) Reset() {
	wrap := v.wrap
	*v = *New()
	v.wrap = wrap
}

// maxKept bounds the documents whose folds are kept when they change: finding them
// again names every line.
const maxKept = 20_000

// paths names the folded brackets and the line under the cursor.
func (v *View) paths() (folds map[string]bool, at string) {
	if len(v.doc.lines) == 0 || len(v.doc.lines) > maxKept || v.doc.plain {
		return nil, ""
	}
	folds = map[string]bool{}
	for i := range v.folded {
		folds[v.doc.path(i)] = true
	}
	if v.cursor.line > 0 {
		at = v.doc.path(v.shown[v.cursor.line])
	}
	return folds, at
}

// restore folds what has the names, and finds the line that the cursor was on; -1
// where it is gone.
func (v *View) restore(folds map[string]bool, at string) int32 {
	target := int32(-1)
	if len(v.doc.lines) > maxKept {
		return target
	}
	for i := range v.doc.lines {
		l := &v.doc.lines[i]
		if l.is(closes) {
			continue
		}
		path := v.doc.path(int32(i))
		if l.is(opens) && folds[path] {
			v.folded[int32(i)] = true
		}
		if path == at {
			target = int32(i)
		}
	}
	return target
}

// path names a line, as /headers/0/name.
func (d *document) path(i int32) string {
	l := &d.lines[i]
	if l.is(closes) {
		return d.path(l.pair)
	}
	if l.parent < 0 {
		return ""
	}
	name := strconv.Itoa(int(l.index))
	if l.key != l.keyEnd {
		name = strings.Trim(unescape(d.text[l.key:l.keyEnd]), `"`)
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	}
	return d.path(l.parent) + "/" + name
}

// arrange lists anew which lines are in sight.
func (v *View) arrange() {
	v.shown, v.rows = v.shown[:0], nil
	for i := 0; i < len(v.doc.lines); i++ {
		v.shown = append(v.shown, int32(i))
		if v.closed(int32(i)) {
			i = v.doc.last(i)
		}
	}
	v.settle()
}

// closed reports whether a line stands for all that is in its brackets.
func (v *View) closed(i int32) bool {
	l := &v.doc.lines[i]
	return l.is(opens) && (v.folded[i] || v.masked(i))
}

// masked reports whether the value of a line is kept out of sight.
func (v *View) masked(i int32) bool { return !v.revealed && v.doc.lines[i].is(secret) }

// settle keeps cursor and top inside.
func (v *View) settle() {
	if v.cursor.line >= len(v.shown) {
		v.cursor = spot{line: max(0, len(v.shown)-1)}
	}
	v.cursor.sub = max(0, min(v.cursor.sub, v.rowsOf(v.cursor.line)-1))
	if v.top.line >= len(v.shown) || v.before(v.cursor, v.top) {
		v.top = v.cursor
	}
	v.top.sub = max(0, min(v.top.sub, v.rowsOf(v.top.line)-1))
	if v.height > 0 {
		if first := v.step(v.cursor, 1-v.height); v.before(v.top, first) {
			v.top = first
		}
		if last := v.step(spot{max(0, len(v.shown)-1), 1 << 30}, 1-v.height); v.before(last, v.top) {
			v.top = last
		}
	}
}

func (*View) before(a, b spot) bool { return a.line < b.line || a.line == b.line && a.sub < b.sub }

// step goes n rows from a spot, up or down, and stays inside.
func (v *View) step(at spot, n int) spot {
	if len(v.shown) == 0 {
		return spot{}
	}
	at.sub = min(at.sub, v.rowsOf(at.line)-1)
	for ; n > 0; n-- {
		switch {
		case at.sub+1 < v.rowsOf(at.line):
			at.sub++
		case at.line+1 < len(v.shown):
			at = spot{line: at.line + 1}
		default:
			return at
		}
	}
	for ; n < 0; n++ {
		switch {
		case at.sub > 0:
			at.sub--
		case at.line > 0:
			at = spot{at.line - 1, v.rowsOf(at.line-1) - 1}
		default:
			return at
		}
	}
	return at
}

// Do carries out an action and reports whether it was one for a document.
func (v *View) Do(action keymap.Action) bool {
	switch action {
	case keymap.RowDown:
		v.move(1)
	case keymap.RowUp:
		v.move(-1)
	case keymap.HalfDown:
		v.move(max(1, v.height/2))
	case keymap.HalfUp:
		v.move(-max(1, v.height/2))
	case keymap.Top:
		v.cursor = spot{}
		v.settle()
	case keymap.Bottom:
		v.cursor = spot{max(0, len(v.shown)-1), 1 << 30}
		v.settle()
	case keymap.Left:
		v.fold()
	case keymap.Right:
		v.unfold()
	case keymap.FoldAll:
		v.foldAll()
	case keymap.Wrap:
		v.wrap = !v.wrap
		v.rows, v.cursor.sub, v.top.sub = nil, 0, 0
		v.settle()
	case keymap.NextMatch:
		v.jump(1)
	case keymap.PrevMatch:
		v.jump(-1)
	case keymap.Reveal:
		v.reveal()
	default:
		return false
	}
	return true
}

func (v *View) move(n int) {
	v.cursor = v.step(v.cursor, n)
	v.settle()
}

// Select puts the cursor on a row of the screen and reports whether one is there.
func (v *View) Select(row int) bool {
	at := v.step(v.top, row)
	if row < 0 || row >= v.height || len(v.shown) == 0 || row > 0 && v.step(v.top, row-1) == at {
		return false
	}
	v.cursor = at
	return true
}

// fold closes the bracket under the cursor, or goes to the one around it.
func (v *View) fold() {
	if len(v.shown) == 0 {
		return
	}
	i := v.shown[v.cursor.line]
	l := &v.doc.lines[i]
	if l.is(closes) {
		i, l = l.pair, &v.doc.lines[l.pair]
	}
	switch {
	case l.is(opens) && !v.closed(i):
		v.folded[i] = true
		v.arrange()
		v.show(i)
	case l.parent >= 0:
		v.show(l.parent)
	}
}

// unfold opens the bracket under the cursor.
func (v *View) unfold() {
	if len(v.shown) == 0 {
		return
	}
	if i := v.shown[v.cursor.line]; v.folded[i] {
		delete(v.folded, i)
		v.arrange()
	}
}

// foldAll opens everything, or closes all brackets but the outermost where none is
// closed.
func (v *View) foldAll() {
	if len(v.shown) == 0 {
		return
	}
	at := v.shown[v.cursor.line]
	if len(v.folded) > 0 {
		v.folded = map[int32]bool{}
	} else {
		for i := range v.doc.lines {
			if l := &v.doc.lines[i]; l.is(opens) && l.depth > 0 {
				v.folded[int32(i)] = true
			}
		}
		for parent := v.doc.lines[at].parent; parent >= 0; parent = v.doc.lines[parent].parent {
			if v.folded[parent] {
				at = parent
			}
		}
	}
	v.arrange()
	v.show(at)
}

// reveal shows the secrets, or hides them again.
func (v *View) reveal() {
	if len(v.shown) == 0 {
		return
	}
	at := v.shown[v.cursor.line]
	v.revealed = !v.revealed
	if !v.revealed { // the cursor may be in what is masked from now on
		for parent := v.doc.lines[at].parent; parent >= 0; parent = v.doc.lines[parent].parent {
			if v.masked(parent) {
				at = parent
			}
		}
	}
	v.arrange()
	v.show(at)
	v.find()
}

// Hide masks the secrets again.
func (v *View) Hide() {
	if v.revealed {
		v.reveal()
	}
}

// show opens what hides a line, and puts the cursor on it.
func (v *View) show(i int32) {
	open := false
	for parent := v.doc.lines[i].parent; parent >= 0; parent = v.doc.lines[parent].parent {
		if v.folded[parent] {
			delete(v.folded, parent)
			open = true
		}
	}
	if open {
		v.arrange()
	}
	if at, ok := v.position(i); ok {
		v.cursor = spot{line: at}
	}
	v.settle()
}
