package jsonvalue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// Depth is how many lists and objects a value may have inside each other.
	Depth = 200
	// Bytes is how large a value may be as JSON.
	Bytes = 16 << 20
	// Digits bounds the length and the exponent of a number: the database stores no
	// number with more than 16,383 digits behind the point.
	Digits = 8000

	// MessageDepth is how deep a message may be: a value and its envelope.
	MessageDepth = Depth + 32
	// MessageBytes is how large a message may be.
	MessageBytes = Bytes + 1<<20

	// CopyDepth is how deep a copy of a stored value in a message may be. Consumers read the row;
	// consumers of an existing installation reject deeper messages.
	CopyDepth = 100
)

// Error names the refused part of a value and the reason.
type Error struct {
	Path string // such as parameters.a.b[3]
	Text string
}

// Error names the path and the reason.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Text
	}
	return e.Path + ": " + e.Text
}

// Check checks a value that is valid JSON: its size, its depth, and whether the database can
// store its texts and numbers. name is how its path begins; it may be empty. The error is an
// *Error.
func Check(name string, raw []byte) error {
	s := scan{raw: raw, size: len(raw), name: name}
	return s.run()
}

// TooDeep checks only the depth of a value that is valid JSON. It costs one pass over large
// values and nothing for small ones. The error is an *Error.
func TooDeep(name string, raw []byte) error {
	if !deeper(raw, Depth) {
		return nil
	}
	return Check(name, raw)
}

// Copy returns a value that is small and flat enough for a message, else nil.
func Copy(raw json.RawMessage, most int) json.RawMessage {
	if len(raw) > most || deeper(raw, CopyDepth) {
		return nil
	}
	return raw
}

// CheckMessage checks the size and depth of a message body, before anything decodes it.
func CheckMessage(body []byte) error {
	switch {
	case len(body) > MessageBytes:
		return &Error{"message", fmt.Sprintf("%d bytes; at most %d", len(body), MessageBytes)}
	case deeper(body, MessageDepth):
		return &Error{"message", fmt.Sprintf("nested more than %d levels deep", MessageDepth)}
	}
	return nil
}

// deeper counts brackets outside strings.
func deeper(raw []byte, most int) bool {
	if len(raw) <= most { // every level takes a byte
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// CheckValue checks the depth of a decoded value. The error is an *Error.
func CheckValue(name string, value any) error {
	path, ok := deepPart(value, 0)
	if ok {
		return nil
	}
	var b strings.Builder
	for _, step := range slices.Backward(path) {
		b.WriteString(step)
	}
	return &Error{shortened(strings.TrimPrefix(name+b.String(), ".")), tooDeep(Depth + 1)}
}

// deepPart returns the steps to a part that is too deep, innermost first; ok if there is none.
func deepPart(value any, depth int) (path []string, ok bool) {
	switch v := value.(type) {
	case []any:
		if depth == Depth {
			return nil, false
		}
		for i, item := range v {
			if path, ok = deepPart(item, depth+1); !ok {
				return append(path, "["+strconv.Itoa(i)+"]"), false
			}
		}
	case map[string]any:
		if depth == Depth {
			return nil, false
		}
		for key, item := range v {
			if path, ok = deepPart(item, depth+1); !ok {
				return append(path, member(key)), false
			}
		}
	}
	return nil, true
}

func tooDeep(levels int) string {
	return fmt.Sprintf("nested %d levels deep; at most %d", levels, Depth)
}

// member is a step of a path into an object.
func member(key string) string {
	for _, c := range key {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "[" + strconv.QuoteToASCII(key) + "]"
		}
	}
	if key == "" {
		return `[""]`
	}
	return "." + key
}

// maxPath bounds a path in an error.
const maxPath = 200

func shortened(path string) string {
	if len(path) <= maxPath {
		return path
	}
	return strings.ToValidUTF8(path[:maxPath/2], "") + " … " + strings.ToValidUTF8(path[len(path)-maxPath/2:], "")
}

// level is an open list or object of a scan.
type level struct {
	object bool
	index  int
	key    []byte // with its quotes
}

// scan goes through JSON once. It remembers where it is, for the path of an error.
type scan struct {
	raw    []byte
	name   string
	size   int // as the database writes it: numbers without exponents
	levels []level
	key    bool // the next string is the key of a member
}

func (s *scan) fail(format string, args ...any) error {
	var b strings.Builder
	b.WriteString(s.name)
	for i, l := range s.levels {
		switch {
		case !l.object:
			b.WriteString("[" + strconv.Itoa(l.index) + "]")
		case l.key != nil:
			var key string
			_ = json.Unmarshal(l.key, &key) // it was scanned
			b.WriteString(member(key))
		case i < len(s.levels)-1:
			b.WriteString(".?")
		}
	}
	return &Error{shortened(strings.TrimPrefix(b.String(), ".")), fmt.Sprintf(format, args...)}
}

func (s *scan) run() error {
	if len(s.raw) > Bytes {
		return s.tooLarge()
	}
	for i := 0; i < len(s.raw); i++ {
		switch c := s.raw[i]; c {
		case '"':
			end := closing(s.raw, i)
			if err := s.text(s.raw[i:end]); err != nil {
				return err
			}
			if s.key {
				s.levels[len(s.levels)-1].key, s.key = s.raw[i:end], false
			}
			i = end - 1
		case '{', '[':
			if len(s.levels) == Depth {
				return s.fail("%s", tooDeep(Depth+1))
			}
			s.levels, s.key = append(s.levels, level{object: c == '{'}), c == '{'
		case '}', ']':
			if len(s.levels) > 0 {
				s.levels = s.levels[:len(s.levels)-1]
			}
			s.key = false
		case ',':
			if last := len(s.levels) - 1; last >= 0 {
				s.levels[last].index++
				s.key = s.levels[last].object
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end := i + 1
			for end < len(s.raw) && strings.IndexByte("0123456789+-.eE", s.raw[end]) >= 0 {
				end++
			}
			if err := s.number(s.raw[i:end]); err != nil {
				return err
			}
			i = end - 1
		}
	}
	return nil
}

func (s *scan) tooLarge() error {
	s.levels = nil
	return s.fail("%d bytes as JSON; at most %d", s.size, Bytes)
}

// closing is the place behind the string that begins at i.
func closing(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// text checks a string with its quotes.
func (s *scan) text(quoted []byte) error {
	if !utf8.Valid(quoted) {
		return s.fail("the text is not valid UTF-8")
	}
	for rest := quoted; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 || at+1 >= len(rest) {
			return nil
		}
		if rest[at+1] != 'u' {
			rest = rest[at+2:]
			continue
		}
		unit, known := escaped(rest[at:])
		rest = rest[min(at+6, len(rest)):]
		switch {
		case known && unit == 0:
			return s.fail("the text contains U+0000, which cannot be stored")
		case known && unit >= 0xDC00 && unit <= 0xDFFF:
			return s.fail("the text contains half of a surrogate pair")
		case known && unit >= 0xD800 && unit <= 0xDBFF:
			if low, ok := escaped(rest); !ok || low < 0xDC00 || low > 0xDFFF {
				return s.fail("the text contains half of a surrogate pair")
			}
			rest = rest[6:]
		}
	}
}

// escaped is the code unit of an escape \uXXXX with which text begins.
func escaped(text []byte) (uint64, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 32)
	return unit, err == nil
}

// number checks a number. The database writes it without its exponent.
func (s *scan) number(text []byte) error {
	exponent := 0
	if at := bytes.IndexAny(text, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(string(text[at+1:])); err != nil {
			exponent = Digits + 1
		}
	}
	if exponent = max(exponent, -exponent); len(text) > Digits || exponent > Digits {
		return s.fail("the number has more than %d digits", Digits)
	}
	if s.size += exponent; s.size > Bytes {
		return s.tooLarge()
	}
	return nil
}
