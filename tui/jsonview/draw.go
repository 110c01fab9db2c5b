package jsonview

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// segment is a part of a line with one role.
type segment struct {
	text string
	role theme.Role
}

// numberedWidth is the least width with line numbers.
const numberedWidth = 72

// Text is a whole document on clean lines, with masked secrets and sorted keys.
func Text(text string) []string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) == nil {
		if sorted, err := json.Marshal(value); err == nil {
			text = string(sorted)
		}
	}
	v := New()
	v.Set(text)
	lines := make([]string, len(v.rows))
	for n, r := range v.rows {
		for _, s := range v.segments(r.line) {
			lines[n] += s.text
		}
	}
	return lines
}

// Lines draws the document w cells wide and at most h lines high. The line under the cursor has a mark. Drawing
// changes nothing.
func (v *View) Lines(w, h int, th *theme.Theme) []string {
	if h <= 0 || w <= 0 {
		return nil
	}
	shown := *v
	shown.SetSize(w, h)
	return shown.draw(w, h, th)
}

// SetSize fits the document into w by h cells. The dashboard calls it after every change, so that drawing
// changes nothing.
func (v *View) SetSize(w, h int) {
	if h <= 0 || w <= 0 {
		return
	}
	v.height = h
	if room := max(1, w-4-v.digits(w)); room != v.width { // after the cursor, the number, and the fold sign
		v.width = room
		if v.wrap {
			v.rearrange()
		}
	}
	v.settle()
}

// digits is the width of the line numbers in w cells.
func (v *View) digits(w int) int {
	if w < numberedWidth {
		return 0
	}
	return len(strconv.Itoa(len(v.doc.lines)))
}

func (v *View) draw(w, h int, th *theme.Theme) []string {
	out, digits := make([]string, 0, h), v.digits(w)
	var parts [][]segment // the segments of the rows of a line
	for at := v.top; at < min(v.top+h, len(v.rows)); at++ {
		r := v.rows[at]
		number, sign := "", " "
		if r.part == 0 && digits > 0 {
			number = strconv.Itoa(int(r.line) + 1)
		}
		if r.part == 0 && v.doc.lines[r.line].is(opens) && !v.masked(r.line) {
			sign = "▾"
			if v.folded[r.line] {
				sign = "▸"
			}
		}
		if r.part == 0 || parts == nil {
			parts = v.wrapped(r.line)
		}
		segments := parts[r.part]
		head := widget.Right(number, digits) + " " + sign + " "
		switch {
		case at == v.cursor && !v.blurred:
			out = append(out, th.Paint(theme.Cursor, widget.Left(th.Glyphs.Cursor+head+v.painted(segments, nil), w)))
		case at == v.cursor:
			out = append(out, th.Paint(theme.Dim, th.Glyphs.Rest+head)+v.painted(segments, th))
		default:
			out = append(out, th.Paint(theme.Dim, " "+head)+v.painted(segments, th))
		}
	}
	return out
}

// painted is the text of a row; without a theme it has no colours.
func (v *View) painted(segments []segment, th *theme.Theme) string {
	var b strings.Builder
	room := v.width
	for _, s := range segments {
		text := widget.Cut(s.text, room)
		room -= widget.Width(text)
		if th == nil {
			b.WriteString(text)
		} else {
			rest := text
			for low := lower(rest); v.query != "" && strings.Contains(low, v.query); low = lower(rest) {
				at := strings.Index(low, v.query)
				end := at + len(v.query)
				b.WriteString(th.Paint(s.role, rest[:at]) + th.Paint(theme.Cursor, rest[at:end])) // reversed
				rest = rest[end:]
			}
			b.WriteString(th.Paint(s.role, rest))
		}
		if room <= 0 || len(text) < len(s.text) {
			break
		}
	}
	return b.String()
}

// wrapped breaks a line into rows. All but the first are indented.
func (v *View) wrapped(i int32) [][]segment {
	segments, whole := v.segments(i), ""
	for _, s := range segments {
		whole += s.text
	}
	if !v.wrap || widget.Width(whole) <= v.width {
		return [][]segment{segments}
	}
	indent := min(len(segments[0].text)-len(strings.TrimLeft(segments[0].text, " "))+2, v.width/2)
	first := ansi.Truncate(whole, v.width, "")
	rest := ansi.Hardwrap(whole[len(first):], max(1, v.width-indent), true)
	var parts [][]segment
	for _, piece := range append([]string{first}, strings.Split(rest, "\n")...) {
		var part []segment
		if len(parts) > 0 && indent > 0 {
			part = append(part, segment{text: widget.Blank(indent)})
		}
		for left := len(piece); left > 0 && len(segments) > 0; {
			s := &segments[0]
			take := min(left, len(s.text))
			part = append(part, segment{s.text[:take], s.role})
			left -= take
			if s.text = s.text[take:]; s.text == "" {
				segments = segments[1:]
			}
		}
		parts = append(parts, part)
	}
	return parts
}

func (v *View) segments(i int32) []segment {
	d, l := v.doc, &v.doc.lines[i]
	if d.plain {
		return []segment{{widget.Clean(v.plainText(i)), theme.Plain}}
	}
	out := []segment{{text: widget.Blank(2 * int(min(l.depth, 40)))}}
	if l.key != l.keyEnd {
		out = append(out, segment{readable(d.text[l.key:l.keyEnd]), theme.Accent}, segment{": ", theme.Dim})
	}
	value, role, end := d.text[l.val:l.valEnd], theme.Dim, ""
	if d.lines[d.last(i)].is(comma) {
		end = ","
	}
	switch {
	case v.masked(i):
		value = maskedText
	case l.is(empty):
		value = value[:1] + value[len(value)-1:]
	case v.folded[i]:
		count := phrase.Plural(int(l.count), "item", "items")
		if value == "{" {
			count = phrase.Plural(int(l.count), "key", "keys")
		}
		value += " … " + count + " " + string(value[0]+2) // } is two after {, and ] after [
	case l.is(opens):
		end = ""
	case l.is(closes):
		value, end = value+end, ""
	default:
		if l.is(long) {
			end = "…"
		}
		role = theme.Plain
		if value = readable(value); !v.revealed {
			value = maskAddresses(value)
		}
	}
	return append(out, segment{value, role}, segment{end, theme.Dim})
}

// plainText is a line of a text that is no JSON.
func (v *View) plainText(i int32) string {
	l := &v.doc.lines[i]
	text := strings.ReplaceAll(strings.TrimSuffix(v.doc.text[l.val:l.valEnd], "\r"), "\t", "    ")
	if v.revealed {
		return text
	}
	return maskLine(text)
}

// readable cleans a key or value and decodes its \u escapes.
func readable(text string) string { return unescape(widget.Clean(text)) }

// escape matches an escape: a surrogate pair, \u, or another one.
var escape = regexp.MustCompile(`\\u[dD][89abAB][[:xdigit:]]{2}\\u[dD][c-fC-F][[:xdigit:]]{2}|\\u[[:xdigit:]]{4}|\\.`)

// unescape decodes \u escapes of printable characters.
func unescape(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	return escape.ReplaceAllStringFunc(text, func(written string) string {
		var said string
		err := json.Unmarshal([]byte(`"`+written+`"`), &said)
		r, _ := utf8.DecodeRuneInString(said)
		if err != nil || written[1] != 'u' || r == '"' || r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return written
		}
		return said
	})
}

// Status describes what is not visible: the length, the matches of the search, and anything unusual.
func (v *View) Status() string {
	var parts []string
	if v.revealed {
		parts = append(parts, "secrets shown")
	}
	if v.doc.plain && !v.doc.meant {
		parts = append(parts, "no JSON")
	}
	if v.doc.cut {
		parts = append(parts, "cut off here")
	}
	if v.query != "" {
		of := strconv.Itoa(len(v.matches))
		if v.more {
			of += "+"
		}
		switch n, at := slices.BinarySearch(v.matches, v.current()); {
		case at:
			parts = append(parts, "match "+strconv.Itoa(n+1)+"/"+of)
		case of == "0":
			parts = append(parts, "no match")
		case of == "1":
			parts = append(parts, "1 match")
		default:
			parts = append(parts, of+" matches")
		}
	}
	if len(v.doc.lines) == 0 {
		return ""
	}
	return strings.Join(append(parts, phrase.Plural(len(v.doc.lines), "line", "lines")), " · ")
}
