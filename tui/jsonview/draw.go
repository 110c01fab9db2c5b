package jsonview

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// segment is a piece of a line in one colour.
type segment struct {
	text string
	role theme.Role
}

const (
	// numberedWidth is from how many cells on lines have numbers.
	numberedWidth = 72
	// maxWrapped bounds how much of one value is wrapped; the rest is only copied.
	maxWrapped = 64 << 10
)

// Lines draws the document w cells wide and at most h lines high. The line under
// the cursor has a mark.
func (v *View) Lines(w, h int, th *theme.Theme) []string {
	if h <= 0 || w <= 0 {
		return nil
	}
	gutter := v.gutter(w)
	if room := max(1, w-gutter); room != v.width || h != v.height {
		v.width, v.height, v.rows = room, h, nil
		v.settle()
	}
	out := make([]string, 0, h)
	for at := v.top; at.line < len(v.shown) && len(out) < h; {
		out = append(out, v.row(at, gutter, th))
		next := v.step(at, 1)
		if next == at {
			break
		}
		at = next
	}
	return out
}

// gutter is the room before a line: the mark, the number, the sign of a fold.
func (v *View) gutter(w int) int {
	if w < numberedWidth {
		return 4
	}
	return 4 + len(strconv.Itoa(len(v.doc.lines)))
}

func (v *View) row(at spot, gutter int, th *theme.Theme) string {
	i := v.shown[at.line]
	current := at == v.cursor
	mark := " "
	if current {
		mark = th.Glyphs.Cursor
	}
	number := ""
	if gutter > 4 && at.sub == 0 {
		number = strconv.Itoa(int(i) + 1)
	}
	sign := " "
	if l := &v.doc.lines[i]; at.sub == 0 && l.is(opens) && !v.masked(i) {
		sign = "▾"
		if v.folded[i] {
			sign = "▸"
		}
	}
	head := mark + widget.Right(number, gutter-4) + " " + sign + " "
	if current {
		return th.Start(theme.Cursor) + head + v.painted(at, nil) + th.Stop(theme.Cursor)
	}
	return th.Paint(theme.Dim, head) + v.painted(at, th)
}

// painted is the text of a row, without colours where there is no theme.
func (v *View) painted(at spot, th *theme.Theme) string {
	var segments []segment
	i := v.shown[at.line]
	if v.wrap {
		if rows := v.wrapped(i); at.sub < len(rows) {
			segments = rows[at.sub]
		}
	} else {
		segments = v.segments(i, v.width)
	}
	var b strings.Builder
	room := v.width
	for _, s := range segments {
		text := widget.Cut(s.text, room)
		room -= widget.Width(text)
		if th == nil {
			b.WriteString(text)
		} else {
			b.WriteString(v.highlight(text, s.role, th))
		}
		if room <= 0 || len(text) < len(s.text) {
			break
		}
	}
	return b.String()
}

// highlight paints a text and, reversed, what is looked for.
func (v *View) highlight(text string, role theme.Role, th *theme.Theme) string {
	if v.search.text == "" || text == "" {
		return th.Paint(role, text)
	}
	low, out := lower(text), ""
	for {
		at := strings.Index(low, v.search.text)
		if at < 0 {
			return out + th.Paint(role, text)
		}
		end := at + len(v.search.text)
		out += th.Paint(role, text[:at]) + th.Paint(theme.Cursor, text[at:end])
		text, low = text[end:], low[end:]
	}
}

// rowsOf is how many rows a shown line takes.
func (v *View) rowsOf(shown int) int {
	if !v.wrap || shown >= len(v.shown) || v.width <= 0 {
		return 1
	}
	return len(v.wrapped(v.shown[shown]))
}

// wrapped breaks a line into rows. What was broken is kept while it is near.
func (v *View) wrapped(i int32) [][]segment {
	if rows, ok := v.rows[i]; ok {
		return rows
	}
	if v.rows == nil || len(v.rows) > 512 {
		v.rows = map[int32][][]segment{}
	}
	segments := v.segments(i, maxWrapped)
	indent := 0
	if len(segments) > 0 {
		indent = min(len(segments[0].text)-len(strings.TrimLeft(segments[0].text, " "))+2, v.width/2)
	}
	rows := wrapSegments(segments, v.width, indent)
	v.rows[i] = rows
	return rows
}

// wrapSegments breaks segments into rows of at most w cells, all but the first
// moved in.
func wrapSegments(segments []segment, w, indent int) [][]segment {
	var whole strings.Builder
	for _, s := range segments {
		whole.WriteString(s.text)
	}
	text := whole.String()
	if widget.Width(text) <= w {
		return [][]segment{segments}
	}
	first := ansi.Truncate(text, w, "")
	pieces := append([]string{first}, strings.Split(ansi.Hardwrap(text[len(first):], max(1, w-indent), true), "\n")...)
	rows := make([][]segment, len(pieces))
	at, used := 0, 0
	for n, piece := range pieces {
		if n > 0 && indent > 0 {
			rows[n] = append(rows[n], segment{text: widget.Blank(indent)})
		}
		for rest := len(piece); rest > 0 && at < len(segments); {
			take := min(rest, len(segments[at].text)-used)
			if take > 0 {
				rows[n] = append(rows[n], segment{segments[at].text[used : used+take], segments[at].role})
			}
			used, rest = used+take, rest-take
			if used == len(segments[at].text) {
				at, used = at+1, 0
			}
		}
	}
	return rows
}

// segments are the pieces of a line, of which no more than limit cells matter.
func (v *View) segments(i int32, limit int) []segment {
	d, l := v.doc, &v.doc.lines[i]
	if d.plain {
		return []segment{{v.limited(v.plainText(i), limit), theme.Plain}}
	}
	out := []segment{{text: widget.Blank(2 * int(min(l.depth, 40)))}}
	if l.key != l.keyEnd {
		out = append(out, segment{d.readable(l.key, l.keyEnd, limit), theme.Accent}, segment{": ", theme.Dim})
	}
	end := ""
	if d.lines[d.last(int(i))].is(comma) {
		end = ","
	}
	switch {
	case v.masked(i):
		return append(out, segment{maskedText, theme.Dim}, segment{end, theme.Dim})
	case l.is(empty), v.folded[i]:
		return append(out, segment{v.brackets(i), theme.Dim}, segment{end, theme.Dim})
	case l.is(opens):
		return append(out, segment{d.text[l.val:l.valEnd], theme.Dim})
	case l.is(closes):
		return append(out, segment{d.text[l.val:l.valEnd] + end, theme.Dim})
	}
	text := d.readable(l.val, l.valEnd, limit)
	if !v.revealed {
		text = maskAddresses(text)
	}
	if l.is(long) {
		end = "…"
	}
	return append(out, segment{text, theme.Plain}, segment{end, theme.Dim})
}

// plainText is a line of a text that is no JSON.
func (v *View) plainText(i int32) string {
	l := &v.doc.lines[i]
	text := strings.ReplaceAll(strings.TrimSuffix(v.doc.text[l.val:l.valEnd], "\r"), "\t", "    ")
	if v.revealed {
		return text
	}
	return maskAddresses(widget.MaskLine(text))
}

func (*View) limited(text string, limit int) string {
	if len(text) > 4*limit {
		text = text[:4*limit] + "…"
	}
	return widget.Clean(text)
}

// brackets is a pair of brackets on one line, with how much is between.
func (v *View) brackets(i int32) string {
	l := &v.doc.lines[i]
	open := v.doc.text[l.val : l.val+1]
	shut := string(v.doc.text[l.val] + 2)
	if l.is(empty) {
		return open + shut
	}
	word := "items"
	if open == "{" {
		word = "keys"
	}
	if l.count == 1 {
		word = word[:len(word)-1]
	}
	return open + " … " + strconv.Itoa(int(l.count)) + " " + word + " " + shut
}

// readable is a key or a value as it is shown: clean, with letters instead of their
// numbers, and no longer than what can be seen of it.
func (d *document) readable(from, to int32, limit int) string {
	text, more := d.text[from:to], ""
	if len(text) > 4*limit {
		end := 4 * limit
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text, more = text[:end], "…"
	}
	return widget.Clean(unescape(text)) + more
}

// unescape writes letters for \u and their numbers where these can be shown.
func unescape(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		r, size := letter(text[i:])
		if size == 0 {
			b.WriteString(text[i : i+2])
			i++
			continue
		}
		b.WriteRune(r)
		i += size - 1
	}
	return b.String()
}

// letter reads a \u with its number, or two that make one letter. The size is zero
// where it has to stay as it is written.
func letter(text string) (r rune, size int) {
	r, ok := number(text)
	if !ok {
		return 0, 0
	}
	size = 6
	if utf16.IsSurrogate(r) {
		low, ok := number(text[6:])
		if r = utf16.DecodeRune(r, low); !ok || r == unicode.ReplacementChar {
			return 0, 0
		}
		size = 12
	}
	if r == '"' || r == '\\' || !unicode.IsPrint(r) {
		return 0, 0
	}
	return r, size
}

func number(text string) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
}

// Status says in a few words what the drawing does not show: how long the document
// is, how many lines have what is looked for, and what is unusual about it.
func (v *View) Status() string {
	n := len(v.doc.lines)
	if n == 0 {
		return ""
	}
	var parts []string
	if v.revealed {
		parts = append(parts, "secrets shown")
	}
	if v.doc.plain {
		parts = append(parts, "no JSON")
	}
	if v.doc.cut {
		parts = append(parts, "cut off here")
	}
	if v.search.text != "" {
		parts = append(parts, v.matches())
	}
	if n == 1 {
		return strings.Join(append(parts, "1 line"), " · ")
	}
	parts = append(parts, strconv.Itoa(n)+" lines")
	return strings.Join(parts, " · ")
}

func (v *View) matches() string {
	if len(v.search.lines) == 0 {
		return "no match"
	}
	of := strconv.Itoa(len(v.search.lines))
	if v.search.more {
		of += "+"
	}
	if len(v.shown) > 0 {
		for n, i := range v.search.lines {
			if i == v.shown[v.cursor.line] {
				return "match " + strconv.Itoa(n+1) + "/" + of
			}
		}
	}
	if of == "1" {
		return "1 match"
	}
	return of + " matches"
}

// Text is the document as it may leave the dashboard: with its secrets masked,
// unless they are revealed.
func (v *View) Text() string {
	if v.revealed {
		return v.doc.text
	}
	return Redact(v.doc.text)
}

// Value is what is under the cursor: its path, as /headers/0, and its text, of a
// string what it says. It is false where there is nothing.
func (v *View) Value() (path, text string, ok bool) {
	if len(v.shown) == 0 {
		return "", "", false
	}
	i := v.shown[v.cursor.line]
	if v.doc.lines[i].is(closes) {
		i = v.doc.lines[i].pair
	}
	if v.doc.plain {
		return "", v.plainText(i), true
	}
	l := &v.doc.lines[i]
	if v.hidden(i) {
		return v.doc.path(i), widget.Masked, true
	}
	text = v.doc.text[l.val:v.doc.end(int(i))]
	if !v.revealed {
		text = Redact(text)
	}
	var said string
	if json.Unmarshal([]byte(text), &said) == nil {
		text = said
	}
	return v.doc.path(i), text, true
}

// hidden reports whether a line or what is around it is masked.
func (v *View) hidden(i int32) bool {
	for ; i >= 0; i = v.doc.lines[i].parent {
		if v.masked(i) {
			return true
		}
	}
	return false
}
