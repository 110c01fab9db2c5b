package jsonview

import (
	"encoding/json"
	"strings"
)

// What a line is besides a plain value.
const (
	opens  uint8 = 1 << iota // a bracket with something in it
	closes                   // the bracket that ends it
	empty                    // {} or []
	comma                    // another one follows
	secret                   // its value is masked
	long                     // its value goes on behind what was read of it
)

// line is one line of a document: where in the text it is, never a copy of it.
type line struct {
	key, keyEnd int32 // with its quotes; equal where there is none
	val, valEnd int32 // the value, or the bracket
	pair        int32 // of a bracket the other end, otherwise the line itself
	parent      int32 // the bracket around it, -1 at the top
	index       int32 // which one it is in there
	count       int32 // of a bracket how many are in it
	depth       uint16
	flags       uint8
}

func (l *line) is(flag uint8) bool { return l.flags&flag != 0 }

// document is what was found in a text.
type document struct {
	text  string
	lines []line
	// plain is true for a text that is no JSON, cut for one that ends too early.
	plain, cut bool
}

// maxText bounds what is gone through: positions are 32 bits wide.
const maxText = 1 << 30

// scan finds the lines of a text.
func scan(text string) *document {
	if len(text) > maxText {
		text = text[:maxText]
	}
	s := &scanner{text: text, open: -1, names: map[string]bool{}, lines: make([]line, 0, min(len(text)/24, 1<<16))}
	if s.document() {
		return &document{text: text, lines: s.lines, cut: s.cut}
	}
	return scanPlain(text)
}

// scanPlain makes a line of each line of the text.
func scanPlain(text string) *document {
	d := &document{text: text, plain: true}
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text) - at
		}
		n := int32(len(d.lines))
		d.lines = append(d.lines, line{val: int32(at), valEnd: int32(at + end), key: int32(at), keyEnd: int32(at), pair: n, parent: -1, index: n})
		at += end + 1
	}
	return d
}

// scanner goes through a text once.
type scanner struct {
	text  string
	at    int
	lines []line
	// open is the innermost bracket that is not closed yet.
	open int32
	cut  bool
	// names remembers of the keys, which come again and again, whether they name a
	// secret.
	names map[string]bool
}

// document reads the text. It reports false if that is no JSON.
func (s *scanner) document() bool {
	if !s.more() {
		return false
	}
	first := s.text[s.at]
	for {
		if !s.value() {
			return false
		}
		if s.cut || s.open < 0 {
			break
		}
	}
	if s.cut {
		return first == '{' || first == '['
	}
	return !s.more()
}

// more skips blanks and reports whether anything follows.
func (s *scanner) more() bool {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return true
		}
	}
	return false
}

// value reads one value with what stands before it, and the brackets that close
// behind it. It reports false where there is none.
func (s *scanner) value() bool {
	l := line{parent: s.open, pair: int32(len(s.lines))}
	if s.open >= 0 {
		l.depth = s.lines[s.open].depth + 1
		l.index = s.lines[s.open].count
		if s.text[s.lines[s.open].val] == '{' && !s.member(&l) {
			return s.cut
		}
	}
	if !s.more() {
		s.cut = true
		return true
	}
	if l.keyEnd == 0 {
		l.key, l.keyEnd = int32(s.at), int32(s.at)
	}
	l.val = int32(s.at)
	switch c := s.text[s.at]; c {
	case '{', '[':
		return s.bracket(l)
	case '"':
		s.quoted()
	default:
		if !s.word() {
			return false
		}
	}
	l.valEnd = int32(s.at)
	if s.cut {
		l.flags |= long
	}
	s.add(l)
	return s.cut || s.after()
}

// member reads the key of a member and its colon.
func (s *scanner) member(l *line) bool {
	if !s.more() {
		s.cut = true
		return false
	}
	if s.text[s.at] != '"' {
		return false
	}
	l.key = int32(s.at)
	s.quoted()
	l.keyEnd = int32(s.at)
	if s.cut || !s.more() {
		s.cut = true
		return false
	}
	if s.text[s.at] != ':' {
		return false
	}
	s.at++
	return true
}

// bracket reads an opening bracket, and the closing one if nothing is between.
func (s *scanner) bracket(l line) bool {
	s.at++
	l.valEnd = int32(s.at)
	if s.more() && s.text[s.at] == s.text[l.val]+2 {
		s.at++
		l.flags |= empty
		s.add(l)
		return s.after()
	}
	l.flags |= opens
	s.add(l)
	if l.depth == 1<<16-1 {
		return false
	}
	s.open = int32(len(s.lines) - 1)
	return true
}

// after reads what follows a value: a comma, the end, or brackets that close.
func (s *scanner) after() bool {
	for s.open >= 0 {
		if !s.more() {
			s.cut = true
			return true
		}
		open := &s.lines[s.open]
		switch c := s.text[s.at]; c {
		case ',':
			s.at++
			s.last().flags |= comma
			return true
		case s.text[open.val] + 2: // } stands two after {, and ] two after [
			s.at++
			end := line{
				key: int32(s.at - 1), keyEnd: int32(s.at - 1), val: int32(s.at - 1), valEnd: int32(s.at),
				pair: s.open, parent: open.parent, index: open.index, depth: open.depth, flags: closes,
			}
			open.pair = int32(len(s.lines))
			s.open = open.parent
			s.lines = append(s.lines, end)
		default:
			return false
		}
	}
	return true
}

// last is the line that a comma belongs to.
func (s *scanner) last() *line { return &s.lines[len(s.lines)-1] }

// add takes a line in, and masks it, or what is around it, if it has to be.
func (s *scanner) add(l line) {
	if l.key != l.keyEnd {
		key := s.text[l.key:l.keyEnd]
		null := s.text[l.val:l.valEnd] == "null"
		if !null && s.namesSecret(key) {
			l.flags |= secret
		}
		if (key == `"$attune_secret"` || key == `"redacted"`) && s.text[l.val:l.valEnd] == "true" && s.open >= 0 {
			s.lines[s.open].flags |= secret
		}
	}
	if s.open >= 0 {
		s.lines[s.open].count++
	}
	s.lines = append(s.lines, l)
}

func (s *scanner) namesSecret(key string) bool {
	known, ok := s.names[key]
	if !ok {
		known = namesSecret(key)
		if len(s.names) < 1000 {
			s.names[key] = known
		}
	}
	return known
}

// quoted reads a string to its end.
func (s *scanner) quoted() {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at, s.cut = len(s.text), true
}

// word reads a number, true, false or null.
func (s *scanner) word() bool {
	from := s.at
	for s.at < len(s.text) && strings.IndexByte(" \t\n\r,]}:\"[{", s.text[s.at]) < 0 {
		s.at++
	}
	if s.at == len(s.text) && s.open >= 0 {
		s.cut = true
		return strings.IndexByte("-0123456789tfn", s.text[from]) >= 0
	}
	return isWord(s.text[from:s.at])
}

// isWord reports whether a text is a number, true, false or null.
func isWord(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return json.Valid([]byte(text))
		}
	}
	return text == "0" || text != "" && text[0] != '0'
}
